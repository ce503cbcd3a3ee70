//! Many seeded schedules over the whole family: random queues of calls, on one workspace and without synchronisation between
//! them, on random groups of ranks and SMs. Not one bit may be wrong and nothing may hang.
//!
//! `SCHEDULES` sets their number and `FIRST_SCHEDULE` the first seed; a failure prints its seed, with which it repeats.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use common::operands::{Mxfp8Problem, Problem, Random};
use common::rank::{Gaps, MODES, Rank, on_each_rank_with};
use gemm_rs_ar::driver::simulated::{NodeConfig, SimulatedNode};
use gemm_rs_ar::reference::Reference;
use gemm_rs_ar::{KERNELS, KernelSpec, Mode, OperandType};

/// Schedules of a default run.
const SCHEDULES: u64 = 150;
const MAX_CALLS: u64 = 7;
const MAX_M: u64 = 300;
const MAX_N: u64 = 512;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

enum Operands {
    /// Small integers, so that every bit of the result is known.
    Bf16(Problem),
    /// Within the derived bound.
    Mxfp8(Mxfp8Problem),
}

struct Call {
    mode: Mode,
    operands: Operands,
    reference: Reference,
}

impl Call {
    fn random(random: &mut Random, ranks: usize, kernel: Option<&KernelSpec>) -> Self {
        let operands = match kernel {
            Some(spec) => spec.operands,
            None => [OperandType::Bf16, OperandType::Mxfp8][random.below(2) as usize],
        };
        let max_m = kernel.and_then(|spec| spec.max_rows()).map_or(MAX_M, u64::from);
        // Mostly small, so that a queue has ranks without rows as well as several row tiles.
        let limit = if random.below(3) == 0 { max_m } else { max_m.min(40) };
        let m = 1 + random.below(limit);
        let n = 128 * (1 + random.below(MAX_N / 128));
        let k = u64::from(operands.stage_k()) * (1 + random.below(3));
        let problem = Problem::small_integers([m, n, k].map(|extent| extent as usize), ranks, random.next());
        let mode = MODES[random.below(2) as usize];
        match operands {
            OperandType::Bf16 => Self { mode, reference: problem.reference(), operands: Operands::Bf16(problem) },
            OperandType::Mxfp8 => {
                let problem = Mxfp8Problem::new(&problem);
                Self { mode, reference: problem.reference(), operands: Operands::Mxfp8(problem) }
            }
        }
    }

    /// First row of the whole result that a rank has.
    fn first_row(&self, rank: usize, ranks: usize) -> usize {
        match self.mode {
            Mode::ReduceScatter => rank * self.reference.rows().div_ceil(ranks),
            Mode::AllReduce => 0,
        }
    }
}

/// Enqueues all calls, then looks at every element of every result.
fn run_queue(calls: &[Call], ranks: usize, rank: &Rank) {
    let enqueue = |call: &Call| match &call.operands {
        Operands::Bf16(problem) => rank.enqueue(problem, call.mode, Gaps::default()).unwrap(),
        Operands::Mxfp8(problem) => rank.enqueue_mxfp8(problem, call.mode).unwrap(),
    };
    let pending: Vec<_> = calls.iter().map(enqueue).collect();
    rank.synchronize();
    for (index, (call, pending)) in calls.iter().zip(&pending).enumerate() {
        let (rows, first_row) = (pending.rows(), call.first_row(rank.rank, ranks));
        let (columns, at) = (call.reference.columns(), format!("call {index}, {:?}, rank {}", call.mode, rank.rank));
        match &call.operands {
            Operands::Bf16(_) => {
                for (row, elements) in (first_row..).zip(rows.chunks_exact(columns)) {
                    for (column, element) in elements.iter().enumerate() {
                        let padding = row >= call.reference.rows();
                        let wanted = if padding { 0.0 } else { call.reference.value(row, column) };
                        assert_eq!(element.to_f64(), wanted, "{at}, [{row}, {column}]");
                    }
                }
            }
            Operands::Mxfp8(_) => {
                let comparison = call.reference.compare(first_row, &rows);
                assert!(comparison.is_within_bound(), "{at}: {comparison:?}");
            }
        }
    }
}

fn run_schedule(seed: u64) {
    let mut random = Random::new(seed);
    let ranks = [2, 2, 3, 4, 5, 8][random.below(6) as usize];
    // A kernel of the table for the whole queue, or the cost model's choice for each call.
    let kernel = KERNELS.get(random.below(KERNELS.len() as u64 + 4) as usize);
    let sms_per_gpu = kernel.map_or(1, |spec| spec.cluster) + random.below(4) as u32;
    let calls: Vec<_> = (0..1 + random.below(MAX_CALLS)).map(|_| Call::random(&mut random, ranks, kernel)).collect();
    let node = SimulatedNode::new(NodeConfig { gpus: ranks as u32, sms_per_gpu, seed, ..NodeConfig::default() });
    let name = kernel.map(|spec| spec.name);
    println!("seed {seed}: {ranks} ranks, {sms_per_gpu} SMs, {}, {} calls", name.unwrap_or("chosen"), calls.len());
    on_each_rank_with(&node, [MAX_M, MAX_N], name, |rank| run_queue(&calls, ranks, rank));
}

#[test]
fn every_schedule_gives_the_right_bits() {
    let (count, first) = (setting("SCHEDULES", SCHEDULES), setting("FIRST_SCHEDULE", 1));
    let next = AtomicU64::new(first);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    run_schedule(seed);
                }
            });
        }
    });
}
