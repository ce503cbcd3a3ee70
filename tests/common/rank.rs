//! A node of W ranks: simulated devices, one thread and one `GemmRsAr` for each.

use std::any::Any;
use std::sync::Arc;

use gemm_rs_ar::driver::simulated::{NodeConfig, SimulatedNode};
use gemm_rs_ar::driver::{Device, DeviceBuffer, Stream};
use gemm_rs_ar::mxfp8::DeviceWeight;
use gemm_rs_ar::reference::Reference;
use gemm_rs_ar::symmetric::{Rendezvous, ThreadRendezvous};
use gemm_rs_ar::{
    DeviceMatrix, DeviceScales, GemmRsAr, GemmRsArConfig, GemmRsArError, Input, Mode, Output, Projection,
};
use half::bf16;

use super::operands::{Mxfp8Problem, Problem, shard};

pub const MODES: [Mode; 2] = [Mode::ReduceScatter, Mode::AllReduce];

/// A node with few SMs, so that CTAs take several tiles and slices each.
pub fn node(ranks: u32, seed: u64) -> SimulatedNode {
    SimulatedNode::new(NodeConfig { gpus: ranks, sms_per_gpu: 3, seed, ..NodeConfig::default() })
}

/// One rank inside its thread.
pub struct Rank {
    pub rank: usize,
    pub device: Arc<dyn Device>,
    pub gemm: GemmRsAr,
    pub rendezvous: ThreadRendezvous,
}

/// Makes a workspace for `[max_m, max_n]` on every rank of a node and runs `body` there.
pub fn on_each_rank<T: Send>(node: &SimulatedNode, capacity: [u64; 2], body: impl Fn(&Rank) -> T + Sync) -> Vec<T> {
    on_each_rank_with(node, capacity, None, body)
}

/// [`on_each_rank`] with a kernel of the table, by name, for every call.
pub fn on_each_rank_with<T: Send>(
    node: &SimulatedNode,
    [max_m, max_n]: [u64; 2],
    kernel: Option<&'static str>,
    body: impl Fn(&Rank) -> T + Sync,
) -> Vec<T> {
    node.run_ranks(|device, rendezvous| {
        let config = GemmRsArConfig { kernel, ..GemmRsArConfig::new(max_m, max_n) };
        let gemm = GemmRsAr::new(Arc::clone(&device), &rendezvous, config).unwrap();
        body(&Rank { rank: rendezvous.rank() as usize, device, gemm, rendezvous })
    })
}

/// Gaps after the rows of a call's matrices, in elements.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gaps {
    pub x: usize,
    pub weight: usize,
    pub y: usize,
}

/// A call that was enqueued, with the memory that it uses.
pub struct Pending {
    _operands: Vec<Box<dyn Any>>,
    y: DeviceBuffer,
    rows: usize,
    columns: usize,
    row_stride: usize,
}

/// Bit pattern that the output has before the call. It is a NaN, which no comparison lets pass.
const UNWRITTEN: u8 = 0xff;

impl Rank {
    /// Uploads this rank's part of a problem and enqueues the call.
    pub fn enqueue(&self, problem: &Problem, mode: Mode, gaps: Gaps) -> Result<Pending, GemmRsArError> {
        let part = problem.k_per_rank;
        let upload = |matrix: &[bf16], row_stride| {
            let elements = shard(matrix, problem.k(), part, self.rank, row_stride);
            DeviceBuffer::from_bytes(Arc::clone(&self.device), bytemuck::cast_slice(&elements))
        };
        let (x_stride, weight_stride, y_stride) = (part + gaps.x, part + gaps.weight, problem.n + gaps.y);
        let (x, weight) = (upload(&problem.x, x_stride)?, upload(&problem.weight, weight_stride)?);
        let rows = match mode {
            Mode::ReduceScatter => problem.m.div_ceil(problem.ranks),
            Mode::AllReduce => problem.m,
        };
        let y = DeviceBuffer::new(Arc::clone(&self.device), (rows * y_stride * 2) as u64)?;
        // SAFETY: nothing knows the buffer yet.
        unsafe { y.fill(UNWRITTEN)? };
        let matrix = |buffer: &DeviceBuffer, rows: usize, columns: usize, row_stride: usize| {
            DeviceMatrix::bf16(buffer.address(), rows as u64, columns as u64).with_row_stride(row_stride as u64)
        };
        let projection = Projection::new(matrix(&weight, problem.n, part, weight_stride));
        let input = Input::new(matrix(&x, problem.m, part, x_stride));
        let output = Output { y: matrix(&y, rows, problem.n, y_stride) };
        // SAFETY: the buffers are as described and live in the result; tests make the same calls on every rank.
        unsafe { self.gemm.apply(mode, &projection, &input, &output, Stream::DEFAULT)? };
        let operands: Vec<Box<dyn Any>> = vec![Box::new(x), Box::new(weight)];
        Ok(Pending { _operands: operands, y, rows, columns: problem.n, row_stride: y_stride })
    }

    /// Uploads this rank's part of an MXFP8 problem and enqueues the call.
    pub fn enqueue_mxfp8(&self, problem: &Mxfp8Problem, mode: Mode) -> Result<Pending, GemmRsArError> {
        let weight = DeviceWeight::new(&self.device, &problem.weight[self.rank])?;
        let x = &problem.x[self.rank];
        let upload = |bytes: &[u8]| DeviceBuffer::from_bytes(Arc::clone(&self.device), bytes);
        let (values, scales) = (upload(x.values())?, upload(&x.packed_scales())?);
        let input = Input::new(DeviceMatrix::e4m3(values.address(), x.rows() as u64, x.k() as u64))
            .with_scales(DeviceScales { address: scales.address(), bytes: scales.bytes() });
        let rows = match mode {
            Mode::ReduceScatter => problem.m.div_ceil(problem.ranks),
            Mode::AllReduce => problem.m,
        };
        let y = DeviceBuffer::new(Arc::clone(&self.device), (rows * problem.n * 2) as u64)?;
        // SAFETY: nothing knows the buffer yet.
        unsafe { y.fill(UNWRITTEN)? };
        let output = Output { y: DeviceMatrix::bf16(y.address(), rows as u64, problem.n as u64) };
        // SAFETY: the buffers are as described and live in the result; tests make the same calls on every rank.
        unsafe { self.gemm.apply(mode, &weight.projection(), &input, &output, Stream::DEFAULT)? };
        let operands: Vec<Box<dyn Any>> = vec![Box::new(weight), Box::new(values), Box::new(scales)];
        Ok(Pending { _operands: operands, y, rows, columns: problem.n, row_stride: problem.n })
    }

    /// Runs an MXFP8 call and checks every element of this rank's rows.
    pub fn check_mxfp8(&self, problem: &Mxfp8Problem, reference: &Reference, mode: Mode) {
        let pending = self.enqueue_mxfp8(problem, mode).unwrap();
        self.synchronize();
        let first_row = match mode {
            Mode::ReduceScatter => self.rank * problem.m.div_ceil(problem.ranks),
            Mode::AllReduce => 0,
        };
        let comparison = reference.compare(first_row, &pending.rows());
        let Mxfp8Problem { m, n, k_per_rank, ranks, .. } = problem;
        let call = format!("{mode:?}, rank {} of {ranks}, M {m}, N {n}, K per rank {k_per_rank}", self.rank);
        assert!(comparison.is_within_bound(), "{call}: {comparison:?}");
    }

    pub fn synchronize(&self) {
        self.device.synchronize(Stream::DEFAULT).unwrap();
    }

    /// Enqueues a call, waits for it and returns its rows.
    pub fn run(&self, problem: &Problem, mode: Mode) -> Vec<bf16> {
        let pending = self.enqueue(problem, mode, Gaps::default()).unwrap();
        self.synchronize();
        pending.rows()
    }

    /// Runs a call and checks every element of this rank's rows.
    pub fn check(&self, problem: &Problem, reference: &Reference, mode: Mode) {
        self.check_rows(problem, reference, mode, &self.run(problem, mode));
    }

    /// Checks every element of this rank's rows.
    pub fn check_rows(&self, problem: &Problem, reference: &Reference, mode: Mode, rows: &[bf16]) {
        let comparison = reference.compare(self.first_row(problem, mode), rows);
        assert!(
            comparison.is_within_bound(),
            "{mode:?}, rank {} of {}, M {}, N {}, K per rank {}: {comparison:?}",
            self.rank,
            problem.ranks,
            problem.m,
            problem.n,
            problem.k_per_rank
        );
    }

    /// The first row of the whole result that a mode gives this rank.
    pub fn first_row(&self, problem: &Problem, mode: Mode) -> usize {
        match mode {
            Mode::ReduceScatter => self.rank * problem.m.div_ceil(problem.ranks),
            Mode::AllReduce => 0,
        }
    }
}

impl Pending {
    /// The rows of the result, once the stream is synchronised. Checks that the gaps were left alone.
    pub fn rows(&self) -> Vec<bf16> {
        // SAFETY: the stream is synchronised.
        let bytes = unsafe { self.y.to_bytes() }.unwrap();
        let mut result = Vec::with_capacity(self.rows * self.columns);
        for row in bytes.chunks_exact(self.row_stride * 2) {
            let (elements, gap) = row.split_at(self.columns * 2);
            assert!(gap.iter().all(|&byte| byte == UNWRITTEN), "the gap between rows was written");
            result.extend(elements.as_chunks::<2>().0.iter().map(|&bytes| bf16::from_le_bytes(bytes)));
        }
        result
    }
}
