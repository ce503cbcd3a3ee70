//! A per-lane instruction on its own, with named inputs and one output.

#![allow(dead_code, missing_docs)]

use simulator::alu::{self, AddressBases};
use simulator::program::{Operand, Operation, Register, Registers, ScalarInstruction, WARP_LANES};

/// A kernel around a body, for the newest target.
pub fn module(body: &str) -> String {
    module_for("sm_100a", body)
}

pub fn module_for(target: &str, body: &str) -> String {
    format!(".version 8.8\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\n{body}\n}}\n")
}

/// An instruction whose operands are `%in0`, `%in1`, … and `%out`.
pub struct Scalar {
    instructions: Vec<ScalarInstruction>,
    registers: (u32, u32),
    inputs: Vec<Register>,
    output: Register,
}

impl Scalar {
    /// `text` may be several statements; registers are untyped and as wide as given. `%p` and `%q` are predicates.
    pub fn new(text: &str, input_bits: &[u32], output_bits: u32) -> Self {
        let mut body = ".reg .pred %p, %q;\n".to_owned();
        for (i, bits) in input_bits.iter().enumerate() {
            body += &format!(".reg .b{bits} %in{i};\n");
        }
        body += &format!(".reg .b{output_bits} %out, %sink;\n");
        // These tell which slot each name got.
        for (i, bits) in input_bits.iter().enumerate() {
            body += &format!("mov.b{bits} %in{i}, 0;\n");
        }
        body += &format!("{text}\nmov.b{output_bits} %sink, %out;\n");
        let loaded = simulator::ptx::load(&module(&body)).unwrap_or_else(|error| panic!("{}", error.diagnostic()));
        let kernel = &loaded.kernels[0];
        let mut scalars: Vec<ScalarInstruction> = kernel
            .instructions
            .iter()
            .map(|instruction| match &instruction.operation {
                Operation::Scalar(scalar) => scalar.clone(),
                other => panic!("not a per-lane instruction: {other:?}"),
            })
            .collect();
        let Some(ScalarInstruction::Move { source: Operand::Register(output), .. }) = scalars.pop() else {
            panic!("the last instruction reads the output");
        };
        let inputs = scalars
            .drain(..input_bits.len())
            .map(|scalar| match scalar {
                ScalarInstruction::Move { destination, .. } => destination,
                other => panic!("not a move: {other:?}"),
            })
            .collect();
        Self { instructions: scalars, registers: (kernel.register_count, kernel.predicate_count), inputs, output }
    }

    /// Runs all lanes on the inputs of one lane each; up to 32 at a time.
    pub fn run_lanes(&self, lanes: u32, inputs: &[[u64; WARP_LANES]]) -> [u64; WARP_LANES] {
        let mut registers = self.registers_with(inputs);
        for instruction in &self.instructions {
            alu::execute(instruction, &mut registers, lanes, AddressBases::default());
        }
        registers.values[self.output.0 as usize]
    }

    fn registers_with(&self, inputs: &[[u64; WARP_LANES]]) -> Registers {
        let mut registers = Registers::new(self.registers.0, self.registers.1);
        for (register, values) in self.inputs.iter().zip(inputs) {
            registers.values[register.0 as usize] = *values;
        }
        registers
    }

    /// Runs one lane's inputs, in every lane and in a few lanes; both ways must agree.
    pub fn run(&self, inputs: &[u64]) -> u64 {
        let inputs: Vec<_> = inputs.iter().map(|&value| [value; WARP_LANES]).collect();
        let all = self.run_lanes(u32::MAX, &inputs);
        let some = self.run_lanes(0x8000_0101, &inputs);
        // The output may share its slot with an input.
        let before = self.registers_with(&inputs).values[self.output.0 as usize];
        for lane in 0..WARP_LANES {
            assert_eq!(all[lane], all[0]);
            assert_eq!(some[lane], if 0x8000_0101u32 >> lane & 1 != 0 { all[0] } else { before[lane] });
        }
        all[0]
    }
}
