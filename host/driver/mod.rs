//! The one seam to a device.
//!
//! [`Device`] is what the library asks of a driver, no more: modules and launches, virtual memory and its sharing,
//! multicast objects, plain memory, copies, tensor maps and streams. A value of it is one rank's view of **one**
//! device. [`simulated`] implements it with the simulator of a multi-GPU NVLink node. The methods follow the calls of the CUDA
//! driver closely enough that an implementation on top of it is a translation.

mod buffer;
mod error;
mod handle;
pub mod simulated;
mod tensor_map;

pub use buffer::DeviceBuffer;
pub use error::DriverError;
pub use handle::{
    DeviceProperties, DevicePtr, Kernel, LaunchConfig, MemoryHandle, Module, MulticastHandle, RowCopy, ShareableHandle,
    Stream,
};
pub use tensor_map::{MAX_DIMENSIONS, TensorMap, TensorMapDescription, TensorMapElement, TensorMapSwizzle};

/// One device, as seen by the rank that uses it.
pub trait Device: Send + Sync {
    /// What the device is.
    fn properties(&self) -> &DeviceProperties;

    /// Loads PTX text (`cuModuleLoadData`). Modules live as long as the device.
    fn load_module(&self, ptx: &str) -> Result<Module, DriverError>;

    /// Finds a kernel by its entry name (`cuModuleGetFunction`).
    fn kernel(&self, module: Module, name: &str) -> Result<Kernel, DriverError>;

    /// Creates physical memory on this device that can be shared (`cuMemCreate`); `bytes` is a multiple of the
    /// granularity.
    fn create_memory(&self, bytes: u64) -> Result<MemoryHandle, DriverError>;

    /// The form of a memory handle that peers can import (`cuMemExportToShareableHandle`).
    fn export_memory(&self, memory: MemoryHandle) -> Result<ShareableHandle, DriverError>;

    /// A handle of this device's own for memory of a peer (`cuMemImportFromShareableHandle`).
    fn import_memory(&self, handle: &ShareableHandle) -> Result<MemoryHandle, DriverError>;

    /// Maps memory into this device's address space, readable and writable (`cuMemAddressReserve`, `cuMemMap`,
    /// `cuMemSetAccess`). The memory may be a peer's.
    fn map_memory(&self, memory: MemoryHandle, bytes: u64) -> Result<DevicePtr, DriverError>;

    /// Gives up a mapping of memory or of a multicast object (`cuMemUnmap`, `cuMemAddressFree`).
    ///
    /// # Safety
    /// No work that is enqueued or running on this device may use the range.
    unsafe fn unmap(&self, address: DevicePtr, bytes: u64) -> Result<(), DriverError>;

    /// Gives up a handle (`cuMemRelease`). The memory itself lives until every handle, mapping and multicast binding
    /// of it is gone, on whichever device.
    fn release_memory(&self, memory: MemoryHandle) -> Result<(), DriverError>;

    /// Creates a multicast object for `devices` devices (`cuMulticastCreate`).
    fn create_multicast(&self, devices: u32, bytes: u64) -> Result<MulticastHandle, DriverError>;

    /// The form of a multicast handle that peers can import.
    fn export_multicast(&self, multicast: MulticastHandle) -> Result<ShareableHandle, DriverError>;

    /// A handle of this device's own for a peer's multicast object.
    fn import_multicast(&self, handle: &ShareableHandle) -> Result<MulticastHandle, DriverError>;

    /// Adds this device to the object (`cuMulticastAddDevice`). All devices are added before any binds memory.
    fn join_multicast(&self, multicast: MulticastHandle) -> Result<(), DriverError>;

    /// Puts the first `bytes` of this device's memory behind the start of the object (`cuMulticastBindMem`).
    fn bind_multicast(&self, multicast: MulticastHandle, memory: MemoryHandle, bytes: u64) -> Result<(), DriverError>;

    /// Maps the object into this device's address space, once every device has bound its memory.
    fn map_multicast(&self, multicast: MulticastHandle, bytes: u64) -> Result<DevicePtr, DriverError>;

    /// Gives up a handle of a multicast object, which lives until the last handle and mapping of it is gone.
    fn release_multicast(&self, multicast: MulticastHandle) -> Result<(), DriverError>;

    /// Allocates memory that only this device uses (`cuMemAlloc`).
    fn allocate(&self, bytes: u64) -> Result<DevicePtr, DriverError>;

    /// Frees what [`Self::allocate`] gave.
    ///
    /// # Safety
    /// `address` came from this device's `allocate` and no work that is enqueued or running uses it.
    unsafe fn free(&self, address: DevicePtr) -> Result<(), DriverError>;

    /// Sets bytes, done on return (`cuMemsetD8`).
    ///
    /// # Safety
    /// The range is mapped memory of this device that no enqueued or running work uses.
    unsafe fn fill(&self, address: DevicePtr, byte: u8, bytes: u64) -> Result<(), DriverError>;

    /// Copies from the host, done on return.
    ///
    /// # Safety
    /// As for [`Self::fill`].
    unsafe fn copy_to_device(&self, destination: DevicePtr, source: &[u8]) -> Result<(), DriverError>;

    /// Copies to the host, done on return.
    ///
    /// # Safety
    /// The range is mapped memory of this device that no enqueued or running work writes.
    unsafe fn copy_to_host(&self, destination: &mut [u8], source: DevicePtr) -> Result<(), DriverError>;

    /// Enqueues a copy within the device (`cuMemcpy2DAsync`).
    ///
    /// # Safety
    /// When the stream reaches the copy, both sides are mapped memory of this device and do not overlap.
    unsafe fn enqueue_row_copy(&self, stream: Stream, copy: RowCopy) -> Result<(), DriverError>;

    /// Encodes a tensor map (`cuTensorMapEncodeTiled`).
    fn encode_tensor_map(&self, description: &TensorMapDescription) -> Result<TensorMap, DriverError>;

    /// Enqueues a kernel with its parameters as bytes, in order (`cuLaunchKernelEx`).
    ///
    /// # Safety
    /// The parameters have the sizes and meaning that the kernel declares, and what they point to stays valid until the
    /// kernel has finished.
    unsafe fn launch(
        &self,
        kernel: Kernel,
        config: LaunchConfig,
        stream: Stream,
        parameters: &[&[u8]],
    ) -> Result<(), DriverError>;

    /// Creates a stream.
    fn create_stream(&self) -> Result<Stream, DriverError>;

    /// Waits until all that was enqueued on the stream is done.
    fn synchronize(&self, stream: Stream) -> Result<(), DriverError>;
}
