//! A judge that lets everything pass is none: the kernel is broken in one place after another, in its PTX text, and each
//! time the simulator or the comparison must notice.

mod common;

use std::sync::Arc;

use common::device::{Patch, ScriptedDevice};
use common::operands::{Mxfp8Problem, Problem};
use common::rank::{Gaps, Rank};
use gemm_rs_ar::driver::simulated::{NodeConfig, SimulatedNode};
use gemm_rs_ar::driver::{Device, Stream};
use gemm_rs_ar::reference::Reference;
use gemm_rs_ar::symmetric::Rendezvous;
use gemm_rs_ar::{GemmRsAr, GemmRsArConfig, Mode, SM100_PTX};
use plan::kernels::{KERNELS, KernelSpec, MMA_ROWS, OperandType};

const RANKS: usize = 4;
/// Large enough for every call here.
const CAPACITY: [u64; 2] = [257, 1152];
/// Most seeds that a break may take to show. Those that the simulator's rules name show on the first; those that only
/// a bad schedule brings out may need a few.
const SEEDS: u64 = 12;

/// Calls that are enqueued together. The first two give a CTA three tiles, so that stages and accumulators come round
/// again, and both modes. In the others one rank owns the only row, in slices for several warps of each of its CTAs: the rest run ahead of
/// it, and need its credit.
fn calls(kernel: &KernelSpec) -> Vec<Call> {
    let rows = kernel.max_rows().unwrap_or(257) as usize;
    let columns = if rows < MMA_ROWS as usize { 1152 } else { 384 };
    let shapes = [([rows, columns, 576], Mode::AllReduce), ([rows, columns, 192], Mode::ReduceScatter)]
        .into_iter()
        .chain(std::iter::once(([1, 1152, 64], Mode::AllReduce)))
        .chain(std::iter::repeat_n(([1, 1152, 64], Mode::ReduceScatter), 12));
    let problems = shapes.zip(1..).map(|((shape, mode), seed)| {
        let [m, n, k] = shape;
        let shape = [m, n, k.next_multiple_of(kernel.tile.k as usize)];
        let problem = Problem::small_integers(shape, RANKS, seed);
        match kernel.operands {
            OperandType::Bf16 => Call { mode, reference: problem.reference(), operands: Operands::Bf16(problem) },
            OperandType::Mxfp8 => {
                let problem = Mxfp8Problem::new(&problem);
                Call { mode, reference: problem.reference(), operands: Operands::Mxfp8(problem) }
            }
        }
    });
    problems.collect()
}

/// One call of all ranks.
struct Call {
    mode: Mode,
    operands: Operands,
    reference: Reference,
}

enum Operands {
    Bf16(Problem),
    Mxfp8(Mxfp8Problem),
}

/// Runs the calls on one kernel with patched PTX. `Err` says what was noticed.
fn run(kernel: &'static str, calls: &[Call], seed: u64, patch: &Patch) -> Result<(), String> {
    // Enough SMs for several clusters, few enough that a CTA takes several tiles.
    let sms_per_gpu = 2 * spec(kernel).cluster + 1;
    let node = SimulatedNode::new(NodeConfig { gpus: RANKS as u32, sms_per_gpu, seed, ..NodeConfig::default() });
    let ranks = node.run_ranks(|device, rendezvous| -> Result<(), String> {
        let device: Arc<dyn Device> = Arc::new(ScriptedDevice::patching(device, Arc::clone(patch)));
        let config = GemmRsArConfig { kernel: Some(kernel), ..GemmRsArConfig::new(CAPACITY[0], CAPACITY[1]) };
        // A module that does not load would be noticed for the wrong reason.
        let gemm = GemmRsAr::new(Arc::clone(&device), &rendezvous, config).unwrap_or_else(|error| panic!("{error}"));
        let rank = Rank { rank: rendezvous.rank() as usize, device, gemm, rendezvous };
        let mut pending = vec![];
        for call in calls {
            let enqueued = match &call.operands {
                Operands::Bf16(problem) => rank.enqueue(problem, call.mode, Gaps::default()),
                Operands::Mxfp8(problem) => rank.enqueue_mxfp8(problem, call.mode),
            };
            pending.push(enqueued.map_err(|error| error.to_string())?);
        }
        rank.device.synchronize(Stream::DEFAULT).map_err(|error| error.to_string())?;
        for (index, (call, pending)) in calls.iter().zip(&pending).enumerate() {
            let first_row = match call.mode {
                Mode::ReduceScatter => rank.rank * call.reference.rows().div_ceil(RANKS),
                Mode::AllReduce => 0,
            };
            let comparison = call.reference.compare(first_row, &pending.rows());
            if !comparison.is_within_bound() {
                return Err(format!("call {index}, rank {}: {comparison:?}", rank.rank));
            }
        }
        Ok(())
    });
    ranks.into_iter().collect()
}

/// What is done to the text of one kernel.
type Edit = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Applies an edit to one kernel of the module.
fn patch(kernel: &'static str, edit: Edit) -> Patch {
    Arc::new(move |ptx| {
        let start = ptx.find(&format!(".entry {kernel}(")).expect("an entry");
        let end = ptx[start..].find(".visible .entry").map_or(ptx.len(), |length| start + length);
        let edited = edit(&ptx[start..end]);
        assert_ne!(edited, ptx[start..end], "an edit that changes nothing");
        [&ptx[..start], &edited, "\n", &ptx[end..]].concat()
    })
}

/// A break: its name and what it does to the text.
struct Break {
    name: String,
    edit: Edit,
}

/// Every occurrence of `pattern` becomes `replacement`.
fn swap(name: &str, pattern: impl Into<String>, replacement: impl Into<String>) -> Break {
    let (pattern, replacement) = (pattern.into(), replacement.into());
    Break { name: name.to_owned(), edit: Arc::new(move |ptx| ptx.replace(&pattern, &replacement)) }
}

/// Every line that contains `pattern` goes.
fn remove(name: &str, pattern: &'static str) -> Break {
    let keep = move |ptx: &str| ptx.lines().filter(|line| !line.contains(pattern)).collect::<Vec<_>>().join("\n");
    Break { name: name.to_owned(), edit: Arc::new(keep) }
}

/// The nth line that contains `pattern` becomes `change(line)`.
fn edit_line(name: &str, pattern: &'static str, nth: usize, change: fn(&str) -> String) -> Break {
    let edit = move |ptx: &str| {
        let mut seen = 0;
        let mut lines = vec![];
        for line in ptx.lines() {
            let hit = line.contains(pattern);
            lines.push(if hit && seen == nth { change(line) } else { line.to_owned() });
            seen += usize::from(hit);
        }
        assert!(seen > nth, "`{pattern}` occurs {seen} times");
        lines.join("\n")
    };
    Break { name: format!("{name} {nth}"), edit: Arc::new(edit) }
}

/// Each line of the kernel that contains `pattern`, one after the other.
fn each_line(kernel: &KernelSpec, name: &str, pattern: &'static str, change: fn(&str) -> String) -> Vec<Break> {
    let lines = body(kernel).lines().filter(|line| line.contains(pattern)).count();
    assert_ne!(lines, 0, "`{pattern}` in {}", kernel.name);
    (0..lines).map(|nth| edit_line(name, pattern, nth, change)).collect()
}

/// The text of one kernel.
fn body(kernel: &KernelSpec) -> &'static str {
    let (_, rest) = SM100_PTX.split_once(&format!(".entry {}(", kernel.name)).expect("an entry");
    rest.split(".visible .entry").next().expect("a body")
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

/// Sets an MMA's predicate, which says whether it accumulates.
fn with_predicate(line: &str, comparison: &str) -> String {
    let (head, tail) = line.split_once("setp.ne.b32 p, ").expect("the predicate");
    let (_, tail) = tail.split_once(", 0;").expect("the comparison");
    format!("{head}setp.{comparison}.b32 p, 0, 0;{tail}")
}

fn accumulates(line: &str) -> String {
    with_predicate(line, "eq")
}

fn overwrites(line: &str) -> String {
    with_predicate(line, "ne")
}

fn half_the_bytes(line: &str) -> String {
    let (head, bytes) = line.rsplit_once(',').expect("a byte count");
    let bytes = bytes.trim().trim_end_matches(';');
    format!("{{ .reg .b32 h; shr.b32 h, {bytes}, 1; {head}, h; }}")
}

fn relaxed(line: &str) -> String {
    line.replace("acq_rel", "relaxed").replace("release", "relaxed").replace("acquire", "relaxed")
}

fn narrowed(line: &str) -> String {
    line.replace(".gpu", ".cta").replace(".sys", ".gpu")
}

fn breaks(kernel: &KernelSpec) -> Vec<Break> {
    let mut breaks = vec![
        // Barriers.
        remove("epilogue barrier removed", "bar.sync 1, 128;"),
        remove("communication barrier removed", "bar.sync 2, 128;"),
        remove("barrier before deallocation removed", "bar.sync 3, 160;"),
        swap("epilogue barrier one warp short", "bar.sync 1, 128;", "bar.sync 1, 96;"),
        // Fences.
        remove("mbarrier initialisation fence removed", "fence.mbarrier_init.release.cluster;"),
        remove("every alias fence removed", "fence.proxy.alias;"),
        remove("every fence before thread sync removed", "tcgen05.fence::before_thread_sync;"),
        remove("every wait for tensor loads removed", "tcgen05.wait::ld.sync.aligned;"),
        remove("staged rows not made visible", "fence.proxy.async.shared::cta;"),
        remove("staging buffers not waited for", "cp.async.bulk.wait_group.read"),
        remove("stores not waited for", "cp.async.bulk.wait_group 0;"),
        remove("nothing stored", "cp.async.bulk.tensor.2d.global"),
        remove(SLOT_FENCE, "fence.proxy.async.global;"),
    ];
    // Descriptors.
    let instruction = kernel.instruction_descriptor(0);
    let rows = kernel.cluster * MMA_ROWS;
    for (name, flipped) in [
        ("instruction descriptor: half of M", ((rows >> 4) ^ (rows >> 5)) << 24),
        ("instruction descriptor: A has another type", 1 << 7),
        ("instruction descriptor: B is MN-major", 1 << 16),
        ("instruction descriptor: A negated", 1 << 13),
        (
            "instruction descriptor: other scales or accumulator",
            1 << if kernel.shared.scale_a_bytes == 0 { 4 } else { 23 },
        ),
    ] {
        breaks.push(swap(name, instruction.to_string(), (instruction ^ flipped).to_string()));
    }
    let matrix = "4611756662049472512";
    breaks.extend([
        swap("matrix descriptors: no swizzle", matrix, "70643622084608"),
        swap("matrix descriptors: 64-byte swizzle", matrix, "9223442680476860416"),
        swap("matrix descriptors: stride 512", matrix, "4611756524610519040"),
        swap("matrix descriptors: fixed bits zero", matrix, "4611686293305294848"),
    ]);
    let mut each = |name, pattern, change| breaks.extend(each_line(kernel, name, pattern, change));
    each("expects half of a stage", "mbarrier.arrive.expect_tx", half_the_bytes);
    each("wrong parity at wait", "mbarrier.try_wait.parity", flip_parity);
    each("polled word not waited for", "ld.acquire.sys.global.u32", pretend_reached);
    each("fence after thread sync removed", "tcgen05.fence::after_thread_sync", delete);
    each("commit removed", "tcgen05.commit", delete);
    each("word not published", "st.release.sys.global.u32", delete);
    each("operand not loaded", "cp.async.bulk.tensor.2d.shared", delete);
    each("release weakened", "st.release.sys", relaxed);
    each("release narrowed", "st.release.sys", narrowed);
    each("acquire weakened", "ld.acquire.sys", relaxed);
    each("acquire narrowed", "ld.acquire.sys", narrowed);
    each("count weakened", "atom.add.acq_rel.gpu", relaxed);
    each("count narrowed", "atom.add.acq_rel.gpu", narrowed);
    each("MMA removed", "tcgen05.mma", delete);
    for nth in 0..8 {
        let (name, change): (_, fn(&str) -> String) =
            if nth == 0 { ("first MMA of a tile accumulates", accumulates) } else { ("MMA overwrites", overwrites) };
        breaks.push(edit_line(name, "tcgen05.mma", nth, change));
    }
    if kernel.cluster == 1 {
        breaks.push(remove("set-up barrier removed", "bar.sync 0, 320;"));
        breaks.extend(each_line(kernel, "epilogue's arrival removed", "mbarrier.arrive.shared::cta.b64 _, [", delete));
    } else {
        breaks.extend([remove("set-up barrier removed", "barrier.cluster")]);
        breaks.extend(each_line(kernel, "mapped to the wrong CTA", "mapa.shared::cluster.u32", |line| {
            let (head, rank) = line.rsplit_once(',').expect("a rank");
            let rank = rank.trim().trim_end_matches(';');
            format!("{{ .reg .b32 other; xor.b32 other, {rank}, 1; {head}, other; }}")
        }));
        breaks.extend(each_line(kernel, "commit arrives in one CTA only", "multicast::cluster.b64", |line| {
            let (head, mask) = line.rsplit_once(',').expect("a mask");
            let mask = mask.trim().trim_end_matches(';');
            format!("{{ .reg .b16 one; and.b16 one, {mask}, 1; {head}, one; }}")
        }));
        breaks.extend(each_line(kernel, "arrival at the peer removed", "mbarrier.arrive.release.cluster", delete));
        breaks.extend(each_line(kernel, "arrival at the peer weakened", "mbarrier.arrive.release.cluster", relaxed));
        breaks.extend(each_line(
            kernel,
            "wait for the peer weakened",
            "mbarrier.try_wait.parity.acquire.cluster",
            relaxed,
        ));
    }
    if kernel.shared.scale_a_bytes != 0 {
        breaks.extend(each_line(kernel, "scales not copied", "tcgen05.cp", delete));
    }
    breaks
}

/// Breaks that nothing has to notice.
fn excuse(kernel: &KernelSpec, name: &str) -> Option<&'static str> {
    let excuses: &[(&str, u32, &str)] = &[
        ("acquire weakened 3", 1, "a copy that follows on the stream reads what it orders, and that is not judged"),
        ("acquire narrowed 3", 1, "as weakened"),
        ("acquire weakened 3", 2, "as alone"),
        ("acquire narrowed 3", 2, "as alone"),
        ("barrier before deallocation removed", 2, "the even CTA has waited for every accumulator of both"),
        (
            "mapped to the wrong CTA 1",
            2,
            "both CTAs have drained their accumulators and seen every commit before they free",
        ),
        (
            "arrival at the peer weakened 0",
            2,
            "tcgen05.fence orders tensor memory with any arrival, and nothing else is passed",
        ),
        ("arrival at the peer weakened 1", 2, "as 0"),
        ("arrival at the peer weakened 2", 2, "nothing is passed"),
        ("wait for the peer weakened 0", 2, "as the arrivals"),
        ("wait for the peer weakened 1", 2, "as the arrivals"),
        ("wait for the peer weakened 2", 2, "as the arrivals"),
        ("wait for the peer weakened 3", 2, "as the arrivals"),
        (SLOT_FENCE, 1, "which proxy overwrites what others have read is not judged"),
        (SLOT_FENCE, 2, "as alone"),
    ];
    excuses.iter().find(|(excused, cluster, _)| *excused == name && *cluster == kernel.cluster).map(|(.., why)| *why)
}

const SLOT_FENCE: &str = "stores not ordered behind the wait for the slot";

fn spec(name: &str) -> &'static KernelSpec {
    KERNELS.iter().find(|kernel| kernel.name == name).expect("a kernel of the table")
}

fn the_kernel_as_it_is_passes(name: &'static str) {
    let calls = calls(spec(name));
    let unchanged: Patch = Arc::new(str::to_owned);
    for seed in 0..SEEDS {
        run(name, &calls, seed, &unchanged).unwrap_or_else(|noticed| panic!("{name}, seed {seed}: {noticed}"));
    }
}

fn every_break_is_noticed(name: &'static str) {
    let mut unnoticed = vec![];
    let kernel = spec(name);
    let calls = calls(kernel);
    for one in breaks(kernel) {
        if let Some(why) = excuse(kernel, &one.name) {
            println!("{name}: {}: excused, {why}", one.name);
            continue;
        }
        let patch = patch(kernel.name, one.edit);
        let noticed = (0..SEEDS).find_map(|seed| Some((seed, run(name, &calls, seed, &patch).err()?)));
        match noticed {
            Some((seed, what)) => println!("{name}: {} (seed {seed}): {}", one.name, what.lines().next().unwrap_or("")),
            None => unnoticed.push(one.name),
        }
    }
    assert!(unnoticed.is_empty(), "{name}: not noticed in {SEEDS} seeds: {unnoticed:#?}");
}

/// One kernel of each kind.
macro_rules! broken_kernels {
    ($($name:ident)*) => {$(
        mod $name {
            #[test]
            fn passes_as_it_is() {
                super::the_kernel_as_it_is_passes(stringify!($name));
            }

            #[test]
            fn every_break_is_noticed() {
                super::every_break_is_noticed(stringify!($name));
            }
        }
    )*};
}

broken_kernels! { gemm_bf16_128x128 gemm_bf16_pair_128x256 gemm_bf16_swapped_64x128 gemm_mxfp8_pair_128x256 }
