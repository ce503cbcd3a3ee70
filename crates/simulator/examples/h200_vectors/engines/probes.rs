//! Sums made to show how a tensor core adds: how far below the largest product it keeps bits, whether it drops or rounds the
//! rest, and which products and accumulators it aligns with each other.
//!
//! A row of A chooses the distance in powers of two between a large product and a small one, a column of B what is added.
//! The small product is `q` units; the result, less what is large in it, is read in units.

use super::element::{Accumulator, Element, Matrix, Values};
use super::fragments::places_of_d;
use super::{Case, Class, mma, wgmma};

/// What a column adds, where L is the large product and s the small unit.
pub const COLUMNS: [&str; 8] =
    ["L + qs", "L + s + s + ...", "L - L + qs", "L - L - qs", "C(L) - L + qs", "C(L) + qs", "C(qs) + L - L", "-L + qs"];

/// Units of the small product in most columns: as many bits as every format has.
const Q: f64 = 1.75;

/// How to read the elements of D, in their order.
pub struct Key {
    /// Probes that differ only in which places of K the products have.
    pub group: String,
    /// What is large in the result.
    pub base: Vec<f64>,
    /// The small unit.
    pub unit: Vec<f64>,
    /// Powers of two between; negative where nothing is computed.
    pub distance: Vec<f64>,
    /// Column.
    pub column: Vec<f64>,
}

struct Probe {
    a: Matrix,
    b: Matrix,
    c: Vec<u32>,
    key: Key,
}

/// Places along K of the large product, the one that cancels it, and the small one; whether the small one's B is smaller, too.
fn probe(
    element: Element,
    accumulator: Accumulator,
    k: usize,
    (large, minus, small): (usize, usize, usize),
    far: bool,
    group: String,
) -> Probe {
    let (low, high) = element.exponents();
    // As far apart as the exponents of B allow, with two bits of fraction below the small one.
    let apart = if far { (high - 2).min(-low - 3).min(24) } else { 0 };
    let (b_large, b_small) = (f64::from(apart - apart / 2).exp2(), f64::from(-(apart / 2)).exp2());
    let mut a = Matrix::zero(element, mma::ROWS, k);
    let mut b = Matrix::zero(element, mma::COLUMNS, k);
    for (column, signs) in [
        (1.0, 0.0, Q),
        (1.0, 0.0, 1.0),
        (1.0, -1.0, Q),
        (1.0, -1.0, -Q),
        (0.0, -1.0, Q),
        (0.0, 0.0, Q),
        (1.0, -1.0, 0.0),
        (-1.0, 0.0, Q),
    ]
    .into_iter()
    .enumerate()
    {
        b.set(column, large, signs.0 * b_large);
        b.set(column, minus, signs.1 * b_large);
        for place in (0..k).filter(|&place| place != large && place != minus) {
            if place == small || column == 1 {
                b.set(column, place, signs.2 * b_small);
            }
        }
    }
    let mut rows = Vec::new();
    for row in 0..mma::ROWS {
        let small_exponent = (-(row as i32)).max(low);
        let large_exponent = row as i32 + small_exponent;
        if large_exponent > high {
            rows.push(None);
            continue;
        }
        let (large_value, small_value) = (f64::from(large_exponent).exp2(), f64::from(small_exponent).exp2());
        for place in 0..k {
            a.set(row, place, if place == large || place == minus { large_value } else { small_value });
        }
        rows.push(Some((large_value * b_large, small_value * b_small, row as i32 + apart)));
    }
    let (mut c, mut key) =
        (Vec::new(), Key { group, base: Vec::new(), unit: Vec::new(), distance: Vec::new(), column: Vec::new() });
    for (row, column) in places_of_d(mma::THREADS, mma::COLUMNS) {
        let (large, unit, distance) = rows[row].unwrap_or((0.0, 0.0, -1));
        c.push(accumulator.encode(match column {
            4 | 5 => large,
            6 => Q * unit,
            _ => 0.0,
        }));
        key.base.push(match column {
            0 | 1 | 5 => large,
            7 => -large,
            _ => 0.0,
        });
        key.unit.push(unit);
        key.distance.push(distance.into());
        key.column.push(column as f64);
    }
    Probe { a, b, c, key }
}

/// Places of the three products among `k`.
fn places(k: usize) -> Vec<(usize, usize, usize)> {
    let mut places = vec![(0, 1, 2), (0, 1, k - 1), (0, k - 1, 1), (0, k / 2, 1), (0, 1, k / 2), (k - 2, k - 1, 0)];
    places.retain(|&(large, minus, small)| large != small && minus != small && large != minus);
    places.sort_unstable();
    places.dedup();
    places
}

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let fars = |element: Element| if element.bytes() == 1 { vec![false, true] } else { vec![false] };
    for form in mma::floating() {
        if form.a != form.b || form.k == 4 {
            continue;
        }
        for far in fars(form.a) {
            let group = format!("{}{}", form.name(), if far { ", far" } else { "" });
            for places in places(form.k) {
                let Probe { a, b, c, key } = probe(form.a, form.accumulator, form.k, places, far, group.clone());
                cases.push(form.case(format!("{group} {places:?}"), &a, &b, &c, Class::Probe(key)));
            }
        }
    }
    for (element, accumulator) in wgmma::FLOATING {
        let layout = wgmma::k_major(32);
        let form = wgmma::Form {
            a_layout: Some(layout),
            b_layout: layout,
            steps: 1,
            ..wgmma::Form::new(mma::COLUMNS, accumulator, element)
        };
        for far in fars(element) {
            let name = form.name();
            let group = format!("{}{}", name.split(' ').next().unwrap_or(&name), if far { ", far" } else { "" });
            for places in places(form.k()) {
                let Probe { a, b, c, key } = probe(element, accumulator, form.k(), places, far, group.clone());
                cases.push(form.case(format!("{group} {places:?}"), &a, &b, &c, Class::Probe(key)));
            }
        }
    }
    cases
}

/// What is not known of sums: results and operands below the normal numbers, and sums beyond the largest.
pub fn limits() -> Vec<Case> {
    let mut cases = Vec::new();
    for values in [Values::Tiny, Values::Huge] {
        for element in [Element::Bf16, Element::Tf32] {
            let k = 16 / element.bytes() * 2;
            let accumulator = Accumulator::F32;
            cases.push(mma::Form { k, accumulator, a: element, b: element, saturate: false }.random(values));
            cases.push(wgmma::Form { steps: 1, ..wgmma::Form::new(64, accumulator, element) }.random(values));
        }
    }
    cases
}
