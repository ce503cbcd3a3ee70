//! Position in a ring of stages that mbarriers guard.

use core::arch::asm;

use plan::shared_memory::BARRIER_BYTES;

/// A ring of stages. Its `full` barriers lie one after the other, and its `empty` barriers behind them.
#[derive(Clone, Copy)]
pub struct Ring {
    first: u32,
    end: u32,
}

impl Ring {
    /// The ring of `stages` stages whose first `full` barrier is at `first`.
    #[inline(always)]
    pub fn new(first: u32, stages: u32) -> Self {
        Self { first, end: first + stages * BARRIER_BYTES }
    }

    /// The first stage of the first pass.
    #[inline(always)]
    pub fn start(self) -> Position {
        Position { full: self.first, parity: 0 }
    }

    /// Moves a position to the next stage.
    #[inline(always)]
    pub fn advance(self, position: &mut Position) {
        let Position { mut full, mut parity } = *position;
        // Written out, because predicated moves are fewer instructions than the selects that a compiler makes of an `if`,
        // and the MMA thread's loop is short of them.
        // SAFETY: register arithmetic.
        unsafe {
            asm!("{{ .reg .pred p; add.u32 {f}, {f}, {n}; setp.eq.u32 p, {f}, {e}; @p mov.u32 {f}, {s}; @p xor.b32 {q}, {q}, 1; }}",
                 f = inout(reg32) full, q = inout(reg32) parity, n = const BARRIER_BYTES, e = in(reg32) self.end,
                 s = in(reg32) self.first, options(pure, nomem))
        }
        *position = Position { full, parity };
    }

    /// A position's `empty` barrier.
    #[inline(always)]
    pub fn empty(self, position: Position) -> u32 {
        position.full + (self.end - self.first)
    }

    /// What lies `pitch` apart from one stage to the next, and at `start` for the first; `pitch` is a multiple of 8.
    #[inline(always)]
    pub fn strided(self, start: u32, pitch: u32) -> Strided {
        let factor = pitch / BARRIER_BYTES;
        Strided { bias: start.wrapping_sub(self.first.wrapping_mul(factor)), factor }
    }
}

/// A stage, by the address of its `full` barrier, and the parity of the phase to wait for there. The address is the loop
/// variable, rather than the stage's number, because everything else follows from it by one multiply-add.
#[derive(Clone, Copy)]
pub struct Position {
    /// Address of the stage's `full` barrier.
    pub full: u32,
    parity: u32,
}

impl Position {
    /// Parity that a consumer waits for on the stage's full barrier.
    #[inline(always)]
    pub fn full_parity(self) -> u32 {
        self.parity
    }

    /// Parity that a producer waits for on the stage's empty barrier. On the first pass it names the phase before the
    /// barrier's first, which counts as complete, so the producer does not wait.
    #[inline(always)]
    pub fn empty_parity(self) -> u32 {
        self.parity ^ 1
    }
}

/// Something that every stage has, at a fixed distance from one to the next.
#[derive(Clone, Copy)]
pub struct Strided {
    bias: u32,
    factor: u32,
}

impl Strided {
    /// That of a position's stage.
    #[inline(always)]
    pub fn at(self, position: Position) -> u32 {
        position.full.wrapping_mul(self.factor).wrapping_add(self.bias)
    }
}
