//! `multimem.*`: accesses to all GPUs of a multicast object at once.

use super::Context;
use super::access::{is_strong, mix};
use super::device_memory::Passed;
use super::step::{Flow, Step};
use crate::fault::{access_failure, at_lane};
use crate::machine::WatchKey;
use crate::memory::{AccessKind, AccessProblem, GenericTarget, Place, decode_generic};
use crate::multimem::{load_reduce, reduce};
use crate::ordering::{AccessSort, is_acquire};
use crate::program::{Multimem, MultimemKind};

/// Most GPUs of a multicast object whose values fit on the stack.
const MAX_GPUS: usize = 64;

impl Context<'_> {
    pub(super) fn multimem(&mut self, multimem: &Multimem) -> Step {
        let mut places = std::mem::take(&mut self.machine.places);
        let result = self.multimem_lanes(multimem, &mut places);
        self.machine.places = places;
        let (hash, seen, keys) = result?;
        if !matches!(multimem.kind, MultimemKind::LoadReduce { .. }) {
            self.effect();
        } else if is_strong(multimem.order) && self.polls_in_vain(hash, keys.into_iter()) {
            self.suspend_polling(seen.0, seen.1);
            return Ok(Flow::Suspended);
        }
        Ok(Flow::Next)
    }

    #[allow(clippy::type_complexity)]
    fn multimem_lanes(
        &mut self,
        multimem: &Multimem,
        places: &mut Vec<Place>,
    ) -> Step<(u64, (u64, u64), Vec<WatchKey>)> {
        let element = multimem.element.bytes();
        let (kind, count) = match &multimem.kind {
            MultimemKind::LoadReduce { destinations, .. } => (AccessKind::MultimemLoadReduce, destinations.len()),
            MultimemKind::Store { sources } => (AccessKind::MultimemStore, sources.len()),
            MultimemKind::Reduce { sources, .. } => (AccessKind::MultimemReduce, sources.len()),
        };
        let bytes = element * count as u32;
        let gpu = self.launch.gpu;
        let mut hash = 0;
        let mut seen = (0, 0);
        let mut passed = Passed::default();
        let mut keys = Vec::new();
        self.try_each_lane(|context, lane| {
            let address = context.address(multimem.address, lane);
            let fail = |problem| access_failure(lane, kind, address, bytes, problem);
            if !matches!(decode_generic(address), GenericTarget::Global(_)) {
                return Err(fail(AccessProblem::WrongSpace { wanted: "global" }));
            }
            if address & u64::from(bytes - 1) != 0 {
                return Err(fail(AccessProblem::Misaligned { required: bytes }));
            }
            context.machine.memory.locate_multicast(gpu, address, bytes.into(), places).map_err(fail)?;
            context.count_multimem(kind, places, bytes);
            match &multimem.kind {
                MultimemKind::LoadReduce { operation, wide_accumulate, destinations } => {
                    context.check_multicast_read(places, bytes, address, multimem, lane)?;
                    // The order in which the switch sums is not specified.
                    context.machine.random.shuffle(places);
                    for (index, &destination) in destinations.iter().enumerate() {
                        let step = u64::from(index as u32 * element);
                        let mut values = [0; MAX_GPUS];
                        for (value, place) in values.iter_mut().zip(places.iter()) {
                            let physical = context.machine.memory.physical(place.memory);
                            *value = physical
                                .bytes
                                .load(place.offset + step, element)
                                .ok_or_else(|| fail(AccessProblem::Uninitialised { first: address + step }))?;
                        }
                        let values = &values[..places.len()];
                        let result = load_reduce(*operation, multimem.element, *wide_accumulate, values)
                            .map_err(|error| at_lane(lane, error))?;
                        context.set(destination, lane, result);
                        hash = mix(hash, result);
                        seen = (address, result);
                    }
                    if is_strong(multimem.order) {
                        keys.extend(
                            places
                                .iter()
                                .map(|place| WatchKey::Global { memory: place.memory, granule: place.offset >> 3 }),
                        );
                    }
                }
                MultimemKind::Store { sources } => {
                    let flag = count == 1 && is_strong(multimem.order);
                    let sort = if flag { AccessSort::MulticastFlag } else { AccessSort::MulticastData };
                    for place in places.iter() {
                        if !flag {
                            context.check_global_write(*place, bytes, address, lane, &mut passed)?;
                        }
                        for (index, &source) in sources.iter().enumerate() {
                            let offset = place.offset + u64::from(index as u32 * element);
                            let value = context.operand(source, lane);
                            context.machine.store_global(Place { offset, ..*place }, element, value);
                        }
                        context.stamp_global_write(*place, bytes, sort, &mut passed);
                    }
                }
                MultimemKind::Reduce { operation, sources } => {
                    let sort = AccessSort::MulticastFlag;
                    for place in places.iter() {
                        for (index, &source) in sources.iter().enumerate() {
                            let step = u64::from(index as u32 * element);
                            let at = Place { offset: place.offset + step, ..*place };
                            let value = context.operand(source, lane);
                            let old = context.machine.memory.physical(at.memory).bytes.load(at.offset, element);
                            let old =
                                old.ok_or_else(|| fail(AccessProblem::Uninitialised { first: address + step }))?;
                            let new = reduce(*operation, multimem.element, old, value)
                                .map_err(|error| at_lane(lane, error))?;
                            context.machine.store_global(at, element, new);
                        }
                        context.stamp_global_write(*place, bytes, sort, &mut passed);
                    }
                }
            }
            if is_strong(multimem.order) && kind != AccessKind::MultimemLoadReduce && count == 1 {
                for place in places.iter() {
                    context.write_word(*place, multimem.order, multimem.scope, kind == AccessKind::MultimemReduce);
                }
            }
            Ok(())
        })?;
        Ok((hash, seen, keys))
    }

    fn check_multicast_read(
        &mut self,
        places: &[Place],
        bytes: u32,
        address: u64,
        multimem: &Multimem,
        lane: usize,
    ) -> Step<()> {
        let mut passed = Passed::default();
        for &place in places {
            if is_acquire(multimem.order) {
                self.read_word(place, multimem.order, multimem.scope);
            }
            self.check_global_read(place, bytes, true, address, lane, &mut passed)?;
            self.stamp_global_read(place, bytes, &mut passed);
        }
        Ok(())
    }

    /// The switch reads from every GPU and sends one result, or takes one copy and writes to every GPU.
    fn count_multimem(&mut self, kind: AccessKind, places: &[Place], bytes: u32) {
        let bytes = u64::from(bytes);
        let reads = kind == AccessKind::MultimemLoadReduce;
        let own = &mut self.machine.counters[self.launch.gpu as usize];
        if reads {
            own.nvlink_bytes_in += bytes;
        } else {
            own.nvlink_bytes_out += bytes;
        }
        for place in places {
            let owner = self.machine.memory.physical(place.memory).gpu as usize;
            let counters = &mut self.machine.counters[owner];
            if reads {
                counters.nvlink_bytes_out += bytes;
            } else {
                counters.nvlink_bytes_in += bytes;
            }
        }
    }
}
