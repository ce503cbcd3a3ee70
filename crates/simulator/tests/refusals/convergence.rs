//! Lanes that should be together, agree, or come back.

use crate::fixture::{GPU, Machine, kernel};
use crate::support::{refuses, refuses_when, threads};

const LOW: &str = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16;";

#[test]
fn aligned_instructions() {
    let body = format!("{LOW} @%p1 bra A; bra B;\nA: bar.sync 0;\nB:");
    refuses(
        threads(32),
        &body,
        "kernel `k`, PTX line 9: `A: bar.sync 0;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0x0000ffff: .aligned instruction reached by lanes 0x0000ffff of a warp whose live lanes are 0xffffffff: all must execute it together",
        ("@%p1 bra A; bra B;", ""),
    );
}

#[test]
fn member_masks() {
    let body = format!("{LOW} selp.u32 %r2, 0xffffffff, 0xffff, %p1;\nbar.warp.sync %r2;");
    refuses(
        threads(32),
        &body,
        "kernel `k`, PTX line 9: `bar.warp.sync %r2;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: lanes give different member masks (0xffffffff and 0x0000ffff)",
        ("0xffff,", "0xffffffff,"),
    );
    refuses(
        threads(32),
        &format!("{LOW}\nbar.warp.sync 0xffff;"),
        "kernel `k`, PTX line 9: `bar.warp.sync 0xffff;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: lanes 0xffff0000 execute with a member mask 0x0000ffff that does not hold them all",
        ("0xffff;", "0xffffffff;"),
    );
}

#[test]
fn operands_that_all_lanes_must_agree_on() {
    let body = format!("{LOW} selp.u32 %r2, 1, 2, %p1;\nbarrier.sync.aligned %r2;");
    refuses(
        threads(32),
        &body,
        "kernel `k`, PTX line 9: `barrier.sync.aligned %r2;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: operand `barrier` must be the same in all lanes, but is 0x1 in one and 0x2 in another",
        ("1, 2,", "1, 1,"),
    );
}

#[test]
fn branches() {
    refuses(
        threads(32),
        &format!("{LOW}\n@%p1 bra.uni A;\nA:"),
        "kernel `k`, PTX line 9: `@%p1 bra.uni A;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0x0000ffff: bra.uni: lanes disagree (they jump: 0x0000ffff of 0xffffffff)",
        ("bra.uni", "bra"),
    );
    let body = "mov.u32 %r1, 2;\nTABLE: .branchtargets A, B;\nbrx.idx %r1, TABLE;\nA: B:";
    refuses(
        threads(1),
        body,
        "kernel `k`, PTX line 10: `brx.idx %r1, TABLE;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: brx.idx: index 2 of 2 targets",
        ("%r1, 2;", "%r1, 1;"),
    );
    refuses(
        threads(1),
        "setp.ne.u64 %p1, %rd1, 0;\n@%p1 trap;",
        "kernel `k`, PTX line 9: `@%p1 trap;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: trap",
        ("@%p1", "@!%p1"),
    );
}

#[test]
fn running_in_circles() {
    let run = |seed, body: &str| {
        let mut machine = Machine::new(1, seed, &kernel("", body));
        machine.node.set_spin_limit(10_000);
        machine.start(GPU, threads(1), &[]);
        machine.node.run()
    };
    refuses_when(
        run,
        "LOOP: bra LOOP;\nret;",
        "kernel `k`, PTX line 7: `LOOP: bra LOOP;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: this warp runs in circles: more than 10000 instructions of the node without any change of memory or barriers (Node::set_spin_limit sets how many are allowed)",
        ("bra LOOP;", ""),
    );
}
