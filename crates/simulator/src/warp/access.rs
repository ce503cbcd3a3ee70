//! `ld` and `st` in every state space.

use super::Context;
use super::device_memory::Passed;
use super::step::{Flow, Step};
use crate::fault::{access_failure, at_lane};
use crate::machine::WatchKey;
use crate::memory::{AccessKind, AccessProblem, GenericTarget, Place, decode_generic};
use crate::node::OrderingRules;
use crate::ordering::{AccessSort, WriteSort, is_acquire, is_release};
use crate::program::{ElementType, Load, MemoryOrder, Operand, Scope, StateSpace, Store, WARP_LANES};

/// Where one lane's access goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    Global(u64),
    Shared { cta: u32, offset: u32 },
    Local(u64),
    Parameter(u64),
}

/// True for accesses that may race: everything but `.weak`.
pub(super) fn is_strong(order: MemoryOrder) -> bool {
    order != MemoryOrder::Weak
}

/// Mixes a value into a hash; only equality of repeated loads matters.
#[inline]
pub(super) fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Extends a loaded value to its register.
#[inline]
fn extend(value: u64, element: ElementType, register_bytes: u8) -> u64 {
    match element {
        ElementType::Signed(bytes) if bytes < register_bytes => {
            let shift = 64 - 8 * u32::from(bytes);
            let wide = ((value << shift) as i64 >> shift) as u64;
            if register_bytes == 8 { wide } else { wide & ((1 << (8 * u32::from(register_bytes))) - 1) }
        }
        _ => value,
    }
}

impl Context<'_> {
    /// Decides where an address of a lane points.
    #[inline]
    pub(super) fn target(&self, space: StateSpace, address: u64, immediate: bool) -> Result<Target, AccessProblem> {
        let shared = |address: u32, own_only: bool, immediate: bool| {
            self.machine
                .shared_target(self.warp.cta, own_only, address, immediate)
                .map(|(cta, offset)| Target::Shared { cta, offset })
        };
        match space {
            StateSpace::Global | StateSpace::Constant => match decode_generic(address) {
                GenericTarget::Global(address) => Ok(Target::Global(address)),
                _ => Err(AccessProblem::WrongSpace { wanted: "global" }),
            },
            StateSpace::SharedCta => shared(address as u32, true, immediate),
            StateSpace::SharedCluster => shared(address as u32, false, immediate),
            StateSpace::Local => Ok(Target::Local(address & 0xffff_ffff)),
            StateSpace::Parameter => Ok(Target::Parameter(match decode_generic(address) {
                GenericTarget::Parameter(offset) => offset.into(),
                _ => address,
            })),
            StateSpace::Generic => match decode_generic(address) {
                GenericTarget::Shared(address) => shared(address, false, false),
                GenericTarget::Local(offset) => Ok(Target::Local(offset.into())),
                GenericTarget::Parameter(offset) => Ok(Target::Parameter(offset.into())),
                GenericTarget::Global(address) => Ok(Target::Global(address)),
            },
        }
    }

    pub(super) fn load(&mut self, load: &Load) -> Step {
        let element = load.element.bytes();
        let bytes = element * load.destinations.len() as u32;
        let strong = is_strong(load.order);
        let immediate = matches!(load.address.base, Operand::Immediate(_));
        let mut hash = 0;
        let mut keys = [WatchKey::Shared { cta: u32::MAX, granule: 0 }; WARP_LANES];
        let mut watched = 0;
        let mut seen = (0, 0);
        let mut passed = Passed::default();
        let mut rest = self.lanes;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let address = self.address(load.address, lane);
            let fail = |problem| access_failure(lane, AccessKind::Load, address, bytes, problem);
            if address & u64::from(bytes.next_power_of_two() - 1) != 0 {
                return Err(fail(AccessProblem::Misaligned { required: bytes.next_power_of_two() }));
            }
            let target = self.target(load.space, address, immediate).map_err(fail)?;
            let mut values = [0; 8];
            match target {
                Target::Global(address) => {
                    let place = self.global_load(
                        address,
                        bytes,
                        element,
                        (load.order, load.scope),
                        lane,
                        &mut values,
                        &mut passed,
                    )?;
                    keys[watched] = WatchKey::Global { memory: place.memory, granule: place.offset >> 3 };
                    watched += usize::from(strong);
                }
                Target::Shared { cta, offset } => {
                    self.shared_load(cta, offset, address, bytes, element, load.order, lane, &mut values)?;
                    keys[watched] = WatchKey::Shared { cta, granule: offset >> 3 };
                    watched += usize::from(strong);
                }
                Target::Local(offset) => {
                    self.local_bytes(offset, address, (bytes, AccessKind::Load), lane, |memory| {
                        for (value, piece) in values.iter_mut().zip(memory.chunks_exact(element as usize)) {
                            *value = little_endian(piece);
                        }
                    })?
                }
                Target::Parameter(offset) => {
                    let parameters = &self.launch.parameters;
                    let limit = parameters.len() as u32;
                    let memory = usize::try_from(offset)
                        .ok()
                        .and_then(|start| parameters.get(start..start.checked_add(bytes as usize)?))
                        .ok_or_else(|| fail(AccessProblem::ParameterOutside { offset, limit }))?;
                    for (value, piece) in values.iter_mut().zip(memory.chunks_exact(element as usize)) {
                        *value = little_endian(piece);
                    }
                }
            }
            for (destination, &value) in load.destinations.iter().zip(&values) {
                if let Some(register) = destination {
                    self.set(*register, lane, extend(value, load.element, load.register_bytes));
                }
                if strong {
                    hash = mix(hash, value);
                    seen = (address, value);
                }
            }
        }
        if strong && watched > 0 {
            let keys = keys[..watched].iter().copied();
            if self.polls_in_vain(hash, keys) {
                self.suspend_polling(seen.0, seen.1);
                return Ok(Flow::Suspended);
            }
        }
        Ok(Flow::Next)
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn global_load(
        &mut self,
        address: u64,
        bytes: u32,
        element: u32,
        (order, scope): (MemoryOrder, Scope),
        lane: usize,
        values: &mut [u64; 8],
        passed: &mut Passed,
    ) -> Step<Place> {
        let fail = |problem| access_failure(lane, AccessKind::Load, address, bytes, problem);
        let gpu = self.launch.gpu;
        let place = self.machine.memory.locate(gpu, address, bytes.into()).map_err(fail)?;
        let physical = self.machine.memory.physical(place.memory);
        for (index, value) in values.iter_mut().enumerate().take((bytes / element) as usize) {
            let offset = u64::from(index as u32 * element);
            *value = physical.bytes.load(place.offset + offset, element).ok_or_else(|| {
                let first = (0..).find(|&byte| physical.bytes.load(place.offset + byte, 1).is_none()).unwrap_or(0);
                fail(AccessProblem::Uninitialised { first: address + first })
            })?;
        }
        let owner = physical.gpu;
        self.machine.count_read(gpu, owner, bytes.into());
        if is_strong(order) {
            self.read_word(place, order, scope);
        } else {
            self.check_global_read(place, bytes, false, address, lane, passed)?;
            self.stamp_global_read(place, bytes, passed);
        }
        Ok(place)
    }

    /// An acquire takes in what releases of the cluster left at a shared word.
    pub(super) fn acquire_shared(&mut self, target: u32, offset: u32) {
        let machine = &mut *self.machine;
        let rank = machine.cta(target).rank;
        let cta = machine.ctas.get_mut(self.warp.cta);
        let order = &mut cta.orders[self.warp.index as usize];
        match machine.clusters.get(cta.cluster).released.get(&(rank, offset)) {
            Some(knowledge) => order.observe(MemoryOrder::Acquire, knowledge, machine.now),
            None => order.note_acquire(machine.now),
        }
    }

    /// A release leaves what this warp knows at a shared word.
    pub(super) fn release_shared(&mut self, target: u32, offset: u32, order: MemoryOrder) {
        let rank = self.machine.cta(target).rank;
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        let knowledge = self.machine.clusters.get_mut(cta.cluster).released.entry((rank, offset)).or_default();
        cta.orders[self.warp.index as usize].publish(order, knowledge);
    }

    /// Bounds, mbarrier and race checks of a generic access to shared memory.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn check_shared_access(
        &mut self,
        cta: u32,
        offset: u32,
        address: u64,
        bytes: u32,
        kind: AccessKind,
        strong: bool,
        lane: usize,
    ) -> Step<()> {
        let sort = if strong { WriteSort::Strong } else { WriteSort::Weak };
        self.check_shared_sort(cta, offset, address, bytes, kind, sort, lane)
    }

    /// The same for a store, whose values the rules may let race.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn check_shared_store(
        &mut self,
        cta: u32,
        offset: u32,
        address: u64,
        element: u32,
        values: &[u64],
        strong: bool,
        lane: usize,
    ) -> Step<()> {
        let bytes = element * values.len() as u32;
        let unchanged = !strong && self.machine.config.rules == OrderingRules::Practised && {
            let memory = &self.machine.cta(cta).shared;
            let ones = u64::MAX >> (64 - 8 * element);
            offset.checked_add(bytes).is_some_and(|end| end <= memory.limit)
                && (offset..).step_by(element as usize).zip(values).all(|(at, &value)| {
                    memory.bytes.load(at.into(), element).is_some_and(|present| present == value & ones)
                })
        };
        let sort = match (strong, unchanged) {
            (true, _) => WriteSort::Strong,
            (false, true) => WriteSort::Unchanged,
            (false, false) => WriteSort::Weak,
        };
        self.check_shared_sort(cta, offset, address, bytes, AccessKind::Store, sort, lane)
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn check_shared_sort(
        &mut self,
        cta: u32,
        offset: u32,
        address: u64,
        bytes: u32,
        kind: AccessKind,
        sort: WriteSort,
        lane: usize,
    ) -> Step<()> {
        let fail = |problem| access_failure(lane, kind, address, bytes, problem);
        self.machine.check_shared(cta, offset, bytes).map_err(fail)?;
        let own = self.warp.cta;
        let index = self.warp.index as usize;
        let checked = if cta == own {
            let cta = self.machine.ctas.get_mut(cta);
            cta.shared.check_plain(offset, bytes).map_err(fail)?;
            let (shadow, order) = (&mut cta.shared.shadow, &cta.orders[index]);
            if kind == AccessKind::Load {
                shadow.load(offset, bytes, sort == WriteSort::Strong, order)
            } else {
                shadow.store(offset, bytes, sort, order)
            }
        } else {
            // Two CTAs are needed at once: take the executing one's clocks out for a moment.
            let orders = std::mem::take(&mut self.machine.ctas.get_mut(own).orders);
            let target = self.machine.ctas.get_mut(cta);
            let plain = target.shared.check_plain(offset, bytes);
            let (shadow, order) = (&mut target.shared.shadow, &orders[index]);
            let checked = if kind == AccessKind::Load {
                shadow.load(offset, bytes, sort == WriteSort::Strong, order)
            } else {
                shadow.store(offset, bytes, sort, order)
            };
            self.machine.ctas.get_mut(own).orders = orders;
            plain.map_err(fail)?;
            checked
        };
        checked.map_err(|error| at_lane(lane, error))
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn shared_load(
        &mut self,
        cta: u32,
        offset: u32,
        address: u64,
        bytes: u32,
        element: u32,
        order: MemoryOrder,
        lane: usize,
        values: &mut [u64; 8],
    ) -> Step<()> {
        if is_acquire(order) {
            self.acquire_shared(cta, offset);
        }
        self.check_shared_access(cta, offset, address, bytes, AccessKind::Load, is_strong(order), lane)?;
        let shared = &self.machine.cta(cta).shared;
        for (index, value) in values.iter_mut().enumerate().take((bytes / element) as usize) {
            let at = u64::from(offset + index as u32 * element);
            *value = shared.bytes.load(at, element).ok_or_else(|| {
                let first = (0..).find(|&byte| shared.bytes.load(u64::from(offset) + byte, 1).is_none()).unwrap_or(0);
                let problem = AccessProblem::Uninitialised { first: address + first };
                access_failure(lane, AccessKind::Load, address, bytes, problem)
            })?;
        }
        Ok(())
    }

    /// Gives a lane's local memory to `use_it`.
    fn local_bytes(
        &mut self,
        offset: u64,
        address: u64,
        (bytes, kind): (u32, AccessKind),
        lane: usize,
        use_it: impl FnOnce(&mut [u8]),
    ) -> Step<()> {
        let limit = self.launch.kernel.local_bytes;
        if offset + u64::from(bytes) > u64::from(limit) {
            let problem = AccessProblem::LocalOutside { offset, limit };
            return Err(access_failure(lane, kind, address, bytes, problem));
        }
        if self.warp.local.is_empty() {
            self.warp.local = vec![0xa5; limit as usize * WARP_LANES];
        }
        let start = lane * limit as usize + offset as usize;
        use_it(&mut self.warp.local[start..start + bytes as usize]);
        Ok(())
    }

    pub(super) fn store(&mut self, store: &Store) -> Step {
        let element = store.element.bytes();
        let count = store.sources.len();
        let bytes = element * count as u32;
        let immediate = matches!(store.address.base, Operand::Immediate(_));
        let mut sectors = [0u64; WARP_LANES];
        let mut sector_count = 0;
        let mut passed = Passed::default();
        let mut rest = self.lanes;
        let mut local = true;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let address = self.address(store.address, lane);
            let fail = |problem| access_failure(lane, AccessKind::Store, address, bytes, problem);
            if address & u64::from(bytes.next_power_of_two() - 1) != 0 {
                return Err(fail(AccessProblem::Misaligned { required: bytes.next_power_of_two() }));
            }
            let mut values = [0; 8];
            for (value, &source) in values.iter_mut().zip(&store.sources) {
                *value = self.operand(source, lane);
            }
            let values = &values[..count];
            match self.target(store.space, address, immediate).map_err(fail)? {
                Target::Global(_) if store.space == StateSpace::Constant => return Err(fail(AccessProblem::ReadOnly)),
                Target::Global(address) => {
                    local = false;
                    if self.global_store(
                        address,
                        bytes,
                        element,
                        (store.order, store.scope, store.single),
                        lane,
                        values,
                        &mut passed,
                    )? {
                        sectors[sector_count] = address >> 5;
                        sector_count += 1;
                    }
                }
                Target::Shared { cta, offset } => {
                    local = false;
                    let strong = is_strong(store.order);
                    self.check_shared_store(cta, offset, address, element, values, strong, lane)?;
                    if is_release(store.order) {
                        self.release_shared(cta, offset, store.order);
                    }
                    let shared = &mut self.machine.cta_mut(cta).shared;
                    let mut watched = false;
                    for (index, &value) in values.iter().enumerate() {
                        watched |= shared.bytes.store(u64::from(offset + index as u32 * element), element, value);
                    }
                    if watched {
                        self.machine.wake_shared_watchers(cta, offset, bytes);
                    }
                }
                Target::Local(offset) => {
                    self.local_bytes(offset, address, (bytes, AccessKind::Store), lane, |memory| {
                        for (piece, value) in memory.chunks_exact_mut(element as usize).zip(values) {
                            piece.copy_from_slice(&value.to_le_bytes()[..element as usize]);
                        }
                    })?
                }
                Target::Parameter(_) => return Err(fail(AccessProblem::ReadOnly)),
            }
        }
        if sector_count > 0 {
            self.machine.counters[self.launch.gpu as usize].global_sectors_written +=
                distinct(&mut sectors[..sector_count]);
        }
        // A store to local memory is like one to a register: nobody else sees it, and a spinning loop may make it.
        if !local {
            self.effect();
        }
        Ok(Flow::Next)
    }

    /// Stores a vector; true when it went to the GPU's own memory.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn global_store(
        &mut self,
        address: u64,
        bytes: u32,
        element: u32,
        (order, scope, single): (MemoryOrder, Scope, bool),
        lane: usize,
        values: &[u64],
        passed: &mut Passed,
    ) -> Step<bool> {
        let gpu = self.launch.gpu;
        let place = self.locate_global(address, bytes, AccessKind::Store, lane)?;
        // The elements of a vector are not ordered among themselves: no flag is written so.
        let flag = is_strong(order) && single;
        if flag {
            self.write_word(place, order, scope, false);
        } else {
            self.check_global_write(place, bytes, address, lane, passed)?;
        }
        let physical = self.machine.memory.physical_mut(place.memory);
        let mut watched = false;
        for (index, &value) in values.iter().enumerate() {
            watched |= physical.bytes.store(place.offset + u64::from(index as u32 * element), element, value);
        }
        let owner = physical.gpu;
        self.machine.count_write(gpu, owner, bytes.into());
        if watched {
            self.machine.wake_global_watchers(place, bytes.into());
        }
        let sort = if flag { AccessSort::Flag } else { AccessSort::Data };
        self.stamp_global_write(place, bytes, sort, passed);
        Ok(owner == gpu)
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Counts distinct values; sorts them unless they are in order already, as coalesced stores are.
pub(super) fn distinct(values: &mut [u64]) -> u64 {
    if !values.is_sorted() {
        values.sort_unstable();
    }
    1 + values.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
}
