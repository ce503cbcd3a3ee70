//! The bytes that a launch moves, counted by the simulator: no more than the operation needs.

mod common;

use common::operands::{Mxfp8Problem, Problem};
use common::rank::{Gaps, MODES, node, on_each_rank_with};
use gemm_rs_ar::Mode;
use gemm_rs_ar::driver::simulated::Counters;
use plan::kernels::{KERNELS, KernelSpec, OperandType};

const RANKS: u32 = 4;
/// Bytes of a flag.
const WORD: u64 = 4;
/// Bytes of a sector, the smallest piece that memory writes.
const SECTOR: u64 = 32;

/// The counters of every rank after one call.
fn traffic(spec: &'static KernelSpec, shape: [usize; 3], mode: Mode) -> Vec<Counters> {
    let ranks = RANKS as usize;
    let node = node(RANKS, 5);
    let [m, n, _] = shape.map(|extent| extent as u64);
    match spec.operands {
        OperandType::Bf16 => {
            let problem = Problem::random(shape, ranks, 1);
            on_each_rank_with(&node, [m, n], Some(spec.name), |rank| {
                let _pending = rank.enqueue(&problem, mode, Gaps::default()).unwrap();
                rank.synchronize();
            });
        }
        OperandType::Mxfp8 => {
            let problem = Mxfp8Problem::random(shape, ranks, 1);
            on_each_rank_with(&node, [m, n], Some(spec.name), |rank| {
                let _pending = rank.enqueue_mxfp8(&problem, mode).unwrap();
                rank.synchronize();
            });
        }
    }
    (0..RANKS).map(|rank| node.counters(rank)).collect()
}

/// Flags that a rank stores to others and gets from them.
fn flags(spec: &KernelSpec, [m, n]: [u32; 2], rank: u32) -> (u64, u64) {
    let tiles = spec.tiles(m, n);
    let (mut out, mut own) = (0, 0);
    for index in 0..tiles.len() {
        let (first, end) = tiles.tile_owners(tiles.tile(index), RANKS);
        out += (first..end).filter(|&owner| owner != rank).count() as u64;
        own += u64::from((first..end).contains(&rank));
    }
    // Each tile of which this rank owns rows is announced by all others; `done` goes to everybody.
    (out + u64::from(RANKS - 1), (own + 1) * u64::from(RANKS - 1))
}

#[test]
fn every_kernel_moves_what_the_operation_needs_and_no_more() {
    for spec in KERNELS {
        let k = spec.tile.k as usize;
        for [m, n] in [[256, 512], [300, 384], [48, 512]] {
            let m = spec.max_rows().map_or(m, |rows| rows.min(m));
            for mode in MODES {
                let shape = [m as usize, n as usize, 2 * k];
                let partial = 2 * u64::from(m) * u64::from(n);
                for (rank, counters) in (0..RANKS).zip(traffic(spec, shape, mode)) {
                    let at = format!("{}, {mode:?}, [{m}, {n}], rank {rank}: {counters:?}", spec.name);
                    let owned = plan::schedule::owned_rows(m, RANKS, rank).len();
                    let owned = 2 * u64::from(owned) * u64::from(n);
                    let shard = 2 * u64::from(plan::schedule::shard_rows(m, RANKS)) * u64::from(n);
                    let (flags_out, flags_in) = flags(spec, [m, n], rank);
                    // The switch reads every rank's partial for whoever owns the rows; an all-reduce sends the sums back
                    // through it, once, and every rank gets all of them.
                    let (out, into) = match mode {
                        Mode::ReduceScatter => (partial, owned),
                        Mode::AllReduce => (partial + owned, owned + partial),
                    };
                    assert_eq!(counters.nvlink_bytes_out, out + flags_out * WORD, "{at}");
                    assert_eq!(counters.nvlink_bytes_in, into + flags_in * WORD, "{at}");
                    // The partial goes out of the SM once, in whole sectors; reduce-scatter's rows follow.
                    let written = match mode {
                        Mode::ReduceScatter => partial + shard,
                        Mode::AllReduce => partial,
                    };
                    let excess = counters.global_bytes_written - written;
                    assert!(excess * 20 <= partial, "{excess} bytes more than {written}: {at}");
                    let sectors = counters.global_sectors_written * SECTOR;
                    assert!((sectors - written) * 20 <= partial, "{sectors} bytes of sectors for {written}: {at}");
                }
            }
        }
    }
}
