//! Kernels that Triton compiled, run and compared with a reference in double precision.
//!
//! `fixtures/triton/README.md` says what they are, where they come from, and what the compiler relies on: they run
//! under `OrderingRules::Practised`.

mod fixture;
mod launch;
mod numbers;
mod reference;

use fixture::Fixture;
use numbers::Operands;
use simulator::ptx;
use std::collections::BTreeSet;

/// Seeds of the operands and of the node's choices; each runs with both kinds of operands. `TRITON_SEEDS` asks for more.
const SEEDS: u64 = 3;

/// Runs the fixture and compares every element of its result with the reference.
fn check(stem: &str) {
    let (fixture, text) = fixture::read(stem);
    check_declarations(stem, &fixture, &text);
    let seeds = std::env::var("TRITON_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number of seeds"));
    for seed in 0..seeds {
        for operands in [Operands::Integers, Operands::Fractions] {
            let values = launch::run(&fixture, &text, operands, seed);
            let (name, expected) = reference::expected(&fixture, operands, &values);
            assert_eq!(values[name].len(), expected.len());
            let wrong = values[name].iter().zip(&expected).position(|(&value, expected)| !expected.admits(value));
            if let Some(index) = wrong {
                let (value, expected) = (values[name][index], expected[index]);
                panic!("{stem}, {operands:?}, seed {seed}: {name}[{index}] is {value}, but should be {expected:?}");
            }
        }
    }
}

/// Loads the PTX and compares what it declares with what the launch will pass.
fn check_declarations(stem: &str, fixture: &Fixture, text: &str) {
    let module = ptx::load(text)
        .unwrap_or_else(|_| panic!("{stem}.ptx is refused:\n  {}", fixture::refusals(text).join("\n  ")));
    assert_eq!(module.target, fixture.target);
    let kernel = module.kernels.iter().find(|kernel| kernel.name == fixture.entry).expect("the entry");
    assert_eq!(kernel.required_threads, Some(fixture.block));
    assert_eq!(kernel.required_cluster.unwrap_or([1; 3]), fixture.cluster);
    assert!(kernel.parameters.iter().map(|p| p.bytes).eq(fixture.parameters.iter().map(|p| p.bytes())));
}

macro_rules! fixtures {
    ($($(#[$attribute:meta])* $test:ident: $stem:literal,)*) => {
        $(
            #[test]
            $(#[$attribute])*
            fn $test() {
                check($stem);
            }
        )*
        const STEMS: &[&str] = &[$($stem),*];
    };
}

fixtures! {
    add_on_sm_90: "add.sm_90a",
    add_on_sm_100: "add.sm_100a",
    softmax_on_sm_90: "softmax.sm_90a",
    softmax_on_sm_100: "softmax.sm_100a",
    sum_by_last_on_sm_90: "sum_by_last.sm_90a",
    sum_by_last_on_sm_100: "sum_by_last.sm_100a",
    column_sum_on_sm_90: "column_sum.sm_90a",
    column_sum_on_sm_100: "column_sum.sm_100a",
    matmul_pointers_on_sm_90: "matmul_pointers.sm_90a",
    matmul_pointers_on_sm_100: "matmul_pointers.sm_100a",
    matmul_tensor_maps_on_sm_90: "matmul_tensor_maps.sm_90a",
    matmul_tensor_maps_on_sm_100: "matmul_tensor_maps.sm_100a",
    matmul_cluster_on_sm_90: "matmul_cluster.sm_90a",
    matmul_cluster_on_sm_100: "matmul_cluster.sm_100a",
    matmul_device_maps_on_sm_90: "matmul_device_maps.sm_90a",
    matmul_device_maps_on_sm_100: "matmul_device_maps.sm_100a",
    matmul_persistent_on_sm_90: "matmul_persistent.sm_90a",
    matmul_persistent_on_sm_100: "matmul_persistent.sm_100a",
    matmul_warp_specialized_on_sm_100: "matmul_warp_specialized.sm_100a",
    matmul_twice_on_sm_90: "matmul_twice.sm_90a",
    matmul_twice_on_sm_100: "matmul_twice.sm_100a",
    matmul_mxfp8_on_sm_90: "matmul_mxfp8.sm_90a",
    matmul_mxfp8_on_sm_100: "matmul_mxfp8.sm_100a",
    matmul_mxfp8_atoms_on_sm_100: "matmul_mxfp8_atoms.sm_100a",
    matmul_mxfp8_warp_specialized_on_sm_100: "matmul_mxfp8_warp_specialized.sm_100a",
    matmul_pair_on_sm_100: "matmul_pair.sm_100a",
    matmul_pair_mxfp8_on_sm_100: "matmul_pair_mxfp8.sm_100a",
}

#[test]
fn every_fixture_has_a_test() {
    let files = std::fs::read_dir(fixture::directory()).unwrap().map(|entry| entry.unwrap().path());
    let ptx = files.filter(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    let found: BTreeSet<String> = ptx.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let tested: BTreeSet<String> = STEMS.iter().map(|&stem| stem.to_owned()).collect();
    assert_eq!(found, tested);
}
