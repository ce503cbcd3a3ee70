//! The results in double precision, each with a bound on how far the kernel's may be away.
//!
//! Products of two operands are exact in f64, and the error of f64 sums of this length is far below the bounds. What the
//! bounds allow is the kernel's own rounding, to first order in the units below (which overestimate: they allow
//! truncation, and one rounding for every term however the terms are grouped).

use crate::fixture::{Computation, Fixture, ScaleLayout};
use crate::launch::Values;
use crate::numbers::Operands;
use half::bf16;

/// Rounding an f32, whether to nearest or towards zero, moves it by at most this part of it.
const F32_UNIT: f64 = 1.0 / (1 << 23) as f64;
/// Rounding to nearest BF16 moves a number by at most this part of it.
const BF16_UNIT: f64 = 1.0 / (1 << 8) as f64;

/// A number that the kernel should have come close to.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    pub value: f64,
    pub bound: f64,
}

impl Expected {
    fn exact(value: f64) -> Self {
        Self { value, bound: 0.0 }
    }

    /// After rounding to BF16; an exact number is rounded to the very BF16.
    fn rounded(self) -> Self {
        if self.bound == 0.0 {
            return Self::exact(bf16::from_f64(self.value).to_f64());
        }
        Self { bound: self.bound + BF16_UNIT * (self.value.abs() + self.bound), ..self }
    }

    pub fn admits(self, value: f64) -> bool {
        (value - self.value).abs() <= self.bound
    }
}

/// The name of the buffer with the result, and what it should hold.
pub fn expected(fixture: &Fixture, operands: Operands, values: &Values) -> (&'static str, Vec<Expected>) {
    let exact = operands == Operands::Integers;
    match fixture.computes {
        Computation::Add => ("out", add(&values["left"], &values["right"])),
        Computation::Softmax => ("out", softmax(&values["scores"], columns(fixture, "scores"))),
        Computation::Sum => ("out", vec![sum(values["values"].iter().copied(), exact)]),
        Computation::ColumnSum => ("out", column_sum(&values["values"], columns(fixture, "values"), exact)),
        Computation::Matmul { m, n, k, scales } => {
            let [a, b] = ["a", "b"].map(|name| scaled(name, k, scales, values));
            let product = multiply([m, n, k], &certain(&a), &b, exact);
            ("c", product.into_iter().map(Expected::rounded).collect())
        }
        Computation::MatmulTwice { m, n, k } => {
            let first = multiply([m, n, k], &certain(&values["a"]), &values["b"], exact);
            let first: Vec<_> = first.into_iter().map(Expected::rounded).collect();
            let second = multiply([m, n, n], &first, &values["d"], exact);
            ("c", second.into_iter().map(Expected::rounded).collect())
        }
    }
}

/// The innermost extent of a buffer.
fn columns(fixture: &Fixture, name: &str) -> usize {
    let buffer = fixture.buffers.iter().find(|buffer| buffer.name == name).expect("the operation names it");
    *buffer.shape.last().expect("a buffer has a dimension")
}

fn certain(values: &[f64]) -> Vec<Expected> {
    values.iter().copied().map(Expected::exact).collect()
}

/// IEEE addition has one right answer.
fn add(left: &[f64], right: &[f64]) -> Vec<Expected> {
    left.iter().zip(right).map(|(left, right)| Expected::exact(f64::from((left + right) as f32))).collect()
}

fn sum(terms: impl Iterator<Item = f64>, exact: bool) -> Expected {
    let (value, magnitude, count) = terms
        .fold((0.0, 0.0, 0), |(value, magnitude, count), term: f64| (value + term, magnitude + term.abs(), count + 1));
    Expected { value, bound: if exact { 0.0 } else { f64::from(count) * F32_UNIT * magnitude } }
}

fn column_sum(values: &[f64], columns: usize, exact: bool) -> Vec<Expected> {
    (0..columns).map(|column| sum(values[column..].iter().copied().step_by(columns), exact)).collect()
}

/// A term is 2^(d log2 e) with d the distance to the row's maximum. Relative to the exact term, its error is that of
/// the exponent times ln 2 (three roundings: the subtraction, the constant log2 e, the multiplication) and that of
/// `ex2.approx`, 2 units. The sum of the row adds one unit for each term, `div.full` 2 units.
fn softmax(scores: &[f64], columns: usize) -> Vec<Expected> {
    let rows = scores.chunks_exact(columns).map(|row| {
        let maximum = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = row.iter().map(|score| (score - maximum).exp()).sum();
        let range = row.iter().map(|score| maximum - score).fold(0.0, f64::max);
        let term_error = (3.0 * range + 2.0) * F32_UNIT;
        let error = 2.0 * term_error + (columns + 2) as f64 * F32_UNIT;
        row.iter().map(move |score| {
            let value = (score - maximum).exp() / total;
            Expected { value, bound: error * value }
        })
    });
    rows.flatten().collect()
}

/// The operand times its scales, which are powers of two.
fn scaled(name: &str, k: usize, layout: Option<ScaleLayout>, values: &Values) -> Vec<f64> {
    let elements = &values[name];
    let Some(layout) = layout else {
        return elements.clone();
    };
    let scales = &values[&format!("{name}_scale")];
    let groups = k / 32;
    let scale = |row: usize, group: usize| match layout {
        ScaleLayout::Rows => scales[row * groups + group],
        ScaleLayout::Atoms => {
            let atom = row / 128 * (groups / 4) + group / 4;
            scales[atom * 512 + row % 32 * 16 + row / 32 % 4 * 4 + group % 4]
        }
    };
    elements.iter().enumerate().map(|(index, element)| element * scale(index / k, index % k / 32)).collect()
}

/// A (m x k) times the transpose of B (n x k). What is not certain about A is carried through, and every one of the k
/// additions may round at the magnitude that the partial sum can have.
fn multiply([m, n, k]: [usize; 3], a: &[Expected], b: &[f64], exact: bool) -> Vec<Expected> {
    assert_eq!((a.len(), b.len()), (m * k, n * k));
    let magnitudes: Vec<f64> = a.iter().map(|a| a.value.abs() + a.bound).collect();
    let product = |row: usize, column: usize| {
        let range = row * k..(row + 1) * k;
        let (mut value, mut carried, mut magnitude) = (0.0, 0.0, 0.0);
        for ((a, size), b) in a[range.clone()].iter().zip(&magnitudes[range]).zip(&b[column * k..][..k]) {
            value += a.value * b;
            carried += a.bound * b.abs();
            magnitude += size * b.abs();
        }
        Expected { value, bound: if exact { 0.0 } else { carried + k as f64 * F32_UNIT * magnitude } }
    };
    (0..m).flat_map(|row| (0..n).map(move |column| (row, column))).map(|(row, column)| product(row, column)).collect()
}
