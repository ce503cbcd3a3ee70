//! A judge that lets everything pass is none: the kernel is broken in one place after another, in its PTX text, and each
//! time the simulator or the comparison must notice.

mod common;

use std::sync::Arc;

use common::device::{Patch, ScriptedDevice};
use common::operands::Problem;
use common::rank::{Gaps, Rank, node};
use gemm_rs_ar::driver::{Device, Stream};
use gemm_rs_ar::reference::Reference;
use gemm_rs_ar::symmetric::Rendezvous;
use gemm_rs_ar::{GemmRsAr, GemmRsArConfig, Mode};

const RANKS: usize = 4;
/// Large enough for every call here.
const CAPACITY: [u64; 2] = [257, 384];
/// Most seeds that a break may take to show. Those that the simulator's rules name show on the first; those that only
/// a bad schedule brings out may need a few.
const SEEDS: u64 = 12;

/// Calls that are enqueued together. The first two give a CTA three tiles, so that stages and accumulators come round
/// again, and both modes. In the others one rank owns the only row, in slices for each of its CTAs: the rest run ahead of it, and need its
/// credit.
fn calls() -> Vec<(Problem, Reference, Mode)> {
    let shapes = [([257, 384, 576], Mode::AllReduce), ([257, 384, 192], Mode::ReduceScatter)]
        .into_iter()
        .chain(std::iter::once(([1, 384, 64], Mode::AllReduce)))
        .chain(std::iter::repeat_n(([1, 384, 64], Mode::ReduceScatter), 12));
    let problems = shapes.zip(1..).map(|((shape, mode), seed)| {
        let problem = Problem::small_integers(shape, RANKS, seed);
        let reference = problem.reference();
        (problem, reference, mode)
    });
    problems.collect()
}

/// Runs the calls with patched PTX. `Err` says what was noticed.
fn run(calls: &[(Problem, Reference, Mode)], seed: u64, patch: &Patch) -> Result<(), String> {
    let ranks = node(RANKS as u32, seed).run_ranks(|device, rendezvous| -> Result<(), String> {
        let device: Arc<dyn Device> = Arc::new(ScriptedDevice::patching(device, Arc::clone(patch)));
        let config = GemmRsArConfig::new(CAPACITY[0], CAPACITY[1]);
        let gemm = GemmRsAr::new(Arc::clone(&device), &rendezvous, config).map_err(|error| error.to_string())?;
        let rank = Rank { rank: rendezvous.rank() as usize, device, gemm, rendezvous };
        let mut pending = vec![];
        for (problem, _, mode) in calls {
            pending.push(rank.enqueue(problem, *mode, Gaps::default()).map_err(|error| error.to_string())?);
        }
        rank.device.synchronize(Stream::DEFAULT).map_err(|error| error.to_string())?;
        for (index, ((problem, reference, mode), pending)) in calls.iter().zip(&pending).enumerate() {
            let comparison = reference.compare(rank.first_row(problem, *mode), &pending.rows());
            if !comparison.is_within_bound() {
                return Err(format!("call {index}, rank {}: {comparison:?}", rank.rank));
            }
        }
        Ok(())
    });
    ranks.into_iter().collect()
}

/// Replaces the occurrences of `pattern` that `which` names, counted from 0; the text must have exactly `of` of them, so
/// that a break cannot come to nothing unnoticed when the kernel changes.
fn replace(ptx: &str, pattern: &str, of: usize, which: &[usize], replacement: &str) -> String {
    let parts: Vec<&str> = ptx.split(pattern).collect();
    assert_eq!(parts.len() - 1, of, "occurrences of `{pattern}`");
    let mut text = parts[0].to_owned();
    for (index, part) in parts[1..].iter().enumerate() {
        text.push_str(if which.contains(&index) { replacement } else { pattern });
        text.push_str(part);
    }
    text
}

/// A break: its name and what it does to the text.
struct Break {
    name: String,
    patch: Patch,
}

fn swap(name: &str, pattern: &'static str, of: usize, which: &[usize], replacement: &'static str) -> Break {
    let which = which.to_vec();
    Break { name: name.to_owned(), patch: Arc::new(move |ptx| replace(ptx, pattern, of, &which, replacement)) }
}

fn remove(name: &str, pattern: &'static str, of: usize, which: &[usize]) -> Break {
    swap(name, pattern, of, which, "")
}

/// The nth line that contains `pattern` becomes `edit(line)`.
fn edit_line(name: &str, pattern: &'static str, nth: usize, edit: fn(&str) -> String) -> Break {
    let patch = move |ptx: &str| {
        let mut seen = 0;
        let mut lines = vec![];
        for line in ptx.lines() {
            let hit = line.contains(pattern);
            lines.push(if hit && seen == nth { edit(line) } else { line.to_owned() });
            seen += usize::from(hit);
        }
        assert!(seen > nth, "`{pattern}` occurs {seen} times");
        lines.join("\n")
    };
    Break { name: format!("{name} {nth}"), patch: Arc::new(patch) }
}

/// Waits for the other parity: `…, [address], parity; …` with the parity's low bit flipped first.
fn flip_parity(line: &str) -> String {
    let (head, tail) = line.split_once("p, [").expect("a wait's operands");
    let (address, rest) = tail.split_once("], ").expect("a wait's address");
    let (parity, rest) = rest.split_once(';').expect("a wait's parity");
    let head = head.replacen("{ .reg .pred p;", &format!("{{ .reg .pred p; .reg .b32 w; xor.b32 w, {parity}, 1;"), 1);
    format!("{head}p, [{address}], w;{rest}")
}

/// Turns `ld.acquire… d, [a];` into a constant that no ticket is past.
fn pretend_reached(line: &str) -> String {
    let (_, operands) = line.split_once(".u32").expect("a load");
    let (destination, _) = operands.split_once(',').expect("a destination");
    // Half the number space ahead of small tickets, less a margin: at or past each of them.
    format!("mov.u32 {destination}, 0x3fffffff;")
}

fn delete(_: &str) -> String {
    String::new()
}

fn breaks() -> Vec<Break> {
    let mut breaks = vec![
        // Barriers.
        remove("set-up barrier removed", "bar.sync 0, 320;", 1, &[0]),
        remove("epilogue barrier removed", "bar.sync 1, 128;", 1, &[0]),
        remove("communication barrier removed", "bar.sync 2, 128;", 1, &[0]),
        remove("barrier before deallocation removed", "bar.sync 3, 160;", 2, &[0, 1]),
        swap("epilogue barrier one warp short", "bar.sync 1, 128;", 1, &[0], "bar.sync 1, 96;"),
        // Fences.
        remove("mbarrier initialisation fence removed", "fence.mbarrier_init.release.cluster;", 1, &[0]),
        remove("every alias fence removed", "fence.proxy.alias;", 6, &[0, 1, 2, 3, 4, 5]),
        remove("fence before thread sync removed", "tcgen05.fence::before_thread_sync;", 1, &[0]),
        remove("every wait for tensor loads removed", "tcgen05.wait::ld.sync.aligned;", 4, &[0, 1, 2, 3]),
        // Descriptors.
        swap("instruction descriptor: N 64", "136316048", 1, &[0], "135267472"),
        swap("instruction descriptor: M 64", "136316048", 1, &[0], "69207184"),
        swap("instruction descriptor: A is F16", "136316048", 1, &[0], "136315920"),
        swap("instruction descriptor: B is MN-major", "136316048", 1, &[0], "136381584"),
        swap("instruction descriptor: A negated", "136316048", 1, &[0], "136324240"),
        swap("instruction descriptor: F16 accumulator", "136316048", 1, &[0], "136316032"),
        swap("matrix descriptor: no swizzle", "4611756662049472512", 2, &[0, 1], "70643622084608"),
        swap("matrix descriptor: 64-byte swizzle", "4611756662049472512", 2, &[0, 1], "9223442680476860416"),
        swap("matrix descriptor: stride 512", "4611756662049472512", 2, &[0, 1], "4611756524610519040"),
        swap("matrix descriptor: fixed bits zero", "4611756662049472512", 2, &[0, 1], "4611686293305294848"),
        swap("matrix descriptor: a K step too far", "4611756662049472514", 2, &[0], "4611756662049472516"),
    ];
    breaks.push(edit_line("expects half of a stage", "mbarrier.arrive.expect_tx", 0, |line| {
        let (head, _) = line.rsplit_once(',').expect("a byte count");
        format!("{head}, 16384;")
    }));
    breaks.push(edit_line("epilogue's arrival removed", "mbarrier.arrive.shared::cta.b64 _, [", 0, delete));
    for nth in 0..4 {
        breaks.push(edit_line("wrong parity at wait", "mbarrier.try_wait.parity", nth, flip_parity));
        breaks.push(edit_line("polled word not waited for", "ld.acquire.sys.global.u32", nth, pretend_reached));
    }
    for nth in 0..2 {
        breaks.push(edit_line("fence after thread sync removed", "tcgen05.fence::after_thread_sync", nth, delete));
    }
    for nth in 0..2 {
        breaks.push(edit_line("commit removed", "tcgen05.commit", nth, delete));
        breaks.push(edit_line("word not published", "st.release.sys.global.u32", nth, delete));
        breaks.push(edit_line("operand not loaded", "cp.async.bulk.tensor.2d", nth, delete));
    }
    for nth in 0..2 {
        breaks.push(edit_line("release weakened", "st.release.sys", nth, |line| line.replace("release", "relaxed")));
        breaks.push(edit_line("release narrowed", "st.release.sys", nth, |line| line.replace("sys", "gpu")));
    }
    // The fourth acquire puts the other ranks' multicast stores before a copy that follows on the stream, and the simulator
    // does not judge what copies read. That it waits at all is among the breaks above.
    for nth in 0..3 {
        breaks.push(edit_line("acquire weakened", "ld.acquire.sys", nth, |line| line.replace("acquire", "relaxed")));
        breaks.push(edit_line("acquire narrowed", "ld.acquire.sys", nth, |line| line.replace("sys", "gpu")));
    }
    breaks.push(edit_line("count weakened", "atom.add.acq_rel.gpu", 0, |line| line.replace("acq_rel", "relaxed")));
    breaks.push(edit_line("count narrowed", "atom.add.acq_rel.gpu", 0, |line| line.replace("gpu", "cta")));
    breaks.push(edit_line("first MMA of a tile accumulates", "tcgen05.mma", 0, |line| {
        let (head, tail) = line.split_once("setp.ne.b32 p, ").expect("the predicate");
        let (_, tail) = tail.split_once(", 0;").expect("the comparison");
        format!("{head}setp.eq.b32 p, 0, 0;{tail}")
    }));
    breaks.push(edit_line("second MMA of a stage overwrites", "tcgen05.mma", 1, |line| {
        let (head, tail) = line.split_once("setp.ne.b32 p, ").expect("the predicate");
        let (_, tail) = tail.split_once(", 0;").expect("the comparison");
        format!("{head}setp.ne.b32 p, 0, 0;{tail}")
    }));
    breaks
}

#[test]
fn the_kernel_as_it_is_passes() {
    let calls = calls();
    let unchanged: Patch = Arc::new(str::to_owned);
    for seed in 0..SEEDS {
        run(&calls, seed, &unchanged).unwrap_or_else(|noticed| panic!("seed {seed}: {noticed}"));
    }
}

#[test]
fn every_break_is_noticed() {
    let calls = calls();
    let mut unnoticed = vec![];
    for one in breaks() {
        let noticed = (0..SEEDS).find_map(|seed| Some((seed, run(&calls, seed, &one.patch).err()?)));
        match noticed {
            Some((seed, what)) => println!("{} (seed {seed}): {}", one.name, what.lines().next().unwrap_or("")),
            None => unnoticed.push(one.name),
        }
    }
    assert!(unnoticed.is_empty(), "not noticed in {SEEDS} seeds: {unnoticed:#?}");
}
