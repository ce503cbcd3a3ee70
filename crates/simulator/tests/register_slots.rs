//! Registers share slots; programs must not notice.

#![allow(missing_docs)]

mod common;

use common::module;
use proptest::prelude::*;
use simulator::alu::{self, AddressBases};
use simulator::program::{Operation, Registers, ScalarInstruction};
use simulator::ptx::load;

/// A statement over 12 registers and 3 predicates.
#[derive(Debug, Clone)]
enum Statement {
    Add { guard: Option<(usize, bool)>, destination: usize, left: usize, right: usize },
    Set { destination: usize, value: u32 },
    Less { predicate: usize, left: usize, right: usize },
    Branch { guard: Option<(usize, bool)>, target: prop::sample::Index },
}

fn statement() -> impl Strategy<Value = Statement> {
    let guard = || prop::option::of((0usize..3, any::<bool>()));
    let register = || 0usize..12;
    prop_oneof![
        4 => (guard(), register(), register(), register())
            .prop_map(|(guard, destination, left, right)| Statement::Add { guard, destination, left, right }),
        3 => (register(), any::<u32>()).prop_map(|(destination, value)| Statement::Set { destination, value }),
        2 => (0usize..3, register(), register())
            .prop_map(|(predicate, left, right)| Statement::Less { predicate, left, right }),
        2 => (guard(), any::<prop::sample::Index>()).prop_map(|(guard, target)| Statement::Branch { guard, target }),
    ]
}

fn text(statements: &[Statement]) -> String {
    let guard = |guard: &Option<(usize, bool)>| match guard {
        None => String::new(),
        Some((predicate, negated)) => format!("@{}%p{predicate} ", if *negated { "!" } else { "" }),
    };
    let mut body = ".reg .b32 %r<12>; .reg .pred %p<3>;\n".to_owned();
    for (i, statement) in statements.iter().enumerate() {
        body += &format!("L{i}: ");
        body += &match statement {
            Statement::Add { guard: g, destination, left, right } => {
                format!("{}add.u32 %r{destination}, %r{left}, %r{right};\n", guard(g))
            }
            Statement::Set { destination, value } => format!("mov.b32 %r{destination}, {value};\n"),
            Statement::Less { predicate, left, right } => {
                format!("setp.lt.u32 %p{predicate}, %r{left}, %r{right};\n")
            }
            Statement::Branch { guard: g, target } => {
                format!("{}bra L{};\n", guard(g), target.index(statements.len() + 1))
            }
        };
    }
    body + &format!("L{}: exit;", statements.len())
}

/// What each executed statement wrote: by the description.
fn reference(statements: &[Statement]) -> Vec<u64> {
    let (mut registers, mut predicates) = ([0u32; 12], [false; 3]);
    let mut trace = Vec::new();
    let mut at = 0;
    while at < statements.len() && trace.len() < 200 {
        let holds =
            |guard: &Option<(usize, bool)>| guard.is_none_or(|(predicate, negated)| predicates[predicate] != negated);
        let mut next = at + 1;
        let mut wrote = 0;
        match &statements[at] {
            Statement::Add { guard, destination, left, right } => {
                if holds(guard) {
                    registers[*destination] = registers[*left].wrapping_add(registers[*right]);
                }
                wrote = registers[*destination];
            }
            Statement::Set { destination, value } => {
                registers[*destination] = *value;
                wrote = *value;
            }
            Statement::Less { predicate, left, right } => predicates[*predicate] = registers[*left] < registers[*right],
            Statement::Branch { guard, target } => {
                if holds(guard) {
                    next = target.index(statements.len() + 1);
                }
            }
        }
        trace.push(wrote.into());
        at = next;
    }
    trace
}

/// The same by the decoded program, in lane 5.
fn executed(text: &str) -> (Vec<u64>, u32) {
    let module = load(text).unwrap_or_else(|error| panic!("{}", error.diagnostic()));
    let kernel = &module.kernels[0];
    let mut registers = Registers::new(kernel.register_count, kernel.predicate_count);
    let mut trace = Vec::new();
    let mut at = 0;
    while trace.len() < 200 {
        let instruction = &kernel.instructions[at];
        let lanes = instruction.guard.map_or(u32::MAX, |guard| registers.lanes_where(guard)) & 1 << 5;
        let mut wrote = 0;
        at += 1;
        match &instruction.operation {
            Operation::Scalar(scalar) => {
                alu::execute(scalar, &mut registers, lanes, AddressBases::default());
                if let ScalarInstruction::Integer { destination, .. } | ScalarInstruction::Move { destination, .. } =
                    scalar
                {
                    wrote = registers.values[destination.0 as usize][5];
                }
            }
            Operation::Branch { target, .. } if lanes != 0 => at = *target as usize,
            Operation::Branch { .. } => {}
            Operation::Exit => break,
            other => panic!("{other:?}"),
        }
        trace.push(wrote);
    }
    (trace, kernel.register_count)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn programs_do_not_notice(statements in prop::collection::vec(statement(), 1..30)) {
        let (trace, slots) = executed(&module(&text(&statements)));
        prop_assert_eq!(trace, reference(&statements));
        prop_assert!(slots <= 12);
    }
}

#[test]
fn a_chain_of_values_takes_few_slots() {
    let chain: String = (1..1000).map(|i| format!("add.u32 %r{i}, %r{}, 1;\n", i - 1)).collect();
    let (trace, slots) = executed(&module(&format!(".reg .b32 %r<1000>;\nmov.b32 %r0, 0;\n{chain}exit;")));
    assert_eq!(slots, 1);
    assert_eq!(trace[199], 199);
}
