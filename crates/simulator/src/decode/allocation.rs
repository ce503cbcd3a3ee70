//! Register slots: compilers name a new register for nearly every value, and a warp keeps 256 bytes per slot, so values
//! that are never alive together share one.
//!
//! Linear scan (Poletto and Sarkar, "Linear Scan Register Allocation") over the span of instructions in which each
//! register is alive. Liveness is that of one thread; lanes of a warp may stand at different places, but each has its own
//! element of a slot.

use super::reconvergence::Graph;
use super::registers::visit;
use crate::program::{Instruction, Operation};

/// Past this many bits the sets of live registers would take too much memory, and registers keep their slots.
const LIVENESS_BITS: usize = 1 << 26;

/// Renumbers the registers of a kernel; returns how many slots are left.
pub(super) fn share_slots(instructions: &mut [Instruction], graph: &Graph, registers: u32) -> u32 {
    let registers = registers as usize;
    if registers * graph.first.len() > LIVENESS_BITS || registers == 0 {
        return registers as u32;
    }
    let spans = Spans::of(instructions, graph, registers);
    let (slots, count) = spans.assign();
    for instruction in instructions {
        visit(&mut instruction.operation, &mut |register, _| register.0 = slots[register.0 as usize]);
    }
    count
}

/// For each register the first and last point where it is alive. An instruction `i` reads at point 2i and writes at 2i+1.
struct Spans {
    first: Vec<u32>,
    last: Vec<u32>,
}

impl Spans {
    fn of(instructions: &mut [Instruction], graph: &Graph, registers: usize) -> Self {
        let mut spans = Self { first: vec![u32::MAX; registers], last: vec![0; registers] };
        let (live_in, live_out) = liveness(instructions, graph, registers);
        for block in 0..graph.first.len() {
            live_in[block].for_each(|register| spans.extend(register, 2 * graph.first[block] as u32));
            live_out[block].for_each(|register| spans.extend(register, 2 * graph.last[block] as u32 + 1));
        }
        for (i, instruction) in instructions.iter_mut().enumerate() {
            // Per-lane instructions read everything before they write; of the others that is not asked.
            let early = matches!(instruction.operation, Operation::Scalar(_));
            let point = 2 * i as u32;
            visit(&mut instruction.operation, &mut |register, written| {
                spans.extend(register.0 as usize, if written || !early { point + 1 } else { point });
            });
        }
        spans
    }

    fn extend(&mut self, register: usize, point: u32) {
        self.first[register] = self.first[register].min(point);
        self.last[register] = self.last[register].max(point);
    }

    /// A slot for each register, and the number of slots.
    fn assign(&self) -> (Vec<u32>, u32) {
        let mut order: Vec<usize> = (0..self.first.len()).filter(|&r| self.first[r] != u32::MAX).collect();
        order.sort_by_key(|&register| self.first[register]);
        let mut slots = vec![0; self.first.len()];
        // Slots by the end of their last value, and those that are free.
        let mut busy = std::collections::BinaryHeap::new();
        let mut free = std::collections::BinaryHeap::new();
        let mut count = 0;
        for register in order {
            while let Some(&std::cmp::Reverse((end, slot))) = busy.peek() {
                if end >= self.first[register] {
                    break;
                }
                busy.pop();
                free.push(std::cmp::Reverse(slot));
            }
            let slot = match free.pop() {
                Some(std::cmp::Reverse(slot)) => slot,
                None => {
                    count += 1;
                    count - 1
                }
            };
            slots[register] = slot;
            busy.push(std::cmp::Reverse((self.last[register], slot)));
        }
        (slots, count)
    }
}

/// A set of registers.
#[derive(Clone, PartialEq)]
struct Set(Vec<u64>);

impl Set {
    fn new(registers: usize) -> Self {
        Self(vec![0; registers.div_ceil(64)])
    }

    fn contains(&self, register: usize) -> bool {
        self.0[register / 64] >> (register % 64) & 1 != 0
    }

    fn insert(&mut self, register: usize) {
        self.0[register / 64] |= 1 << (register % 64);
    }

    fn for_each(&self, mut f: impl FnMut(usize)) {
        for (i, &word) in self.0.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                f(i * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }
}

/// Registers alive before and after each block.
fn liveness(instructions: &mut [Instruction], graph: &Graph, registers: usize) -> (Vec<Set>, Vec<Set>) {
    let blocks = graph.first.len();
    let mut live_in = Vec::with_capacity(blocks);
    let mut killed = Vec::with_capacity(blocks);
    for block in 0..blocks {
        let (mut used, mut written) = (Set::new(registers), Set::new(registers));
        for instruction in &mut instructions[graph.first[block]..=graph.last[block]] {
            // Where the guard is false the old value stays, so a guarded write reads it in effect.
            let guarded = instruction.guard.is_some();
            visit(&mut instruction.operation, &mut |register, writes| {
                if (!writes || guarded) && !written.contains(register.0 as usize) {
                    used.insert(register.0 as usize);
                }
            });
            visit(&mut instruction.operation, &mut |register, writes| {
                if writes {
                    written.insert(register.0 as usize);
                }
            });
        }
        live_in.push(used);
        killed.push(written);
    }
    let mut live_out = vec![Set::new(registers); blocks];
    let mut predecessors = vec![Vec::new(); blocks];
    for (block, successors) in graph.successors.iter().enumerate() {
        successors.iter().filter(|&&next| next < blocks).for_each(|&next| predecessors[next].push(block));
    }
    let mut queued = vec![true; blocks];
    let mut queue: Vec<usize> = (0..blocks).collect();
    while let Some(block) = queue.pop() {
        queued[block] = false;
        for &predecessor in &predecessors[block] {
            let mut changed = false;
            for word in 0..live_in[block].0.len() {
                let arriving = live_in[block].0[word] & !live_out[predecessor].0[word];
                live_out[predecessor].0[word] |= arriving;
                let passing = arriving & !killed[predecessor].0[word] & !live_in[predecessor].0[word];
                live_in[predecessor].0[word] |= passing;
                changed |= passing != 0;
            }
            if changed && !queued[predecessor] {
                queued[predecessor] = true;
                queue.push(predecessor);
            }
        }
    }
    (live_in, live_out)
}
