//! What the host asks of a node: modules, memory, launches, counters.

use std::sync::Arc;

use crate::launch::{self, LaunchError};
use crate::memory::{MemoryError, Place};
use crate::node::{Counters, DevicePtr, GpuId, LaunchConfig, MemoryHandle, ModuleId, MulticastHandle, NodeConfig};
use crate::program::Kernel;
use crate::ptx::{self, PtxError};
use crate::scheduler::{LoadedModule, Node};
use crate::stream::{Command, PendingKernel};

impl Node {
    /// How the node was configured.
    pub fn config(&self) -> &NodeConfig {
        &self.machine.config
    }

    /// Decodes a module and places its variables on every GPU.
    pub fn load_module(&mut self, ptx: &str) -> Result<ModuleId, PtxError> {
        let module = ptx::load(ptx)?;
        let variables = (0..self.machine.config.gpus)
            .map(|gpu| {
                let place = |bytes: &[u8]| self.machine.memory.place_variable(gpu, bytes);
                module.variables.iter().map(|variable| &variable.bytes[..]).map(place).collect()
            })
            .collect();
        self.modules.push(LoadedModule { module, variables });
        Ok(ModuleId(self.modules.len() as u32 - 1))
    }

    /// A kernel of a loaded module.
    pub fn kernel(&self, module: ModuleId, name: &str) -> Option<Arc<Kernel>> {
        let loaded = self.modules.get(module.0 as usize)?;
        loaded.module.kernels.iter().find(|kernel| kernel.name == name).cloned()
    }

    /// Creates physical memory on a GPU.
    pub fn create_memory(&mut self, gpu: GpuId, bytes: u64) -> Result<MemoryHandle, MemoryError> {
        self.machine.memory.create(gpu, bytes)
    }

    /// Maps memory into a GPU's address space; the memory may be another GPU's.
    pub fn map(&mut self, gpu: GpuId, memory: MemoryHandle) -> Result<DevicePtr, MemoryError> {
        self.machine.memory.map(gpu, memory)
    }

    /// Removes a mapping, of memory or of a multicast object.
    pub fn unmap(&mut self, gpu: GpuId, address: DevicePtr) -> Result<(), MemoryError> {
        self.machine.memory.unmap(gpu, address)
    }

    /// Gives up a handle; the memory goes when it is no longer mapped or bound.
    pub fn release_memory(&mut self, memory: MemoryHandle) -> Result<(), MemoryError> {
        self.machine.memory.release(memory)
    }

    /// Creates memory and maps it on its own GPU; the address is a multiple of 512.
    pub fn allocate(&mut self, gpu: GpuId, bytes: u64) -> Result<DevicePtr, MemoryError> {
        self.machine.memory.allocate(gpu, bytes)
    }

    /// Frees what [`Node::allocate`] returned.
    pub fn free(&mut self, gpu: GpuId, address: DevicePtr) -> Result<(), MemoryError> {
        self.machine.memory.free(gpu, address)
    }

    /// Creates a multicast object over some GPUs.
    pub fn create_multicast(&mut self, gpus: &[GpuId], bytes: u64) -> Result<MulticastHandle, MemoryError> {
        self.machine.memory.create_multicast(gpus, bytes)
    }

    /// Binds memory of one of its GPUs to a range of a multicast object.
    pub fn bind_multicast(
        &mut self,
        multicast: MulticastHandle,
        memory: MemoryHandle,
        multicast_offset: u64,
        memory_offset: u64,
        bytes: u64,
    ) -> Result<(), MemoryError> {
        self.machine.memory.bind_multicast(multicast, memory, multicast_offset, memory_offset, bytes)
    }

    /// Maps a multicast object into the address space of one of its GPUs.
    pub fn map_multicast(&mut self, gpu: GpuId, multicast: MulticastHandle) -> Result<DevicePtr, MemoryError> {
        self.machine.memory.map_multicast(gpu, multicast)
    }

    /// Gives up a multicast handle; its bindings end when it is no longer mapped.
    pub fn release_multicast(&mut self, multicast: MulticastHandle) -> Result<(), MemoryError> {
        self.machine.memory.release_multicast(multicast)
    }

    fn host_place(&self, gpu: GpuId, address: u64, bytes: u64) -> Result<Place, MemoryError> {
        if gpu.0 >= self.machine.config.gpus {
            return Err(MemoryError::NoSuchGpu { gpu, gpus: self.machine.config.gpus });
        }
        self.machine.memory.locate(gpu.0, address, bytes).map_err(|problem| MemoryError::Access {
            gpu,
            address,
            bytes,
            problem,
        })
    }

    /// Writes device memory at once.
    pub fn write(&mut self, gpu: GpuId, address: DevicePtr, bytes: &[u8]) -> Result<(), MemoryError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = bytes.len() as u64;
        let place = self.host_place(gpu, address, length)?;
        self.machine.effects += 1;
        self.machine.memory.physical_mut(place.memory).bytes.clear_stamps(place.offset, length);
        if self.machine.memory.physical_mut(place.memory).bytes.write(place.offset, bytes) {
            self.machine.wake_global_watchers(place, length);
        }
        Ok(())
    }

    /// Reads device memory at once; bytes that were never written are an error.
    pub fn read(&self, gpu: GpuId, address: DevicePtr, bytes: &mut [u8]) -> Result<(), MemoryError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = bytes.len() as u64;
        let place = self.host_place(gpu, address, length)?;
        self.machine.memory.physical(place.memory).bytes.read(place.offset, bytes).map_err(|hole| {
            let problem = crate::memory::AccessProblem::Uninitialised { first: address + (hole - place.offset) };
            MemoryError::Access { gpu, address, bytes: length, problem }
        })
    }

    /// Enqueues a kernel. `parameters` are the bytes of each, in order.
    pub fn launch(
        &mut self,
        gpu: GpuId,
        stream: u32,
        module: ModuleId,
        kernel: &str,
        config: LaunchConfig,
        parameters: &[&[u8]],
    ) -> Result<(), LaunchError> {
        let gpus = self.machine.config.gpus;
        if gpu.0 >= gpus {
            return Err(LaunchError::NoSuchGpu { gpu, gpus });
        }
        let loaded = self.modules.get(module.0 as usize).ok_or(LaunchError::NoSuchModule(module))?;
        let found = loaded.module.kernels.iter().find(|candidate| candidate.name == kernel);
        let kernel = found.cloned().ok_or_else(|| LaunchError::NoSuchKernel {
            kernel: kernel.to_string(),
            available: loaded.module.kernels.iter().map(|kernel| kernel.name.clone()).collect(),
        })?;
        let (parameters, shared_bytes) = launch::check(&kernel, &config, parameters, self.machine.config.sms_per_gpu)?;
        let variables = loaded.variables[gpu.0 as usize].clone();
        let pending = PendingKernel { kernel, variables, parameters, config, shared_bytes };
        self.enqueue(gpu, stream, Command::Launch(Box::new(pending)));
        Ok(())
    }

    /// Enqueues a copy between device addresses of the GPU (its own memory, or a peer's that it maps). A bad address is
    /// reported by the run, as [`crate::Fault::Copy`].
    pub fn enqueue_copy(&mut self, gpu: GpuId, stream: u32, destination: DevicePtr, source: DevicePtr, bytes: u64) {
        self.enqueue(gpu, stream, Command::Copy { destination, source, bytes });
    }

    /// Enqueues a fill.
    pub fn enqueue_fill(&mut self, gpu: GpuId, stream: u32, destination: DevicePtr, byte: u8, bytes: u64) {
        self.enqueue(gpu, stream, Command::Fill { destination, byte, bytes });
    }

    fn enqueue(&mut self, gpu: GpuId, stream: u32, command: Command) {
        self.streams.entry((gpu.0, stream)).or_default().commands.push_back(command);
    }

    /// True when everything enqueued on the stream has completed.
    pub fn is_idle(&self, gpu: GpuId, stream: u32) -> bool {
        self.streams.get(&(gpu.0, stream)).is_none_or(|stream| stream.commands.is_empty() && stream.running.is_none())
    }

    /// What a GPU has done since the last reset.
    pub fn counters(&self, gpu: GpuId) -> Counters {
        self.machine.counters.get(gpu.0 as usize).copied().unwrap_or_default()
    }

    /// Sets all counters to zero.
    pub fn reset_counters(&mut self) {
        self.machine.counters.fill(Counters::default());
    }

    /// Simulated time, in nanoseconds.
    pub fn time_ns(&self) -> u64 {
        self.machine.now
    }

    /// Warp instructions without any change of memory or barriers after which the run ends with
    /// [`crate::FaultCause::Spinning`]; 2^27 by default.
    pub fn set_spin_limit(&mut self, instructions: u64) {
        self.spin_limit = instructions;
    }

    /// Warp instructions after which the run ends with [`crate::FaultCause::InstructionLimit`], whatever they do; none by
    /// default.
    pub fn set_instruction_limit(&mut self, instructions: u64) {
        self.instruction_limit = instructions;
    }
}
