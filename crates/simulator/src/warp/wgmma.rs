//! `wgmma.*` as the issuing warps see it; the computing itself is `engines::wgmma`.
//!
//! The accumulators of a `mma_async` live in a buffer until `wgmma.wait_group`; until then the registers hold a pattern
//! that shows up in results (PTX ISA, "wgmma.mma_async": accessing them earlier is undefined).

use std::collections::VecDeque;

use super::step::{Flow, Step};
use super::{Context, Wait};
use crate::engines::{GROUP_WARPS, TensorOperation, TensorWork};
use crate::fault::{WgmmaError, access_failure};
use crate::fragment::ROWS;
use crate::memory::AccessKind;
use crate::ordering::AsyncReader;
use crate::program::{Operand, PredicateSource, Register, WARP_LANES, Wgmma, WgmmaMma, WgmmaOperand};
use crate::wgmma::{OperandA, WarpProduct, decode};

/// The largest K.
const MOST_K: usize = 32;

/// Accumulators that are not in their registers.
#[derive(Debug)]
struct Flight {
    registers: Vec<Register>,
    /// Their buffer.
    slot: u32,
    /// The last product that writes them.
    last: u32,
    /// Delivered to the registers; kept until the next fence, to tell whether the thread changed them.
    delivered: bool,
}

/// The warpgroup products of a warp.
#[derive(Debug, Default)]
pub(crate) struct WgmmaState {
    /// No register access has come between the last `wgmma.fence` and now, as far as is known.
    fenced: bool,
    issued: u32,
    /// The last product of each committed group that has not been waited for.
    groups: VecDeque<u32>,
    /// The last product of the groups that have.
    waited: u32,
    flights: Vec<Flight>,
    spare: Vec<Vec<Register>>,
}

/// What accumulators hold until the product is waited for: a pattern that shows up in results.
const POISON: u64 = 0xffc0_dead;

impl Context<'_> {
    pub(super) fn wgmma(&mut self, wgmma: &Wgmma) -> Step {
        if !self.whole_warp()? {
            return Ok(Flow::Suspended);
        }
        match wgmma {
            Wgmma::Fence => {
                self.drop_delivered();
                self.warp.wgmma.fenced = true;
                Ok(Flow::Next)
            }
            Wgmma::CommitGroup => {
                let issued = self.warp.wgmma.issued;
                self.warp.wgmma.groups.push_back(issued);
                Ok(Flow::Next)
            }
            Wgmma::WaitGroup { pending, .. } => self.wgmma_wait(*pending),
            Wgmma::Mma(mma) => self.wgmma_mma(mma),
        }
    }

    fn drop_delivered(&mut self) {
        let state = &mut self.warp.wgmma;
        if !state.flights.iter().any(|flight| flight.delivered) {
            return;
        }
        let pipe = &mut self.machine.ctas.get_mut(self.warp.cta).wgmma[self.warp.index as usize];
        let spare = &mut state.spare;
        state.flights.retain_mut(|flight| {
            if flight.delivered {
                pipe.release_slot(flight.slot);
                spare.push(std::mem::take(&mut flight.registers));
            }
            !flight.delivered
        });
    }

    /// The first warp of the warpgroup, under whose name its products read shared memory.
    fn wgmma_leader(&self) -> Step<u32> {
        let (warp, warps) = (self.warp.index, self.machine.cta(self.warp.cta).warps());
        let first = warp / GROUP_WARPS * GROUP_WARPS;
        if first + GROUP_WARPS > warps {
            return Err(WgmmaError::NoWarpgroup { warp, warps }.into());
        }
        Ok(first)
    }

    fn wgmma_mma(&mut self, mma: &WgmmaMma) -> Step {
        let leader = self.wgmma_leader()?;
        let b = (decode(self.uniform(mma.b, "b-desc")?).map_err(WgmmaError::from)?, mma.b_field);
        let lane = self.lanes.trailing_zeros() as usize;
        let accumulate = match mma.scale_d {
            PredicateSource::Constant(value) => value,
            PredicateSource::Predicate(predicate) => match self.warp.registers.lanes_where(predicate) {
                0 => false,
                u32::MAX => true,
                _ => return Err(WgmmaError::ScaleDiffers.into()),
            },
        };
        let a = match &mma.a {
            WgmmaOperand::Descriptor(descriptor) => {
                OperandA::Shared(decode(self.uniform(*descriptor, "a-desc")?).map_err(WgmmaError::from)?, mma.a_field)
            }
            WgmmaOperand::Registers(registers) => {
                self.check_a_registers(registers)?;
                let mut values = Box::new([0.0; ROWS * MOST_K]);
                self.fragment_a(mma.a_field.format, registers, mma.k as usize, &mut values[..]);
                OperandA::Registers { values, negate: mma.a_field.negate }
            }
        };
        let formats = (mma.accumulator, mma.saturate);
        let product =
            WarpProduct::new((mma.n, mma.k), formats, self.warp.index - leader, (a, mma.a_field.format), b, accumulate)
                .map_err(WgmmaError::from)?;
        let slot = self.wgmma_accumulators(mma)?;
        let number = self.warp.wgmma.issued + 1;
        self.check_wgmma_reads(&product, leader, number)?;
        self.warp.wgmma.issued = number;
        if let Some(flight) = self.warp.wgmma.flights.iter_mut().find(|flight| flight.slot == slot) {
            flight.last = number;
        }
        for register in &mma.destinations {
            self.warp.registers.values[register.0 as usize] = [POISON; WARP_LANES];
        }
        self.machine.cta_mut(self.warp.cta).operations += 1;
        let site = crate::engines::Site { lanes: self.lanes, ..self.site(lane) };
        let operation = TensorOperation {
            site,
            work: TensorWork::Wgmma { product: Box::new(product), slot },
            ctas: vec![self.warp.cta],
            columns: 0..0,
        };
        self.machine.push_tensor_operation(self.warp.cta, self.warp.index, operation);
        self.effect();
        Ok(Flow::Next)
    }

    fn check_a_registers(&self, registers: &[Operand]) -> Step<()> {
        let state = &self.warp.wgmma;
        let in_flight = |register: &Register| {
            state.flights.iter().any(|flight| !flight.delivered && flight.registers.contains(register))
        };
        if registers.iter().any(|operand| matches!(operand, Operand::Register(register) if in_flight(register))) {
            return Err(WgmmaError::RegistersInFlight { operand: "A" }.into());
        }
        if !state.fenced {
            return Err(WgmmaError::MissingFence.into());
        }
        Ok(())
    }

    /// The buffer that the product adds to: that of the product in flight on the same registers, or a new one.
    fn wgmma_accumulators(&mut self, mma: &WgmmaMma) -> Step<u32> {
        let state = &mut self.warp.wgmma;
        let overlaps = |flight: &&mut Flight| {
            flight.registers == mma.destinations || flight.registers.iter().any(|r| mma.destinations.contains(r))
        };
        if let Some(flight) = state.flights.iter_mut().find(overlaps) {
            let same = flight.registers == mma.destinations;
            if !flight.delivered {
                // Only products of the same shape may share accumulators without a wait between them.
                return if same { Ok(flight.slot) } else { Err(WgmmaError::RegistersInFlight { operand: "D" }.into()) };
            }
            // Without a fence since the wait: legal only if the thread left the registers alone.
            let pipe = &self.machine.ctas.get_mut(self.warp.cta).wgmma[self.warp.index as usize];
            let values = &self.warp.registers.values;
            let untouched = same
                && flight.registers.iter().zip(pipe.slot(flight.slot)).all(|(register, kept)| {
                    values[register.0 as usize].iter().zip(kept).all(|(&now, &then)| now == u64::from(then))
                });
            if !untouched {
                return Err(WgmmaError::MissingFence.into());
            }
            flight.delivered = false;
            return Ok(flight.slot);
        }
        if !state.fenced {
            return Err(WgmmaError::MissingFence.into());
        }
        let pipe = &mut self.machine.ctas.get_mut(self.warp.cta).wgmma[self.warp.index as usize];
        let slot = pipe.take_slot();
        let buffer = pipe.slot_mut(slot);
        buffer.clear();
        let values = &self.warp.registers.values;
        buffer.extend(mma.destinations.iter().map(|register| values[register.0 as usize].map(|value| value as u32)));
        let mut registers = state.spare.pop().unwrap_or_default();
        registers.clear();
        registers.extend_from_slice(&mma.destinations);
        state.flights.push(Flight { registers, slot, last: 0, delivered: false });
        Ok(slot)
    }

    /// What the product reads must be there, and stays read until somebody waits for it.
    fn check_wgmma_reads(&mut self, product: &WarpProduct, leader: u32, number: u32) -> Step<()> {
        let own = self.warp.cta;
        let mut outside = None;
        product.for_each_range(|range| {
            let bytes = range.end - range.start;
            if let Err(problem) = self.machine.check_shared(own, range.start, bytes) {
                outside.get_or_insert((range, problem));
            }
        });
        if let Some((range, problem)) = outside {
            let (address, bytes) = (range.start.into(), range.end - range.start);
            let lane = self.lanes.trailing_zeros() as usize;
            return Err(access_failure(lane, AccessKind::TensorCoreRead, address, bytes, problem));
        }
        let cta = self.machine.ctas.get_mut(own);
        let reader = AsyncReader::Warpgroup { leader: cta.orders[leader as usize].actor, number };
        let (shadow, order) = (&mut cta.shared.shadow, &cta.orders[self.warp.index as usize]);
        let mut checked = Ok(());
        product.for_each_range(|range| {
            if checked.is_ok() {
                checked = shadow.async_read(&range, reader, order);
            }
        });
        Ok(checked?)
    }

    fn wgmma_wait(&mut self, pending: u32) -> Step {
        let state = &self.warp.wgmma;
        let finished = state.groups.len().saturating_sub(pending as usize);
        let target = if finished == 0 { state.waited } else { state.groups[finished - 1] };
        let leader = if target == 0 { self.warp.index } else { self.wgmma_leader()? };
        if target > 0 {
            let cta = self.machine.ctas.get_mut(self.warp.cta);
            let late = (leader..leader + GROUP_WARPS).find(|&warp| cta.wgmma[warp as usize].done < target);
            if let Some(late) = late {
                let token = self.warp.suspend(self.fragment, Wait::WgmmaGroup { pending }, self.machine);
                self.machine.cta_mut(self.warp.cta).wgmma[late as usize].waiters.push(token);
                self.count_wait();
                return Ok(Flow::Suspended);
            }
        }
        let state = &mut self.warp.wgmma;
        state.groups.drain(..finished);
        state.waited = target;
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        let actor = cta.orders[leader as usize].actor;
        cta.orders[self.warp.index as usize].known.commits.raise(actor, target);
        let pipe = &cta.wgmma[self.warp.index as usize];
        for flight in state.flights.iter_mut().filter(|flight| !flight.delivered && flight.last <= target) {
            for (register, values) in flight.registers.iter().zip(pipe.slot(flight.slot)) {
                self.warp.registers.values[register.0 as usize] = values.map(u64::from);
            }
            flight.delivered = true;
            state.fenced = false;
        }
        self.effect();
        Ok(Flow::Next)
    }
}
