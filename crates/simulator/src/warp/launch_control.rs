//! `clusterlaunchcontrol.*` as the executing thread sees it; the cancelling itself is `engines::launch_control`.

use super::Context;
use super::step::{Flow, Step};
use crate::engines::{BulkTransfer, Response};
use crate::fault::{LaunchControlError, access_failure, at_lane};
use crate::memory::{AccessKind, AccessProblem};
use crate::program::{Address, LaunchControl, Operand, StateSpace};
use crate::shared::SharedRange;

/// Bytes of a response, and their alignment.
const RESPONSE_BYTES: u32 = 16;

impl Context<'_> {
    pub(super) fn launch_control(&mut self, control: &LaunchControl) -> Step {
        match *control {
            LaunchControl::TryCancel { response, barrier, space, multicast } => {
                self.try_each_lane(|context, lane| context.try_cancel(response, barrier, space, multicast, lane))?;
                self.effect();
            }
            LaunchControl::IsCanceled { destination, response } => {
                let mut cancelled = 0;
                self.try_each_lane(|context, lane| {
                    let response = context.response(response, lane)?;
                    cancelled |= u32::from(response.0.is_some()) << lane;
                    Ok(())
                })?;
                self.warp.registers.set_predicate(destination, self.lanes, cancelled);
            }
            LaunchControl::FirstCta { destinations, response } => {
                self.try_each_lane(|context, lane| {
                    let first = context.response(response, lane)?.0;
                    let first = first.ok_or_else(|| at_lane(lane, LaunchControlError::NothingCancelled))?;
                    // The ISA leaves the fourth element of a vector open.
                    let [x, y, z] = first;
                    let any = context.machine.random.next() as u32;
                    for (register, index) in destinations.into_iter().zip([x, y, z, any]) {
                        if let Some(register) = register {
                            context.set(register, lane, index.into());
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(Flow::Next)
    }

    fn response(&self, halves: [Operand; 2], lane: usize) -> Step<Response> {
        let [low, high] = halves.map(|half| self.operand(half, lane));
        Response::decode(low, high).ok_or_else(|| at_lane(lane, LaunchControlError::NotAResponse { low, high }))
    }

    /// Both operands must be in the executing CTA's shared memory.
    fn own_shared(&self, address: Address, space: StateSpace, lane: usize) -> Result<(u64, u32), (u64, AccessProblem)> {
        let (value, cta, offset) = self.shared(address, space, lane)?;
        if cta != self.warp.cta {
            let (rank, own) = (self.machine.cta(cta).rank, self.machine.cta(self.warp.cta).rank);
            return Err((value, AccessProblem::SharedOfOtherCta { rank, own }));
        }
        Ok((value, offset))
    }

    fn try_cancel(
        &mut self,
        response: Address,
        barrier: Address,
        space: StateSpace,
        multicast: bool,
        lane: usize,
    ) -> Step<()> {
        let fail = |value, problem| access_failure(lane, AccessKind::BulkWrite, value, RESPONSE_BYTES, problem);
        let (value, offset) =
            self.own_shared(response, space, lane).map_err(|(value, problem)| fail(value, problem))?;
        if !offset.is_multiple_of(RESPONSE_BYTES) {
            return Err(fail(value, AccessProblem::Misaligned { required: RESPONSE_BYTES }));
        }
        let (_, barrier_offset) = self
            .own_shared(barrier, space, lane)
            .map_err(|(value, problem)| access_failure(lane, AccessKind::Mbarrier, value, 8, problem))?;
        self.mbarrier_location(barrier, space, lane)?;
        let own = self.machine.cta(self.warp.cta);
        let saw_failure = own
            .failed_cancels
            .iter()
            .any(|&(mbarrier, phase)| own.orders.iter().any(|order| order.known.phases.get(mbarrier) > phase));
        if saw_failure {
            return Err(at_lane(lane, LaunchControlError::AfterFailure));
        }
        let targets = match multicast {
            true => self.machine.clusters.get(own.cluster).ctas.clone(),
            false => vec![self.warp.cta],
        };
        for &cta in &targets {
            let target = self.machine.cta(cta);
            if target.exited {
                return Err(fail(value, AccessProblem::CtaExited { rank: target.rank }));
            }
            self.machine.check_shared(cta, offset, RESPONSE_BYTES).map_err(|problem| fail(value, problem))?;
            target.shared.check_plain(offset, RESPONSE_BYTES).map_err(|problem| fail(value, problem))?;
            self.check_async_mbarrier(cta, barrier_offset, lane)?;
        }
        let range = SharedRange { start: offset, end: offset + RESPONSE_BYTES };
        for &cta in &targets {
            self.with_shadow(cta, |shared, order| shared.shadow.begin_bulk_write(&range, false, order))
                .map_err(|error| at_lane(lane, error))?;
            self.machine.cta_mut(cta).operations += 1;
        }
        self.push_bulk(BulkTransfer::Cancel { targets, range, barrier_offset }, lane);
        Ok(())
    }
}
