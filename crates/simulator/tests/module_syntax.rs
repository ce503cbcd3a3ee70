//! Modules, kernels, scopes and layout.

#![allow(missing_docs)]

mod common;

use common::module;
use simulator::program::*;
use simulator::ptx::load;

const SYNTAX: &str = include_str!("data/syntax.ptx");

fn loaded() -> Module {
    load(SYNTAX).unwrap_or_else(|error| panic!("{}", error.diagnostic()))
}

#[test]
fn directives_and_layout() {
    let module = loaded();
    assert_eq!(module.version, (8, 8));
    assert_eq!(module.target, "sm_100a");
    let [kernel] = &module.kernels[..] else { panic!("one entry") };
    assert_eq!(kernel.name, "kernel");
    assert_eq!(kernel.required_threads, Some([128, 1, 1]));
    assert_eq!(kernel.max_threads, Some([128, 1, 1]));
    assert_eq!(kernel.required_cluster, Some([2, 1, 1]));
    let layout: Vec<_> = kernel.parameters.iter().map(|p| (p.offset, p.bytes, p.align)).collect();
    assert_eq!(layout, [(0, 128, 64), (128, 8, 8), (136, 1, 1), (144, 24, 8)]);
    assert_eq!(kernel.parameter_bytes, 168);
    // Four barriers of the module, then the body's array.
    assert_eq!(kernel.static_shared_bytes, 32 + 256);
    assert_eq!(kernel.dynamic_shared_offset, 1024);
    assert_eq!(kernel.local_bytes, 16);
    assert_eq!(kernel.reconvergence.len(), kernel.instructions.len());
}

#[test]
fn variables_have_their_initial_bytes() {
    let module = loaded();
    let bytes = |name: &str| {
        let variable = module.variables.iter().find(|variable| variable.name == name);
        variable.map(|variable| (variable.align, variable.bytes.clone()))
    };
    assert_eq!(bytes("counter"), Some((4, vec![7, 0, 0, 0])));
    assert_eq!(bytes("message"), Some((8, vec![104, 0x69, 0b10_0001, 0o72, 0, 0, 0, 0])));
    let table: Vec<u8> = [1f32, 2.0, -1.5, 0.25].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(bytes("table"), Some((4, table)));
    assert_eq!(bytes("vectors"), Some((16, vec![0; 32])));
    // Its initial value would need a relocation; a kernel that named it would be refused.
    assert_eq!(bytes("pointers"), None);
    let error = load(&SYNTAX.replace("message+4", "pointers+8")).expect_err("a relocated variable is named");
    assert_eq!(error.to_string(), "unsupported: `pointers`: initial values that are addresses");
}

#[test]
fn symbols_become_offsets() {
    let module = loaded();
    let operations: Vec<_> = module.kernels[0].instructions.iter().map(|i| &i.operation).collect();
    let moved = |index: usize| match operations[index] {
        Operation::Scalar(ScalarInstruction::Move { source, .. }) => *source,
        other => panic!("{other:?}"),
    };
    let shared = |offset| Operand::SharedAddress { offset };
    assert_eq!(moved(0), Operand::Immediate(0));
    assert_eq!(moved(5), Operand::Immediate(0));
    assert_eq!(moved(9), shared(1024));
    assert!(matches!(
        operations[10],
        Operation::Scalar(ScalarInstruction::Integer { right: Operand::Immediate(12), .. })
    ));
    let Operation::Load(load) = operations[4] else { panic!("ld.param.v2") };
    assert_eq!((load.space, load.destinations.len()), (StateSpace::Parameter, 2));
    assert_eq!(load.address, Address { base: Operand::Immediate(144), offset: 8 });
    assert_eq!(moved(12), Operand::VariableAddress { index: 1, offset: 4 });
}

#[test]
fn scopes_have_their_own_registers_and_labels() {
    let kernel = &loaded().kernels[0];
    let waits: Vec<_> = kernel
        .instructions
        .iter()
        .enumerate()
        .filter_map(|(i, instruction)| match &instruction.operation {
            Operation::Mbarrier(Mbarrier { kind: MbarrierKind::Wait { complete, .. }, .. }) => Some((i, *complete)),
            _ => None,
        })
        .collect();
    let [(first, p), (second, q)] = waits[..] else { panic!("two waits") };
    assert_ne!(p, q);
    let target = |index: usize| match kernel.instructions[index].operation {
        Operation::Branch { target, .. } => target as usize,
        ref other => panic!("{other:?}"),
    };
    assert_eq!(target(first + 1), first + 4, "DONE is behind the loop");
    assert_eq!(target(first + 3), first);
    assert_eq!(target(second + 1), second);
    assert!(kernel.instructions[second + 1].guard.is_some_and(|guard| guard.negated));
}

#[test]
fn lines_are_those_of_the_text() {
    let kernel = &loaded().kernels[0];
    let lines: Vec<_> = SYNTAX.lines().collect();
    for instruction in &kernel.instructions {
        assert!(!lines[instruction.line as usize - 1].trim().is_empty());
    }
    let last = kernel.instructions.last().unwrap();
    assert_eq!(lines[last.line as usize - 1].trim(), "ret;");
}

fn reconvergence(body: &str) -> Vec<u32> {
    let text = module(&format!(".reg .pred %p; .reg .b32 %r<4>;\n{body}"));
    load(&text).unwrap_or_else(|error| panic!("{}", error.diagnostic())).kernels[0].reconvergence.clone()
}

#[test]
fn branches_reconverge_at_the_immediate_post_dominator() {
    // if / else
    let r = reconvergence("@%p bra A; mov.b32 %r0, 1; bra B; A: mov.b32 %r0, 2; B: exit;");
    assert_eq!(r[0], 4);
    assert_eq!(r[2], 4);
    // A loop: lanes that leave wait at its end.
    let r = reconvergence("L: mov.b32 %r0, 1; @%p bra L; mov.b32 %r0, 2; exit;");
    assert_eq!(r[1], 2);
    // Both ways end in an exit of their own.
    let r = reconvergence("@%p bra A; exit; A: exit;");
    assert_eq!(r[0], 3);
    // A guarded exit leaves a way round what follows.
    let r = reconvergence("@%p bra A; @%p exit; A: mov.b32 %r0, 1; exit;");
    assert_eq!(r[0], 4);
    // A table of targets, one of them the next instruction.
    let r = reconvergence(
        "T: .branchtargets A, B, C; brx.idx %r0, T; A: mov.b32 %r0, 1; bra D; B: bra D; C: mov.b32 %r0, 2; D: exit;",
    );
    assert_eq!(r[0], 5);
    // Falling off the end is an exit.
    let r = reconvergence("@%p bra A; mov.b32 %r0, 1; A:");
    assert_eq!(r[0], 2);
}

#[test]
fn branches_in_an_endless_loop_reconverge_inside_it() {
    let r = reconvergence("L: @%p bra A; mov.b32 %r0, 1; bra J; A: mov.b32 %r0, 2; J: bar.sync 0; bra L;");
    assert_eq!(r[0], 4);
    // So does a wait that nothing ends, and what is before it.
    let r = reconvergence("@%p bra A; mov.b32 %r0, 1; A: mov.b32 %r0, 2; L: @%p bra L; bra L;");
    assert_eq!(r[0], 2);
    // The arm may stand behind the loop's last instruction.
    let r = reconvergence("L: @%p bra A; mov.b32 %r0, 1; J: bar.sync 0; bra L; A: mov.b32 %r0, 2; bra J;");
    assert_eq!(r[0], 2);
}

#[test]
fn reconvergence_of_random_graphs_is_the_nearest_common_block() {
    // Against the definition: the post-dominators of a block are what lies on every path from it to the exit.
    let mut state = 12345u64;
    let mut random = move |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    for _ in 0..300 {
        let blocks = 2 + random(7);
        let mut body = String::new();
        let mut targets = Vec::new();
        for block in 0..blocks {
            let target = random(blocks + 1);
            targets.push(target);
            body += &format!("B{block}: @%p bra B{target};\n");
        }
        body += &format!("B{blocks}: exit;\n");
        let r = reconvergence(&body);
        let exit = blocks as usize;
        let successors = |block: usize| if block == exit { vec![] } else { vec![block + 1, targets[block] as usize] };
        let reaches_exit_without = |from: usize, without: usize| {
            let mut seen = vec![false; exit + 1];
            let mut stack = vec![from];
            while let Some(block) = stack.pop() {
                if block == without || std::mem::replace(&mut seen[block], true) {
                    continue;
                }
                stack.extend(successors(block));
            }
            seen[exit]
        };
        for (block, &found) in r.iter().enumerate().take(exit) {
            let post_dominators: Vec<_> =
                (0..=exit).filter(|&other| other != block && !reaches_exit_without(block, other)).collect();
            // The nearest is the one that all the others post-dominate.
            let nearest = post_dominators
                .iter()
                .copied()
                .find(|&near| post_dominators.iter().all(|&far| far == near || !reaches_exit_without(near, far)))
                .unwrap();
            assert_eq!(found as usize, nearest, "block {block} of\n{body}");
        }
    }
}
