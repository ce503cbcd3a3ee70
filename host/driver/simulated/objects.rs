//! What the devices of a node handed out: reference counts of shared handles, and a tally to find leaks with.
//!
//! The simulator has one handle for a memory or multicast object; a driver gives each importer its own. Here the
//! importers share the number, and the object is released with the last of them.

use std::collections::{BTreeMap, BTreeSet};

/// Numbers of things that were handed out and not given back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Handles of physical memory, each importer's counted.
    pub memory_handles: u32,
    /// Handles of multicast objects, each importer's counted.
    pub multicast_handles: u32,
    /// Mappings of either.
    pub mappings: u32,
    /// Plain allocations.
    pub allocations: u32,
}

#[derive(Default)]
pub(super) struct Objects {
    memory: BTreeMap<u32, u32>,
    multicast: BTreeMap<u32, MulticastState>,
    pub mappings: u32,
    pub allocations: u32,
}

struct MulticastState {
    handles: u32,
    devices: u32,
    joined: BTreeSet<u32>,
}

impl Objects {
    pub fn outstanding(&self) -> Outstanding {
        Outstanding {
            memory_handles: self.memory.values().sum(),
            multicast_handles: self.multicast.values().map(|multicast| multicast.handles).sum(),
            mappings: self.mappings,
            allocations: self.allocations,
        }
    }

    /// Counts one more handle of a memory, created or imported.
    pub fn add_memory(&mut self, handle: u32) {
        *self.memory.entry(handle).or_default() += 1;
    }

    pub fn has_memory(&self, handle: u32) -> bool {
        self.memory.contains_key(&handle)
    }

    /// Counts one handle less and says whether it was the last; `None` if there was none.
    pub fn remove_memory(&mut self, handle: u32) -> Option<bool> {
        let handles = self.memory.get_mut(&handle)?;
        *handles -= 1;
        let last = *handles == 0;
        if last {
            self.memory.remove(&handle);
        }
        Some(last)
    }

    pub fn create_multicast(&mut self, handle: u32, devices: u32) {
        self.multicast.insert(handle, MulticastState { handles: 1, devices, joined: BTreeSet::new() });
    }

    pub fn has_multicast(&self, handle: u32) -> bool {
        self.multicast.contains_key(&handle)
    }

    /// Counts an imported handle; false if there is no such object.
    pub fn import_multicast(&mut self, handle: u32) -> bool {
        self.multicast.get_mut(&handle).map(|multicast| multicast.handles += 1).is_some()
    }

    /// As [`Self::remove_memory`].
    pub fn remove_multicast(&mut self, handle: u32) -> Option<bool> {
        let multicast = self.multicast.get_mut(&handle)?;
        multicast.handles -= 1;
        let last = multicast.handles == 0;
        if last {
            self.multicast.remove(&handle);
        }
        Some(last)
    }

    /// Adds a device to a multicast object.
    pub fn join(&mut self, handle: u32, rank: u32) -> Result<(), String> {
        let multicast = self.multicast.get_mut(&handle).ok_or("there is no such multicast object")?;
        if rank >= multicast.devices {
            return Err(format!("the multicast object is for {} devices, from device 0", multicast.devices));
        }
        if !multicast.joined.insert(rank) {
            return Err("the device was added before".to_owned());
        }
        Ok(())
    }

    /// Whether memory may be bound: the driver wants all devices added first.
    pub fn check_complete(&self, handle: u32) -> Result<(), String> {
        let multicast = self.multicast.get(&handle).ok_or("there is no such multicast object")?;
        let (joined, devices) = (multicast.joined.len(), multicast.devices);
        if joined < devices as usize {
            return Err(format!("only {joined} of {devices} devices were added to the multicast object"));
        }
        Ok(())
    }
}
