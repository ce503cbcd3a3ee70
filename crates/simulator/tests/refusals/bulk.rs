//! Bulk copies: sizes, alignment, where the mbarrier is, multicast masks.

use crate::support::{cluster, refuses, threads};

/// A copy of 16 bytes into shared memory, with its three operands and what its mbarrier expects.
fn load(destination: &str, source: &str, bytes: &str) -> String {
    format!(
        ".shared .align 128 .b8 buffer[128]; .shared .align 8 .b64 bar; mov.u32 %r3, {bytes};
        mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r3;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{destination}], [{source}], %r3, [bar];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;"
    )
}

#[test]
fn alignment_and_size() {
    refuses(
        threads(1),
        &load("buffer+8", "%rd1", "16"),
        "kernel `k`, PTX line 11: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer+8], [%rd1], %r3, [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the shared address 0x8 must be a multiple of 16",
        ("+8", "+16"),
    );
    refuses(
        threads(1),
        &load("buffer", "%rd1+8", "16"),
        "kernel `k`, PTX line 11: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1+8], %r3, [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the global address 0x700000200008 must be a multiple of 16",
        ("+8", "+16"),
    );
    refuses(
        threads(1),
        &load("buffer", "%rd1", "24"),
        "kernel `k`, PTX line 11: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], %r3, [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the size 24 must be a positive multiple of 16",
        ("24", "32"),
    );
    refuses(
        threads(1),
        &load("buffer", "%rd1", "0"),
        "kernel `k`, PTX line 11: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], %r3, [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the size 0 must be a positive multiple of 16",
        ("%r3, 0;", "%r3, 16;"),
    );
}

#[test]
fn both_ends() {
    refuses(
        threads(1),
        &load("buffer+128", "%rd1", "16"),
        "kernel `k`, PTX line 11: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer+128], [%rd1], %r3, [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: bulk write of 16 bytes at 0x80: offset 0x80 is outside the CTA's 136 bytes of shared memory",
        ("+128", "+112"),
    );
    refuses(
        threads(1),
        &load("buffer", "%rd1+256", "16"),
        "kernel `k`, PTX line 11: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1+256], %r3, [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: bulk read of 16 bytes at 0x700000200100: no memory is mapped there: 16 bytes past the end of the 256 bytes mapped at 0x700000200000",
        ("+256", "+240"),
    );
}

#[test]
fn an_mbarrier_that_was_not_fenced() {
    let fence = "fence.mbarrier_init.release.cluster;";
    refuses(
        threads(1),
        &load("buffer", "%rd1", "16").replace(fence, "// fence"),
        "kernel `k`, PTX line 11: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], %r3, [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the mbarrier at 0x80 is used by an asynchronous operation, but warp 0 of cluster CTA 0 executed no fence.mbarrier_init or fence.proxy.async after mbarrier.init",
        ("// fence", fence),
    );
}

#[test]
fn an_mbarrier_of_another_cta() {
    let body = ".shared .align 128 .b8 buffer[128]; .shared .align 8 .b64 bar; mov.u32 %r2, buffer; mov.u32 %r3, bar;
        mov.u32 %r1, %cluster_ctarank; setp.ne.u32 %p1, %r1, 0;
        mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
        @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
        barrier.cluster.arrive; barrier.cluster.wait; @%p1 bra WAIT;
        mapa.shared::cluster.u32 %r4, %r2, 1; mapa.shared::cluster.u32 %r5, %r3, 1;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 16, [%r3];
        bra END;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
        END: barrier.cluster.arrive; barrier.cluster.wait;";
    refuses(
        cluster(2, 1),
        body,
        "kernel `k`, PTX line 14: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 16, [%r3];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: destination in CTA 1 but mbarrier in CTA 0: without .cta_group::2 both must be in the same CTA",
        ("16, [%r3]", "16, [%r5]"),
    );
}

#[test]
fn multicast_masks() {
    let body = ".shared .align 128 .b8 buffer[128]; .shared .align 8 .b64 bar;
        mov.u32 %r1, %cluster_ctarank; setp.ne.u32 %p1, %r1, 0; mov.u16 %h1, 4;
        mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
        barrier.cluster.arrive; barrier.cluster.wait; @%p1 bra WAIT;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [buffer], [%rd1], 16, [bar], %h1;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
        barrier.cluster.arrive; barrier.cluster.wait;";
    refuses(
        cluster(2, 1),
        body,
        "kernel `k`, PTX line 13: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [buffer], [%rd1], 16, [bar], %h1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the multicast mask 0x4 names CTAs outside a cluster of 2, or none",
        ("%h1, 4;", "%h1, 3;"),
    );
}
