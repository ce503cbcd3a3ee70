//! How the threads hold A, B, C and D (PTX ISA, "Matrix Fragments for mma.m16n8k8" to "m16n8k32", and "Register Fragments" of
//! wgmma, which are those of four warps with 16 rows each), and what a product should be.

use super::Class;
use super::element::{Accumulator, Matrix};

/// Registers of A, 16 rows to a warp: `count` of each thread.
pub fn fragments_of_a(a: &Matrix, threads: usize, first_k: usize, count: usize) -> Vec<u32> {
    let per = 4 / a.element.bytes();
    let mut words = Vec::new();
    for thread in 0..threads {
        let (group, member) = (thread % 32 / 4, thread % 4);
        for register in 0..count {
            let row = thread / 32 * 16 + group + 8 * (register % 2);
            words.push(a.register(row, first_k + (4 * (register / 2) + member) * per));
        }
    }
    words
}

/// Registers of B, in each warp the eight columns from `first_column` on.
pub fn fragments_of_b(b: &Matrix, threads: usize, first_column: usize, count: usize) -> Vec<u32> {
    let per = 4 / b.element.bytes();
    let mut words = Vec::new();
    for thread in 0..threads {
        for register in 0..count {
            words.push(b.register(first_column + thread % 32 / 4, (4 * register + thread % 4) * per));
        }
    }
    words
}

/// Row and column of the elements of D, thread after thread.
pub fn places_of_d(threads: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..threads).flat_map(move |thread| {
        (0..columns / 2).map(move |i| {
            let row = thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2 % 2);
            (row, i / 4 * 8 + thread % 4 * 2 + i % 2)
        })
    })
}

/// Elements of C or D in registers.
pub fn packed(accumulator: Accumulator, elements: &[u32]) -> Vec<u32> {
    match accumulator {
        Accumulator::F16 => elements.chunks(2).map(|pair| pair[0] | pair[1] << 16).collect(),
        _ => elements.to_vec(),
    }
}

/// The sum in double precision, and that of the magnitudes, for each element of D in the order of `places`.
pub fn inexact(
    (a, b): (&Matrix, &Matrix),
    sign: f64,
    accumulator: Accumulator,
    c: &[u32],
    places: impl Iterator<Item = (usize, usize)>,
) -> Class {
    let (mut exact, mut bound) = (Vec::new(), Vec::new());
    for ((row, column), &c) in places.zip(c) {
        let c = accumulator.decode(c);
        let products = (0..a.k).map(|k| sign * a.value(row, k) * b.value(column, k));
        exact.push(c + products.clone().sum::<f64>());
        bound.push(c.abs() + products.map(f64::abs).sum::<f64>());
    }
    Class::Inexact { exact, bound }
}

/// `{%d0, %d1, …}`
pub fn list(prefix: &str, first: usize, count: usize) -> String {
    let names: Vec<String> = (first..first + count).map(|r| format!("%{prefix}{r}")).collect();
    format!("{{{}}}", names.join(", "))
}
