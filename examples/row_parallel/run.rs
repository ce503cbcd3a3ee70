//! One layer, over a number of simulated ranks, by one collective.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gemm_rs_ar::driver::simulated::{NodeConfig, SimulatedNode, Timeline};
use gemm_rs_ar::driver::{Device, DeviceBuffer, Stream};
use gemm_rs_ar::reference::{Comparison, Reference};
use gemm_rs_ar::symmetric::Rendezvous;
use gemm_rs_ar::{DeviceMatrix, GemmRsAr, GemmRsArConfig, GemmRsArError, Input, Mode, Output, Projection};
use half::bf16;
use thiserror::Error;

use crate::layer::{Layer, shard};

/// Bytes of a BF16 element.
const BF16_BYTES: u64 = 2;

/// What is run.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub mode: Mode,
    pub ranks: u32,
    pub k_per_rank: usize,
    pub seed: u64,
    /// Whether what happens is recorded for a timeline.
    pub records: bool,
}

/// What came of it.
pub struct Outcome {
    /// Every element of every rank's result, padding rows included.
    pub comparison: Comparison,
    /// Warp instructions, over all ranks.
    pub instructions: u64,
    /// Bytes that the ranks received over NVLink.
    pub nvlink_bytes: u64,
    /// Time of the simulation.
    pub elapsed: Duration,
    /// What happened; empty unless it was asked for.
    pub timeline: Timeline,
}

/// Why nothing came of it.
#[derive(Debug, Error)]
#[error("rank {rank} of {ranks}: {source}")]
pub struct RankError {
    rank: u32,
    ranks: u32,
    source: GemmRsArError,
}

/// Shards the layer, runs every rank on its own thread, and compares every element.
pub fn run(layer: &Layer, reference: &Reference, case: Case) -> Result<Outcome, RankError> {
    let node = SimulatedNode::new(NodeConfig { gpus: case.ranks, seed: case.seed, ..NodeConfig::default() });
    let timeline = Arc::new(Mutex::new(Timeline::default()));
    if case.records {
        let timeline = Arc::clone(&timeline);
        node.observe(move |event| timeline.lock().unwrap_or_else(PoisonError::into_inner).event(event));
    }
    let start = Instant::now();
    let results = node.run_ranks(|device, rendezvous| rank_result(layer, case, device, &rendezvous));
    let elapsed = start.elapsed();

    let mut comparison = Comparison::default();
    let shard_rows = layer.m.div_ceil(case.ranks as usize);
    for (result, rank) in results.into_iter().zip(0..) {
        let rows = result.map_err(|source| RankError { rank, ranks: case.ranks, source })?;
        let first_row = match case.mode {
            Mode::ReduceScatter => rank as usize * shard_rows,
            Mode::AllReduce => 0,
        };
        comparison = comparison.merge(reference.compare(first_row, &rows));
    }
    let counters = (0..case.ranks).map(|rank| node.counters(rank));
    let (instructions, nvlink_bytes) = counters.fold((0, 0), |(instructions, bytes), counters| {
        (instructions + counters.warp_instructions, bytes + counters.nvlink_bytes_in)
    });
    let timeline = std::mem::take(&mut *timeline.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Outcome { comparison, instructions, nvlink_bytes, elapsed, timeline })
}

/// What a rank of an application does, from its own device to its own rows.
fn rank_result(
    layer: &Layer,
    case: Case,
    device: Arc<dyn Device>,
    rendezvous: &dyn Rendezvous,
) -> Result<Vec<bf16>, GemmRsArError> {
    let (m, n, k) = (layer.m as u64, layer.n as u64, case.k_per_rank as u64);
    let rank = rendezvous.rank() as usize;
    let gemm = GemmRsAr::new(Arc::clone(&device), rendezvous, GemmRsArConfig::new(m, n))?;

    let upload = |matrix| DeviceBuffer::from_bytes(Arc::clone(&device), &shard(matrix, layer.k, k as usize, rank));
    let (x, weight) = (upload(&layer.x)?, upload(&layer.weight)?);
    let rows = match case.mode {
        Mode::ReduceScatter => m.div_ceil(case.ranks.into()),
        Mode::AllReduce => m,
    };
    let y = DeviceBuffer::new(Arc::clone(&device), rows * n * BF16_BYTES)?;

    let projection = Projection::new(DeviceMatrix::bf16(weight.address(), n, k));
    let input = Input::new(DeviceMatrix::bf16(x.address(), m, k));
    let output = Output { y: DeviceMatrix::bf16(y.address(), rows, n) };
    // SAFETY: the buffers have the sizes that the descriptions say and live until the stream is synchronised; every
    // rank makes this one call.
    unsafe { gemm.apply(case.mode, &projection, &input, &output, Stream::DEFAULT)? };
    device.synchronize(Stream::DEFAULT)?;
    // SAFETY: the stream is synchronised.
    Ok(elements(unsafe { y.to_bytes() }?))
}

fn elements(bytes: Vec<u8>) -> Vec<bf16> {
    bytes.as_chunks::<2>().0.iter().map(|&bytes| bf16::from_le_bytes(bytes)).collect()
}
