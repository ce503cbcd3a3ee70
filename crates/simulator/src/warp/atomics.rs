//! `atom` and `red`.

use super::Context;
use super::access::{Target, mix};
use super::device_memory::Passed;
use super::step::{Flow, Step};
use crate::fault::{access_failure, at_lane};
use crate::machine::WatchKey;
use crate::memory::{AccessKind, AccessProblem, atomic_update, device_update};
use crate::ordering::{AccessSort, is_acquire, is_release};
use crate::program::{Atomic, AtomicOperation, Operand, WARP_LANES};

impl Context<'_> {
    pub(super) fn atomic(&mut self, atomic: &Atomic) -> Step {
        let element = atomic.element.bytes();
        let swap = atomic.operation == AtomicOperation::CompareAndSwap;
        let count = if swap { atomic.sources.len() / 2 } else { atomic.sources.len() };
        let bytes = element * count as u32;
        let immediate = matches!(atomic.address.base, Operand::Immediate(_));
        let mut changed = false;
        let mut hash = 0;
        let mut seen = (0, 0);
        let mut keys = [WatchKey::Shared { cta: u32::MAX, granule: 0 }; WARP_LANES];
        let mut watched = 0;
        // Lanes update in a seeded order: the ISA promises none.
        let mut order: [u8; WARP_LANES] = std::array::from_fn(|lane| lane as u8);
        if self.lanes.count_ones() > 1 {
            self.machine.random.shuffle(&mut order);
        }
        let lanes = self.lanes;
        for lane in order.into_iter().map(usize::from).filter(|lane| lanes >> lane & 1 != 0) {
            let address = self.address(atomic.address, lane);
            let fail = |problem| access_failure(lane, AccessKind::Atomic, address, bytes, problem);
            if address & u64::from(bytes - 1) != 0 {
                return Err(fail(AccessProblem::Misaligned { required: bytes }));
            }
            let target = self.target(atomic.space, address, immediate).map_err(fail)?;
            // The read half first, then the write half, as release and acquire say.
            match target {
                Target::Global(address) => {
                    let place = self.locate_global(address, bytes, AccessKind::Atomic, lane)?;
                    self.read_word(place, atomic.order, atomic.scope);
                    self.write_word(place, atomic.order, atomic.scope, true);
                    keys[watched] = WatchKey::Global { memory: place.memory, granule: place.offset >> 3 };
                }
                Target::Shared { cta, offset } => {
                    self.check_shared_access(cta, offset, address, bytes, AccessKind::Atomic, true, lane)?;
                    if is_acquire(atomic.order) {
                        self.acquire_shared(cta, offset);
                    }
                    if is_release(atomic.order) {
                        self.release_shared(cta, offset, atomic.order);
                    }
                    keys[watched] = WatchKey::Shared { cta, granule: offset >> 3 };
                }
                Target::Local(_) => return Err(fail(AccessProblem::WrongSpace { wanted: "global or shared" })),
                Target::Parameter(_) => return Err(fail(AccessProblem::ReadOnly)),
            }
            watched += 1;
            let mut olds = [0; 8];
            for (index, old) in olds.iter_mut().enumerate().take(count) {
                let step = u64::from(index as u32 * element);
                let loaded = match target {
                    Target::Global(address) => {
                        let place = self.locate_global(address + step, element, AccessKind::Atomic, lane)?;
                        self.machine.memory.physical(place.memory).bytes.load(place.offset, element)
                    }
                    Target::Shared { cta, offset } => {
                        self.machine.cta(cta).shared.bytes.load(u64::from(offset) + step, element)
                    }
                    _ => unreachable!("refused above"),
                };
                *old = loaded.ok_or_else(|| fail(AccessProblem::Uninitialised { first: address + step }))?;
            }
            // Of a `.b128` both halves must compare equal.
            let ones = u64::MAX >> (64 - 8 * element);
            let differs = |index: usize| (self.operand(atomic.sources[index], lane) ^ olds[index]) & ones != 0;
            let unequal = swap && (0..count).any(differs);
            for (index, old) in olds.into_iter().enumerate().take(count) {
                let step = u64::from(index as u32 * element);
                let compare = if unequal { !old } else { old };
                let operand = self.operand(atomic.sources[if swap { count + index } else { index }], lane);
                let update = if matches!(target, Target::Global(_)) { device_update } else { atomic_update };
                let new = update(atomic.operation, atomic.element, old, compare, operand)
                    .map_err(|error| at_lane(lane, error))?;
                if let Some(&Some(register)) = atomic.destinations.get(index) {
                    self.set(register, lane, old);
                }
                hash = mix(hash, old);
                seen = (address, old);
                if new == old {
                    continue;
                }
                changed = true;
                match target {
                    Target::Global(address) => {
                        let place = self.locate_global(address + step, element, AccessKind::Atomic, lane)?;
                        self.machine.store_global(place, element, new);
                        self.stamp_global_write(place, element, AccessSort::Flag, &mut Passed::default());
                    }
                    Target::Shared { cta, offset } => {
                        let at = u64::from(offset) + step;
                        if self.machine.cta_mut(cta).shared.bytes.store(at, element, new) {
                            self.machine.wake_shared_watchers(cta, at as u32, element);
                        }
                    }
                    _ => unreachable!("refused above"),
                }
            }
            if let Target::Global(address) = target {
                let place = self.locate_global(address, bytes, AccessKind::Atomic, lane)?;
                let owner = self.machine.memory.physical(place.memory).gpu;
                self.machine.count_write(self.launch.gpu, owner, bytes.into());
                if !atomic.destinations.is_empty() {
                    self.machine.count_read(self.launch.gpu, owner, bytes.into());
                }
            }
        }
        if changed {
            self.effect();
            return Ok(Flow::Next);
        }
        // An atomic that changes nothing is a load: a lock that is taken, a flag that is not set.
        let keys = keys[..watched].iter().copied();
        if !atomic.destinations.is_empty() && self.polls_in_vain(hash, keys) {
            self.suspend_polling(seen.0, seen.1);
            return Ok(Flow::Suspended);
        }
        Ok(Flow::Next)
    }
}
