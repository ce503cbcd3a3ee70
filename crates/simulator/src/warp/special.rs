//! Special registers, address conversion, fences, sleeping.

use super::step::{Flow, Step};
use super::{Context, Resume, Wait};
use crate::engines::Event;
use crate::fault::access_failure;
use crate::memory::{
    AccessKind, AccessProblem, GenericTarget, LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, decode_generic,
    shared_address, shared_offset, shared_rank,
};
use crate::program::{
    Address, Fence, LaneRelation, MemoryOrder, Operand, Predicate, Register, Scope, SpecialRegister, StateSpace,
};

/// Reads of a clock in a row after which a group waits for time instead of burning instructions.
const CLOCK_READS_BEFORE_SLEEP: u32 = 256;
/// Longest `nanosleep` (PTX ISA, nanosleep: at most 1 ms).
const MAX_SLEEP_NS: u64 = 1_000_000;

impl Context<'_> {
    pub(super) fn read_special(&mut self, destination: Register, source: SpecialRegister) -> Step {
        use SpecialRegister as S;
        let cta = self.machine.cta(self.warp.cta);
        let config = &self.launch.config;
        let axis = |values: [u32; 3], axis: u8| u64::from(values[usize::from(axis)]);
        let clusters = || std::array::from_fn(|axis| config.grid[axis] / config.cluster[axis]);
        let now = self.machine.now;
        let value = match source {
            S::ThreadIndex(dimension) => {
                let [x, y, _] = config.block;
                let first = self.warp.index * 32;
                self.each_lane(|context, lane| {
                    let thread = first + lane as u32;
                    let value = match dimension {
                        0 => thread % x,
                        1 => thread / x % y,
                        _ => thread / x / y,
                    };
                    context.set(destination, lane, value.into());
                });
                return Ok(Flow::Next);
            }
            S::LaneIndex => {
                self.each_lane(|context, lane| context.set(destination, lane, lane as u64));
                return Ok(Flow::Next);
            }
            S::LaneMask(relation) => {
                self.each_lane(|context, lane| {
                    let own = 1u32 << lane;
                    let value = match relation {
                        LaneRelation::Equal => own,
                        LaneRelation::Less => own - 1,
                        LaneRelation::LessEqual => own | (own - 1),
                        LaneRelation::GreaterEqual => !(own - 1),
                        LaneRelation::Greater => !(own | (own - 1)),
                    };
                    context.set(destination, lane, value.into());
                });
                return Ok(Flow::Next);
            }
            S::ThreadCount(dimension) => axis(config.block, dimension),
            S::CtaIndex(dimension) => axis(cta.index, dimension),
            S::CtaCount(dimension) => axis(config.grid, dimension),
            S::ClusterIndex(dimension) => axis(self.machine.clusters.get(cta.cluster).index, dimension),
            S::ClusterCount(dimension) => axis(clusters(), dimension),
            S::ClusterCtaIndex(dimension) => {
                u64::from(cta.index[usize::from(dimension)] % config.cluster[usize::from(dimension)])
            }
            S::ClusterCtaCount(dimension) => axis(config.cluster, dimension),
            S::ClusterCtaRank => cta.rank.into(),
            S::ClusterCtaRankCount => config.cluster.iter().map(|&n| u64::from(n)).product(),
            S::WarpIndex => self.warp.index.into(),
            S::WarpCount => cta.warps().into(),
            S::SmIndex => cta.sm.into(),
            S::SmCount => self.machine.config.sms_per_gpu.into(),
            S::GridIndex => self.launch.id,
            S::Clock | S::GlobalTimer => now,
            S::ClockLow | S::GlobalTimerLow => u64::from(now as u32),
            S::ClockHigh | S::GlobalTimerHigh => now >> 32,
            S::DynamicSharedBytes => config.dynamic_shared_bytes.into(),
            S::TotalSharedBytes => self.launch.shared_bytes.into(),
        };
        self.each_lane(|context, lane| context.set(destination, lane, value));
        let timer = matches!(source, S::GlobalTimer | S::GlobalTimerLow | S::GlobalTimerHigh | S::Clock | S::ClockLow);
        if timer {
            let polls = &mut self.warp.fragments[self.fragment].polls;
            polls.clock_reads += 1;
            if polls.clock_reads > CLOCK_READS_BEFORE_SLEEP {
                // It only waits for time: let time pass, the faster the longer it has been waiting.
                let reads = polls.clock_reads - CLOCK_READS_BEFORE_SLEEP;
                let duration = 1u64 << reads.min(30);
                self.warp.fragments[self.fragment].pc += 1;
                self.sleep(duration);
                return Ok(Flow::Suspended);
            }
        }
        Ok(Flow::Next)
    }

    /// Suspends the group until some time has passed. The pc must already be where it goes on.
    fn sleep(&mut self, duration: u64) {
        let token = self.warp.suspend(self.fragment, Wait::Time, self.machine);
        let due = self.machine.now + duration;
        self.machine.events.push(due, Event::Timer(token));
        self.count_wait();
    }

    pub(super) fn nanosleep(&mut self, duration: Operand) -> Step {
        let longest = (0..32)
            .filter(|lane| self.lanes >> lane & 1 != 0)
            .map(|lane| self.operand(duration, lane) & 0xffff_ffff)
            .max()
            .unwrap_or(0);
        let longest = longest.min(MAX_SLEEP_NS);
        // The duration is approximate: between none and twice what was asked for.
        let actual = self.machine.random.below(2 * longest as usize + 1) as u64;
        self.warp.fragments[self.fragment].pc += 1;
        self.sleep(actual);
        Ok(Flow::Suspended)
    }

    pub(super) fn convert_address(
        &mut self,
        destination: Register,
        source: Operand,
        space: StateSpace,
        to_space: bool,
    ) -> Step {
        let window = match space {
            StateSpace::SharedCta | StateSpace::SharedCluster => SHARED_WINDOW,
            StateSpace::Local => LOCAL_WINDOW,
            StateSpace::Parameter => PARAMETER_WINDOW,
            // Global and constant addresses are generic ones already.
            _ => 0,
        };
        self.each_lane(|context, lane| {
            let value = context.operand(source, lane);
            let value = if window == 0 {
                value
            } else if to_space {
                value.wrapping_sub(window)
            } else {
                (value & 0xffff_ffff) + window
            };
            context.set(destination, lane, value);
        });
        Ok(Flow::Next)
    }

    pub(super) fn is_space(&mut self, destination: Predicate, source: Operand, space: StateSpace) -> Step {
        let own = self.machine.cta(self.warp.cta).rank;
        let mut result = 0;
        self.each_lane(|context, lane| {
            let holds = match (decode_generic(context.operand(source, lane)), space) {
                (GenericTarget::Shared(address), StateSpace::SharedCta) => shared_rank(address) == own,
                (GenericTarget::Shared(_), StateSpace::SharedCluster)
                | (GenericTarget::Local(_), StateSpace::Local)
                | (GenericTarget::Parameter(_), StateSpace::Parameter)
                | (GenericTarget::Global(_), StateSpace::Global) => true,
                _ => false,
            };
            result |= u32::from(holds) << lane;
        });
        self.warp.registers.set_predicate(destination, self.lanes, result);
        Ok(Flow::Next)
    }

    pub(super) fn map_shared(&mut self, destination: Register, address: Operand, cta: Operand, shared: bool) -> Step {
        let own = self.machine.cta(self.warp.cta);
        let ctas = self.machine.clusters.get(own.cluster).ctas.len() as u64;
        self.try_each_lane(|context, lane| {
            let value = context.operand(address, lane);
            let rank = context.operand(cta, lane) & 0xffff_ffff;
            let fail = |problem| Err(access_failure(lane, AccessKind::Prefetch, value, 1, problem));
            if rank >= ctas {
                return fail(AccessProblem::NoSuchCta { rank: rank as u32, ctas: ctas as u32 });
            }
            let mapped = |address: u32| u64::from(shared_address(rank as u32, shared_offset(address)));
            let result = if shared {
                mapped(value as u32)
            } else {
                match decode_generic(value) {
                    GenericTarget::Shared(address) => SHARED_WINDOW + mapped(address),
                    _ => return fail(AccessProblem::WrongSpace { wanted: "shared" }),
                }
            };
            context.set(destination, lane, result);
            Ok(())
        })?;
        Ok(Flow::Next)
    }

    pub(super) fn get_cta_rank(&mut self, destination: Register, address: Operand) -> Step {
        self.each_lane(|context, lane| {
            // The window's base has no bits below 32, so that generic and shared addresses read alike.
            let rank = shared_rank(context.operand(address, lane) as u32);
            context.set(destination, lane, rank.into());
        });
        Ok(Flow::Next)
    }

    pub(super) fn prefetch(&mut self, address: Address, space: StateSpace, tensor_map: bool) -> Step {
        self.try_each_lane(|context, lane| {
            let value = context.address(address, lane);
            if tensor_map {
                context.read_tensor_map(value, space, lane)?;
            } else if let (StateSpace::Global, _) | (_, GenericTarget::Global(_)) = (space, decode_generic(value)) {
                context
                    .machine
                    .memory
                    .locate(context.launch.gpu, value, 1)
                    .map_err(|problem| access_failure(lane, AccessKind::Prefetch, value, 1, problem))?;
            }
            Ok(())
        })?;
        Ok(Flow::Next)
    }

    pub(super) fn fence(&mut self, fence: Fence) -> Step {
        let now = self.machine.now;
        let access = self.global_access();
        let index = self.warp.index as usize;
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        let order = &mut cta.orders[index];
        match fence {
            Fence::Memory { order: semantics, scope } => order.fence(semantics, scope, now),
            Fence::ProxyAlias => {
                self.machine.tracker.alias_fence(&access, order);
                order.alias_fence();
            }
            Fence::ProxyAsync(_) => {
                order.proxy_fence();
                self.mbarrier_inits_fenced();
            }
            Fence::MbarrierInit => {
                order.fence(MemoryOrder::Release, Scope::Cluster, now);
                self.mbarrier_inits_fenced();
            }
            Fence::ProxyTensorMap { .. } => {}
        }
        Ok(Flow::Next)
    }

    /// A resumed group's reason.
    pub(super) fn resumed(&self) -> Option<Resume> {
        self.warp.fragments[self.fragment].resumed
    }
}
