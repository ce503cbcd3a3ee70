//! The FP64 product, rank by rank, together with the sums of magnitudes that the bound needs.

use std::num::NonZeroUsize;
use std::thread;

use super::bound::ErrorBound;
use super::operand::Operand;

/// Columns that are multiplied side by side, packed next to each other for every k.
const PANEL: usize = 4;
/// Rows that share each load of a panel.
const ROWS: usize = 2;
/// Products below which a second thread costs more than it brings.
const PRODUCTS_PER_THREAD: usize = 1 << 20;

/// The result and its bounds, both `[m, n]`.
pub(super) fn partial_sums<T: Operand>(
    x: &T,
    weight: &T,
    [m, n, k]: [usize; 3],
    ranks: usize,
    bound: ErrorBound,
) -> (Vec<f64>, Vec<f64>) {
    let (mut values, mut bounds) = (vec![0.0; m * n], vec![0.0; m * n]);
    if m == 0 || n == 0 {
        return (values, bounds);
    }
    let panels = pack(weight, n, k);
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = threads.min(m * n * k / PRODUCTS_PER_THREAD + 1).min(m);
    let rows_each = m.div_ceil(threads);
    thread::scope(|scope| {
        let chunks = values.chunks_mut(rows_each * n).zip(bounds.chunks_mut(rows_each * n));
        for ((values, bounds), first) in chunks.zip((0..m).step_by(rows_each)) {
            let panels = &panels;
            scope.spawn(move || multiply_rows(x, first, panels, [n, k], ranks, bound, values, bounds));
        }
    });
    (values, bounds)
}

/// W as panels of [`PANEL`] columns of the result, each `[k][PANEL]`; columns past the last are zero.
fn pack<T: Operand>(weight: &T, n: usize, k: usize) -> Vec<[f64; PANEL]> {
    let mut panels = vec![[0.0; PANEL]; n.div_ceil(PANEL) * k];
    for column in 0..n {
        let panel = &mut panels[column / PANEL * k..][..k];
        for (packed, value) in panel.iter_mut().zip(weight.row(column)) {
            packed[column % PANEL] = value;
        }
    }
    panels
}

/// Rows `first_row` and on: as many as `values` has.
#[expect(clippy::too_many_arguments, reason = "one call, from the thread that owns the rows")]
fn multiply_rows<T: Operand>(
    x: &T,
    first_row: usize,
    panels: &[[f64; PANEL]],
    [n, k]: [usize; 2],
    ranks: usize,
    bound: ErrorBound,
    values: &mut [f64],
    bounds: &mut [f64],
) {
    if k == 0 {
        return;
    }
    let m = values.len() / n;
    let mut pair = vec![[0.0; ROWS]; k];
    for row in (0..m).step_by(ROWS) {
        // What is left of the row before stays in a last pair that is not whole; its results are not kept.
        for offset in 0..ROWS.min(m - row) {
            for (pair, value) in pair.iter_mut().zip(x.row(first_row + row + offset)) {
                pair[offset] = value;
            }
        }
        for (panel, first_column) in panels.chunks_exact(k).zip((0..n).step_by(PANEL)) {
            let block = multiply_block(&pair, panel, ranks, bound);
            for (offset, row_block) in block.iter().enumerate().take(m - row) {
                let start = (row + offset) * n + first_column;
                let width = PANEL.min(n - first_column);
                for (column, &(value, bound)) in row_block.iter().enumerate().take(width) {
                    values[start + column] = value;
                    bounds[start + column] = bound;
                }
            }
        }
    }
}

/// A block of `ROWS` by `PANEL` elements, each with its bound.
fn multiply_block(
    rows: &[[f64; ROWS]],
    panel: &[[f64; PANEL]],
    ranks: usize,
    bound: ErrorBound,
) -> [[(f64, f64); PANEL]; ROWS] {
    /// Sums over ranks of `p_r`, `|p_r|`, `b_r` and `S_r`.
    #[derive(Clone, Copy, Default)]
    struct Sums {
        partials: f64,
        absolute_partials: f64,
        partial_errors: f64,
        magnitudes: f64,
    }
    let mut sums = [[Sums::default(); PANEL]; ROWS];
    let part = rows.len() / ranks;
    for (rows, panel) in rows.chunks_exact(part).zip(panel.chunks_exact(part)) {
        let (partials, magnitudes) = multiply_part(rows, panel);
        for (row, sums) in sums.iter_mut().enumerate() {
            for (column, sum) in sums.iter_mut().enumerate() {
                let (partial, magnitude) = (partials[row][column], magnitudes[row][column]);
                sum.partials += partial;
                sum.absolute_partials += partial.abs();
                sum.partial_errors += bound.partial(partial, magnitude);
                sum.magnitudes += magnitude;
            }
        }
    }
    sums.map(|row| {
        row.map(|sum| {
            let error = bound.result(sum.partials, sum.absolute_partials, sum.partial_errors, sum.magnitudes);
            (sum.partials, error)
        })
    })
}

type Block = [[f64; PANEL]; ROWS];

/// The inner loop: sums of products and of their magnitudes over one rank's part of K.
#[inline]
fn multiply_part(rows: &[[f64; ROWS]], panel: &[[f64; PANEL]]) -> (Block, Block) {
    let (mut sums, mut magnitudes) = ([[0.0; PANEL]; ROWS], [[0.0; PANEL]; ROWS]);
    for (x, w) in rows.iter().zip(panel) {
        for row in 0..ROWS {
            for column in 0..PANEL {
                let product = x[row] * w[column];
                sums[row][column] += product;
                magnitudes[row][column] += product.abs();
            }
        }
    }
    (sums, magnitudes)
}
