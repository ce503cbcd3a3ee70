//! Addresses: what they point to, how they are aligned, and whether anything was written there.

use crate::fixture::{GPU, Machine, kernel};
use crate::support::{PAUSE, cluster, refused, refuses, refuses_when, threads};
use simulator::node::GpuId;

#[test]
fn nothing_is_mapped() {
    refuses(
        threads(1),
        "mov.u64 %rd2, 16;\nld.global.u32 %r1, [%rd2];",
        "kernel `k`, PTX line 9: `ld.global.u32 %r1, [%rd2];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: load of 4 bytes at 0x10: no memory is mapped there",
        ("[%rd2]", "[%rd1]"),
    );
}

#[test]
fn past_the_end() {
    refuses(
        threads(1),
        "ld.global.u32 %r1, [%rd1+256];",
        "kernel `k`, PTX line 8: `ld.global.u32 %r1, [%rd1+256];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: load of 4 bytes at 0x700000200100: no memory is mapped there: 4 bytes past the end of the 256 bytes mapped at 0x700000200000",
        ("+256", "+252"),
    );
}

#[test]
fn unmapped_since() {
    let run = |seed, body: &str| {
        let mut machine = Machine::new(1, seed, &kernel(".param .u64 freed, .param .u64 kept", body));
        let [freed, kept] = [0; 2].map(|_| machine.buffer(GPU, &[0; 16]));
        machine.node.free(GPU, freed).unwrap();
        machine.run(threads(1), &[freed, kept])
    };
    refuses_when(
        run,
        "ld.param.u64 %rd1, [freed];\nld.global.u32 %r1, [%rd1];\nret;",
        "kernel `k`, PTX line 8: `ld.global.u32 %r1, [%rd1];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: load of 4 bytes at 0x700000200000: the memory that was mapped there at 0x700000200000 has been unmapped or freed",
        ("[freed]", "[kept]"),
    );
}

#[test]
fn mapped_for_another_gpu() {
    let run = |seed, body: &str| {
        let mut machine = Machine::new(2, seed, &kernel(".param .u64 theirs, .param .u64 ours", body));
        let memory = machine.node.create_memory(GpuId(1), 64).unwrap();
        let [theirs, ours] = [GpuId(1), GPU].map(|gpu| machine.node.map(gpu, memory).unwrap());
        machine.node.write(GPU, ours, &[0; 64]).unwrap();
        machine.run(threads(1), &[theirs, ours])
    };
    refuses_when(
        run,
        "ld.param.u64 %rd1, [theirs];\nld.global.u32 %r1, [%rd1];\nret;",
        "kernel `k`, PTX line 8: `ld.global.u32 %r1, [%rd1];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: load of 4 bytes at 0x700000200000: that address was mapped for GPU 1 only; map the memory for this GPU too and use that address",
        ("[theirs]", "[ours]"),
    );
}

#[test]
fn misaligned() {
    refuses(
        threads(1),
        "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+8];",
        "kernel `k`, PTX line 8: `ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+8];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: load of 16 bytes at 0x700000200008: the address must be a multiple of 16",
        ("+8", "+16"),
    );
}

#[test]
fn never_written() {
    refuses(
        threads(1),
        ".shared .align 8 .b8 buffer[8];\nst.shared.u32 [buffer], 1;\nld.shared.v2.u32 {%r1, %r2}, [buffer];",
        "kernel `k`, PTX line 10: `ld.shared.v2.u32 {%r1, %r2}, [buffer];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: load of 8 bytes at 0x0: the byte at 0x4 was never written",
        ("st.shared.u32 [buffer], 1;", "st.shared.v2.u32 [buffer], {1, 2};"),
    );
}

#[test]
fn outside_shared_memory() {
    refuses(
        threads(1),
        ".shared .align 8 .b8 buffer[8];\nst.shared.u32 [buffer+8], 1;",
        "kernel `k`, PTX line 9: `st.shared.u32 [buffer+8], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: store of 4 bytes at 0x8: offset 0x8 is outside the CTA's 8 bytes of shared memory",
        ("+8", "+4"),
    );
}

#[test]
fn shared_memory_of_another_cta() {
    let body = ".shared .u32 word; mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, word;
        mapa.shared::cluster.u32 %r3, %r2, 1;
        @%p1 st.shared::cta.u32 [%r3], 1;
        barrier.cluster.arrive; barrier.cluster.wait;";
    refuses(
        cluster(2, 1),
        body,
        "kernel `k`, PTX line 10: `@%p1 st.shared::cta.u32 [%r3], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: store of 4 bytes at 0x1000000: the address names CTA 1 of the cluster, but .shared::cta reaches the executing CTA 0 only",
        ("st.shared::cta", "st.shared::cluster"),
    );
}

#[test]
fn shared_memory_of_no_cta() {
    let body = ".shared .u32 word; mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, word;
        @%p1 add.u32 %r2, %r2, 0x2000000;
        @%p1 st.shared::cluster.u32 [%r2], 1;
        barrier.cluster.arrive; barrier.cluster.wait;";
    refuses(
        cluster(2, 1),
        body,
        "kernel `k`, PTX line 10: `@%p1 st.shared::cluster.u32 [%r2], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: store of 4 bytes at 0x2000000: the address names CTA 2 of a cluster of 2",
        ("0x2000000", "0x1000000"),
    );
    let body = ".shared .u32 word; mov.u32 %r2, word; mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0;
        @%p1 mapa.shared::cluster.u32 %r3, %r2, 2;";
    refuses(
        cluster(2, 1),
        body,
        "kernel `k`, PTX line 9: `@%p1 mapa.shared::cluster.u32 %r3, %r2, 2;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: mapa of 1 bytes at 0x0: the address names CTA 2 of a cluster of 2",
        ("%r2, 2;", "%r2, 1;"),
    );
}

#[test]
fn shared_memory_of_a_cta_that_has_exited() {
    let body = format!(
        ".shared .u32 word; mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 1; @%p1 bra END;
        mov.u32 %r2, word; mapa.shared::cluster.u32 %r3, %r2, 1; {PAUSE}
        st.shared::cluster.u32 [%r3], 1;
        END: // leave"
    );
    refuses(
        cluster(2, 1),
        &body,
        "kernel `k`, PTX line 10: `st.shared::cluster.u32 [%r3], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: store of 4 bytes at 0x1000000: CTA 1 of the cluster has exited: its shared memory is gone. Keep it alive with a cluster barrier",
        ("// leave", "barrier.cluster.arrive; barrier.cluster.wait;"),
    );
}

#[test]
fn an_mbarrier_is_no_plain_memory() {
    refuses(
        threads(1),
        ".shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 1; // in use\nst.shared.u32 [bar+4], 0;",
        "kernel `k`, PTX line 9: `st.shared.u32 [bar+4], 0;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: store of 4 bytes at 0x4: an mbarrier object lives at offset 0x0: only mbarrier instructions may touch it before mbarrier.inval",
        ("// in use", "mbarrier.inval.shared.b64 [bar];"),
    );
}

#[test]
fn outside_local_memory() {
    for access in ["ld.local.u32 %r1, [depot+8];", "st.local.u32 [depot+8], 1;"] {
        let done = if access.starts_with("ld") { "load" } else { "store" };
        refuses(
            threads(1),
            &format!(".local .align 8 .b8 depot[8];\n{access}"),
            &format!(
                "kernel `k`, PTX line 9: `{access}`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: {done} of 4 bytes at 0x8: offset 0x8 is outside the thread's 8 bytes of local memory"
            ),
            ("+8", "+4"),
        );
    }
}

#[test]
fn outside_the_parameters() {
    refuses(
        threads(1),
        "mov.u64 %rd2, out;\nld.param.u64 %rd3, [%rd2+8];",
        "kernel `k`, PTX line 9: `ld.param.u64 %rd3, [%rd2+8];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: load of 8 bytes at 0x8: offset 0x8 is outside the kernel's 8 bytes of parameters",
        ("+8", "+0"),
    );
}

#[test]
fn parameters_are_read_only() {
    refuses(
        threads(1),
        "mov.u64 %rd2, out; cvta.param.u64 %rd2, %rd2;\nst.u32 [%rd2], 1;",
        "kernel `k`, PTX line 9: `st.u32 [%rd2], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: store of 4 bytes at 0x30000000000: the memory is read-only",
        ("st.u32 [%rd2], 1;", "ld.u32 %r1, [%rd2];"),
    );
}

#[test]
fn the_wrong_state_space() {
    let shared = ".shared .align 8 .b64 word; mov.u64 %rd2, word; cvta.shared.u64 %rd2, %rd2;";
    refuses(
        threads(1),
        &format!("{shared}\nst.global.u32 [%rd2], 1;"),
        "kernel `k`, PTX line 9: `st.global.u32 [%rd2], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: store of 4 bytes at 0x10000000000: a global address is needed here",
        ("st.global", "st"),
    );
    refuses(
        threads(1),
        &format!("{shared}\nmbarrier.init.b64 [%rd1], 1;"),
        "kernel `k`, PTX line 9: `mbarrier.init.b64 [%rd1], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: mbarrier operation of 8 bytes at 0x700000200000: a shared address is needed here",
        ("init.b64 [%rd1]", "init.b64 [%rd2]"),
    );
    refuses(
        threads(1),
        &format!("{shared}\nmapa.u64 %rd3, %rd1, 0;"),
        "kernel `k`, PTX line 9: `mapa.u64 %rd3, %rd1, 0;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: mapa of 1 bytes at 0x700000200000: a shared address is needed here",
        ("%rd1, 0;", "%rd2, 0;"),
    );
    let local = ".local .align 8 .b8 depot[8]; mov.u64 %rd2, depot; cvta.local.u64 %rd2, %rd2;";
    refuses(
        threads(1),
        &format!("{local}\nred.add.u32 [%rd2], 1;"),
        "kernel `k`, PTX line 9: `red.add.u32 [%rd2], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: atomic of 4 bytes at 0x20000000000: a global or shared address is needed here",
        ("[%rd2]", "[%rd1]"),
    );
}

#[test]
fn atomics_that_do_not_exist() {
    let load = |operation: &str| simulator::ptx::load(&kernel(".param .u64 out", &format!("{operation} ret;")));
    refused(load("red.global.min.v2.f32 [%rd1], {%f1, %f2};"), "`red.global.min.v2.f32` does not take `.f32` here");
    load("red.global.add.v2.f32 [%rd1], {%f1, %f2};").unwrap();
}
