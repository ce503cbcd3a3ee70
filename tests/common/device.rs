//! A device that passes every call on, except the one that it is told to fail, and that can claim other properties or
//! load other PTX than it is given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gemm_rs_ar::driver::{
    Device, DeviceProperties, DevicePtr, DriverError, Kernel, LaunchConfig, MemoryHandle, Module, MulticastHandle,
    RowCopy, ShareableHandle, Stream, TensorMap, TensorMapDescription,
};

/// A change to PTX text.
pub type Patch = Arc<dyn Fn(&str) -> String + Send + Sync>;

pub struct ScriptedDevice {
    pub inner: Arc<dyn Device>,
    pub properties: DeviceProperties,
    /// What becomes of the PTX that is loaded.
    pub patch: Option<Patch>,
    /// The call that fails, counted from 0. Calls that give something back are not counted and never fail.
    pub fail_at: Option<u32>,
    calls: AtomicU32,
}

impl ScriptedDevice {
    pub fn new(inner: Arc<dyn Device>) -> Self {
        let properties = inner.properties().clone();
        Self { inner, properties, patch: None, fail_at: None, calls: AtomicU32::new(0) }
    }

    pub fn failing_at(inner: Arc<dyn Device>, call: u32) -> Self {
        Self { fail_at: Some(call), ..Self::new(inner) }
    }

    pub fn patching(inner: Arc<dyn Device>, patch: Patch) -> Self {
        Self { patch: Some(patch), ..Self::new(inner) }
    }

    pub fn with_properties(inner: Arc<dyn Device>, change: impl FnOnce(&mut DeviceProperties)) -> Self {
        let mut device = Self::new(inner);
        change(&mut device.properties);
        device
    }

    fn step(&self, call: &'static str) -> Result<&dyn Device, DriverError> {
        if self.fail_at == Some(self.calls.fetch_add(1, Ordering::Relaxed)) {
            return Err(DriverError::call(call, self.properties.ordinal, "scripted failure"));
        }
        Ok(&*self.inner)
    }
}

// SAFETY of every unsafe call below: the caller's promise is passed on unchanged.
impl Device for ScriptedDevice {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn load_module(&self, ptx: &str) -> Result<Module, DriverError> {
        let device = self.step("load_module")?;
        match &self.patch {
            Some(patch) => device.load_module(&patch(ptx)),
            None => device.load_module(ptx),
        }
    }

    fn kernel(&self, module: Module, name: &str) -> Result<Kernel, DriverError> {
        self.step("kernel")?.kernel(module, name)
    }

    fn create_memory(&self, bytes: u64) -> Result<MemoryHandle, DriverError> {
        self.step("create_memory")?.create_memory(bytes)
    }

    fn export_memory(&self, memory: MemoryHandle) -> Result<ShareableHandle, DriverError> {
        self.step("export_memory")?.export_memory(memory)
    }

    fn import_memory(&self, handle: &ShareableHandle) -> Result<MemoryHandle, DriverError> {
        self.step("import_memory")?.import_memory(handle)
    }

    fn map_memory(&self, memory: MemoryHandle, bytes: u64) -> Result<DevicePtr, DriverError> {
        self.step("map_memory")?.map_memory(memory, bytes)
    }

    unsafe fn unmap(&self, address: DevicePtr, bytes: u64) -> Result<(), DriverError> {
        unsafe { self.inner.unmap(address, bytes) }
    }

    fn release_memory(&self, memory: MemoryHandle) -> Result<(), DriverError> {
        self.inner.release_memory(memory)
    }

    fn create_multicast(&self, devices: u32, bytes: u64) -> Result<MulticastHandle, DriverError> {
        self.step("create_multicast")?.create_multicast(devices, bytes)
    }

    fn export_multicast(&self, multicast: MulticastHandle) -> Result<ShareableHandle, DriverError> {
        self.step("export_multicast")?.export_multicast(multicast)
    }

    fn import_multicast(&self, handle: &ShareableHandle) -> Result<MulticastHandle, DriverError> {
        self.step("import_multicast")?.import_multicast(handle)
    }

    fn join_multicast(&self, multicast: MulticastHandle) -> Result<(), DriverError> {
        self.step("join_multicast")?.join_multicast(multicast)
    }

    fn bind_multicast(&self, multicast: MulticastHandle, memory: MemoryHandle, bytes: u64) -> Result<(), DriverError> {
        self.step("bind_multicast")?.bind_multicast(multicast, memory, bytes)
    }

    fn map_multicast(&self, multicast: MulticastHandle, bytes: u64) -> Result<DevicePtr, DriverError> {
        self.step("map_multicast")?.map_multicast(multicast, bytes)
    }

    fn release_multicast(&self, multicast: MulticastHandle) -> Result<(), DriverError> {
        self.inner.release_multicast(multicast)
    }

    fn allocate(&self, bytes: u64) -> Result<DevicePtr, DriverError> {
        self.step("allocate")?.allocate(bytes)
    }

    unsafe fn free(&self, address: DevicePtr) -> Result<(), DriverError> {
        unsafe { self.inner.free(address) }
    }

    unsafe fn fill(&self, address: DevicePtr, byte: u8, bytes: u64) -> Result<(), DriverError> {
        unsafe { self.step("fill")?.fill(address, byte, bytes) }
    }

    unsafe fn copy_to_device(&self, destination: DevicePtr, source: &[u8]) -> Result<(), DriverError> {
        unsafe { self.step("copy_to_device")?.copy_to_device(destination, source) }
    }

    unsafe fn copy_to_host(&self, destination: &mut [u8], source: DevicePtr) -> Result<(), DriverError> {
        unsafe { self.step("copy_to_host")?.copy_to_host(destination, source) }
    }

    unsafe fn enqueue_row_copy(&self, stream: Stream, copy: RowCopy) -> Result<(), DriverError> {
        unsafe { self.step("enqueue_row_copy")?.enqueue_row_copy(stream, copy) }
    }

    fn encode_tensor_map(&self, description: &TensorMapDescription) -> Result<TensorMap, DriverError> {
        self.step("encode_tensor_map")?.encode_tensor_map(description)
    }

    unsafe fn launch(
        &self,
        kernel: Kernel,
        config: LaunchConfig,
        stream: Stream,
        parameters: &[&[u8]],
    ) -> Result<(), DriverError> {
        unsafe { self.step("launch")?.launch(kernel, config, stream, parameters) }
    }

    fn create_stream(&self) -> Result<Stream, DriverError> {
        self.step("create_stream")?.create_stream()
    }

    fn synchronize(&self, stream: Stream) -> Result<(), DriverError> {
        self.step("synchronize")?.synchronize(stream)
    }
}
