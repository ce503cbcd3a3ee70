//! Everything that warps and engines share.

use std::collections::HashMap;

use crate::cta::{AllocationQueue, Cluster, Cta, RecentClusters};
use crate::engines::Events;
use crate::memory::{AccessProblem, GenericTarget, NodeMemory, Place, decode_generic, shared_offset, shared_rank};
use crate::node::{Counters, NodeConfig};
use crate::ordering::{Foreign, GlobalTracker, TensorShadow};
use crate::program::StateSpace;
use crate::random::Random;
use crate::tcgen05::{Footprint, MmaScratch};
use crate::tensor_memory::TensorMemory;
use crate::trace::Observer;
use crate::warp::{Resume, WaitToken};
use crate::wgmma::WgmmaScratch;

/// Indexed storage with reuse of slots.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(value);
                slot
            }
            None => {
                self.slots.push(Some(value));
                self.slots.len() as u32 - 1
            }
        }
    }

    pub(crate) fn remove(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("the slot is in use")
    }

    /// Takes a value out for a while; `put` brings it back.
    pub(crate) fn take(&mut self, slot: u32) -> Option<T> {
        self.slots[slot as usize].take()
    }

    pub(crate) fn put(&mut self, slot: u32, value: T) {
        self.slots[slot as usize] = Some(value);
    }

    /// Frees the slot of a value that was taken.
    pub(crate) fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &T {
        self.slots[slot as usize].as_ref().expect("the slot is in use")
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut T {
        self.slots[slot as usize].as_mut().expect("the slot is in use")
    }

    pub(crate) fn try_get(&self, slot: u32) -> Option<&T> {
        self.slots.get(slot as usize).and_then(Option::as_ref)
    }

    pub(crate) fn try_get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize).and_then(Option::as_mut)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots.iter().enumerate().filter_map(|(slot, value)| Some((slot as u32, value.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(slot, value)| Some((slot as u32, value.as_mut()?)))
    }
}

/// What somebody may wait on a write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WatchKey {
    /// 8 bytes of device memory.
    Global { memory: u32, granule: u64 },
    /// 8 bytes of a CTA's shared memory.
    Shared { cta: u32, granule: u32 },
}

/// One SM.
#[derive(Debug)]
pub(crate) struct Sm {
    pub(crate) ctas: u32,
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u32,
    /// Allocated when first used, since it is large.
    pub(crate) tensor: Option<Box<SmTensor>>,
    pub(crate) allocation_waiters: AllocationQueue,
}

/// Tensor memory of an SM and its shadow.
#[derive(Debug)]
pub(crate) struct SmTensor {
    pub(crate) memory: TensorMemory,
    pub(crate) shadow: TensorShadow,
}

/// A lane group to be resumed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wake {
    pub(crate) token: WaitToken,
    pub(crate) resume: Resume,
}

/// The shared state of a node.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) config: NodeConfig,
    pub(crate) memory: NodeMemory,
    pub(crate) ctas: Slab<Box<Cta>>,
    pub(crate) clusters: Slab<Box<Cluster>>,
    pub(crate) sms: Vec<Vec<Sm>>,
    pub(crate) events: Events,
    pub(crate) random: Random,
    /// Simulated nanoseconds: one per warp instruction, more when everything waits.
    pub(crate) now: u64,
    /// Warp instructions executed.
    pub(crate) steps: u64,
    /// Counts changes of memory and synchronisation state.
    pub(crate) effects: u64,
    pub(crate) next_wait: u64,
    pub(crate) next_cta: u32,
    /// Number of the next asynchronous operation.
    pub(crate) next_operation: u64,
    pub(crate) wakes: Vec<Wake>,
    pub(crate) watchers: HashMap<WatchKey, Vec<WaitToken>>,
    pub(crate) counters: Vec<Counters>,
    pub(crate) tracker: GlobalTracker,
    pub(crate) recent: RecentClusters,
    /// Per GPU: what its completed launches knew of other clusters.
    pub(crate) launch_knowledge: Vec<Foreign>,
    /// CTAs whose last warp has exited; the scheduler frees them.
    pub(crate) retired: Vec<u32>,
    /// Buffers, so that instructions allocate nothing.
    pub(crate) mma_scratch: MmaScratch,
    pub(crate) wgmma_scratch: WgmmaScratch,
    pub(crate) footprint: Footprint,
    pub(crate) places: Vec<Place>,
    /// Who is told what happens.
    pub(crate) observer: Option<Observer>,
}

impl Machine {
    pub(crate) fn new(config: NodeConfig) -> Self {
        let sm = || Sm {
            ctas: 0,
            threads: 0,
            shared_bytes: 0,
            tensor: None,
            allocation_waiters: AllocationQueue::default(),
        };
        let sms = (0..config.gpus).map(|_| (0..config.sms_per_gpu).map(|_| sm()).collect()).collect();
        Self {
            memory: NodeMemory::new(config.gpus, config.memory_bytes_per_gpu),
            ctas: Slab::new(),
            clusters: Slab::new(),
            sms,
            events: Events::default(),
            random: Random::new(config.seed),
            now: 1,
            steps: 0,
            effects: 0,
            next_wait: 1,
            next_cta: 0,
            next_operation: 0,
            wakes: Vec::new(),
            watchers: HashMap::new(),
            counters: vec![Counters::default(); config.gpus as usize],
            tracker: GlobalTracker::default(),
            recent: RecentClusters::default(),
            launch_knowledge: vec![Foreign::default(); config.gpus as usize],
            retired: Vec::new(),
            mma_scratch: MmaScratch::default(),
            wgmma_scratch: WgmmaScratch::default(),
            footprint: Footprint::default(),
            places: Vec::new(),
            observer: None,
            config,
        }
    }

    #[inline]
    pub(crate) fn cta(&self, slot: u32) -> &Cta {
        self.ctas.get(slot)
    }

    #[inline]
    pub(crate) fn cta_mut(&mut self, slot: u32) -> &mut Cta {
        self.ctas.get_mut(slot)
    }

    pub(crate) fn wake(&mut self, token: WaitToken, resume: Resume) {
        self.wakes.push(Wake { token, resume });
    }

    /// Splits an address of one of the shared spaces, or a generic one, into CTA slot and offset.
    ///
    /// `immediate` marks an address that the program wrote as a constant: it carries no rank and means the executing
    /// CTA.
    pub(crate) fn shared_location(
        &self,
        own: u32,
        space: StateSpace,
        address: u64,
        immediate: bool,
    ) -> Result<(u32, u32), AccessProblem> {
        let address = match space {
            StateSpace::Generic => match decode_generic(address) {
                GenericTarget::Shared(address) => address,
                _ => return Err(AccessProblem::WrongSpace { wanted: "shared" }),
            },
            _ => address as u32,
        };
        self.shared_target(own, space == StateSpace::SharedCta, address, immediate)
    }

    /// The same for a 32-bit shared address.
    #[inline]
    pub(crate) fn shared_target(
        &self,
        own: u32,
        own_only: bool,
        address: u32,
        immediate: bool,
    ) -> Result<(u32, u32), AccessProblem> {
        let (rank, offset) = (shared_rank(address), shared_offset(address));
        let cta = self.cta(own);
        if rank == cta.rank || immediate || (own_only && rank == 0) {
            return Ok((own, offset));
        }
        if own_only {
            return Err(AccessProblem::SharedOfOtherCta { rank, own: cta.rank });
        }
        let cluster = self.clusters.get(cta.cluster);
        let slot = *cluster
            .ctas
            .get(rank as usize)
            .ok_or(AccessProblem::NoSuchCta { rank, ctas: cluster.ctas.len() as u32 })?;
        if self.cta(slot).exited {
            return Err(AccessProblem::CtaExited { rank });
        }
        Ok((slot, offset))
    }

    /// Refuses offsets past the CTA's shared memory.
    #[inline]
    pub(crate) fn check_shared(&self, cta: u32, offset: u32, bytes: u32) -> Result<(), AccessProblem> {
        let limit = self.cta(cta).shared.limit;
        if offset.checked_add(bytes).is_none_or(|end| end > limit) {
            return Err(AccessProblem::SharedOutside { offset, limit });
        }
        Ok(())
    }

    /// Wakes whoever polls these bytes of device memory.
    #[cold]
    pub(crate) fn wake_global_watchers(&mut self, place: Place, bytes: u64) {
        for granule in place.offset >> 3..=(place.offset + bytes - 1) >> 3 {
            self.wake_watchers(WatchKey::Global { memory: place.memory, granule });
        }
    }

    /// Wakes whoever polls these bytes of shared memory.
    #[cold]
    pub(crate) fn wake_shared_watchers(&mut self, cta: u32, offset: u32, bytes: u32) {
        for granule in offset >> 3..=(offset + bytes - 1) >> 3 {
            self.wake_watchers(WatchKey::Shared { cta, granule });
        }
    }

    fn wake_watchers(&mut self, key: WatchKey) {
        if let Some(tokens) = self.watchers.remove(&key) {
            self.wakes.extend(tokens.into_iter().map(|token| Wake { token, resume: Resume::Retry }));
        }
    }

    /// Forgets a lane group's interest in a key.
    pub(crate) fn unwatch(&mut self, key: WatchKey, wait: u64) {
        if let Some(tokens) = self.watchers.get_mut(&key) {
            tokens.retain(|token| token.wait != wait);
            if tokens.is_empty() {
                self.watchers.remove(&key);
            }
        }
    }

    /// Registers a lane group's interest in writes to a key.
    pub(crate) fn watch(&mut self, key: WatchKey, token: WaitToken) {
        match key {
            WatchKey::Global { memory, granule } => self.memory.physical_mut(memory).bytes.watch(granule << 3),
            WatchKey::Shared { cta, granule } => self.cta_mut(cta).shared.bytes.watch(u64::from(granule) << 3),
        }
        self.watchers.entry(key).or_default().push(token);
    }

    /// Stores up to 8 aligned bytes of device memory and wakes pollers.
    #[inline]
    pub(crate) fn store_global(&mut self, place: Place, width: u32, value: u64) {
        if self.memory.physical_mut(place.memory).bytes.store(place.offset, width, value) {
            self.wake_global_watchers(place, width.into());
        }
    }

    /// Counts bytes read from a memory by a GPU's instructions.
    #[inline]
    pub(crate) fn count_read(&mut self, gpu: u32, owner: u32, bytes: u64) {
        if gpu == owner {
            self.counters[gpu as usize].global_bytes_read += bytes;
        } else {
            self.counters[gpu as usize].nvlink_bytes_in += bytes;
            self.counters[owner as usize].nvlink_bytes_out += bytes;
        }
    }

    /// Counts bytes written to a memory by a GPU's instructions.
    #[inline]
    pub(crate) fn count_write(&mut self, gpu: u32, owner: u32, bytes: u64) {
        if gpu == owner {
            self.counters[gpu as usize].global_bytes_written += bytes;
        } else {
            self.counters[gpu as usize].nvlink_bytes_out += bytes;
            self.counters[owner as usize].nvlink_bytes_in += bytes;
        }
    }
}
