//! Multicast objects: one address range over memory of several GPUs.

use super::{AccessProblem, NodeMemory, Place, Target};
use crate::node::{GpuId, MemoryHandle, MulticastHandle};

use super::MemoryError;

/// A multicast object.
#[derive(Debug)]
pub(super) struct Multicast {
    bytes: u64,
    /// GPUs, each with its bindings.
    members: Vec<(u32, Vec<Binding>)>,
    mappings: u32,
    released: bool,
}

#[derive(Debug, Clone, Copy)]
struct Binding {
    start: u64,
    bytes: u64,
    memory: u32,
    memory_offset: u64,
}

impl Multicast {
    pub(super) fn binds(&self, memory: u32) -> bool {
        self.members.iter().flat_map(|(_, bindings)| bindings).any(|binding| binding.memory == memory)
    }
}

impl NodeMemory {
    fn live_multicast(&mut self, handle: MulticastHandle) -> Result<&mut Multicast, MemoryError> {
        self.multicasts
            .get_mut(handle.0 as usize)
            .and_then(Option::as_mut)
            .filter(|object| !object.released)
            .ok_or(MemoryError::NoSuchMulticast(handle))
    }

    pub(crate) fn create_multicast(&mut self, gpus: &[GpuId], bytes: u64) -> Result<MulticastHandle, MemoryError> {
        if bytes == 0 {
            return Err(MemoryError::ZeroBytes);
        }
        let distinct = gpus.iter().enumerate().all(|(index, gpu)| !gpus[..index].contains(gpu));
        if gpus.is_empty() || !distinct || gpus.iter().any(|gpu| gpu.0 >= self.gpus) {
            return Err(MemoryError::MulticastGpus { gpus: gpus.iter().map(|gpu| gpu.0).collect() });
        }
        let members = gpus.iter().map(|gpu| (gpu.0, Vec::new())).collect();
        self.multicasts.push(Some(Multicast { bytes, members, mappings: 0, released: false }));
        Ok(MulticastHandle(self.multicasts.len() as u32 - 1))
    }

    pub(crate) fn bind_multicast(
        &mut self,
        handle: MulticastHandle,
        memory: MemoryHandle,
        multicast_offset: u64,
        memory_offset: u64,
        bytes: u64,
    ) -> Result<(), MemoryError> {
        let physical = self.live_memory(memory)?;
        let (gpu, limit) = (GpuId(physical.gpu), physical.bytes.bytes());
        let object = self.live_multicast(handle)?;
        let reaches_past = |offset: u64, limit: u64| offset.checked_add(bytes).is_none_or(|end| end > limit);
        if bytes == 0 {
            return Err(MemoryError::ZeroBytes);
        }
        if reaches_past(multicast_offset, object.bytes) {
            let (offset, limit) = (multicast_offset, object.bytes);
            return Err(MemoryError::BindOutside { what: "multicast object", offset, bytes, limit });
        }
        if reaches_past(memory_offset, limit) {
            return Err(MemoryError::BindOutside { what: "memory", offset: memory_offset, bytes, limit });
        }
        let Some((_, bindings)) = object.members.iter_mut().find(|(member, _)| *member == gpu.0) else {
            return Err(MemoryError::NotInMulticast { gpu });
        };
        if bindings.iter().any(|b| multicast_offset < b.start + b.bytes && b.start < multicast_offset + bytes) {
            return Err(MemoryError::AlreadyBound { gpu });
        }
        bindings.push(Binding { start: multicast_offset, bytes, memory: memory.0, memory_offset });
        Ok(())
    }

    pub(crate) fn map_multicast(&mut self, gpu: GpuId, handle: MulticastHandle) -> Result<u64, MemoryError> {
        self.check_gpu(gpu)?;
        let object = self.live_multicast(handle)?;
        let bytes = object.bytes;
        if !object.members.iter().any(|(member, _)| *member == gpu.0) {
            return Err(MemoryError::NotInMulticast { gpu });
        }
        object.mappings += 1;
        Ok(self.add_mapping(gpu.0, bytes, Target::Multicast(handle.0)))
    }

    pub(crate) fn release_multicast(&mut self, handle: MulticastHandle) -> Result<(), MemoryError> {
        self.live_multicast(handle)?.released = true;
        self.collect_multicast(handle.0);
        Ok(())
    }

    pub(super) fn drop_multicast_mapping(&mut self, object: u32) {
        self.multicasts[object as usize].as_mut().expect("a mapped multicast object exists").mappings -= 1;
        self.collect_multicast(object);
    }

    fn collect_multicast(&mut self, object: u32) {
        let slot = &mut self.multicasts[object as usize];
        if slot.as_ref().is_some_and(|object| object.released && object.mappings == 0) {
            let bound = slot.take().expect("just seen");
            for binding in bound.members.iter().flat_map(|(_, bindings)| bindings) {
                if self.memories[binding.memory as usize].is_some() {
                    self.collect(binding.memory);
                }
            }
        }
    }

    /// Finds the memory of every GPU behind a multicast address, in the object's order.
    pub(crate) fn locate_multicast(
        &self,
        gpu: u32,
        address: u64,
        bytes: u64,
        places: &mut Vec<Place>,
    ) -> Result<(), AccessProblem> {
        places.clear();
        let mapping = self.mapping_of(gpu, address, bytes)?;
        let Target::Multicast(object) = mapping.target else {
            return Err(AccessProblem::NotMulticast);
        };
        let offset = address - mapping.base;
        let object = self.multicasts[object as usize].as_ref().expect("a mapped multicast object exists");
        for (gpu, bindings) in &object.members {
            let binding = bindings
                .iter()
                .find(|b| b.start <= offset && offset + bytes <= b.start + b.bytes)
                .ok_or(AccessProblem::Unbound { gpu: *gpu })?;
            places.push(Place { memory: binding.memory, offset: binding.memory_offset + (offset - binding.start) });
        }
        Ok(())
    }
}
