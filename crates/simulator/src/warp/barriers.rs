//! `barrier`, `barrier.cluster`, and what the exit of lanes means to both.

use super::step::{Flow, Step};
use super::{Context, Resume, Wait};
use crate::fault::FaultCause;
use crate::machine::Machine;
use crate::named_barrier::{BARRIERS, BarrierError, BarrierWaiter, WHOLE_CTA};
use crate::program::{Barrier, BarrierKind, BarrierReduction, LaneMask, MemoryOrder};

impl Context<'_> {
    pub(super) fn barrier(&mut self, barrier: &Barrier) -> Step {
        if self.resumed() == Some(Resume::Completed) {
            self.take_barrier_result(barrier.kind);
            return Ok(Flow::Next);
        }
        // All non-exited threads of the warp come together first, aligned or not (PTX ISA, barrier).
        if barrier.aligned {
            if !self.align()? {
                return Ok(Flow::Suspended);
            }
        } else {
            match self.gather(self.warp.live, true, false) {
                Some(lanes) => self.lanes = lanes,
                None => return Ok(Flow::Suspended),
            }
        }
        let number = self.uniform(barrier.barrier, "barrier")?;
        if number >= BARRIERS as u64 {
            return Err(BarrierError::NoSuchBarrier { barrier: number }.into());
        }
        let number = number as u32;
        let cta = self.machine.cta(self.warp.cta);
        let limit = cta.warps() * 32;
        let expected = match barrier.threads {
            Some(threads) => {
                let threads = self.uniform(threads, "thread count")?;
                if threads == 0 || threads % 32 != 0 || threads > limit.into() {
                    return Err(BarrierError::ThreadCount { barrier: number, threads, limit }.into());
                }
                threads as u32
            }
            None if barrier.kind == BarrierKind::Arrive => {
                return Err(BarrierError::ArriveWithoutCount { barrier: number }.into());
            }
            None => WHOLE_CTA,
        };
        let index = self.warp.index;
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        let object = &mut cta.barriers[number as usize];
        object.arrive(number, index, expected)?;
        cta.orders[index as usize].publish(MemoryOrder::Release, &mut object.knowledge);
        if let BarrierKind::Reduce { source, .. } = barrier.kind {
            let votes = self.warp.registers.lanes_where(source) & self.lanes;
            object.result.count += votes.count_ones();
            object.result.all &= votes == self.lanes;
            object.result.any |= votes != 0;
        }
        self.effect();
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        let complete = cta.barriers[number as usize].is_complete(cta.live_warps);
        if barrier.kind == BarrierKind::Arrive {
            if complete {
                self.machine.complete_barrier(self.warp.cta, number);
            }
            return Ok(Flow::Next);
        }
        if complete {
            let object = &cta.barriers[number as usize];
            cta.barrier_results[index as usize] = object.result;
            cta.orders[index as usize].observe(MemoryOrder::Acquire, &object.knowledge, self.machine.now);
            self.machine.complete_barrier(self.warp.cta, number);
            self.take_barrier_result(barrier.kind);
            return Ok(Flow::Next);
        }
        let token = self.warp.suspend(self.fragment, Wait::NamedBarrier { barrier: number }, self.machine);
        let waiter = BarrierWaiter { token, warp: index };
        self.machine.cta_mut(self.warp.cta).barriers[number as usize].waiters.push(waiter);
        self.count_wait();
        Ok(Flow::Suspended)
    }

    fn take_barrier_result(&mut self, kind: BarrierKind) {
        let BarrierKind::Reduce { destination, .. } = kind else { return };
        let result = self.machine.cta(self.warp.cta).barrier_results[self.warp.index as usize];
        let lanes = self.lanes;
        let mask = |value: bool| if value { LaneMask::MAX } else { 0 };
        match destination {
            BarrierReduction::Count(register) => {
                self.each_lane(|context, lane| context.set(register, lane, result.count.into()));
            }
            BarrierReduction::And(predicate) => {
                self.warp.registers.set_predicate(predicate, lanes, mask(result.all));
            }
            BarrierReduction::Or(predicate) => {
                self.warp.registers.set_predicate(predicate, lanes, mask(result.any));
            }
        }
    }

    pub(super) fn cluster_arrive(&mut self, order: MemoryOrder, aligned: bool) -> Step {
        if aligned && !self.align()? {
            return Ok(Flow::Suspended);
        }
        let index = self.warp.index as usize;
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        let state = &mut cta.cluster_lanes[index];
        if state.owed & self.lanes != 0 {
            return Err(BarrierError::ClusterOutOfTurn { operation: "arrive" }.into());
        }
        state.owed |= self.lanes;
        state.arrived |= self.lanes;
        let cluster = self.machine.clusters.get_mut(cta.cluster);
        cta.orders[index].publish(order, &mut cluster.barrier.arriving);
        let cluster = cta.cluster;
        self.effect();
        self.machine.try_complete_cluster_barrier(cluster);
        Ok(Flow::Next)
    }

    pub(super) fn cluster_wait(&mut self, aligned: bool) -> Step {
        if aligned && !self.align()? {
            return Ok(Flow::Suspended);
        }
        let index = self.warp.index as usize;
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        let state = &mut cta.cluster_lanes[index];
        if self.lanes & !state.owed != 0 {
            return Err(BarrierError::ClusterOutOfTurn { operation: "wait" }.into());
        }
        if state.arrived & self.lanes != 0 {
            let cluster = cta.cluster;
            let token = self.warp.suspend(self.fragment, Wait::ClusterBarrier, self.machine);
            self.machine.clusters.get_mut(cluster).barrier.waiters.push(token);
            self.count_wait();
            return Ok(Flow::Suspended);
        }
        state.owed &= !self.lanes;
        let barrier = &self.machine.clusters.get(cta.cluster).barrier;
        cta.orders[index].observe(MemoryOrder::Acquire, &barrier.completed, self.machine.now);
        self.effect();
        Ok(Flow::Next)
    }

    /// Lanes have exited: barriers that count live threads may be complete now, and the CTA may be done.
    pub(super) fn lanes_exited(&mut self, lanes: LaneMask) -> Step<()> {
        let slot = self.warp.cta;
        let index = self.warp.index as usize;
        let cta = self.machine.ctas.get_mut(slot);
        cta.warp_live[index] &= !lanes;
        cta.cluster_lanes[index].arrived &= !lanes;
        let cluster = cta.cluster;
        if cta.warp_live[index] == 0 {
            cta.live_warps &= !(1 << index);
            if cta.live_warps == 0 {
                self.check_cta_exit()?;
                self.machine.ctas.get_mut(slot).exited = true;
                self.machine.retired.push(slot);
            } else {
                for number in 0..BARRIERS as u32 {
                    let cta = self.machine.cta(slot);
                    let object = &cta.barriers[number as usize];
                    if object.expected == WHOLE_CTA && object.is_complete(cta.live_warps) {
                        self.machine.complete_barrier(slot, number);
                    }
                }
            }
        }
        self.machine.try_complete_cluster_barrier(cluster);
        Ok(())
    }

    /// What a CTA must not leave behind.
    fn check_cta_exit(&self) -> Step<()> {
        let cta = self.machine.cta(self.warp.cta);
        if let Some(tensor) = &self.machine.sms[cta.gpu as usize][cta.sm as usize].tensor {
            let columns = tensor.memory.allocations(cta.owner());
            if !columns.is_empty() {
                return Err(FaultCause::TensorMemoryNotFreed { columns }.into());
            }
        }
        let queued = cta.pipes.iter().map(|pipe| pipe.queue.len() as u32).sum();
        let operations = cta.operations.max(queued);
        if operations > 0 {
            return Err(FaultCause::ExitWithPendingOperations { operations }.into());
        }
        Ok(())
    }
}

impl Machine {
    /// A barrier is complete: its waiters learn what was published and go on.
    fn complete_barrier(&mut self, cta: u32, number: u32) {
        let now = self.now;
        let cta = self.ctas.get_mut(cta);
        let object = &mut cta.barriers[number as usize];
        for waiter in &object.waiters {
            cta.orders[waiter.warp as usize].observe(MemoryOrder::Acquire, &object.knowledge, now);
            cta.barrier_results[waiter.warp as usize] = object.result;
            self.wakes.push(crate::machine::Wake { token: waiter.token, resume: Resume::Completed });
        }
        object.reset();
    }

    /// Completes the cluster barrier when every live thread of the cluster has arrived.
    fn try_complete_cluster_barrier(&mut self, slot: u32) {
        let cluster = self.clusters.get(slot);
        let mut anybody = false;
        for &cta in &cluster.ctas {
            let cta = self.ctas.get(cta);
            for (state, &live) in cta.cluster_lanes.iter().zip(&cta.warp_live) {
                if live & !state.arrived != 0 {
                    return;
                }
                anybody |= state.arrived != 0;
            }
        }
        if !anybody {
            return;
        }
        for index in 0..self.clusters.get(slot).ctas.len() {
            let cta = self.clusters.get(slot).ctas[index];
            self.ctas.get_mut(cta).cluster_lanes.iter_mut().for_each(|state| state.arrived = 0);
        }
        let barrier = &mut self.clusters.get_mut(slot).barrier;
        barrier.completed.copy_from(&barrier.arriving);
        let waiters = std::mem::take(&mut barrier.waiters);
        for token in waiters {
            self.wake(token, Resume::Retry);
        }
    }
}
