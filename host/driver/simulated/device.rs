//! One rank's device on a simulated node.

use std::sync::Arc;

use simulator::node as sim;
use simulator::node::GpuId;

use super::{Shared, State, gate};
use crate::driver::{
    Device, DeviceProperties, DevicePtr, DriverError, Kernel, LaunchConfig, MemoryHandle, Module, MulticastHandle,
    RowCopy, ShareableHandle, Stream, TensorMap, TensorMapDescription, TensorMapElement, TensorMapSwizzle,
};

/// Granularity of memory that can be bound to a multicast object, as hardware has it. Pages that nobody touches cost
/// the simulator nothing.
const GRANULARITY_BYTES: u64 = 2 << 20;
/// Compute capability of the architecture that is simulated.
const COMPUTE_CAPABILITY: (u32, u32) = (10, 0);

/// A rank's view of a simulated node. Its rank is live until it is dropped.
pub struct SimulatedDevice {
    shared: Arc<Shared>,
    properties: DeviceProperties,
    rank: u32,
}

impl SimulatedDevice {
    pub(super) fn new(shared: Arc<Shared>, rank: u32) -> Self {
        shared.lock().gate.enter(rank);
        let properties = DeviceProperties {
            ordinal: rank,
            name: "simulated SM100".to_owned(),
            compute_capability: COMPUTE_CAPABILITY,
            sm_count: shared.config.sms_per_gpu,
            shared_memory_per_block_optin: plan::shared_memory::MAX_SHARED_BYTES,
            multicast_supported: true,
            memory_granularity_bytes: GRANULARITY_BYTES,
        };
        Self { shared, properties, rank }
    }

    fn gpu(&self) -> GpuId {
        GpuId(self.rank)
    }

    /// Makes one call on the node, unless a fault has stopped it.
    fn call<T, E: ToString>(
        &self,
        name: &'static str,
        body: impl FnOnce(&mut State) -> Result<T, E>,
    ) -> Result<T, DriverError> {
        let mut state = self.shared.lock();
        state.touch();
        state.check_fault(self.rank)?;
        body(&mut state).map_err(|error| DriverError::call(name, self.rank, error))
    }

    /// Makes a call that gives something back, which is possible after a fault too.
    fn give_back<E: ToString>(
        &self,
        name: &'static str,
        body: impl FnOnce(&mut State) -> Result<(), E>,
    ) -> Result<(), DriverError> {
        let mut state = self.shared.lock();
        state.touch();
        body(&mut state).map_err(|error| DriverError::call(name, self.rank, error))
    }

    fn queue(&self, stream: Stream, state: &State) -> Result<u32, String> {
        let streams = state.streams[self.rank as usize];
        u32::try_from(stream.0)
            .ok()
            .filter(|&number| number < streams)
            .ok_or_else(|| format!("there is no stream {}; the device has {streams}", stream.0))
    }
}

impl Drop for SimulatedDevice {
    fn drop(&mut self) {
        self.shared.lock().gate.leave(self.rank);
        // Those who wait may have waited for this rank only.
        self.shared.changed.notify_all();
    }
}

fn number(handle: u64) -> Result<u32, String> {
    u32::try_from(handle).map_err(|_| format!("{handle} is no handle of a simulated node"))
}

fn in_process(handle: &ShareableHandle) -> Result<u32, String> {
    match handle {
        ShareableHandle::InProcess(value) => number(*value),
        other => Err(format!("{other:?} does not come from a simulated node")),
    }
}

impl Device for SimulatedDevice {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn load_module(&self, ptx: &str) -> Result<Module, DriverError> {
        self.call("load_module", |state| {
            if let Some(module) = state.modules.get(ptx) {
                return Ok(Module(module.0.into()));
            }
            let module = state.node.load_module(ptx).map_err(|error| error.to_string())?;
            state.modules.insert(ptx.to_owned(), module);
            Ok::<_, String>(Module(module.0.into()))
        })
    }

    fn kernel(&self, module: Module, name: &str) -> Result<Kernel, DriverError> {
        self.call("kernel", |state| {
            let module = sim::ModuleId(number(module.0)?);
            if state.node.kernel(module, name).is_none() {
                return Err(format!("the module has no kernel {name}"));
            }
            state.kernels.push((module, name.to_owned()));
            Ok(Kernel(state.kernels.len() as u64 - 1))
        })
    }

    fn create_memory(&self, bytes: u64) -> Result<MemoryHandle, DriverError> {
        self.call("create_memory", |state| {
            if !bytes.is_multiple_of(GRANULARITY_BYTES) {
                return Err(format!("{bytes} bytes are not a multiple of the granularity, {GRANULARITY_BYTES}"));
            }
            let handle = state.node.create_memory(self.gpu(), bytes).map_err(|error| error.to_string())?;
            state.objects.add_memory(handle.0);
            Ok(MemoryHandle(handle.0.into()))
        })
    }

    fn export_memory(&self, memory: MemoryHandle) -> Result<ShareableHandle, DriverError> {
        self.call("export_memory", |state| match number(memory.0) {
            Ok(handle) if state.objects.has_memory(handle) => Ok(ShareableHandle::InProcess(handle.into())),
            _ => Err("there is no such memory"),
        })
    }

    fn import_memory(&self, handle: &ShareableHandle) -> Result<MemoryHandle, DriverError> {
        self.call("import_memory", |state| {
            let handle = in_process(handle)?;
            if !state.objects.has_memory(handle) {
                return Err("there is no such memory".to_owned());
            }
            state.objects.add_memory(handle);
            Ok(MemoryHandle(handle.into()))
        })
    }

    fn map_memory(&self, memory: MemoryHandle, _bytes: u64) -> Result<DevicePtr, DriverError> {
        self.call("map_memory", |state| {
            let memory = sim::MemoryHandle(number(memory.0)?);
            let address = state.node.map(self.gpu(), memory).map_err(|error| error.to_string())?;
            state.objects.mappings += 1;
            Ok::<_, String>(address)
        })
    }

    unsafe fn unmap(&self, address: DevicePtr, _bytes: u64) -> Result<(), DriverError> {
        self.give_back("unmap", |state| state.node.unmap(self.gpu(), address).map(|()| state.objects.mappings -= 1))
    }

    fn release_memory(&self, memory: MemoryHandle) -> Result<(), DriverError> {
        self.give_back("release_memory", |state| {
            let handle = number(memory.0)?;
            match state.objects.remove_memory(handle) {
                Some(true) => state.node.release_memory(sim::MemoryHandle(handle)).map_err(|error| error.to_string()),
                Some(false) => Ok(()),
                None => Err("there is no such memory".to_owned()),
            }
        })
    }

    fn create_multicast(&self, devices: u32, bytes: u64) -> Result<MulticastHandle, DriverError> {
        self.call("create_multicast", |state| {
            if !bytes.is_multiple_of(GRANULARITY_BYTES) {
                return Err(format!("{bytes} bytes are not a multiple of the granularity, {GRANULARITY_BYTES}"));
            }
            let gpus: Vec<GpuId> = (0..devices).map(GpuId).collect();
            let handle = state.node.create_multicast(&gpus, bytes).map_err(|error| error.to_string())?;
            state.objects.create_multicast(handle.0, devices);
            Ok(MulticastHandle(handle.0.into()))
        })
    }

    fn export_multicast(&self, multicast: MulticastHandle) -> Result<ShareableHandle, DriverError> {
        self.call("export_multicast", |state| match number(multicast.0) {
            Ok(handle) if state.objects.has_multicast(handle) => Ok(ShareableHandle::InProcess(handle.into())),
            _ => Err("there is no such multicast object"),
        })
    }

    fn import_multicast(&self, handle: &ShareableHandle) -> Result<MulticastHandle, DriverError> {
        self.call("import_multicast", |state| {
            let handle = in_process(handle)?;
            if !state.objects.import_multicast(handle) {
                return Err("there is no such multicast object".to_owned());
            }
            Ok(MulticastHandle(handle.into()))
        })
    }

    fn join_multicast(&self, multicast: MulticastHandle) -> Result<(), DriverError> {
        self.call("join_multicast", |state| state.objects.join(number(multicast.0)?, self.rank))
    }

    fn bind_multicast(&self, multicast: MulticastHandle, memory: MemoryHandle, bytes: u64) -> Result<(), DriverError> {
        self.call("bind_multicast", |state| {
            let (multicast, memory) = (number(multicast.0)?, number(memory.0)?);
            state.objects.check_complete(multicast)?;
            let (multicast, memory) = (sim::MulticastHandle(multicast), sim::MemoryHandle(memory));
            state.node.bind_multicast(multicast, memory, 0, 0, bytes).map_err(|error| error.to_string())
        })
    }

    fn map_multicast(&self, multicast: MulticastHandle, _bytes: u64) -> Result<DevicePtr, DriverError> {
        self.call("map_multicast", |state| {
            let multicast = sim::MulticastHandle(number(multicast.0)?);
            let address = state.node.map_multicast(self.gpu(), multicast).map_err(|error| error.to_string())?;
            state.objects.mappings += 1;
            Ok::<_, String>(address)
        })
    }

    fn release_multicast(&self, multicast: MulticastHandle) -> Result<(), DriverError> {
        self.give_back("release_multicast", |state| {
            let handle = number(multicast.0)?;
            match state.objects.remove_multicast(handle) {
                Some(true) => {
                    state.node.release_multicast(sim::MulticastHandle(handle)).map_err(|error| error.to_string())
                }
                Some(false) => Ok(()),
                None => Err("there is no such multicast object".to_owned()),
            }
        })
    }

    fn allocate(&self, bytes: u64) -> Result<DevicePtr, DriverError> {
        self.call("allocate", |state| {
            let address = state.node.allocate(self.gpu(), bytes).map_err(|error| error.to_string())?;
            state.objects.allocations += 1;
            Ok::<_, String>(address)
        })
    }

    unsafe fn free(&self, address: DevicePtr) -> Result<(), DriverError> {
        self.give_back("free", |state| state.node.free(self.gpu(), address).map(|()| state.objects.allocations -= 1))
    }

    unsafe fn fill(&self, address: DevicePtr, byte: u8, bytes: u64) -> Result<(), DriverError> {
        self.call("fill", |state| state.node.write(self.gpu(), address, &vec![byte; bytes as usize]))
    }

    unsafe fn copy_to_device(&self, destination: DevicePtr, source: &[u8]) -> Result<(), DriverError> {
        self.call("copy_to_device", |state| state.node.write(self.gpu(), destination, source))
    }

    unsafe fn copy_to_host(&self, destination: &mut [u8], source: DevicePtr) -> Result<(), DriverError> {
        self.call("copy_to_host", |state| state.node.read(self.gpu(), source, destination))
    }

    unsafe fn enqueue_row_copy(&self, stream: Stream, copy: RowCopy) -> Result<(), DriverError> {
        self.call("enqueue_row_copy", |state| {
            let stream = self.queue(stream, state)?;
            state.queued = true;
            let dense = [copy.destination_stride_bytes, copy.source_stride_bytes] == [copy.row_bytes; 2];
            let (pieces, bytes) = if dense { (1, copy.row_bytes * copy.rows) } else { (copy.rows, copy.row_bytes) };
            for piece in 0..pieces {
                let destination = copy.destination + piece * copy.destination_stride_bytes;
                let source = copy.source + piece * copy.source_stride_bytes;
                state.node.enqueue_copy(self.gpu(), stream, destination, source, bytes);
            }
            Ok::<_, String>(())
        })
    }

    fn encode_tensor_map(&self, description: &TensorMapDescription) -> Result<TensorMap, DriverError> {
        let dimensions = description.dimension_count.clamp(1, description.dimensions.len());
        let description = sim::TensorMapDescription {
            element: match description.element {
                TensorMapElement::Bf16 => sim::TensorMapElement::Bf16,
                TensorMapElement::U8 => sim::TensorMapElement::U8,
                TensorMapElement::U64 => sim::TensorMapElement::U64,
            },
            base: description.base,
            dimensions: description.dimensions[..dimensions].to_vec(),
            strides_bytes: description.strides_bytes[..dimensions - 1].to_vec(),
            box_dimensions: description.box_dimensions[..dimensions].to_vec(),
            element_strides: vec![1; dimensions],
            swizzle: match description.swizzle {
                TensorMapSwizzle::None => sim::TensorMapSwizzle::None,
                TensorMapSwizzle::B32 => sim::TensorMapSwizzle::B32,
                TensorMapSwizzle::B64 => sim::TensorMapSwizzle::B64,
                TensorMapSwizzle::B128 => sim::TensorMapSwizzle::B128,
            },
            nan_fill: false,
        };
        simulator::encode_tensor_map(&description)
            .map(|map| TensorMap(map.0))
            .map_err(|error| DriverError::call("encode_tensor_map", self.rank, error))
    }

    unsafe fn launch(
        &self,
        kernel: Kernel,
        config: LaunchConfig,
        stream: Stream,
        parameters: &[&[u8]],
    ) -> Result<(), DriverError> {
        let config = sim::LaunchConfig {
            grid: config.grid,
            cluster: config.cluster,
            block: config.block,
            dynamic_shared_bytes: config.dynamic_shared_bytes,
        };
        self.call("launch", |state| {
            let stream = self.queue(stream, state)?;
            let known = usize::try_from(kernel.0).ok().and_then(|index| state.kernels.get(index));
            let (module, name) = known.ok_or("there is no such kernel")?;
            let launched = state.node.launch(self.gpu(), stream, *module, name, config, parameters);
            launched.map_err(|error| error.to_string())?;
            state.queued = true;
            Ok::<_, String>(())
        })
    }

    fn create_stream(&self) -> Result<Stream, DriverError> {
        self.call("create_stream", |state| {
            let streams = &mut state.streams[self.rank as usize];
            *streams += 1;
            Ok::<_, String>(Stream((*streams - 1).into()))
        })
    }

    fn synchronize(&self, stream: Stream) -> Result<(), DriverError> {
        let queue = self.call("synchronize", |state| self.queue(stream, state))?;
        gate::synchronize(&self.shared, self.rank, queue)
    }
}
