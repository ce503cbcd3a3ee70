//! Device memory of the node: physical memories, the address spaces that map them, and multicast objects.

mod access;
mod atomic;
mod multicast;
mod paged;
mod stamps;
mod window;

pub use access::{AccessKind, AccessProblem, MemoryError};
pub use atomic::AtomicError;
pub(crate) use atomic::{atomic_update, device_update};
pub(crate) use paged::PagedBytes;
pub(crate) use stamps::StampKind;
pub(crate) use window::*;

use std::collections::HashMap;

use crate::node::{GpuId, MemoryHandle};
use crate::ordering::GlobalWord;

/// First device address. Every mapping of the node gets its own range, whichever GPU it is for, so that a pointer used
/// on the wrong GPU is recognised.
const DEVICE_BASE: u64 = 0x7000_0000_0000;
/// Mappings start at multiples of this, with at least one unmapped chunk behind each.
const CHUNK_SHIFT: u32 = 21;
/// Pages of device memory are allocated on first write.
const DEVICE_PAGE_SHIFT: u32 = 16;

/// A physical location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) memory: u32,
    pub(crate) offset: u64,
}

/// Physical memory of one GPU.
#[derive(Debug)]
pub(crate) struct Physical {
    pub(crate) gpu: u32,
    pub(crate) bytes: PagedBytes,
    mappings: u32,
    released: bool,
    /// Knowledge left at its words by strong writes, by offset.
    pub(crate) words: HashMap<u64, GlobalWord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Memory(u32),
    Multicast(u32),
}

#[derive(Debug, Clone, Copy)]
struct Mapping {
    gpu: u32,
    base: u64,
    bytes: u64,
    target: Target,
    live: bool,
    /// Made by `allocate`, which released the handle at once.
    allocated: bool,
}

/// All device memory.
#[derive(Debug)]
pub(crate) struct NodeMemory {
    gpus: u32,
    limit: u64,
    used: Vec<u64>,
    memories: Vec<Option<Physical>>,
    multicasts: Vec<Option<multicast::Multicast>>,
    mappings: Vec<Mapping>,
    /// Mapping index plus one for each chunk of the address range handed out so far; 0 where there is a gap.
    chunks: Vec<u32>,
}

impl NodeMemory {
    pub(crate) fn new(gpus: u32, limit: u64) -> Self {
        Self {
            gpus,
            limit,
            used: vec![0; gpus as usize],
            memories: Vec::new(),
            multicasts: Vec::new(),
            mappings: Vec::new(),
            // The first chunk stays unmapped, so that an address just below the first mapping is caught too.
            chunks: vec![0],
        }
    }

    fn check_gpu(&self, gpu: GpuId) -> Result<(), MemoryError> {
        if gpu.0 < self.gpus { Ok(()) } else { Err(MemoryError::NoSuchGpu { gpu, gpus: self.gpus }) }
    }

    #[inline]
    pub(crate) fn physical(&self, memory: u32) -> &Physical {
        self.memories[memory as usize].as_ref().expect("a mapped memory exists")
    }

    #[inline]
    pub(crate) fn physical_mut(&mut self, memory: u32) -> &mut Physical {
        self.memories[memory as usize].as_mut().expect("a mapped memory exists")
    }

    pub(crate) fn create(&mut self, gpu: GpuId, bytes: u64) -> Result<MemoryHandle, MemoryError> {
        self.check_gpu(gpu)?;
        if bytes == 0 {
            return Err(MemoryError::ZeroBytes);
        }
        let used = &mut self.used[gpu.0 as usize];
        let free = self.limit - *used;
        if bytes > free {
            return Err(MemoryError::OutOfMemory { gpu, wanted: bytes, free, limit: self.limit });
        }
        *used += bytes;
        self.memories.push(Some(Physical {
            gpu: gpu.0,
            bytes: PagedBytes::new(bytes, DEVICE_PAGE_SHIFT),
            mappings: 0,
            released: false,
            words: HashMap::new(),
        }));
        Ok(MemoryHandle(self.memories.len() as u32 - 1))
    }

    fn live_memory(&self, memory: MemoryHandle) -> Result<&Physical, MemoryError> {
        self.memories
            .get(memory.0 as usize)
            .and_then(Option::as_ref)
            .filter(|physical| !physical.released)
            .ok_or(MemoryError::NoSuchMemory(memory))
    }

    fn add_mapping(&mut self, gpu: u32, bytes: u64, target: Target) -> u64 {
        let first = self.chunks.len();
        let base = DEVICE_BASE + ((first as u64) << CHUNK_SHIFT);
        self.mappings.push(Mapping { gpu, base, bytes, target, live: true, allocated: false });
        let index = self.mappings.len() as u32;
        self.chunks.resize(first + bytes.div_ceil(1 << CHUNK_SHIFT) as usize, index);
        self.chunks.push(0);
        base
    }

    pub(crate) fn map(&mut self, gpu: GpuId, memory: MemoryHandle) -> Result<u64, MemoryError> {
        self.check_gpu(gpu)?;
        let bytes = self.live_memory(memory)?.bytes.bytes();
        self.physical_mut(memory.0).mappings += 1;
        Ok(self.add_mapping(gpu.0, bytes, Target::Memory(memory.0)))
    }

    fn mapping_at(&self, gpu: GpuId, address: u64) -> Result<usize, MemoryError> {
        self.check_gpu(gpu)?;
        match self.lookup(address) {
            Some(index) if self.mappings[index].base == address && self.mappings[index].gpu == gpu.0 => Ok(index),
            _ => Err(MemoryError::NotAMapping { gpu, address }),
        }
        .and_then(|index| {
            if self.mappings[index].live { Ok(index) } else { Err(MemoryError::NotAMapping { gpu, address }) }
        })
    }

    pub(crate) fn unmap(&mut self, gpu: GpuId, address: u64) -> Result<(), MemoryError> {
        let index = self.mapping_at(gpu, address)?;
        self.mappings[index].live = false;
        match self.mappings[index].target {
            Target::Memory(memory) => {
                self.physical_mut(memory).mappings -= 1;
                self.collect(memory);
            }
            Target::Multicast(object) => self.drop_multicast_mapping(object),
        }
        Ok(())
    }

    pub(crate) fn release(&mut self, memory: MemoryHandle) -> Result<(), MemoryError> {
        self.live_memory(memory)?;
        self.physical_mut(memory.0).released = true;
        self.collect(memory.0);
        Ok(())
    }

    pub(crate) fn allocate(&mut self, gpu: GpuId, bytes: u64) -> Result<u64, MemoryError> {
        let memory = self.create(gpu, bytes)?;
        let address = self.map(gpu, memory)?;
        self.physical_mut(memory.0).released = true;
        self.mappings.last_mut().expect("just mapped").allocated = true;
        Ok(address)
    }

    /// Places a module's variable, outside the configured limit.
    pub(crate) fn place_variable(&mut self, gpu: u32, contents: &[u8]) -> u64 {
        let mut bytes = PagedBytes::new(contents.len().max(1) as u64, DEVICE_PAGE_SHIFT);
        bytes.write(0, contents);
        let length = bytes.bytes();
        self.memories.push(Some(Physical { gpu, bytes, mappings: 1, released: false, words: HashMap::new() }));
        self.add_mapping(gpu, length, Target::Memory(self.memories.len() as u32 - 1))
    }

    pub(crate) fn free(&mut self, gpu: GpuId, address: u64) -> Result<(), MemoryError> {
        let index = self.mapping_at(gpu, address)?;
        if !self.mappings[index].allocated {
            return Err(MemoryError::NotAllocated { address });
        }
        self.unmap(gpu, address)
    }

    /// Frees a memory that nobody maps, binds or holds any more.
    fn collect(&mut self, memory: u32) {
        let bound = self.multicasts.iter().flatten().any(|object| object.binds(memory));
        let physical = self.physical(memory);
        if physical.released && physical.mappings == 0 && !bound {
            let (gpu, bytes) = (physical.gpu as usize, physical.bytes.bytes());
            self.used[gpu] -= bytes;
            self.memories[memory as usize] = None;
        }
    }

    #[inline]
    fn lookup(&self, address: u64) -> Option<usize> {
        let chunk = (address.wrapping_sub(DEVICE_BASE) >> CHUNK_SHIFT) as usize;
        match self.chunks.get(chunk) {
            Some(&index) if index != 0 => Some(index as usize - 1),
            _ => None,
        }
    }

    /// The mapping that holds `bytes` bytes at `address` for `gpu`.
    #[inline]
    fn mapping_of(&self, gpu: u32, address: u64, bytes: u64) -> Result<&Mapping, AccessProblem> {
        if let Some(index) = self.lookup(address) {
            let mapping = &self.mappings[index];
            if mapping.live && mapping.gpu == gpu && address - mapping.base + bytes <= mapping.bytes {
                return Ok(mapping);
            }
        }
        Err(self.why_not_mapped(gpu, address, bytes))
    }

    #[cold]
    fn why_not_mapped(&self, gpu: u32, address: u64, bytes: u64) -> AccessProblem {
        // A register may hold an address up to the last one, where the access would wrap around.
        let end = address.saturating_add(bytes);
        let below = self.mappings.iter().rev().find(|mapping| mapping.base <= address);
        match below {
            Some(mapping) if self.lookup(address).is_some() && !mapping.live => {
                AccessProblem::Freed { base: mapping.base }
            }
            Some(mapping) if end <= mapping.base + mapping.bytes => {
                debug_assert_ne!(mapping.gpu, gpu);
                AccessProblem::OtherGpu { gpu: mapping.gpu }
            }
            Some(mapping) if address - mapping.base < mapping.bytes + (2 << CHUNK_SHIFT) => AccessProblem::PastEnd {
                base: mapping.base,
                mapped_bytes: mapping.bytes,
                distance: end - mapping.base - mapping.bytes,
            },
            _ => AccessProblem::Unmapped,
        }
    }

    /// Finds ordinary memory, on this GPU or a peer.
    #[inline]
    pub(crate) fn locate(&self, gpu: u32, address: u64, bytes: u64) -> Result<Place, AccessProblem> {
        let mapping = self.mapping_of(gpu, address, bytes)?;
        match mapping.target {
            Target::Memory(memory) => Ok(Place { memory, offset: address - mapping.base }),
            Target::Multicast(_) => Err(AccessProblem::PlainAccessToMulticast),
        }
    }
}
