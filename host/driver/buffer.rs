//! Memory of one device with an owner.

use std::sync::Arc;

use super::{Device, DevicePtr, DriverError};

/// Device memory that is freed when dropped. Whoever enqueues work on it keeps it until the work is done, as
/// [`Device::launch`] demands.
pub struct DeviceBuffer {
    device: Arc<dyn Device>,
    address: DevicePtr,
    bytes: u64,
}

impl DeviceBuffer {
    /// Allocates `bytes`, whose contents are undefined.
    pub fn new(device: Arc<dyn Device>, bytes: u64) -> Result<Self, DriverError> {
        let address = device.allocate(bytes)?;
        Ok(Self { device, address, bytes })
    }

    /// Allocates and fills a copy of `source`.
    pub fn from_bytes(device: Arc<dyn Device>, source: &[u8]) -> Result<Self, DriverError> {
        let buffer = Self::new(device, source.len() as u64)?;
        // SAFETY: the allocation has this length and nothing else knows its address yet.
        unsafe { buffer.device.copy_to_device(buffer.address, source)? };
        Ok(buffer)
    }

    /// Address of the first byte.
    pub fn address(&self) -> DevicePtr {
        self.address
    }

    /// Length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets every byte.
    ///
    /// # Safety
    /// No enqueued or running work uses the buffer.
    pub unsafe fn fill(&self, byte: u8) -> Result<(), DriverError> {
        // SAFETY: the range is this buffer; the caller vouches for the rest.
        unsafe { self.device.fill(self.address, byte, self.bytes) }
    }

    /// Copies the whole buffer to the host.
    ///
    /// # Safety
    /// No enqueued or running work writes the buffer.
    pub unsafe fn to_bytes(&self) -> Result<Vec<u8>, DriverError> {
        let mut bytes = vec![0; self.bytes as usize];
        // SAFETY: the range is this buffer; the caller vouches for the rest.
        unsafe { self.device.copy_to_host(&mut bytes, self.address)? };
        Ok(bytes)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        // SAFETY: the address came from this device's `allocate`; whoever enqueued work on it waited for that work.
        if let Err(error) = unsafe { self.device.free(self.address) } {
            tracing::warn!(%error, "device memory was not freed");
        }
    }
}
