//! `mbarrier.*`.

use super::step::{Flow, Step};
use super::{Context, Resume, Wait};
use crate::fault::{FaultCause, access_failure, at_lane};
use crate::machine::Machine;
use crate::mbarrier::{MAX_COUNT, Mbarrier as Object, MbarrierError};
use crate::memory::{AccessKind, AccessProblem};
use crate::node::OrderingRules;
use crate::ordering::{Actor, Knowledge, OrderingError};

use crate::program::{Address, Mbarrier, MbarrierKind, MbarrierPhase, MemoryOrder, Operand, StateSpace};
use crate::trace::MbarrierChange;

/// Bytes of an mbarrier object.
const MBARRIER_BYTES: u32 = 8;

impl Context<'_> {
    pub(super) fn mbarrier(&mut self, mbarrier: &Mbarrier) -> Step {
        match &mbarrier.kind {
            MbarrierKind::Init(count) => self.mbarrier_init(mbarrier, *count),
            MbarrierKind::Invalidate => self.mbarrier_invalidate(mbarrier),
            MbarrierKind::ExpectTransactions { bytes } => self.mbarrier_transactions(mbarrier, *bytes, 1),
            MbarrierKind::CompleteTransactions { bytes } => self.mbarrier_transactions(mbarrier, *bytes, -1),
            MbarrierKind::Arrive { .. } => self.mbarrier_arrive(mbarrier),
            MbarrierKind::Wait { .. } => self.mbarrier_wait(mbarrier),
            MbarrierKind::PendingCount { destination, state } => {
                self.each_lane(|context, lane| {
                    let token = context.operand(*state, lane);
                    context.set(*destination, lane, Object::token_pending(token).into());
                });
                Ok(Flow::Next)
            }
        }
    }

    /// CTA and offset of an mbarrier operand.
    pub(super) fn mbarrier_location(&self, address: Address, space: StateSpace, lane: usize) -> Step<(u32, u32)> {
        let fail = |value, problem| access_failure(lane, AccessKind::Mbarrier, value, MBARRIER_BYTES, problem);
        let (value, cta, offset) =
            self.shared(address, space, lane).map_err(|(value, problem)| fail(value, problem))?;
        if offset % MBARRIER_BYTES != 0 {
            return Err(fail(value, AccessProblem::Misaligned { required: MBARRIER_BYTES }));
        }
        self.machine.check_shared(cta, offset, MBARRIER_BYTES).map_err(|problem| fail(value, problem))?;
        Ok((cta, offset))
    }

    /// A valid mbarrier whose initialisation this warp may rely on: CTA and index.
    pub(super) fn known_mbarrier(&self, address: Address, space: StateSpace, lane: usize) -> Step<(u32, usize)> {
        let (cta, offset) = self.mbarrier_location(address, space, lane)?;
        let index = self.machine.valid_mbarrier(cta, offset).map_err(|error| at_lane(lane, error))?;
        self.check_init_ordered(cta, index).map_err(|error| at_lane(lane, error))?;
        Ok((cta, index))
    }

    fn check_init_ordered(&self, cta: u32, index: usize) -> Result<(), OrderingError> {
        let own = self.machine.cta(self.warp.cta);
        let object = &self.machine.cta(cta).shared.mbarriers[index];
        let order = &own.orders[self.warp.index as usize];
        if order.known.generic.get(object.initialiser) >= object.init_epoch {
            return Ok(());
        }
        Err(OrderingError::MbarrierInitNotOrdered { offset: object.offset, writer: actor(object, own.warps()) })
    }

    /// An mbarrier on which an asynchronous operation will arrive: it must be initialised, visibly so to this warp and to
    /// the async proxy.
    pub(super) fn check_async_mbarrier(&self, cta: u32, offset: u32, lane: usize) -> Step<()> {
        let index = self.machine.valid_mbarrier(cta, offset).map_err(|error| at_lane(lane, error))?;
        self.check_init_ordered(cta, index).map_err(|error| at_lane(lane, error))?;
        let object = &self.machine.cta(cta).shared.mbarriers[index];
        // Fenced or not, the initialisation is ordered before this; the rules differ on whether that is enough.
        let own = cta == self.warp.cta && self.machine.config.rules == OrderingRules::Practised;
        if !object.init_fenced && !own {
            let writer = actor(object, self.machine.cta(self.warp.cta).warps());
            return Err(at_lane(lane, OrderingError::MbarrierInitNotFenced { offset, writer }));
        }
        Ok(())
    }

    /// `fence.mbarrier_init` or `fence.proxy.async` by this warp.
    pub(super) fn mbarrier_inits_fenced(&mut self) {
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        let actor = cta.orders[self.warp.index as usize].actor;
        for object in cta.shared.mbarriers.iter_mut().filter(|object| object.initialiser == actor) {
            object.init_fenced = true;
        }
    }

    /// `init` and `inval` work on the CTA's own shared memory.
    fn own_mbarrier(&self, mbarrier: &Mbarrier, operation: &'static str, lane: usize) -> Step<u32> {
        let (cta, offset) = self.mbarrier_location(mbarrier.address, mbarrier.space, lane)?;
        if cta != self.warp.cta {
            let rank = self.machine.cta(cta).rank;
            return Err(at_lane(lane, MbarrierError::RemoteNotAllowed { operation, rank }));
        }
        Ok(offset)
    }

    fn mbarrier_init(&mut self, mbarrier: &Mbarrier, count: Operand) -> Step {
        self.try_each_lane(|context, lane| {
            let offset = context.own_mbarrier(mbarrier, "init", lane)?;
            let count = context.operand(count, lane) as u32;
            if count == 0 || count > MAX_COUNT {
                return Err(at_lane(lane, MbarrierError::Count { count }));
            }
            let shared = &context.machine.cta(context.warp.cta).shared;
            let existing = shared.mbarrier_index(offset);
            if existing.is_some_and(|index| shared.mbarriers[index].valid) {
                return Err(at_lane(lane, MbarrierError::InitialisedAgain { offset }));
            }
            // The object takes over the bytes: a race with an earlier use of them is found here.
            context.check_shared_access(
                context.warp.cta,
                offset,
                offset.into(),
                MBARRIER_BYTES,
                AccessKind::Mbarrier,
                false,
                lane,
            )?;
            let cta = context.machine.ctas.get_mut(context.warp.cta);
            let cluster = context.machine.clusters.get_mut(cta.cluster);
            let order = &cta.orders[context.warp.index as usize];
            let index = existing.unwrap_or_else(|| {
                cluster.mbarriers += 1;
                cta.shared.add_mbarrier(Object {
                    offset,
                    actor: cluster.mbarriers - 1,
                    valid: false,
                    expected: 0,
                    pending: 0,
                    transactions: 0,
                    phase: 0,
                    first_phase: 0,
                    initialiser: 0,
                    init_epoch: 0,
                    init_fenced: false,
                    arriving: Knowledge::default(),
                    completed: Knowledge::default(),
                    waiters: Vec::new(),
                })
            });
            let object = &mut cta.shared.mbarriers[index];
            object.valid = true;
            (object.expected, object.pending, object.transactions) = (count, count, 0);
            object.first_phase = object.phase;
            (object.initialiser, object.init_epoch, object.init_fenced) = (order.actor, order.epoch(), false);
            context.machine.mbarrier_changed(context.warp.cta, index, MbarrierChange::Initialised);
            Ok(())
        })?;
        self.effect();
        Ok(Flow::Next)
    }

    fn mbarrier_invalidate(&mut self, mbarrier: &Mbarrier) -> Step {
        self.try_each_lane(|context, lane| {
            let offset = context.own_mbarrier(mbarrier, "inval", lane)?;
            let (cta, index) = context.known_mbarrier(mbarrier.address, mbarrier.space, lane)?;
            let shared = &mut context.machine.cta_mut(cta).shared;
            let object = &mut shared.mbarriers[index];
            if !object.waiters.is_empty() {
                let waiters = object.waiters.len();
                return Err(at_lane(lane, MbarrierError::InvalidatedInUse { offset, waiters }));
            }
            object.valid = false;
            shared.bytes.forget(offset.into(), MBARRIER_BYTES.into());
            context.machine.mbarrier_changed(cta, index, MbarrierChange::Invalidated);
            Ok(())
        })?;
        self.effect();
        Ok(Flow::Next)
    }

    fn mbarrier_transactions(&mut self, mbarrier: &Mbarrier, bytes: Operand, sign: i64) -> Step {
        self.try_each_lane(|context, lane| {
            let (cta, index) = context.known_mbarrier(mbarrier.address, mbarrier.space, lane)?;
            let bytes = i64::from(context.operand(bytes, lane) as u32);
            let object = &mut context.machine.cta_mut(cta).shared.mbarriers[index];
            object.add_transactions(sign * bytes).map_err(|error| at_lane(lane, error))?;
            context.machine.mbarrier_changed(cta, index, MbarrierChange::Transactions { bytes: sign * bytes });
            context.machine.complete_mbarrier(cta, index);
            Ok(())
        })?;
        self.effect();
        Ok(Flow::Next)
    }

    fn mbarrier_arrive(&mut self, mbarrier: &Mbarrier) -> Step {
        let MbarrierKind::Arrive { state, count, expect_bytes, drop, order, .. } = &mbarrier.kind else {
            unreachable!("dispatched by kind")
        };
        self.try_each_lane(|context, lane| {
            let (cta, index) = context.known_mbarrier(mbarrier.address, mbarrier.space, lane)?;
            let arrivals = count.map_or(1, |count| context.operand(count, lane) as u32);
            if arrivals == 0 || arrivals > MAX_COUNT {
                return Err(at_lane(lane, MbarrierError::Count { count: arrivals }));
            }
            let bytes = expect_bytes.map(|bytes| i64::from(context.operand(bytes, lane) as u32));
            // Two CTAs may be needed at once: take the knowledge of the object out for a moment.
            let object = &mut context.machine.cta_mut(cta).shared.mbarriers[index];
            let token = object.token();
            if let Some(bytes) = bytes {
                object.add_transactions(bytes).map_err(|error| at_lane(lane, error))?;
            }
            object.arrive(arrivals).map_err(|error| at_lane(lane, error))?;
            if *drop {
                object.expected -= arrivals.min(object.expected);
            }
            let mut knowledge = std::mem::take(&mut object.arriving);
            let own = context.machine.ctas.get_mut(context.warp.cta);
            own.orders[context.warp.index as usize].publish(*order, &mut knowledge);
            context.machine.cta_mut(cta).shared.mbarriers[index].arriving = knowledge;
            let change = MbarrierChange::Arrived { arrivals, expect_bytes: bytes.unwrap_or(0) };
            context.machine.mbarrier_changed(cta, index, change);
            context.machine.complete_mbarrier(cta, index);
            if let Some(register) = state {
                context.set(*register, lane, token);
            }
            Ok(())
        })?;
        self.effect();
        Ok(Flow::Next)
    }

    fn mbarrier_wait(&mut self, mbarrier: &Mbarrier) -> Step {
        let MbarrierKind::Wait { complete, phase, suspends, order, .. } = &mbarrier.kind else {
            unreachable!("dispatched by kind")
        };
        let mut done = 0;
        let mut news = false;
        let mut first = None;
        self.try_each_lane(|context, lane| {
            let (cta, index) = context.known_mbarrier(mbarrier.address, mbarrier.space, lane)?;
            if cta != context.warp.cta {
                let rank = context.machine.cta(cta).rank;
                let operation = if *suspends { "try_wait" } else { "test_wait" };
                return Err(at_lane(lane, MbarrierError::RemoteNotAllowed { operation, rank }));
            }
            let object = &context.machine.cta(cta).shared.mbarriers[index];
            let completed = match *phase {
                MbarrierPhase::Parity(parity) => object.parity_complete(context.operand(parity, lane)),
                MbarrierPhase::Token(token) => {
                    object.token_complete(context.operand(token, lane)).map_err(|error| at_lane(lane, error))?
                }
            };
            if completed {
                done |= 1 << lane;
                news |= context.observe_mbarrier(index, *order);
            } else {
                first.get_or_insert(index);
            }
            Ok(())
        })?;
        if done != 0 {
            // Asking again about a phase that is known to be complete is no progress.
            if news {
                self.effect();
            }
        } else if self.resumed() != Some(Resume::TimedOut) && (*suspends || self.asks_again()) {
            let index = first.expect("a lane executes");
            let offset = self.machine.cta(self.warp.cta).shared.mbarriers[index].offset;
            let wait = Wait::Mbarrier { cta: self.warp.cta, offset };
            let token = self.warp.suspend(self.fragment, wait, self.machine);
            self.try_each_lane(|context, lane| {
                let (cta, index) = context.known_mbarrier(mbarrier.address, mbarrier.space, lane)?;
                let waiters = &mut context.machine.cta_mut(cta).shared.mbarriers[index].waiters;
                if waiters.last() != Some(&token) {
                    waiters.push(token);
                }
                Ok(())
            })?;
            self.count_wait();
            return Ok(Flow::Suspended);
        }
        self.warp.registers.set_predicate(*complete, self.lanes, done);
        Ok(Flow::Next)
    }

    /// A `test_wait` that failed before at the same place, with nothing done in between.
    fn asks_again(&mut self) -> bool {
        self.polls_in_vain(0, std::iter::empty())
    }

    /// The warp learns what the last completed phase of an mbarrier of its CTA published; true when that is new to it.
    fn observe_mbarrier(&mut self, index: usize, order: MemoryOrder) -> bool {
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        let object = &cta.shared.mbarriers[index];
        let own = &mut cta.orders[self.warp.index as usize];
        let before = own.known.phases.get(object.actor);
        own.observe(order, &object.completed, self.machine.now);
        own.known.phases.get(object.actor) > before
    }
}

fn actor(object: &Object, warps_per_cta: u32) -> Actor {
    Actor { cta_rank: object.initialiser / warps_per_cta, warp: object.initialiser % warps_per_cta }
}

impl Machine {
    /// The initialised mbarrier at an offset.
    pub(crate) fn valid_mbarrier(&self, cta: u32, offset: u32) -> Result<usize, FaultCause> {
        let shared = &self.cta(cta).shared;
        shared
            .mbarrier_index(offset)
            .filter(|&index| shared.mbarriers[index].valid)
            .ok_or_else(|| MbarrierError::NotInitialised { offset }.into())
    }

    /// Completes the phase of an mbarrier if nothing is pending, and wakes its waiters.
    pub(crate) fn complete_mbarrier(&mut self, cta: u32, index: usize) {
        let object = &mut self.ctas.get_mut(cta).shared.mbarriers[index];
        if !object.try_complete() {
            return;
        }
        self.effects += 1;
        for token in object.waiters.drain(..) {
            self.wakes.push(crate::machine::Wake { token, resume: Resume::Retry });
        }
        self.mbarrier_changed(cta, index, MbarrierChange::PhaseCompleted);
    }

    /// An asynchronous operation completes bytes on an mbarrier; returns the phase in which it did.
    pub(crate) fn complete_transactions(
        &mut self,
        cta: u32,
        offset: u32,
        bytes: u32,
    ) -> Result<(u32, u32), FaultCause> {
        let index = self.valid_mbarrier(cta, offset)?;
        let object = &mut self.ctas.get_mut(cta).shared.mbarriers[index];
        object.add_transactions(-i64::from(bytes))?;
        let at = (object.actor, object.phase);
        self.mbarrier_changed(cta, index, MbarrierChange::Transactions { bytes: -i64::from(bytes) });
        self.complete_mbarrier(cta, index);
        Ok(at)
    }

    /// An asynchronous operation arrives on an mbarrier with what its completion tells.
    pub(crate) fn asynchronous_arrive(
        &mut self,
        cta: u32,
        offset: u32,
        knowledge: &Knowledge,
    ) -> Result<(), FaultCause> {
        let index = self.valid_mbarrier(cta, offset)?;
        let object = &mut self.ctas.get_mut(cta).shared.mbarriers[index];
        object.arrive(1)?;
        object.arriving.join_execution(knowledge);
        self.mbarrier_changed(cta, index, MbarrierChange::Arrived { arrivals: 1, expect_bytes: 0 });
        self.complete_mbarrier(cta, index);
        Ok(())
    }
}
