//! Where diverging lanes come together again: immediate post-dominators of the control-flow graph.
//!
//! The dominator algorithm is that of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", run on the
//! reversed graph. Code that cannot reach an exit (an endless loop) gets an edge to it from the block that closes the
//! loop, so that branches inside the loop still reconverge inside it.

use crate::program::{Instruction, Operation};

/// For each instruction the index at which lanes that diverge there come together again; see
/// [`crate::program::Kernel::reconvergence`].
pub(super) fn immediate_post_dominators(instructions: &[Instruction], graph: &Graph) -> Vec<u32> {
    let end = instructions.len();
    let mut reconvergence: Vec<u32> = (1..=end as u32).collect();
    let dominators = graph.post_dominators();
    for (block, &last) in graph.last.iter().enumerate() {
        if matches!(instructions[last].operation, Operation::Branch { .. } | Operation::BranchIndexed { .. }) {
            let dominator = dominators[block];
            reconvergence[last] = graph.first.get(dominator).map_or(end, |&first| first) as u32;
        }
    }
    reconvergence
}

/// Basic blocks. Block `first.len()` is the exit.
pub(super) struct Graph {
    /// First instruction of each block.
    pub(super) first: Vec<usize>,
    /// Last instruction of each block.
    pub(super) last: Vec<usize>,
    pub(super) successors: Vec<Vec<usize>>,
}

impl Graph {
    pub(super) fn new(instructions: &[Instruction]) -> Self {
        let end = instructions.len();
        let mut leader = vec![false; end + 1];
        leader[0] = true;
        for (i, instruction) in instructions.iter().enumerate() {
            match &instruction.operation {
                Operation::Branch { target, .. } => leader[*target as usize] = true,
                Operation::BranchIndexed { targets, .. } => {
                    targets.iter().for_each(|&target| leader[target as usize] = true);
                }
                Operation::Exit | Operation::Trap => {}
                _ => continue,
            }
            leader[i + 1] = true;
        }
        let first: Vec<usize> = (0..end).filter(|&i| leader[i]).collect();
        let last: Vec<usize> = (0..end).filter(|&i| leader[i + 1] || i + 1 == end).collect();
        let block_of = |instruction: usize| first.partition_point(|&start| start <= instruction).saturating_sub(1);
        let exit = first.len();
        let target_block = |instruction: usize| if instruction == end { exit } else { block_of(instruction) };
        let successors = last
            .iter()
            .map(|&i| {
                let instruction = &instructions[i];
                let mut next = match &instruction.operation {
                    Operation::Branch { target, .. } => vec![target_block(*target as usize)],
                    Operation::BranchIndexed { targets, .. } => {
                        targets.iter().map(|&target| target_block(target as usize)).collect()
                    }
                    Operation::Exit | Operation::Trap => vec![exit],
                    _ => vec![target_block(i + 1)],
                };
                if instruction.guard.is_some() {
                    next.push(target_block(i + 1));
                }
                next
            })
            .collect();
        Self { first, last, successors }
    }

    /// The blocks that close loops among those not in `reaching`, none of which reaches an exit. Every other such block
    /// runs into one of them.
    fn latches(&self, reaching: &[bool]) -> Vec<usize> {
        let mut latches = Vec::new();
        let mut seen = reaching.to_vec();
        let mut on_path = vec![false; seen.len()];
        for start in 0..self.first.len() {
            if seen[start] {
                continue;
            }
            let mut stack = vec![(start, 0)];
            seen[start] = true;
            on_path[start] = true;
            while let Some((block, next)) = stack.last_mut() {
                let block = *block;
                let Some(&successor) = self.successors[block].get(*next) else {
                    on_path[block] = false;
                    stack.pop();
                    continue;
                };
                *next += 1;
                if on_path[successor] {
                    latches.push(block);
                } else if !seen[successor] {
                    seen[successor] = true;
                    on_path[successor] = true;
                    stack.push((successor, 0));
                }
            }
        }
        latches
    }

    /// The immediate post-dominator of each block; the exit's is itself.
    fn post_dominators(&self) -> Vec<usize> {
        let exit = self.first.len();
        let mut successors = self.successors.clone();
        successors.push(Vec::new());
        let mut predecessors = vec![Vec::new(); exit + 1];
        for (block, next) in self.successors.iter().enumerate() {
            next.iter().for_each(|&successor| predecessors[successor].push(block));
        }
        // Postorder of the reversed graph from the exit.
        let mut order = Vec::with_capacity(exit + 1);
        let mut seen = vec![false; exit + 1];
        depth_first(exit, &predecessors, &mut seen, &mut order);
        // The exit's postorder number must stay the highest, so the walks from endless loops go before it.
        order.pop();
        for latch in self.latches(&seen) {
            if !seen[latch] {
                successors[latch].push(exit);
                depth_first(latch, &predecessors, &mut seen, &mut order);
            }
        }
        order.push(exit);

        let mut number = vec![0; exit + 1];
        order.iter().enumerate().for_each(|(i, &block)| number[block] = i);
        let mut dominator = vec![usize::MAX; exit + 1];
        dominator[exit] = exit;
        let mut changed = true;
        while changed {
            changed = false;
            for &block in order.iter().rev().skip(1) {
                let mut common = usize::MAX;
                for &successor in &successors[block] {
                    if dominator[successor] == usize::MAX {
                        continue;
                    }
                    common =
                        if common == usize::MAX { successor } else { meet(common, successor, &dominator, &number) };
                }
                if common != usize::MAX && dominator[block] != common {
                    dominator[block] = common;
                    changed = true;
                }
            }
        }
        dominator
    }
}

fn meet(mut a: usize, mut b: usize, dominator: &[usize], number: &[usize]) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = dominator[a];
        }
        while number[b] < number[a] {
            b = dominator[b];
        }
    }
    a
}

/// Appends the postorder of what is reachable; an explicit stack, since a text can chain very many blocks.
fn depth_first(start: usize, edges: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
    let mut stack = vec![(start, 0)];
    seen[start] = true;
    while let Some((block, next)) = stack.last_mut() {
        match edges[*block].get(*next) {
            Some(&successor) => {
                *next += 1;
                if !seen[successor] {
                    seen[successor] = true;
                    stack.push((successor, 0));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
}
