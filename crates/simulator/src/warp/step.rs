//! Fetch, guard, dispatch.

use std::sync::Arc;

use super::{FragmentState, Resume, Wait, WaitToken, Warp};
use crate::alu::{self, AddressBases};
use crate::fault::{Failure, Fault, FaultCause, InstructionFault, source_line};
use crate::launch::Launch;
use crate::machine::Machine;
use crate::memory::AccessProblem;
use crate::node::GpuId;
use crate::ordering::GlobalAccess;
use crate::program::{Address, Kernel, LaneMask, Operand, Operation, StateSpace, WARP_LANES};

/// What an instruction did to its lane group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// Go on with the next instruction.
    Next,
    /// Go on at the fragment's pc, which the instruction has set.
    Jumped,
    /// The group is suspended; its pc is still that of the instruction.
    Suspended,
    /// The group is gone: exited or parked.
    Gone,
}

pub(super) type Step<T = Flow> = Result<T, Box<Failure>>;

/// How a burst ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Burst {
    /// The group can go on.
    Runnable,
    /// It cannot.
    Stopped,
}

/// One instruction's view of its warp and the node.
pub(crate) struct Context<'a> {
    pub(crate) warp: &'a mut Warp,
    pub(crate) machine: &'a mut Machine,
    pub(crate) launch: &'a Arc<Launch>,
    pub(crate) fragment: usize,
    pub(crate) pc: u32,
    /// Lanes that execute the instruction.
    pub(crate) lanes: LaneMask,
    /// Fragments that became runnable.
    pub(crate) released: &'a mut Vec<u32>,
}

/// Instructions that can suspend a group, or want it whole: where the guard selects only part of it, the group splits.
fn may_suspend(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Barrier(_)
            | Operation::ClusterWait { .. }
            | Operation::WarpSync { .. }
            | Operation::Elect { .. }
            | Operation::Shuffle(_)
            | Operation::Vote(_)
            | Operation::Match { .. }
            | Operation::Redux { .. }
            | Operation::NanoSleep(_)
            | Operation::Mbarrier(_)
            | Operation::Bulk(_)
    )
}

impl Context<'_> {
    /// Runs one lane group for at most `budget` instructions.
    pub(crate) fn burst(
        warp: &mut Warp,
        machine: &mut Machine,
        fragment: usize,
        budget: u32,
        released: &mut Vec<u32>,
    ) -> Result<Burst, Fault> {
        let launch = warp.launch.clone();
        let kernel: &Kernel = &launch.kernel;
        let end = kernel.instructions.len() as u32;
        let gpu = launch.gpu as usize;
        let observed = machine.observer.is_some();
        for _ in 0..budget {
            let group = &warp.fragments[fragment];
            let (pc, all) = (group.pc, group.lanes);
            if pc == group.converge_at {
                if !warp.park(fragment) {
                    return Ok(Burst::Stopped);
                }
                continue;
            }
            machine.now += 1;
            machine.steps += 1;
            let counters = &mut machine.counters[gpu];
            counters.warp_instructions += 1;
            if pc >= end {
                if observed {
                    machine.tell_instruction(warp, pc, all);
                }
                let mut context = Context { warp, machine, launch: &launch, fragment, pc: end, lanes: all, released };
                context.exit().map_err(|failure| context.fault(*failure))?;
                return Ok(Burst::Stopped);
            }
            let instruction = &kernel.instructions[pc as usize];
            let lanes = match instruction.guard {
                Some(guard) => all & warp.registers.lanes_where(guard),
                None => all,
            };
            counters.lane_instructions += u64::from(lanes.count_ones());
            if observed {
                machine.tell_instruction(warp, pc, lanes);
            }
            if let Operation::Scalar(scalar) = &instruction.operation {
                if lanes != 0 {
                    let addresses = AddressBases { variables: &launch.variables, shared: warp.shared_base };
                    alu::execute(scalar, &mut warp.registers, lanes, addresses);
                }
                warp.fragments[fragment].pc = pc + 1;
                continue;
            }
            let mut context = Context { warp, machine, launch: &launch, fragment, pc, lanes, released };
            let flow = context.dispatch(&instruction.operation, kernel, all);
            match flow {
                Ok(Flow::Next) => warp.fragments[fragment].pc = pc + 1,
                Ok(Flow::Jumped) => {}
                Ok(Flow::Suspended) => {
                    debug_assert!(matches!(warp.fragments[fragment].state, FragmentState::Waiting(_)));
                    if observed {
                        machine.tell_wait_begins(warp, fragment);
                    }
                    return Ok(Burst::Stopped);
                }
                Ok(Flow::Gone) => return Ok(Burst::Stopped),
                Err(failure) => return Err(context.fault(*failure)),
            }
            warp.fragments[fragment].resumed = None;
        }
        Ok(Burst::Runnable)
    }

    #[cold]
    fn fault(&self, failure: Failure) -> Fault {
        let cta = self.machine.cta(self.warp.cta);
        self.launch.fault(self.pc, cta.index, self.warp.index, failure.lanes.unwrap_or(self.lanes), failure.cause)
    }

    fn dispatch(&mut self, operation: &Operation, kernel: &Kernel, all: LaneMask) -> Step {
        if let Operation::Branch { target, uniform } = operation {
            return self.branch(*target, *uniform, kernel, all);
        }
        if self.lanes == 0 {
            return Ok(Flow::Next);
        }
        if self.lanes != all && may_suspend(operation) {
            // The rest waits behind the instruction for those that execute it.
            let next = self.pc + 1;
            let rest = all & !self.lanes;
            let end = kernel.instructions.len() as u32;
            let other = self.warp.diverge(self.fragment, rest, next, self.pc, next, end);
            self.released.push(other);
        }
        match operation {
            Operation::Scalar(_) | Operation::Branch { .. } => unreachable!("handled before"),
            Operation::Load(load) => self.load(load),
            Operation::Store(store) => self.store(store),
            Operation::Atomic(atomic) => self.atomic(atomic),
            Operation::ReadSpecial { destination, source } => self.read_special(*destination, *source),
            Operation::ConvertAddress { destination, source, space, to_space } => {
                self.convert_address(*destination, *source, *space, *to_space)
            }
            Operation::IsSpace { destination, source, space } => self.is_space(*destination, *source, *space),
            Operation::MapShared { destination, address, cta, shared } => {
                self.map_shared(*destination, *address, *cta, *shared)
            }
            Operation::GetCtaRank { destination, address, .. } => self.get_cta_rank(*destination, *address),
            Operation::BranchIndexed { index, targets } => self.branch_indexed(*index, targets, kernel, all),
            Operation::Exit => self.exit(),
            Operation::Trap => Err(FaultCause::Trap.into()),
            Operation::NanoSleep(duration) => self.nanosleep(*duration),
            Operation::Prefetch { address, space, tensor_map } => self.prefetch(*address, *space, *tensor_map),
            Operation::Fence(fence) => self.fence(*fence),
            Operation::Barrier(barrier) => self.barrier(barrier),
            Operation::ClusterArrive { order, aligned } => self.cluster_arrive(*order, *aligned),
            Operation::ClusterWait { aligned } => self.cluster_wait(*aligned),
            Operation::WarpSync { members } => self.warp_sync(*members),
            Operation::Elect { lane, elected, members } => self.elect(*lane, *elected, *members),
            Operation::ActiveMask(destination) => {
                let lanes = self.lanes;
                self.each_lane(|context, lane| context.set(*destination, lane, lanes.into()));
                Ok(Flow::Next)
            }
            Operation::Shuffle(shuffle) => self.shuffle(shuffle),
            Operation::Vote(vote) => self.vote(vote),
            Operation::Match { destination, all, source, members } => {
                self.match_lanes(*destination, *all, *source, *members)
            }
            Operation::Redux { destination, reduction, element, source, members } => {
                self.redux(*destination, *reduction, *element, *source, *members)
            }
            Operation::LoadMatrix(load) => self.load_matrix(load),
            Operation::StoreMatrix(store) => self.store_matrix(store),
            Operation::WarpMma(mma) => self.warp_mma(mma),
            Operation::Mbarrier(mbarrier) => self.mbarrier(mbarrier),
            Operation::AsyncCopy(copy) => self.async_copy(copy),
            Operation::Bulk(bulk) => self.bulk(bulk),
            Operation::RemoteStore(store) => self.remote_store(store),
            Operation::LaunchControl(control) => self.launch_control(control),
            Operation::TensorMap(update) => self.update_tensor_map(update),
            Operation::Wgmma(wgmma) => self.wgmma(wgmma),
            Operation::Tcgen05(tcgen05) => self.tcgen05(tcgen05),
            Operation::Multimem(multimem) => self.multimem(multimem),
            Operation::NoEffect(_) => Ok(Flow::Next),
        }
    }

    fn branch(&mut self, target: u32, uniform: bool, kernel: &Kernel, all: LaneMask) -> Step {
        let taken = self.lanes;
        let group = &mut self.warp.fragments[self.fragment];
        if taken == all {
            group.pc = target;
        } else if taken == 0 {
            group.pc = self.pc + 1;
        } else if uniform {
            return Err(FaultCause::NotUniform { taken, lanes: all }.into());
        } else {
            self.split(taken, target, self.pc + 1, kernel);
        }
        Ok(Flow::Jumped)
    }

    /// Divergence: which half goes on in this burst is a seeded choice.
    fn split(&mut self, taken: LaneMask, target: u32, next: u32, kernel: &Kernel) {
        let end = kernel.instructions.len() as u32;
        let reconvergence = kernel.reconvergence[self.pc as usize];
        let all = self.warp.fragments[self.fragment].lanes;
        let other = if self.machine.random.next() & 1 == 0 {
            self.warp.diverge(self.fragment, taken, target, next, reconvergence, end)
        } else {
            self.warp.diverge(self.fragment, all & !taken, next, target, reconvergence, end)
        };
        self.released.push(other);
    }

    fn branch_indexed(&mut self, index: Operand, targets: &[u32], kernel: &Kernel, all: LaneMask) -> Step {
        let mut rest = self.lanes;
        let mut first = true;
        // Lanes of a false guard fall through.
        let fall_through = all & !rest;
        if fall_through != 0 {
            self.split(fall_through, self.pc + 1, self.pc, kernel);
            // `split` may have given this burst the lanes that fall through.
            if self.warp.fragments[self.fragment].lanes == fall_through {
                return Ok(Flow::Jumped);
            }
        }
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            let value = self.operand(index, lane);
            let target =
                *targets.get(value as usize).ok_or(FaultCause::BranchIndex { index: value, targets: targets.len() })?;
            let same = (0..WARP_LANES)
                .filter(|&lane| rest >> lane & 1 != 0 && self.operand(index, lane) == value)
                .fold(0, |mask, lane| mask | 1 << lane);
            if same == rest {
                self.warp.fragments[self.fragment].pc = target;
            } else {
                let end = kernel.instructions.len() as u32;
                let reconvergence = kernel.reconvergence[self.pc as usize];
                let other = self.warp.diverge(self.fragment, same, target, self.pc, reconvergence, end);
                self.released.push(other);
            }
            rest &= !same;
            first = false;
        }
        debug_assert!(!first);
        Ok(Flow::Jumped)
    }

    /// Lanes leave the kernel.
    pub(super) fn exit(&mut self) -> Step {
        let lanes = self.lanes;
        self.check_bulk_at_exit(lanes)?;
        self.effect();
        let group = &mut self.warp.fragments[self.fragment];
        let all = group.lanes;
        group.lanes &= !lanes;
        if group.lanes == 0 {
            group.state = FragmentState::Free;
        }
        self.warp.exit_lanes(lanes, self.released);
        // Whoever waits for all live lanes looks again.
        for (index, group) in self.warp.fragments.iter().enumerate() {
            if matches!(group.state, FragmentState::Waiting(Wait::Members { .. })) {
                let token = WaitToken { warp: self.warp.slot, fragment: index as u32, wait: group.wait };
                self.machine.wake(token, Resume::Retry);
            }
        }
        self.lanes_exited(lanes)?;
        Ok(if lanes == all { Flow::Gone } else { Flow::Next })
    }

    /// Visits the executing lanes.
    #[inline]
    pub(super) fn each_lane(&mut self, mut visit: impl FnMut(&mut Self, usize)) {
        let mut rest = self.lanes;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            visit(self, lane);
        }
    }

    /// Visits the executing lanes until one fails.
    #[inline]
    pub(super) fn try_each_lane(&mut self, mut visit: impl FnMut(&mut Self, usize) -> Step<()>) -> Step<()> {
        let mut rest = self.lanes;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            visit(self, lane)?;
        }
        Ok(())
    }

    /// An operand's value in a lane.
    #[inline]
    pub(super) fn operand(&self, operand: Operand, lane: usize) -> u64 {
        match operand {
            Operand::Register(register) => self.warp.registers.values[register.0 as usize][lane],
            Operand::Immediate(value) => value,
            Operand::VariableAddress { index, offset } => {
                self.launch.variables[index as usize].wrapping_add_signed(offset)
            }
            Operand::SharedAddress { offset } => self.warp.shared_base.wrapping_add_signed(offset),
        }
    }

    /// A value that must agree between the executing lanes.
    pub(super) fn uniform(&self, operand: Operand, name: &'static str) -> Step<u64> {
        let first = self.operand(operand, self.lanes.trailing_zeros() as usize);
        if let Operand::Register(register) = operand {
            let values = &self.warp.registers.values[register.0 as usize];
            let differing = (0..WARP_LANES).find(|&lane| self.lanes >> lane & 1 != 0 && values[lane] != first);
            if let Some(lane) = differing {
                let other = values[lane];
                return Err(crate::fault::ConvergenceError::OperandDiffers { operand: name, first, other }.into());
            }
        }
        Ok(first)
    }

    /// `[base + offset]` in a lane. Shared and local addresses wrap at 32 bits.
    #[inline]
    pub(super) fn address(&self, address: Address, lane: usize) -> u64 {
        self.operand(address.base, lane).wrapping_add(address.offset as u64)
    }

    /// Where an operand of a shared space points: CTA slot and offset.
    #[inline]
    pub(super) fn shared(
        &self,
        address: Address,
        space: StateSpace,
        lane: usize,
    ) -> Result<(u64, u32, u32), (u64, AccessProblem)> {
        let value = self.address(address, lane);
        let immediate = matches!(address.base, Operand::Immediate(_));
        match self.machine.shared_location(self.warp.cta, space, value, immediate) {
            Ok((cta, offset)) => Ok((value, cta, offset)),
            Err(problem) => Err((value, problem)),
        }
    }

    #[inline]
    pub(super) fn set(&mut self, register: crate::program::Register, lane: usize, value: u64) {
        self.warp.registers.values[register.0 as usize][lane] = value;
    }

    /// The group changed something: it is not going in circles.
    #[inline]
    pub(super) fn effect(&mut self) {
        self.machine.effects += 1;
        self.warp.fragments[self.fragment].polls.clear();
    }

    pub(super) fn count_wait(&mut self) {
        self.machine.counters[self.launch.gpu as usize].waits += 1;
    }

    /// This warp's side of an access to device memory.
    pub(super) fn global_access(&self) -> GlobalAccess {
        let cta = self.machine.cta(self.warp.cta);
        GlobalAccess {
            cta: cta.uid,
            cluster: self.machine.clusters.get(cta.cluster).uid,
            gpu: cta.gpu,
            index: cta.index,
            launched: self.launch.started,
            now: self.machine.now,
        }
    }
}

impl Launch {
    /// A fault of one of its instructions.
    #[cold]
    pub(crate) fn fault(&self, pc: u32, cta: [u32; 3], warp: u32, lanes: LaneMask, cause: FaultCause) -> Fault {
        let line = self.kernel.instructions.get(pc as usize).map_or(0, |instruction| instruction.line);
        Fault::Instruction(Box::new(InstructionFault {
            kernel: self.kernel.name.clone(),
            line,
            source: source_line(&self.kernel, line),
            gpu: GpuId(self.gpu),
            cta,
            warp,
            lanes,
            cause,
        }))
    }
}
