//! Clusters that take over the work of clusters that have not begun.

mod common;
mod fixture;

use common::module_for;
use fixture::{GPU, Machine, kernel, launch};
use simulator::Fault;
use simulator::node::LaunchConfig;

/// Every CTA adds one to the word of each index that it works for, its own first; one thread per CTA. `space` and
/// `wide` are spellings of the request and of the query. With 200 KiB of shared memory only one CTA fits an SM.
fn worker(space: &str, query: &str) -> String {
    kernel(
        ".param .u64 out, .param .u64 width",
        &format!(
            ".reg .b128 %q<2>; .shared .align 16 .b8 response[16]; .shared .align 8 .b64 bar; .shared .b8 fill[200000];
             ld.param.u64 %rd1, [out]; ld.param.u32 %r9, [width]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y;
             cvta.shared.u64 %rd5, response; cvta.shared.u64 %rd6, bar;
             mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; mov.u32 %r5, 0;
             WORK: mad.lo.u32 %r3, %r2, %r9, %r1; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd2, %rd1, %rd2;
             atom.global.add.u32 %r4, [%rd2], 1;
             mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
             clusterlaunchcontrol.try_cancel.async{space}.mbarrier::complete_tx::bytes.b128 {};
             WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], %r5; @!%p1 bra WAIT; xor.b32 %r5, %r5, 1;
             ld.shared.b128 %q0, [response]; fence.proxy.async.shared::cta;
             clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
             @!%p2 bra END;
             {query}
             bra WORK; END: ret;",
            if space.is_empty() { "[%rd5], [%rd6]" } else { "[response], [bar]" }
        ),
    )
}

fn run(seed: u64, ptx: &str, grid: [u32; 3]) -> Result<(Vec<u32>, u64), Fault> {
    let mut machine = Machine::new(1, seed, ptx);
    let indices = grid.iter().product::<u32>() as usize;
    let out = machine.buffer(GPU, &vec![0; indices]);
    let config = LaunchConfig { grid, ..launch(1, 1, 1) };
    machine.run(config, &[out, grid[0].into()])?;
    Ok((machine.words(GPU, out, indices), machine.node.counters(GPU).ctas_retired))
}

#[test]
fn every_index_is_worked_for_once() {
    let each = "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q0;
                clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r2, %q0;";
    let vector = "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, _, %r8}, %q0;";
    for (space, query) in [(".shared::cta", each), ("", vector)] {
        for seed in 0..8 {
            let (words, retired) = run(seed, &worker(space, query), [7, 6, 1]).unwrap();
            assert_eq!(words, [1; 42]);
            // A node of 8 SMs starts 8 CTAs, and whoever is done takes the next index without leaving its SM.
            assert!((8..20).contains(&retired), "{retired} CTAs ran");
        }
    }
}

/// Clusters of two: the response of one request goes to both CTAs.
#[test]
fn a_response_reaches_every_cta_of_the_cluster() {
    let ptx = kernel(
        ".param .u64 out",
        ".reg .b128 %q<2>; .shared .align 16 .b8 response[16]; .shared .align 8 .b64 bar; .shared .b8 fill[200000];
         ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %cluster_ctarank; setp.ne.u32 %p3, %r2, 0;
         mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; mov.u32 %r5, 0;
         WORK: barrier.cluster.arrive; barrier.cluster.wait;
         mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; atom.global.add.u32 %r4, [%rd2], 1;
         mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar], 16;
         @!%p3 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [response], [bar];
         WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], %r5; @!%p1 bra WAIT; xor.b32 %r5, %r5, 1;
         ld.shared.b128 %q0, [response]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0; @!%p2 bra END;
         clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q0; add.u32 %r1, %r1, %r2;
         fence.proxy.async.shared::cta; bra WORK;
         END: barrier.cluster.arrive; barrier.cluster.wait; ret;",
    );
    for seed in 0..8 {
        let mut machine = Machine::new(1, seed, &ptx);
        let out = machine.buffer(GPU, &[0; 40]);
        machine.run(launch(40, 2, 1), &[out]).unwrap();
        assert_eq!(machine.words(GPU, out, 40), [1; 40]);
        assert!(machine.node.counters(GPU).ctas_retired < 40);
        // The responses are not copies.
        assert_eq!(machine.node.counters(GPU).tma_bytes, 0);
    }
}

#[test]
fn other_spellings_are_refused() {
    let registers = ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .b128 %q; .shared .align 16 .b8 response[16]; .shared .align 8 .b64 bar;";
    let request =
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [bar];";
    let all = ".multicast::cluster::all.b128";
    let cases = [
        ("sm_90a", request.to_owned(), "needs sm_100 or later"),
        ("sm_100", request.replace(".b128", all), "needs sm_100a, sm_100f or a later `a` or `f` target"),
        ("sm_100a", request.replace("::cta", "::cluster"), "does not take `.shared::cluster` here"),
        ("sm_100a", request.replace("::cta", ""), "does not take `.shared` here"),
        ("sm_100a", request.replace(".async", ""), "needs `.async`"),
        (
            "sm_100a",
            "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, %r3}, %q;".into(),
            "expected a vector of 4, found a vector of 3",
        ),
        (
            "sm_100a",
            "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %rd1;".into(),
            "expected `.b128`, found `.b64` register `%rd1`",
        ),
    ];
    for (target, text, part) in cases {
        let error = simulator::ptx::load(&module_for(target, &format!("{registers}\n{text}"))).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    simulator::ptx::load(&module_for("sm_100f", &format!("{registers}\n{}", request.replace(".b128", all)))).unwrap();
}
