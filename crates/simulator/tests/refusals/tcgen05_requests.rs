//! The tensor core driven without PTX: requests that no instruction can make.

use simulator::program::{Tcgen05Kind, Tcgen05Shape};
use simulator::shared::SharedReadError;
use simulator::tcgen05::{Mma, MmaOperandA, MmaRequest, MmaScratch, RegisterTransfer};

use crate::support::refused;
use crate::tensor_core::SharedImage;
use simulator::tcgen05::MmaCta;

const OPERAND: u64 = 0x0000_4008_0080_0000;

fn request() -> MmaRequest {
    MmaRequest {
        kind: Tcgen05Kind::F16,
        cta_group: 1,
        accumulator: 0,
        a: MmaOperandA::Shared(OPERAND),
        b: OPERAND,
        instruction_descriptor: 0x0808_0490,
        scales: None,
        scale_block: 0,
        disable_output_lane: [0; 8],
        enable_input_d: false,
    }
}

#[test]
fn groups() {
    refused(Mma::new(&MmaRequest { cta_group: 3, ..request() }), "cta_group::3; legal: 1, 2");
    let mma = Mma::new(&request()).unwrap();
    let none: &mut [MmaCta<'_, SharedImage>] = &mut [];
    refused(mma.execute(none, &mut MmaScratch::default()), "an MMA of cta_group::1 was given 0 CTAs");
}

#[test]
fn scales() {
    refused(Mma::new(&MmaRequest { scales: Some((0, 0)), ..request() }), "F16 takes no scale addresses");
    let scaled = MmaRequest { kind: Tcgen05Kind::Mxf8f6f4, instruction_descriptor: 0x0888_0000, ..request() };
    refused(Mma::new(&scaled), "Mxf8f6f4 needs scale addresses");
    let scaled = MmaRequest { scales: Some((32, 40)), scale_block: 16, ..scaled };
    refused(Mma::new(&scaled), "Mxf8f6f4 with 16 elements to a scale; legal: 32");
    Mma::new(&MmaRequest { scale_block: 32, ..scaled }).unwrap();
}

#[test]
fn register_transfers() {
    let transfer = |repeat| RegisterTransfer {
        shape: Tcgen05Shape::Lanes32x32b,
        repeat,
        packed: false,
        address: 0,
        warp_in_warpgroup: 0,
    };
    refused(
        transfer(3).footprint(),
        "Lanes32x32b with .x3: repeats are powers of two with at most 128 registers in all",
    );
    let mut memory = crate::tensor_core::tensor_memory();
    let owner = crate::tensor_core::OWNER;
    refused(
        transfer(2).store(&mut memory, owner, &[[0; 32]; 3]),
        "Lanes32x32b with .x2 moves 2 registers per lane, not 3",
    );
    transfer(2).store(&mut memory, owner, &[[0; 32]; 2]).unwrap();
}

#[test]
fn reading_past_the_end_of_shared_memory() {
    use simulator::shared::SharedReader;
    let error = SharedImage::new().read(232_440, &mut [0; 16]);
    assert!(matches!(error, Err(SharedReadError::OutOfBounds { .. })));
    refused(error, "shared memory read of 16 bytes at 0x38bf8 is outside the CTA's 232448 bytes");
}
