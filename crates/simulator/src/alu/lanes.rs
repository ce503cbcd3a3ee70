//! Loops over the lanes of a warp.

use super::AddressBases;
use crate::program::{LaneMask, Operand, Predicate, PredicateSource, Register, Registers, WARP_LANES};

/// One value per lane.
pub(super) type Lanes = [u64; WARP_LANES];

/// A warp executing an instruction.
pub(super) struct Warp<'r> {
    pub(super) registers: &'r mut Registers,
    pub(super) lanes: LaneMask,
    pub(super) addresses: AddressBases<'r>,
}

impl Warp<'_> {
    /// The values of an operand in all lanes.
    #[inline]
    pub(super) fn fetch(&self, operand: Operand) -> Lanes {
        match operand {
            Operand::Register(register) => self.registers.values[register.0 as usize],
            Operand::Immediate(value) => [value; WARP_LANES],
            Operand::VariableAddress { index, offset } => {
                [self.addresses.variables[index as usize].wrapping_add_signed(offset); WARP_LANES]
            }
            Operand::SharedAddress { offset } => [self.addresses.shared.wrapping_add_signed(offset); WARP_LANES],
        }
    }

    /// Writes `value(lane)` in the executing lanes.
    #[inline(always)]
    pub(super) fn write(&mut self, destination: Register, value: impl Fn(usize) -> u64) {
        let slots = &mut self.registers.values[destination.0 as usize];
        if self.lanes == LaneMask::MAX {
            for (lane, slot) in slots.iter_mut().enumerate() {
                *slot = value(lane);
            }
        } else {
            let mut left = self.lanes;
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                slots[lane] = value(lane);
                left &= left - 1;
            }
        }
    }

    #[inline(always)]
    pub(super) fn unary(&mut self, destination: Register, source: Operand, f: impl Fn(u64) -> u64) {
        let a = self.fetch(source);
        self.write(destination, |lane| f(a[lane]));
    }

    #[inline(always)]
    pub(super) fn binary(&mut self, destination: Register, left: Operand, right: Operand, f: impl Fn(u64, u64) -> u64) {
        let (a, b) = (self.fetch(left), self.fetch(right));
        self.write(destination, |lane| f(a[lane], b[lane]));
    }

    #[inline(always)]
    pub(super) fn ternary(&mut self, destination: Register, sources: [Operand; 3], f: impl Fn(u64, u64, u64) -> u64) {
        // One by one: mapping the array would copy whole warps of values around.
        let (a, b, c) = (self.fetch(sources[0]), self.fetch(sources[1]), self.fetch(sources[2]));
        self.write(destination, |lane| f(a[lane], b[lane], c[lane]));
    }

    /// The lanes in which a predicate operand holds.
    #[inline]
    pub(super) fn predicate_source(&self, source: PredicateSource) -> LaneMask {
        match source {
            PredicateSource::Predicate(operand) => self.registers.lanes_where(operand),
            PredicateSource::Constant(true) => LaneMask::MAX,
            PredicateSource::Constant(false) => 0,
        }
    }

    /// Writes a predicate in the executing lanes.
    #[inline]
    pub(super) fn set_predicate(&mut self, predicate: Predicate, value: LaneMask) {
        self.registers.set_predicate(predicate, self.lanes, value);
    }
}

/// One bit per lane.
#[inline(always)]
pub(super) fn mask_of(f: impl Fn(usize) -> bool) -> LaneMask {
    let mut mask = 0;
    for lane in 0..WARP_LANES {
        mask |= LaneMask::from(f(lane)) << lane;
    }
    mask
}
