//! What memory refuses, with the literal diagnostic, and the nearest access that it allows.

mod fixture;

use fixture::{GPU, Machine, assert_fault, assert_passes, fault_of, kernel, launch};
use simulator::node::GpuId;
use simulator::{AccessProblem, MemoryError};

const OUT: &str = "ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd1, %rd1;";

#[test]
fn a_diagnostic_names_the_place_in_full() {
    let mut machine =
        Machine::new(1, 0, &kernel(".param .u64 out", &format!("{OUT}\nld.global.u32 %r1, [%rd1+4];\nret;")));
    let fault = machine.run(launch(3, 1, 64), &[0x10]).unwrap_err();
    assert_eq!(fault.to_string().lines().next().unwrap(), "kernel `k`, PTX line 8: `ld.global.u32 %r1, [%rd1+4];`");
    assert!(fault.to_string().ends_with("lane 0: load of 4 bytes at 0x14: no memory is mapped there"), "{fault}");
}

#[test]
fn out_of_bounds() {
    assert_fault(
        1,
        &format!("{OUT} ld.global.u32 %r1, [%rd1+256]; ret;"),
        "bytes at 0x700000200100: no memory is mapped there: 4 bytes past the end of the 256 bytes mapped at 0x700000200000",
    );
    assert_passes(1, &format!("{OUT} ld.global.u32 %r1, [%rd1+252]; ret;"));
}

#[test]
fn misaligned() {
    assert_fault(
        1,
        &format!("{OUT} ld.global.v4.u32 {{%r1,%r2,%r3,%r4}}, [%rd1+8]; ret;"),
        "load of 16 bytes at 0x700000200008: the address must be a multiple of 16",
    );
    assert_passes(1, &format!("{OUT} ld.global.v2.u32 {{%r1,%r2}}, [%rd1+8]; ret;"));
}

#[test]
fn uninitialised_device_memory() {
    let ptx =
        kernel(".param .u64 a", "ld.param.u64 %rd1, [a]; st.global.u16 [%rd1], 1; ld.global.u32 %r1, [%rd1]; ret;");
    let mut machine = Machine::new(1, 0, &ptx);
    let address = machine.node.allocate(GPU, 64).unwrap();
    let fault = machine.run(launch(1, 1, 1), &[address]).unwrap_err().to_string();
    assert!(fault.ends_with(&format!("the byte at {:#x} was never written", address + 2)), "{fault}");
    let problem = AccessProblem::Uninitialised { first: address + 2 };
    let error = MemoryError::Access { gpu: GPU, address, bytes: 4, problem };
    assert_eq!(machine.node.read(GPU, address, &mut [0; 4]), Err(error));
}

#[test]
fn uninitialised_shared_memory() {
    assert_fault(
        1,
        ".shared .align 16 .b8 buffer[64]; st.shared.u32 [buffer+16], 1; ld.shared.v2.u32 {%r1,%r2}, [buffer+16]; ret;",
        "load of 8 bytes at 0x10: the byte at 0x14 was never written",
    );
    assert_fault(
        1,
        ".shared .align 16 .b8 buffer[64]; ld.shared.u32 %r1, [buffer+64]; ret;",
        "load of 4 bytes at 0x40: offset 0x40 is outside the CTA's 64 bytes of shared memory",
    );
}

#[test]
fn freed_and_foreign_memory() {
    let ptx = kernel(".param .u64 a", "ld.param.u64 %rd1, [a]; ld.global.u32 %r1, [%rd1]; ret;");
    let mut machine = Machine::new(2, 0, &ptx);
    let freed = machine.buffer(GPU, &[1]);
    machine.node.free(GPU, freed).unwrap();
    let fault = machine.run(launch(1, 1, 1), &[freed]).unwrap_err().to_string();
    assert!(fault.ends_with("has been unmapped or freed"), "{fault}");

    let mut machine = Machine::new(2, 0, &ptx);
    let memory = machine.node.create_memory(GpuId(1), 64).unwrap();
    let foreign = machine.node.map(GpuId(1), memory).unwrap();
    machine.node.write(GpuId(1), foreign, &[1; 64]).unwrap();
    let peer = machine.node.map(GPU, memory).unwrap();
    assert_ne!(peer, foreign);
    machine.run(launch(1, 1, 1), &[peer]).unwrap();
    assert_eq!(machine.node.counters(GPU).nvlink_bytes_in, 4);
    assert_eq!(machine.node.counters(GpuId(1)).nvlink_bytes_out, 4);
    let fault = machine.run(launch(1, 1, 1), &[foreign]).unwrap_err().to_string();
    assert!(fault.contains("that address was mapped for GPU 1 only"), "{fault}");
}

#[test]
fn an_mbarrier_is_not_plain_memory() {
    assert_fault(
        1,
        ".shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 1; ld.shared.u32 %r1, [bar+4]; ret;",
        "load of 4 bytes at 0x4: an mbarrier object lives at offset 0x0: only mbarrier instructions may touch it before mbarrier.inval",
    );
    assert_passes(
        1,
        ".shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 1; mbarrier.inval.shared.b64 [bar];
         st.shared.u32 [bar+4], 0; ld.shared.u32 %r1, [bar+4]; ret;",
    );
}

#[test]
fn parameters_are_checked() {
    let ptx = kernel(".param .u64 a, .param .u32 b", "ret;");
    let mut machine = Machine::new(1, 0, &ptx);
    let module = machine.module;
    let mut refused = |parameters: &[&[u8]], config| {
        machine.node.launch(GPU, 0, module, "k", config, parameters).unwrap_err().to_string()
    };
    assert_eq!(refused(&[&[0; 8]], launch(1, 1, 1)), "kernel `k` takes 2 parameters, given 1");
    assert_eq!(refused(&[&[0; 8], &[0; 8]], launch(1, 1, 1)), "parameter 1 (`b`) of kernel `k` has 4 bytes, given 8");
    assert_eq!(
        refused(&[&[0; 8], &[0; 4]], launch(3, 2, 1)),
        "the grid [3, 1, 1] is not divisible by the cluster [2, 1, 1]"
    );
    let mut config = launch(1, 1, 1);
    config.dynamic_shared_bytes = 232_449;
    assert_eq!(
        refused(&[&[0; 8], &[0; 4]], config),
        "0 bytes of static and 232449 of dynamic shared memory exceed the limit of 232448 per CTA"
    );
}

/// Addresses and lengths whose sum has no 64 bits.
#[test]
fn accesses_at_the_end_of_the_address_space() {
    for access in [
        "ld.global.u8 %r1, [%rd1]",
        "ld.u8 %r1, [%rd1]",
        "st.global.u64 [%rd1+-7], %rd1",
        "st.global.v4.u64 [%rd1+-31], {%rd1, %rd1, %rd1, %rd1}",
        "atom.global.add.u32 %r1, [%rd1+-3], 1",
        "ld.global.u8 %r1, [%rd1+1]",
    ] {
        let message = fault_of(1, &format!("mov.u64 %rd1, -1; {access};"));
        assert!(message.contains("no memory is mapped there") || message.contains("must be a multiple"), "{message}");
    }
}
