//! The PTX that the library embeds, as text: what LLVM must not have added, lost or duplicated.

use std::collections::BTreeMap;

use plan::entries::{Entry, entries};
use plan::kernels::{Architecture, KERNELS, KernelSpec, OperandType, Orientation};

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

/// The text of one kernel.
fn body(kernel: &KernelSpec) -> &'static str {
    let (_, rest) = SM_100F.split_once(&format!(".entry {}(", kernel.name)).expect("an entry");
    rest.split(".visible .entry").next().expect("a body")
}

/// Instructions that a warp executes together: one copy too many or too few and part of a warp waits for ever. The
/// number is that of the call sites in the source, counted through the functions that are inlined and the loops that
/// are unrolled.
#[test]
fn collective_instructions_occur_as_often_as_in_the_source() {
    for kernel in KERNELS {
        let pair = usize::from(kernel.cluster == 2);
        let swapped = kernel.orientation == Orientation::Swapped;
        let scales = match kernel.operands {
            OperandType::Bf16 => 0,
            OperandType::Mxfp8 => 1,
        };
        // The loop over the columns of a tile and the iteration that LLVM takes out of it, because the accumulator is
        // released there.
        let drains = if swapped { 1 } else { 2 };
        // The iteration, or the warp that has no rows.
        let releases = if swapped { 1 } else { 2 };
        let expected = BTreeMap::from([
            ("bar.sync 0, 320;", 1 - pair),
            ("barrier.cluster", 2 * pair), // arrival and wait
            ("bar.sync 1, 128;", 1),
            ("bar.sync 2, 128;", 1),
            ("bar.sync 3, 160;", 2), // the epilogue warps and the MMA warp
            // Waits for a tile (reduce-scatter, all-reduce), for the slot and for all ranks; the epilogue's accumulator
            // release, and before and behind its staging; the MMA warp before it frees tensor memory, and behind the wait
            // for the peer.
            ("bar.warp.sync", 4 + releases + 2 * drains + 1 + pair),
            ("elect.sync", 3), // set-up, MMA, TMA
            ("shfl.sync", 2),  // the warp index; the last CTA
            ("tcgen05.alloc", 1),
            ("tcgen05.relinquish_alloc_permit", 1),
            ("tcgen05.dealloc", 1),
            ("tcgen05.ld", drains),
            ("tcgen05.wait::ld", drains), // each right behind its load
            ("tcgen05.mma", 2 * 4),       // a stage is four steps of 32 bytes along K; the first stage stands apart
            ("tcgen05.cp", 2 * scales * (1 + kernel.scale_b_groups() as usize)),
            ("tcgen05.commit", 2 + 1),
            ("tcgen05.fence::before_thread_sync", releases),
            ("tcgen05.fence::after_thread_sync", 2),
            ("cp.async.bulk.tensor.2d.shared", 2 + 2 * scales),
            ("cp.async.bulk.tensor.2d.global", drains),
            ("cp.async.bulk.commit_group", drains),
            ("cp.async.bulk.wait_group.read", drains),
            ("cp.async.bulk.wait_group 0", 1),
            ("fence.proxy.async.shared::cta", drains),
            ("fence.proxy.async.global", 1),
            // A free stage, a full one (twice), an accumulator of either kind; in a pair the loops at the end, unrolled,
            // and the peer.
            ("mbarrier.try_wait", 5 + pair * (kernel.shared.stages as usize + kernel.shared.accumulators as usize + 1)),
            ("mbarrier.arrive", 1 + releases + pair), // the stage's bytes; the epilogue; the peer
            ("fence.mbarrier_init", 1),
        ]);
        let found: BTreeMap<_, _> = expected.keys().map(|&opcode| (opcode, count(body(kernel), opcode))).collect();
        assert_eq!(found, expected, "{}", kernel.name);
        let barriers = count(body(kernel), "bar.") + count(body(kernel), "barrier.");
        let known = [
            "bar.sync 0, 320;",
            "barrier.cluster",
            "bar.sync 1, 128;",
            "bar.sync 2, 128;",
            "bar.sync 3, 160;",
            "bar.warp.sync",
        ];
        assert_eq!(barriers, known.iter().map(|opcode| expected[opcode]).sum::<usize>(), "{}", kernel.name);
    }
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
