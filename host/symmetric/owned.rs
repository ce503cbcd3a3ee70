//! Owners of driver objects: each gives its object back when dropped, whichever step failed.

use std::sync::Arc;

use crate::driver::{Device, DevicePtr, DriverError, MemoryHandle, MulticastHandle};

fn report(what: &str, result: Result<(), DriverError>) {
    if let Err(error) = result {
        tracing::warn!(%error, "{what} was not released");
    }
}

/// A handle of physical memory, this rank's or an imported one.
pub(super) struct OwnedMemory {
    device: Arc<dyn Device>,
    pub handle: MemoryHandle,
}

impl OwnedMemory {
    pub fn new(device: &Arc<dyn Device>, handle: MemoryHandle) -> Self {
        Self { device: Arc::clone(device), handle }
    }
}

impl Drop for OwnedMemory {
    fn drop(&mut self) {
        report("a memory handle", self.device.release_memory(self.handle));
    }
}

/// A handle of a multicast object.
pub(super) struct OwnedMulticast {
    device: Arc<dyn Device>,
    pub handle: MulticastHandle,
}

impl OwnedMulticast {
    pub fn new(device: &Arc<dyn Device>, handle: MulticastHandle) -> Self {
        Self { device: Arc::clone(device), handle }
    }
}

impl Drop for OwnedMulticast {
    fn drop(&mut self) {
        report("a multicast handle", self.device.release_multicast(self.handle));
    }
}

/// A mapping of memory or of a multicast object.
pub(super) struct Mapping {
    device: Arc<dyn Device>,
    pub address: DevicePtr,
    bytes: u64,
}

impl Mapping {
    pub fn new(device: &Arc<dyn Device>, address: DevicePtr, bytes: u64) -> Self {
        Self { device: Arc::clone(device), address, bytes }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: a launch's contract keeps its workspace, and so this mapping, until the launch is done.
        report("a mapping", unsafe { self.device.unmap(self.address, self.bytes) });
    }
}
