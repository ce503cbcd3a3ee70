//! Position in a ring of stages that mbarriers guard.

/// A stage and the parity of the phase to wait for there.
#[derive(Clone, Copy)]
pub struct Position {
    /// Current stage.
    pub stage: u32,
    parity: u32,
}

impl Position {
    /// The first stage of the first pass.
    #[inline(always)]
    pub fn start() -> Self {
        Self { stage: 0, parity: 0 }
    }

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

    /// The next stage of a ring of `stages`, a constant of the variant.
    #[inline(always)]
    pub fn advance(&mut self, stages: u32) {
        self.stage += 1;
        if self.stage == stages {
            self.stage = 0;
            self.parity ^= 1;
        }
    }
}
