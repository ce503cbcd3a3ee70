//! The PTX that the library embeds, as text: what LLVM must not have added, lost or duplicated.

use std::collections::BTreeMap;

use plan::entries::{Entry, entries};
use plan::kernels::Architecture;

const SM_100F: &str = include_str!(concat!(env!("GEMM_RS_AR_PTX_DIR"), "/sm_100f.ptx"));

/// The instructions of the text, comments and directives left out.
fn instructions(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.lines()
        .map(|line| line.split("//").next().unwrap_or("").trim())
        .flat_map(|line| line.split_inclusive(';'))
        .map(|text| text.trim().trim_start_matches(['{', '}']).trim())
        .map(|text| match text.strip_prefix('@') {
            Some(guarded) => guarded.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim()),
            None => text,
        })
        .filter(|text| text.ends_with(';') && !text.starts_with('.'))
}

fn count(ptx: &str, opcode: &str) -> usize {
    instructions(ptx).filter(|text| text.starts_with(opcode)).count()
}

#[test]
fn target_and_version_are_as_asked() {
    let (major, minor) = Architecture::Sm100.ptx_version();
    assert!(SM_100F.contains(&format!(".version {major}.{minor}\n")));
    assert!(SM_100F.contains(&format!(".target {}\n", Architecture::Sm100.target())));
}

/// Instructions that a warp executes together: one copy too many or too few and part of a warp waits for ever. The
/// number is that of the call sites in the source, counted through the functions that are inlined.
#[test]
fn collective_instructions_occur_as_often_as_in_the_source() {
    let expected = BTreeMap::from([
        ("bar.sync 0, 320;", 1),
        ("bar.sync 1, 128;", 1),
        ("bar.sync 2, 128;", 1),
        ("bar.sync 3, 160;", 2), // the epilogue warps and the MMA warp
        ("bar.", 5 + 6),         // those, and the bar.warp.sync below: no other barrier
        // Waits for a tile (reduce-scatter, all-reduce), for the slot and for all ranks; the epilogue's accumulator
        // release; the MMA warp before it frees tensor memory.
        ("bar.warp.sync", 6),
        ("elect.sync", 3), // set-up, MMA, TMA
        ("shfl.sync", 2),  // the warp index; the last CTA
        ("tcgen05.alloc", 1),
        ("tcgen05.relinquish_alloc_permit", 1),
        ("tcgen05.dealloc", 1),
        ("tcgen05.ld", 4),       // 128 columns, 32 at a time, unrolled
        ("tcgen05.wait::ld", 4), // each right behind its load
        ("tcgen05.mma", 4),      // a stage is four steps of 16 along K
        ("tcgen05.commit", 2),
        ("tcgen05.fence::before_thread_sync", 1),
        ("tcgen05.fence::after_thread_sync", 2),
        ("cp.async.bulk.tensor", 2),
        ("mbarrier.try_wait", 4),
        ("mbarrier.arrive", 2),
        ("fence.mbarrier_init", 1),
    ]);
    let found: BTreeMap<_, _> = expected.keys().map(|&opcode| (opcode, count(SM_100F, opcode))).collect();
    assert_eq!(found, expected);
}

#[test]
fn there_is_no_panic_path_no_call_and_no_local_memory() {
    for opcode in ["call", "ld.local", "st.local", "trap"] {
        assert_eq!(count(SM_100F, opcode), 0, "{opcode}");
    }
    for text in ["panic", ".func", ".local"] {
        assert!(!SM_100F.contains(text), "{text}");
    }
}

#[test]
fn entries_are_those_of_the_table() {
    let exported: Vec<&str> = SM_100F
        .lines()
        .filter_map(|line| line.strip_prefix(".visible .entry "))
        .map(|rest| rest.trim_end_matches('('))
        .collect();
    let table: Vec<Entry> = entries().collect();
    assert_eq!(exported, table.iter().map(|entry| entry.name).collect::<Vec<_>>());
    for kernel in &table {
        let (_, rest) = SM_100F.split_once(&format!(".entry {}(", kernel.name)).expect("an entry");
        let head = rest.split('{').next().expect("a body");
        assert!(head.contains(&format!(".reqntid {}", kernel.threads)), "{head}");
        for (index, parameter) in kernel.parameters.iter().enumerate() {
            let declaration =
                format!(".align {} .b8 {}_param_{index}[{}]", parameter.align, kernel.name, parameter.bytes);
            assert!(head.contains(&declaration), "{declaration} not in {head}");
        }
    }
}
