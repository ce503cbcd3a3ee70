//! Instructions in which lanes of a warp meet: `*.sync`, and the `.aligned` rule.

use super::step::{Flow, Step};
use super::{Context, FragmentState, Resume, Wait, WaitToken};
use crate::fault::ConvergenceError;
use crate::program::{
    AtomicOperation, ElementType, LaneMask, Operand, Predicate, Register, Shuffle, ShuffleMode, Vote, VoteKind,
    WARP_LANES,
};

impl Context<'_> {
    /// Waits until all `members` that have not exited are here. `Some(lanes)`: they are, and this group executes the
    /// instruction for all of them. `None`: the group is suspended.
    ///
    /// `same_instruction` is false for `bar.warp.sync`, at which lanes may meet from different places.
    pub(super) fn gather(&mut self, members: LaneMask, same_instruction: bool, aligned: bool) -> Option<LaneMask> {
        let needed = members & self.warp.live;
        if self.lanes == needed {
            return Some(needed);
        }
        let kernel = &self.launch.kernel;
        let this = std::mem::discriminant(&kernel.instructions[self.pc as usize].operation);
        let meets = |index: usize, group: &super::Fragment| {
            index != self.fragment
                && group.state == FragmentState::Waiting(Wait::Members { members, aligned })
                && if same_instruction {
                    group.pc == self.pc
                } else {
                    std::mem::discriminant(&kernel.instructions[group.pc as usize].operation) == this
                }
        };
        let mut here = self.lanes;
        let mut others = 0u32;
        for (index, group) in self.warp.fragments.iter().enumerate() {
            if meets(index, group) {
                here |= group.gathering;
                others |= 1 << index;
            }
        }
        if here & needed != needed {
            let lanes = self.lanes;
            self.warp.fragments[self.fragment].gathering = lanes;
            self.warp.suspend(self.fragment, Wait::Members { members, aligned }, self.machine);
            self.count_wait();
            return None;
        }
        if here == self.warp.live && same_instruction {
            self.warp.merge_all(self.fragment);
        } else {
            let mut rest = others;
            while rest != 0 {
                let index = rest.trailing_zeros();
                rest &= rest - 1;
                let wait = self.warp.fragments[index as usize].wait;
                let token = WaitToken { warp: self.warp.slot, fragment: index, wait };
                self.machine.wake(token, Resume::Next);
            }
        }
        self.machine.effects += 1;
        Some(here)
    }

    /// The `.aligned` rule: all live lanes execute the instruction together. Where lanes were let go early for the sake
    /// of progress they may come one after the other. False: suspended.
    pub(super) fn align(&mut self) -> Step<bool> {
        let live = self.warp.live;
        if self.lanes == live {
            return Ok(true);
        }
        if !self.warp.loose {
            return Err(ConvergenceError::NotAligned { lanes: self.lanes, live }.into());
        }
        match self.gather(live, true, true) {
            Some(lanes) => {
                self.lanes = lanes;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// The common member mask, checked.
    fn members(&self, members: Operand) -> Step<LaneMask> {
        let first = self.operand(members, self.lanes.trailing_zeros() as usize) as LaneMask;
        for lane in 0..WARP_LANES {
            if self.lanes >> lane & 1 != 0 {
                let other = self.operand(members, lane) as LaneMask;
                if other != first {
                    return Err(ConvergenceError::MembersDisagree { first, other }.into());
                }
            }
        }
        if self.lanes & !first != 0 {
            return Err(ConvergenceError::NotAMember { lanes: self.lanes & !first, members: first }.into());
        }
        Ok(first)
    }

    /// Gathers the members of a `.sync` instruction. False: suspended.
    fn meet(&mut self, members: Operand) -> Step<bool> {
        let members = self.members(members)?;
        match self.gather(members, true, false) {
            Some(lanes) => {
                self.lanes = lanes;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    pub(super) fn warp_sync(&mut self, members: Operand) -> Step {
        let members = self.members(members)?;
        Ok(if self.gather(members, false, false).is_some() { Flow::Next } else { Flow::Suspended })
    }

    pub(super) fn elect(&mut self, lane: Option<Register>, elected: Predicate, members: Operand) -> Step {
        if !self.meet(members)? {
            return Ok(Flow::Suspended);
        }
        // Deterministic for a member mask (PTX ISA, elect.sync): the lowest lane.
        let leader = self.lanes.trailing_zeros();
        self.warp.registers.set_predicate(elected, self.lanes, 1 << leader);
        if let Some(register) = lane {
            self.each_lane(|context, lane| context.set(register, lane, leader.into()));
        }
        Ok(Flow::Next)
    }

    pub(super) fn shuffle(&mut self, shuffle: &Shuffle) -> Step {
        if !self.meet(shuffle.members)? {
            return Ok(Flow::Suspended);
        }
        let values: [u64; WARP_LANES] = std::array::from_fn(|lane| self.operand(shuffle.source, lane));
        let lanes = self.lanes;
        let mut in_range = 0;
        self.each_lane(|context, lane| {
            // PTX ISA, shfl.sync: the clamp operand holds the clamp in bits 0..5 and the segment mask in bits 8..13.
            let delta = context.operand(shuffle.lane, lane) as i32 & 0x1f;
            let clamp = context.operand(shuffle.clamp, lane) as u32;
            let (segment, clamp) = ((clamp >> 8) & 0x1f, clamp & 0x1f);
            let lane_bits = lane as u32;
            let most = ((lane_bits & segment) | (clamp & !segment)) as i32;
            let least = (lane_bits & segment) as i32;
            let own = lane as i32;
            let (source, valid) = match shuffle.mode {
                ShuffleMode::Up => (own - delta, own - delta >= most),
                ShuffleMode::Down => (own + delta, own + delta <= most),
                ShuffleMode::Butterfly => (own ^ delta, own ^ delta <= most),
                ShuffleMode::Index => {
                    let source = least | (delta & !(segment as i32));
                    (source, source <= most)
                }
            };
            let source = if valid { source as usize } else { lane };
            in_range |= u32::from(valid) << lane;
            // A lane that does not take part has no value to give: make that visible instead of lucky.
            let value = if lanes >> source & 1 != 0 { values[source] } else { 0xdead_beef };
            context.set(shuffle.destination, lane, value);
        });
        if let Some(predicate) = shuffle.in_range {
            self.warp.registers.set_predicate(predicate, lanes, in_range);
        }
        Ok(Flow::Next)
    }

    pub(super) fn vote(&mut self, vote: &Vote) -> Step {
        if !self.meet(vote.members)? {
            return Ok(Flow::Suspended);
        }
        let lanes = self.lanes;
        let votes = self.warp.registers.lanes_where(vote.source) & lanes;
        let mut predicate = |destination, value: bool| {
            self.warp.registers.set_predicate(destination, lanes, if value { LaneMask::MAX } else { 0 });
        };
        match vote.kind {
            VoteKind::All(destination) => predicate(destination, votes == lanes),
            VoteKind::Any(destination) => predicate(destination, votes != 0),
            VoteKind::Uniform(destination) => predicate(destination, votes == lanes || votes == 0),
            VoteKind::Ballot(destination) => {
                self.each_lane(|context, lane| context.set(destination, lane, votes.into()));
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn match_lanes(
        &mut self,
        destination: Register,
        all: Option<Option<Predicate>>,
        source: Operand,
        members: Operand,
    ) -> Step {
        if !self.meet(members)? {
            return Ok(Flow::Suspended);
        }
        let values: [u64; WARP_LANES] = std::array::from_fn(|lane| self.operand(source, lane));
        let lanes = self.lanes;
        let same = |lane: usize| {
            (0..WARP_LANES)
                .filter(|&other| lanes >> other & 1 != 0 && values[other] == values[lane])
                .fold(0u32, |mask, other| mask | 1 << other)
        };
        match all {
            None => self.each_lane(|context, lane| context.set(destination, lane, same(lane).into())),
            Some(predicate) => {
                let agree = same(lanes.trailing_zeros() as usize) == lanes;
                let mask = if agree { lanes } else { 0 };
                self.each_lane(|context, lane| context.set(destination, lane, mask.into()));
                if let Some(predicate) = predicate {
                    self.warp.registers.set_predicate(predicate, lanes, mask);
                }
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn redux(
        &mut self,
        destination: Register,
        reduction: AtomicOperation,
        element: ElementType,
        source: Operand,
        members: Operand,
    ) -> Step {
        if !self.meet(members)? {
            return Ok(Flow::Suspended);
        }
        let mut result = None;
        for lane in 0..WARP_LANES {
            if self.lanes >> lane & 1 == 0 {
                continue;
            }
            let value = self.operand(source, lane);
            result = Some(match result {
                None => value,
                Some(sum) => reduce_pair(reduction, element, sum, value)?,
            });
        }
        let result = result.unwrap_or(0);
        self.each_lane(|context, lane| context.set(destination, lane, result));
        Ok(Flow::Next)
    }
}

fn reduce_pair(reduction: AtomicOperation, element: ElementType, a: u64, b: u64) -> Step<u64> {
    if element == ElementType::F32 {
        let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        let value = match reduction {
            AtomicOperation::Min => x.min(y),
            AtomicOperation::Max => x.max(y),
            _ => return Err(crate::memory::AtomicError { operation: reduction, element }.into()),
        };
        return Ok(value.to_bits().into());
    }
    Ok(crate::memory::atomic_update(reduction, element, a, 0, b)?)
}
