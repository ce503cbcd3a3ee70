//! Operands of a row-parallel projection, the same on every run.

use gemm_rs_ar::mxfp8::{QuantizedMatrix, quantize};
use gemm_rs_ar::reference::Reference;
use half::bf16;

/// A small generator (xorshift64*), so that operands depend on nothing but their seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 33) % limit
    }

    /// Uniform in [-1, 1).
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

/// X `[m, k]` and W `[n, k]`, dense, with K over all ranks.
pub struct Problem {
    pub m: usize,
    pub n: usize,
    pub k_per_rank: usize,
    pub ranks: usize,
    pub x: Vec<bf16>,
    pub weight: Vec<bf16>,
}

/// Terms of each rank's sum in [`Problem::small_integers`].
const TERMS: usize = 4;

impl Problem {
    /// Uniform random operands.
    pub fn random([m, n, k_per_rank]: [usize; 3], ranks: usize, seed: u64) -> Self {
        let k = k_per_rank * ranks;
        let mut random = Random::new(seed);
        let mut elements = |count| (0..count).map(|_| bf16::from_f32(random.unit())).collect();
        Self { m, n, k_per_rank, ranks, x: elements(m * k), weight: elements(n * k) }
    }

    /// Operands whose every partial sum and result is a small positive integer, so that no rounding happens anywhere
    /// and a lost or doubled slice of any rank shows in every element of it.
    ///
    /// A row of X has [`TERMS`] ones per rank, W is 1, 2 or 3: partials are 4 to 12 and results at most 192, and BF16
    /// has all integers up to 256.
    pub fn small_integers([m, n, k_per_rank]: [usize; 3], ranks: usize, seed: u64) -> Self {
        let k = k_per_rank * ranks;
        let mut random = Random::new(seed);
        let weight = (0..n * k).map(|_| bf16::from_f32((1 + random.below(3)) as f32)).collect();
        let mut x = vec![bf16::ZERO; m * k];
        for part in x.chunks_exact_mut(k_per_rank) {
            let mut placed = 0;
            while placed < TERMS {
                let at = random.below(k_per_rank as u64) as usize;
                if part[at] == bf16::ZERO {
                    part[at] = bf16::ONE;
                    placed += 1;
                }
            }
        }
        Self { m, n, k_per_rank, ranks, x, weight }
    }

    pub fn k(&self) -> usize {
        self.k_per_rank * self.ranks
    }

    pub fn reference(&self) -> Reference {
        Reference::row_parallel(&self.x, &self.weight, [self.m, self.n, self.k()], self.ranks).unwrap()
    }
}

/// [`Problem`] with MXFP8 operands: the same matrices, quantised part by part, as the ranks have them.
pub struct Mxfp8Problem {
    pub m: usize,
    pub n: usize,
    pub k_per_rank: usize,
    pub ranks: usize,
    /// Each rank's columns.
    pub x: Vec<QuantizedMatrix>,
    pub weight: Vec<QuantizedMatrix>,
}

impl Mxfp8Problem {
    pub fn new(problem: &Problem) -> Self {
        let Problem { m, n, k_per_rank, ranks, .. } = *problem;
        let parts = |matrix: &[bf16], rows| {
            let part = |rank| shard(matrix, problem.k(), k_per_rank, rank, k_per_rank);
            (0..ranks).map(|rank| quantize(&part(rank), rows, k_per_rank, k_per_rank).unwrap()).collect()
        };
        Self { m, n, k_per_rank, ranks, x: parts(&problem.x, m), weight: parts(&problem.weight, n) }
    }

    /// Uniform random operands.
    pub fn random(shape: [usize; 3], ranks: usize, seed: u64) -> Self {
        Self::new(&Problem::random(shape, ranks, seed))
    }

    pub fn reference(&self) -> Reference {
        Reference::row_parallel_mxfp8(&whole(&self.x), &whole(&self.weight), self.ranks).unwrap()
    }
}

/// A matrix from its parts along K.
fn whole(parts: &[QuantizedMatrix]) -> QuantizedMatrix {
    let (rows, k) = (parts[0].rows(), parts[0].k());
    let join = |bytes: fn(&QuantizedMatrix) -> &[u8], width: usize| {
        (0..rows)
            .flat_map(|row| parts.iter().flat_map(move |part| &bytes(part)[row * width..][..width]))
            .copied()
            .collect()
    };
    let (values, scales) = (join(QuantizedMatrix::values, k), join(QuantizedMatrix::scales, k / 32));
    QuantizedMatrix::from_parts(values, scales, rows, k * parts.len()).unwrap()
}

/// The columns of a matrix that a rank holds, with rows `row_stride` elements apart and NaN in the gaps.
pub fn shard(matrix: &[bf16], k: usize, part: usize, rank: usize, row_stride: usize) -> Vec<bf16> {
    let mut result = vec![bf16::NAN; matrix.len() / k * row_stride];
    for (row, target) in matrix.chunks_exact(k).zip(result.chunks_exact_mut(row_stride)) {
        target[..part].copy_from_slice(&row[rank * part..(rank + 1) * part]);
    }
    result
}
