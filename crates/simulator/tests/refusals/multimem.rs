//! `multimem`: addresses, and operations by type.

use simulator::multimem::{load_reduce, reduce};
use simulator::node::GpuId;
use simulator::program::{AtomicOperation, ElementType};

use crate::fixture::{GPU, Machine, kernel};
use crate::support::{refused, refuses_between_gpus, refuses_when, threads};

#[test]
fn plain_and_multicast_addresses() {
    refuses_between_gpus(
        "@!%p1 ld.global.u32 %r1, [%rd3];",
        "kernel `k`, PTX line 8: `@!%p1 ld.global.u32 %r1, [%rd3];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: load of 4 bytes at 0x700000a00000: that is a multicast address: only multimem instructions may touch it (PTX ISA, multimem)",
        ("%rd3", "%rd2"),
    );
    let reduce = "@!%p1 multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%rd2];";
    refuses_between_gpus(
        reduce,
        "kernel `k`, PTX line 8: `@!%p1 multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%rd2];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: multimem.ld_reduce of 4 bytes at 0x700000600000: that is not a multicast address: multimem needs one (PTX ISA, multimem)",
        ("%rd2", "%rd3"),
    );
}

#[test]
fn a_gpu_that_has_bound_no_memory() {
    let run = |seed, body: &str| {
        let mut machine = Machine::new(2, seed, &kernel(".param .u64 multicast", body));
        let object = machine.node.create_multicast(&[GPU, GpuId(1)], 64).unwrap();
        for (gpu, bytes) in [(GPU, 64), (GpuId(1), 32)] {
            let memory = machine.node.create_memory(gpu, 64).unwrap();
            machine.node.bind_multicast(object, memory, 0, 0, bytes).unwrap();
        }
        let multicast = machine.node.map_multicast(GPU, object).unwrap();
        machine.run(threads(1), &[multicast])
    };
    let body = "ld.param.u64 %rd1, [multicast];\nmultimem.st.relaxed.sys.global.u32 [%rd1+32], 1;\nret;";
    refuses_when(
        run,
        body,
        "kernel `k`, PTX line 8: `multimem.st.relaxed.sys.global.u32 [%rd1+32], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: multimem.st of 4 bytes at 0x700000200020: GPU 1 has bound no memory to the multicast object there",
        ("+32", "+28"),
    );
}

/// The decoder lets no such instruction through, so that these concern callers of the arithmetic alone.
#[test]
fn operations_by_type() {
    use AtomicOperation::{Add, Exchange, Max};
    use ElementType::{Bf16x2, F32};
    refused(load_reduce(Max, F32, false, &[0]), "multimem.ld_reduce has no Max on F32");
    refused(reduce(Exchange, F32, 0, 0), "multimem.red has no Exchange on F32");
    refused(
        load_reduce(Add, F32, true, &[0]),
        "multimem.ld_reduce: Add on F32 cannot be accumulated wider (.acc::f32, .acc::f16)",
    );
    refused(load_reduce(Add, F32, false, &[]), "multimem.ld_reduce over no GPU");
    load_reduce(Add, F32, false, &[0]).unwrap();
    load_reduce(Add, Bf16x2, true, &[0]).unwrap();
    reduce(Add, F32, 0, 0).unwrap();
}
