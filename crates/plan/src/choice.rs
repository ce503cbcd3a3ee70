//! Which kernel runs a problem: a cost model of every kernel in the table, and the cheapest.
//!
//! The times are **modelled**: limits that follow from the rates and latencies of a [`Machine`], good for comparing the
//! kernels of the table with each other and not for predicting a clock. `docs/performance.md` has the formulas in prose
//! and the source of each number.
//!
//! Every rank chooses for itself and all must choose alike, or their tickets differ. So an estimate is made of integers
//! and of IEEE 754 binary64 `+ - * /` and comparisons alone, in a fixed order: each of these is correctly rounded, Rust
//! neither reorders nor fuses them, and the same problem and machine give the same bits on every host. Ranks must
//! therefore be given the same [`Machine`], also where their GPUs differ.

use core::fmt;

use crate::arguments::Mode;
use crate::control::{READY_OFFSET, WORD_BYTES};
use crate::kernels::{KERNELS, KernelSpec, MMA_ROWS, OperandType, Orientation, STAGE_ROW_BYTES};
use crate::{MAX_RANKS, MIN_RANKS};

/// What is to be computed: `Y = X · Wᵀ` summed over the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Rows of X and Y.
    pub m: u32,
    /// Columns of Y.
    pub n: u32,
    /// This rank's part of the inner dimension, in elements.
    pub k: u32,
    /// Operand type.
    pub operands: OperandType,
    /// Number of ranks.
    pub ranks: u32,
    /// Collective.
    pub mode: Mode,
}

/// Y's columns come in multiples of this.
pub const COLUMN_GRANULE: u32 = 128;
/// Largest M, N or K: TMA coordinates are signed 32-bit numbers, and a box may begin at most one tile before the end.
pub const MAX_EXTENT: u32 = i32::MAX as u32 - 255;
/// Most tiles of a problem: the offset of a tile's ready words is a 32-bit number.
pub const MAX_TILES: u64 = ((u32::MAX - READY_OFFSET) / (MAX_RANKS * WORD_BYTES)) as u64;

/// Why no kernel of the table runs a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// M, N or K is zero or more than [`MAX_EXTENT`].
    Extent {
        /// `M`, `N` or `K`.
        name: &'static str,
        /// Given.
        given: u32,
    },
    /// N or K is no multiple of what the kernels take at a time.
    Multiple {
        /// `N` or `K`.
        name: &'static str,
        /// Given.
        given: u32,
        /// Wanted a multiple of this.
        of: u32,
    },
    /// Number of ranks.
    Ranks {
        /// Given.
        given: u32,
    },
    /// More tiles than [`MAX_TILES`] with every kernel, or no SM to run on.
    NoKernel,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Extent { name, given } => write!(f, "given {name} = {given}, wanted 1 to {MAX_EXTENT}"),
            Self::Multiple { name, given, of } => write!(f, "given {name} = {given}, wanted a multiple of {of}"),
            Self::Ranks { given } => write!(f, "given {given} ranks, wanted {MIN_RANKS} to {MAX_RANKS}"),
            Self::NoKernel => {
                write!(f, "no kernel: the problem has more than {MAX_TILES} tiles, or no SM is left for it")
            }
        }
    }
}

impl core::error::Error for Unsupported {}

impl Problem {
    /// Whether the shape is one that the kernels are made for.
    pub const fn check(&self) -> Result<(), Unsupported> {
        let extents = [("M", self.m, 1), ("N", self.n, COLUMN_GRANULE), ("K", self.k, self.operands.stage_k())];
        let mut index = 0;
        while index < extents.len() {
            let (name, given, of) = extents[index];
            if given == 0 || given > MAX_EXTENT {
                return Err(Unsupported::Extent { name, given });
            }
            if !given.is_multiple_of(of) {
                return Err(Unsupported::Multiple { name, given, of });
            }
            index += 1;
        }
        if self.ranks < MIN_RANKS || self.ranks > MAX_RANKS {
            return Err(Unsupported::Ranks { given: self.ranks });
        }
        Ok(())
    }

    /// Bytes of a rank's partial result, `S = 2 · M · N`: Y is BF16.
    pub fn partial_bytes(&self) -> f64 {
        2.0 * self.m as f64 * self.n as f64
    }

    /// Bytes of X and W, scales included.
    pub fn operand_bytes(&self) -> f64 {
        let elements = (self.m as f64 + self.n as f64) * self.k as f64;
        match self.operands {
            OperandType::Bf16 => elements * 2.0,
            OperandType::Mxfp8 => elements * (1.0 + 1.0 / 32.0),
        }
    }

    /// Bytes that the busier direction of a GPU's link carries with multicast: `S` for reduce-scatter, `S · (1 + 1 / P)`
    /// for all-reduce, which also sends its share of the sums.
    pub fn link_bytes(&self) -> f64 {
        match self.mode {
            Mode::ReduceScatter => self.partial_bytes(),
            Mode::AllReduce => self.partial_bytes() * (1.0 + 1.0 / self.ranks as f64),
        }
    }
}

/// The rates and latencies that an estimate is made of. [`Machine::B200`] says where its numbers come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// SMs of the GPU.
    pub sm_count: u32,
    /// SMs to leave to other kernels.
    pub sm_margin: u32,
    /// Dense BF16 rate of one SM's tensor core, FLOP/s.
    pub bf16_flops_per_sm: f64,
    /// Dense MXFP8 rate of one SM's tensor core, FLOP/s.
    pub mxfp8_flops_per_sm: f64,
    /// Rate at which one SM's tensor core reads operands from shared memory, bytes/s.
    pub shared_bytes_per_second_per_sm: f64,
    /// Rate at which TMA fills one SM's shared memory from L2, bytes/s.
    pub l2_bytes_per_second_per_sm: f64,
    /// Device-memory bandwidth, bytes/s.
    pub hbm_bytes_per_second: f64,
    /// NVLink bandwidth of one direction, bytes/s.
    pub link_bytes_per_second: f64,
    /// From the start of the launch to the first TMA instruction, ns.
    pub launch_ns: f64,
    /// What a pair adds to that: the cluster's launch and the barrier of its CTAs, ns.
    pub pair_ns: f64,
    /// From a TMA instruction to its data in shared memory under load, ns.
    pub load_latency_ns: f64,
    /// Epilogue of one accumulator column, 128 rows of it, ns: `tcgen05.ld`, conversion, staging and store.
    pub epilogue_ns_per_column: f64,
    /// From a tile's last store to its ready word seen by another rank, ns.
    pub ready_ns: f64,
    /// From a `multimem.ld_reduce` to its sum stored, ns.
    pub reduce_ns: f64,
    /// From an all-reduce's last store to every rank's `done` word seen, ns.
    pub done_ns: f64,
}

/// SMs of a B200.
const B200_SMS: u32 = 148;
/// Clock at which 8192 BF16 FLOP per cycle and SM (published: FlashAttention-4; up to 8155 measured by others,
/// SemiAnalysisAI/microbench-blackwell, `umma_throughput/full.csv`, BF16 SS 1 128x256) make 2.25 PFLOP/s: 1.856 GHz.
const B200_CLOCK_HZ: f64 = 2.25e15 / B200_SMS as f64 / 8192.0;

impl Machine {
    /// A B200. Published figures of the vendor and of others' measurements where there are any; the rest are
    /// assumptions, and named so. Nothing here was measured by this project.
    pub const B200: Self = Self {
        sm_count: B200_SMS,
        sm_margin: 0,
        // Published: 2.25 and 4.5 PFLOP/s dense.
        bf16_flops_per_sm: 2.25e15 / B200_SMS as f64,
        mxfp8_flops_per_sm: 4.5e15 / B200_SMS as f64,
        // Published: 128 bytes per cycle and SM (FlashAttention-4; the same CSV fits it: with both operands in shared
        // memory an MMA of 128 x N takes max(N / 2, (128 + N) / 4) cycles, 48.5 for N = 64 and 64.6 for N = 128).
        shared_bytes_per_second_per_sm: 128.0 * B200_CLOCK_HZ,
        // Published measurement: 126 GB/s for the faster SMs, one at a time, 101 for the farther half
        // (StuartSul/gpu-experiments, blackwell/098); all at once 20.4 TB/s = 138 GB/s each (blackwell/094). That it
        // holds beside a running mainloop is an assumption.
        l2_bytes_per_second_per_sm: 126.0e9,
        // Published: 8 TB/s (measured by others through TMA: 7.4, blackwell/094).
        hbm_bytes_per_second: 8.0e12,
        // Published: 900 GB/s each direction, before protocol overhead.
        link_bytes_per_second: 900.0e9,
        // Assumption.
        launch_ns: 2000.0,
        // Assumption.
        pair_ns: 500.0,
        // Assumption; published for one load from an idle device memory: 1042 cycles, 0.5 us
        // (SemiAnalysisAI/microbench-blackwell, tma2d_throughput).
        load_latency_ns: 1000.0,
        // Assumption: 32 columns, one step of a warp, in 128 ns.
        epilogue_ns_per_column: 4.0,
        // Assumption.
        ready_ns: 1000.0,
        // Assumption.
        reduce_ns: 1500.0,
        // Assumption.
        done_ns: 1500.0,
    };

    /// SMs that a launch may use.
    pub const fn usable_sms(&self) -> u32 {
        self.sm_count.saturating_sub(self.sm_margin)
    }

    fn flops_per_sm(&self, operands: OperandType) -> f64 {
        match operands {
            OperandType::Bf16 => self.bf16_flops_per_sm,
            OperandType::Mxfp8 => self.mxfp8_flops_per_sm,
        }
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::B200
    }
}

/// The term that an estimate's total is mostly made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Tensor cores.
    Tensor,
    /// The MMA's operands out of shared memory.
    SharedMemory,
    /// Operands from L2 into shared memory.
    L2,
    /// Device memory.
    Hbm,
    /// Accumulators out of tensor memory.
    Epilogue,
    /// NVLink.
    Link,
    /// What nothing can hide: launch, first load, last epilogue, flags and reduction.
    Latency,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tensor => "tensor cores",
            Self::SharedMemory => "shared memory",
            Self::L2 => "L2 to SM",
            Self::Hbm => "device memory",
            Self::Epilogue => "epilogue",
            Self::Link => "link",
            Self::Latency => "latency",
        })
    }
}

/// What the model expects of a kernel. All times are **modelled**, in nanoseconds; those of the GEMM are of the CTA with
/// the most to do, over all its tiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Tiles, those included that only pad a pair.
    pub tiles: u64,
    /// Tiles of the CTA with the most.
    pub waves: u64,
    /// Share of the usable SMs' tile slots, over all waves, that hold rows of tiles and columns of Y: 1 when all do.
    pub wave_efficiency: f64,
    /// MMAs.
    pub tensor_ns: f64,
    /// Operands out of shared memory.
    pub shared_ns: f64,
    /// Operands from L2 into shared memory.
    pub l2_ns: f64,
    /// X and W read from device memory once, partial sums written.
    pub hbm_ns: f64,
    /// Epilogues.
    pub epilogue_ns: f64,
    /// The GEMM from the first stage's arrival to the last MMA: the longest of the above, tile by tile.
    pub gemm_ns: f64,
    /// The link, for all the bytes.
    pub link_ns: f64,
    /// Launch and first load: nothing runs yet.
    pub fill_ns: f64,
    /// The last tile's epilogue and its reduction's latency: nothing else is left to run.
    pub tail_ns: f64,
    /// The fused kernel from launch to end.
    pub total_ns: f64,
    /// What most of the total is.
    pub bound: Bound,
}

impl Estimate {
    /// Time of the kernel if the link took none, ns.
    pub fn own_ns(&self) -> f64 {
        self.fill_ns + self.gemm_ns + self.tail_ns
    }
}

/// A kernel and what it is expected to cost. Its [`fmt::Display`] is one line for a person.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// The kernel.
    pub kernel: &'static KernelSpec,
    /// CTAs to launch.
    pub ctas: u32,
    /// What it is expected to cost.
    pub estimate: Estimate,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate { tiles, waves, wave_efficiency, gemm_ns, link_ns, total_ns, bound, .. } = self.estimate;
        let us = |ns: f64| ns / 1000.0;
        let (name, percent) = (self.kernel.name, 100.0 * wave_efficiency);
        let [tiles, ctas, waves] = [(tiles, "tile"), (self.ctas.into(), "CTA"), (waves, "wave")].map(Count);
        write!(f, "{name}: {tiles} on {ctas} in {waves} ({percent:.0} % full); modelled {:.1} us = ", us(total_ns))?;
        let (gemm, link) = (us(gemm_ns), us(link_ns));
        write!(f, "GEMM {gemm:.1} and link {link:.1} overlapped, fill and tails; most of it {bound}")
    }
}

/// How many of what.
struct Count((u64, &'static str));

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, of) = self.0;
        write!(f, "{count} {of}{}", if count == 1 { "" } else { "s" })
    }
}

/// Totals that differ by less than this share are equal to the model: its assumptions do not carry further. Among equals
/// [`choose`] takes the kernel that needs the least time of its own ([`Estimate::own_ns`]). That is the safer side to err
/// on: the GEMM's rate is nominal as well, and what it does not need is left to the communication warps of the same SMs.
pub const TIE: f64 = 0.10;

/// Every kernel that can run the problem, in the table's order; none if [`Problem::check`] refuses it.
pub fn candidates(problem: &Problem, machine: &Machine) -> impl Iterator<Item = Choice> + Clone + use<> {
    let (problem, machine) = (*problem, *machine);
    KERNELS.iter().filter_map(move |kernel| estimate(kernel, &problem, &machine))
}

/// The kernel to launch: of the candidates whose total is within [`TIE`] of the least, the one with the least time of its
/// own, and of equal ones the first in the table.
pub fn choose(problem: &Problem, machine: &Machine) -> Option<Choice> {
    choose_among(problem, machine, |_| true)
}

/// [`choose`] among the kernels that `allowed` says yes to, which must be the same on every rank.
pub fn choose_among(
    problem: &Problem,
    machine: &Machine,
    allowed: impl Fn(&KernelSpec) -> bool + Clone,
) -> Option<Choice> {
    let candidates = candidates(problem, machine).filter(|choice| allowed(choice.kernel));
    // `min_by` takes the first of equals.
    let best = candidates.clone().min_by(|a, b| a.estimate.total_ns.total_cmp(&b.estimate.total_ns))?;
    let limit = best.estimate.total_ns * (1.0 + TIE);
    let equals = candidates.filter(|choice| choice.estimate.total_ns <= limit);
    equals.min_by(|a, b| a.estimate.own_ns().total_cmp(&b.estimate.own_ns())).or(Some(best))
}

/// [`choose`], with the reason if there is nothing to choose.
pub fn try_choose(problem: &Problem, machine: &Machine) -> Result<Choice, Unsupported> {
    problem.check()?;
    choose(problem, machine).ok_or(Unsupported::NoKernel)
}

/// What a kernel is expected to cost, if it can run the problem.
pub fn estimate(kernel: &'static KernelSpec, problem: &Problem, machine: &Machine) -> Option<Choice> {
    let fits = match kernel.max_rows() {
        Some(rows) => problem.m <= rows,
        None => true,
    };
    if problem.check().is_err() || kernel.operands != problem.operands || !fits {
        return None;
    }
    let grid = kernel.tiles(problem.m, problem.n);
    let tiles = u64::from(grid.rows) * u64::from(grid.columns);
    let sms = machine.usable_sms();
    let ctas = if tiles < u64::from(sms) { tiles as u32 } else { sms };
    let ctas = ctas / kernel.cluster * kernel.cluster;
    if ctas == 0 || tiles > MAX_TILES {
        return None;
    }

    // CTA c takes tiles c, c + ctas, ... in column order. Columns but the last are whole and the last come last, so
    // CTA 0, with the first tile of every wave, has the most to do.
    let waves = tiles.div_ceil(u64::from(ctas));
    let before_last_column = tiles - u64::from(grid.rows);
    let whole = before_last_column.div_ceil(u64::from(ctas));
    let last_width = problem.n - (grid.columns - 1) * kernel.tile.n;
    let wide = TileTime::new(kernel, problem, machine, kernel.tile.n);
    let last = TileTime::new(kernel, problem, machine, last_width);
    let (wide_count, last_count) = (whole as f64, (waves - whole) as f64);
    let sum = |time: fn(&TileTime) -> f64| wide_count * time(&wide) + last_count * time(&last);

    let hbm_bytes = problem.operand_bytes() + problem.partial_bytes();
    let hbm_ns = ns(hbm_bytes, machine.hbm_bytes_per_second);
    let busy_ns = sum(TileTime::slowest);
    let gemm_ns = busy_ns.max(hbm_ns);

    // Communication begins when the first wave is published and, if the GEMM takes longer, ends with the last wave's.
    let link_ns = ns(problem.link_bytes(), machine.link_bytes_per_second);
    let first_wave_ns = if wide_count > 0.0 { wide.slowest() } else { last.slowest() }.max(gemm_ns / waves as f64);
    let last_wave = tiles - (waves - 1) * u64::from(ctas);
    let last_wave_link_ns = link_ns * (last_wave as f64 / tiles as f64);
    let (behind_gemm, behind_link) = (gemm_ns + last_wave_link_ns, first_wave_ns + link_ns);

    let pair_ns = if kernel.cluster > 1 { machine.pair_ns } else { 0.0 };
    let fill_ns = machine.launch_ns + pair_ns + machine.load_latency_ns;
    let done_ns = match problem.mode {
        Mode::ReduceScatter => 0.0,
        Mode::AllReduce => machine.done_ns,
    };
    // What CTA 0 does in the last wave, since a wave of whole and narrow tiles ends with the whole ones.
    let final_tile = if whole == waves { wide } else { last };
    let tail_ns = final_tile.epilogue + machine.ready_ns + machine.reduce_ns + done_ns;

    let overlapped_ns = behind_gemm.max(behind_link);
    let bound = if fill_ns + tail_ns > overlapped_ns {
        Bound::Latency
    } else if behind_link >= behind_gemm && link_ns >= gemm_ns {
        Bound::Link
    } else if hbm_ns > busy_ns {
        Bound::Hbm
    } else {
        wide.bound()
    };
    let area = problem.m.div_ceil(kernel.tile.m) as f64 * (problem.n as f64 / kernel.tile.n as f64);
    Some(Choice {
        kernel,
        ctas,
        estimate: Estimate {
            tiles,
            waves,
            wave_efficiency: area / (waves as f64 * sms as f64),
            tensor_ns: sum(|tile| tile.tensor),
            shared_ns: sum(|tile| tile.shared),
            l2_ns: sum(|tile| tile.l2),
            hbm_ns,
            epilogue_ns: sum(|tile| tile.epilogue),
            gemm_ns,
            link_ns,
            fill_ns,
            tail_ns,
            total_ns: fill_ns + overlapped_ns + tail_ns,
            bound,
        },
    })
}

/// Nanoseconds for an amount at a rate per second.
fn ns(amount: f64, per_second: f64) -> f64 {
    amount / per_second * 1e9
}

/// What one tile takes of each unit of its CTA's SM, in ns. The units work side by side.
#[derive(Clone, Copy)]
struct TileTime {
    tensor: f64,
    shared: f64,
    l2: f64,
    epilogue: f64,
}

impl TileTime {
    /// A tile with `width` columns of Y.
    fn new(kernel: &KernelSpec, problem: &Problem, machine: &Machine, width: u32) -> Self {
        let stages = (problem.k / kernel.tile.k) as f64;
        // The MMA is as wide as the tile. In a pair it covers both CTAs' rows and each SM does its own 128 of them; a
        // swapped kernel's are 128 columns of Y by the rows of its tile.
        let columns = match kernel.orientation {
            Orientation::Normal => width,
            Orientation::Swapped => kernel.tile.m,
        } as f64;
        let flops = 2.0 * MMA_ROWS as f64 * columns * kernel.tile.k as f64;
        // Of B each SM of a pair reads its half from its own shared memory.
        let rows = MMA_ROWS as f64 + columns / kernel.cluster as f64;
        // TMA boxes are filled whole: rows outside the matrix cost like rows inside (assumption). And a stage is free to
        // be loaded again only when it has been multiplied, so at best all stages return once per latency.
        let stage_bytes = kernel.shared.stage_bytes() as f64;
        let load = ns(stage_bytes, machine.l2_bytes_per_second_per_sm);
        let turn = machine.load_latency_ns / kernel.shared.stages as f64;
        Self {
            tensor: stages * ns(flops, machine.flops_per_sm(problem.operands)),
            shared: stages * ns(rows * STAGE_ROW_BYTES as f64, machine.shared_bytes_per_second_per_sm),
            l2: stages * load.max(turn),
            epilogue: columns * machine.epilogue_ns_per_column,
        }
    }

    fn slowest(&self) -> f64 {
        self.tensor.max(self.shared).max(self.l2).max(self.epilogue)
    }

    fn bound(&self) -> Bound {
        let slowest = self.slowest();
        if self.tensor >= slowest {
            Bound::Tensor
        } else if self.shared >= slowest {
            Bound::SharedMemory
        } else if self.l2 >= slowest {
            Bound::L2
        } else {
            Bound::Epilogue
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::OperandType::{Bf16, Mxfp8};
    use Mode::{AllReduce, ReduceScatter};

    const MACHINE: Machine = Machine::B200;
    const MODES: [Mode; 2] = [ReduceScatter, AllReduce];
    const OPERANDS: [OperandType; 2] = [Bf16, Mxfp8];

    fn problem(m: u32, n: u32, k: u32) -> Problem {
        Problem { m, n, k, operands: Bf16, ranks: 8, mode: ReduceScatter }
    }

    #[track_caller]
    fn chosen(problem: Problem) -> Choice {
        try_choose(&problem, &MACHINE).unwrap_or_else(|error| panic!("{problem:?}: {error}"))
    }

    /// Every problem of a shape, in both modes and with both operand types.
    fn variants(base: Problem) -> impl Iterator<Item = Problem> {
        let modes = MODES.into_iter().map(move |mode| Problem { mode, ..base });
        modes.flat_map(|base| OPERANDS.map(|operands| Problem { operands, ..base }))
    }

    /// The documented grid: shapes of real projections, and around them what the tile shapes have to tell apart.
    fn grid() -> impl Iterator<Item = Problem> {
        const M: [u32; 25] = [
            1, 2, 8, 16, 17, 32, 33, 64, 65, 100, 128, 129, 256, 257, 384, 512, 640, 768, 1000, 1024, 1280, 2048, 4096,
            8192, 32768,
        ];
        const N: [u32; 12] = [128, 512, 1024, 2048, 4096, 5120, 6144, 7168, 8192, 12288, 16384, 18432];
        const K: [u32; 7] = [128, 512, 768, 1024, 1536, 2304, 7168];
        let ranks = [2, 8].into_iter();
        let shapes = ranks.flat_map(|ranks| M.into_iter().flat_map(move |m| N.map(|n| (ranks, m, n))));
        shapes.flat_map(|(ranks, m, n)| K.map(|k| Problem { ranks, ..problem(m, n, k) })).flat_map(variants)
    }

    #[test]
    fn wave_efficiency_is_what_the_tile_counts_say() {
        let efficiency = |m, columns| {
            let wanted = |choice: &Choice| choice.kernel.tile.n == columns && choice.kernel.cluster == 2;
            let estimate = candidates(&problem(m, 7168, 1536), &MACHINE).find(wanted).unwrap().estimate;
            (estimate.wave_efficiency * 1000.0).round() / 1000.0
        };
        let of = |m| [128, 224, 256].map(|columns| efficiency(m, columns));
        assert_eq!(of(512), [0.757, 0.865, 0.757]);
        assert_eq!(of(1024), [0.757, 0.865, 0.757]);
        assert_eq!(of(4096), [0.931, 0.988, 0.865]);
        assert_eq!(of(8192), [0.969, 0.988, 0.931]);
    }

    #[test]
    fn pairs_of_224_columns_where_they_fill_the_waves() {
        for k in [768, 1536, 2304] {
            for m in [512, 1024, 2048, 4096, 8192] {
                for problem in variants(problem(m, 7168, k)) {
                    let kernel = chosen(problem).kernel;
                    assert_eq!((kernel.tile.n, kernel.cluster), (224, 2), "{problem:?}");
                }
            }
        }
    }

    #[test]
    fn few_rows_take_swapped_operands_and_many_a_pair() {
        const SHAPES: [(u32, u32); 4] = [(7168, 768), (7168, 1536), (7168, 2304), (5120, 1024)];
        for (n, k) in SHAPES.into_iter().chain([(16384, 128)]) {
            for m in 1..=64 {
                for problem in variants(problem(m, n, k)) {
                    let kernel = chosen(problem).kernel;
                    let rows = if m <= 32 { 32 } else { 64 };
                    assert_eq!((kernel.orientation, kernel.tile.m), (Orientation::Swapped, rows), "{problem:?}");
                }
            }
        }
        for (n, k) in SHAPES {
            for m in [1024, 2048, 3000, 8192, 32768, 100_000] {
                for problem in variants(problem(m, n, k)) {
                    assert_eq!(chosen(problem).kernel.cluster, 2, "{problem:?}");
                }
            }
        }
    }

    /// What the choice must never get wrong, whatever the model says.
    #[track_caller]
    fn check(problem: &Problem, machine: &Machine, choice: &Choice) {
        let Choice { kernel, ctas, estimate } = choice;
        let context = || format!("{problem:?} {choice:?}");
        assert_eq!(kernel.operands, problem.operands, "{}", context());
        assert!(kernel.max_rows().is_none_or(|rows| problem.m <= rows), "{}", context());
        assert!(*ctas > 0 && ctas.is_multiple_of(kernel.cluster) && *ctas <= machine.usable_sms(), "{}", context());
        assert!(u64::from(*ctas) <= estimate.tiles && estimate.tiles <= MAX_TILES, "{}", context());
        let slots = estimate.waves * u64::from(*ctas);
        assert!(slots >= estimate.tiles && slots - u64::from(*ctas) < estimate.tiles, "{}", context());
        assert!(estimate.wave_efficiency > 0.0 && estimate.wave_efficiency <= 1.0, "{}", context());
        let parts = [estimate.tensor_ns, estimate.shared_ns, estimate.l2_ns, estimate.hbm_ns, estimate.epilogue_ns];
        for part in parts {
            assert!(part > 0.0 && part <= estimate.gemm_ns, "{}", context());
        }
        for part in [estimate.gemm_ns, estimate.link_ns, estimate.own_ns()] {
            assert!(part > 0.0 && part <= estimate.total_ns && estimate.total_ns.is_finite(), "{}", context());
        }
    }

    #[test]
    fn every_choice_can_run() {
        for problem in grid() {
            let choice = chosen(problem);
            check(&problem, &MACHINE, &choice);
            let limit = choice.estimate.total_ns / (1.0 + TIE);
            for candidate in candidates(&problem, &MACHINE) {
                check(&problem, &MACHINE, &candidate);
                assert!(candidate.estimate.total_ns >= limit * (1.0 - 1e-12), "{problem:?}");
            }
        }
    }

    /// A linear congruential generator: the tests' sizes are the same every time.
    fn random(state: &mut u64) -> u32 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 32) as u32
    }

    #[test]
    fn no_size_panics() {
        let mut edges = vec![];
        for edge in [1u32, 64, 128, 224, 256, 1 << 16, 1 << 26, MAX_EXTENT, i32::MAX as u32, u32::MAX] {
            edges.extend([edge.wrapping_sub(1), edge, edge.saturating_add(1), edge / 128 * 128]);
        }
        let mut state = 1;
        for _ in 0..200 {
            // Every magnitude is as likely as every other.
            let size = random(&mut state) >> (random(&mut state) % 32);
            edges.extend([size, size / 128 * 128]);
        }
        let mut ran = 0;
        let sizes = edges.len();
        for index in 0..60_000usize {
            let mut pick = || edges[random(&mut state) as usize % sizes];
            let (m, n, k) = (pick(), pick(), pick());
            let problem = Problem {
                m,
                n,
                k,
                operands: OPERANDS[index % 2],
                ranks: [0, 2, 3, 8, 16, 17, 8, 8][index / 2 % 8],
                mode: MODES[index / 16 % 2],
            };
            let (sm_count, sm_margin) =
                [(148, 0), (1, 0), (0, 0), (2, 1), (147, 16), (u32::MAX, 0), (0, u32::MAX)][index / 32 % 7];
            let machine = Machine { sm_count, sm_margin, ..MACHINE };
            match try_choose(&problem, &machine) {
                Ok(choice) => {
                    check(&problem, &machine, &choice);
                    assert!(!choice.to_string().is_empty());
                    ran += 1;
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
            assert_eq!(candidates(&problem, &machine).next().is_some(), choose(&problem, &machine).is_some());
        }
        assert!(ran > 1000, "only {ran} were supported");
    }

    #[test]
    fn a_useless_machine_still_gives_an_answer() {
        for rate in [0.0, f64::NAN, f64::INFINITY, -1.0] {
            let machine =
                Machine { bf16_flops_per_sm: rate, link_bytes_per_second: rate, load_latency_ns: rate, ..MACHINE };
            assert!(choose(&problem(1024, 7168, 1536), &machine).is_some());
        }
    }

    #[test]
    fn what_is_not_supported_is_said() {
        let of = |problem: Problem| problem.check().unwrap_err().to_string();
        let base = problem(128, 7168, 1536);
        assert_eq!(of(Problem { m: 0, ..base }), "given M = 0, wanted 1 to 2147483392");
        assert_eq!(of(Problem { n: 7169, ..base }), "given N = 7169, wanted a multiple of 128");
        assert_eq!(of(Problem { k: 1568, ..base }), "given K = 1568, wanted a multiple of 64");
        assert_eq!(of(Problem { k: 1600, operands: Mxfp8, ..base }), "given K = 1600, wanted a multiple of 128");
        assert_eq!(of(Problem { ranks: 17, ..base }), "given 17 ranks, wanted 2 to 16");
        let huge = problem(1 << 30, 1 << 20, 64);
        assert_eq!(try_choose(&huge, &MACHINE).unwrap_err(), Unsupported::NoKernel);
        assert_eq!(try_choose(&base, &Machine { sm_margin: 148, ..MACHINE }).unwrap_err(), Unsupported::NoKernel);
        // A single SM is no pair.
        let single = try_choose(&base, &Machine { sm_count: 1, ..MACHINE }).unwrap();
        assert_eq!((single.kernel.cluster, single.ctas), (1, 1));
    }

    #[test]
    fn twice_the_rows_never_take_less_time() {
        for base in grid().filter(|problem| problem.m == 1) {
            for first in [1, 3, 5, 13, 37, 63, 65, 127, 171] {
                let (mut m, mut last) = (first, vec![]);
                let (mut least, mut taken) = (0.0, 0.0);
                while m <= 1 << 17 {
                    let problem = Problem { m, ..base };
                    let all: Vec<_> = candidates(&problem, &MACHINE).collect();
                    for choice in &all {
                        let same = |other: &&Choice| other.kernel.name == choice.kernel.name;
                        let before = last.iter().find(same).map_or(0.0, |other| other.estimate.total_ns);
                        assert!(choice.estimate.total_ns >= before, "{problem:?}\n{choice}\n{before}");
                    }
                    let total = all.iter().map(|choice| choice.estimate.total_ns).fold(f64::INFINITY, f64::min);
                    assert!(total >= least, "{problem:?}: least {total} after {least}");
                    let choice = chosen(problem);
                    assert!(choice.estimate.total_ns >= taken, "{problem:?}: {choice} after {taken}");
                    (least, taken, last, m) = (total, choice.estimate.total_ns, all, m * 2);
                }
            }
        }
    }

    #[test]
    fn every_kernel_is_chosen_somewhere() {
        let never: Vec<_> = KERNELS
            .iter()
            .map(|kernel| kernel.name)
            .filter(|name| grid().all(|problem| chosen(problem).kernel.name != *name))
            .collect();
        assert_eq!(never, [""; 0]);
    }

    #[test]
    fn the_bound_is_the_largest_term() {
        let bound = |m, k, ranks| chosen(Problem { ranks, ..problem(m, 7168, k) }).estimate.bound;
        assert_eq!(bound(1, 768, 8), Bound::Latency);
        assert_eq!(bound(8192, 768, 8), Bound::Link);
        assert_eq!(bound(8192, 7168, 2), Bound::L2);
        assert_eq!(bound(32768, 7168, 2), Bound::Tensor);
        assert_eq!(chosen(problem(8, 18432, 7168)).estimate.bound, Bound::Hbm);
    }

    #[test]
    fn a_margin_leaves_sms_free_and_a_pair_an_even_number() {
        for margin in [0, 1, 8, 17] {
            let machine = Machine { sm_margin: margin, ..MACHINE };
            let choice = try_choose(&problem(8192, 7168, 1536), &machine).unwrap();
            assert_eq!(choice.ctas, (148 - margin) / choice.kernel.cluster * choice.kernel.cluster);
        }
    }

    #[test]
    fn the_last_column_counts_by_its_width() {
        let estimate = |n| {
            let of = candidates(&problem(128 * 148, n, 1536), &MACHINE);
            of.into_iter().find(|choice| choice.kernel.name == "gemm_bf16_128x256").unwrap().estimate
        };
        let (one, half, two) = (estimate(256), estimate(384), estimate(512));
        assert_eq!((one.waves, half.waves, two.waves), (1, 2, 2));
        let tile = one.tensor_ns;
        assert_eq!((half.tensor_ns, two.tensor_ns), (tile + tile / 2.0, 2.0 * tile));
    }

    #[test]
    fn a_choice_is_one_readable_line() {
        assert_eq!(
            chosen(problem(1024, 7168, 1536)).to_string(),
            "gemm_bf16_pair_128x224: 256 tiles on 148 CTAs in 2 waves (86 % full); modelled 29.1 us = GEMM 11.7 and link \
             16.3 overlapped, fill and tails; most of it link"
        );
        assert!(chosen(problem(1, 128, 64)).to_string().contains(": 1 tile on 1 CTA in 1 wave (1 % full)"));
    }
}
