//! Mutates PTX texts without end: whatever they say, loading and running them must end with a result or an error, never with
//! a panic, and soon, and in little memory.
//!
//! `cargo run -p gemm-rs-ar-simulator --example fuzz_front_end -- CASES [SEED]`, in the development profile, whose overflow
//! checks are on.

mod allocator;
mod corpus;
mod execute;
#[path = "../h200_vectors/forms.rs"]
#[allow(dead_code)]
mod forms;
#[path = "../h200_vectors/inputs.rs"]
#[allow(dead_code)]
mod inputs;
mod mutate;

use inputs::Random;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// No text of the fuzzer's may take longer than this to load or to run; other processes may slow it down.
const PATIENCE: Duration = Duration::from_secs(5);
/// Module variables alone may take 64 MiB.
const MEMORY_BYTES: usize = 256 << 20;
/// One in so many loaded texts is run.
const RUN_ONE_IN: u64 = 4;
/// One in so many loaded texts is loaded again and compared.
const REPEAT_ONE_IN: u64 = 64;

/// Where the last panic was.
static PANIC: LazyLock<Mutex<String>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Tally {
    cases: u64,
    loaded: u64,
    run: u64,
    ended_well: u64,
    slowest: Duration,
    largest: usize,
    /// Problems by place, with the first text that showed each.
    problems: BTreeMap<String, (u64, String)>,
}

impl Tally {
    fn problem(&mut self, what: String, text: &str) {
        let (count, _) = self.problems.entry(what.clone()).or_insert_with(|| {
            println!("\n=== {what}\n{text}\n===");
            (0, text.to_owned())
        });
        *count += 1;
    }

    fn report(&self, elapsed: Duration) {
        println!(
            "{} cases in {:.0} s ({:.0} a second): {} loaded, {} run, {} to their end; slowest {:.1} ms, largest {:.1} MB, {} problems",
            self.cases,
            elapsed.as_secs_f64(),
            self.cases as f64 / elapsed.as_secs_f64(),
            self.loaded,
            self.run,
            self.ended_well,
            self.slowest.as_secs_f64() * 1e3,
            self.largest as f64 / 1e6,
            self.problems.len(),
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().expect("a number"));
    let cases = arguments.next().unwrap_or(100_000);
    let seed = arguments.next().unwrap_or(1);
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = info.payload_as_str().unwrap_or("").lines().next().unwrap_or("").to_owned();
        *PANIC.lock().expect("the hook does not panic") = format!("panic at {place}: {message}");
    }));

    let corpus = corpus::Corpus::new();
    println!("{} statements", corpus.statements.len());
    let start = Instant::now();
    let mut tally = Tally::default();
    for case in 0..cases {
        let mut random = Random::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(case));
        let text = mutate::text(&corpus, &mut random);
        one(&text, &mut random, &mut tally);
        tally.cases += 1;
        if tally.cases % 200_000 == 0 {
            tally.report(start.elapsed());
        }
    }
    tally.report(start.elapsed());
    for (what, (count, _)) in &tally.problems {
        println!("{count} times: {what}");
    }
    std::process::exit(i32::from(!tally.problems.is_empty()));
}

fn one(text: &str, random: &mut Random, tally: &mut Tally) {
    allocator::restart();
    let begin = Instant::now();
    let result = catch_unwind(|| simulator::ptx::load(text).map_err(|error| error.diagnostic()));
    let Ok(result) = result else {
        let place = PANIC.lock().expect("the hook does not panic").clone();
        return tally.problem(format!("load: {place}"), text);
    };
    bounded(begin, "load", text, tally);
    let Ok(module) = result else { return };
    tally.loaded += 1;
    if random.below(REPEAT_ONE_IN) == 0 {
        let again = simulator::ptx::load(text).map(|module| format!("{module:?}"));
        if again.ok() != Some(format!("{module:?}")) {
            tally.problem("load: not deterministic".into(), text);
        }
    }
    if random.below(RUN_ONE_IN) != 0 {
        return;
    }
    tally.run += 1;
    allocator::restart();
    let begin = Instant::now();
    match catch_unwind(AssertUnwindSafe(|| execute::execute(text, &module, random))) {
        Ok(ended_well) => tally.ended_well += u64::from(ended_well),
        Err(_) => {
            let place = PANIC.lock().expect("the hook does not panic").clone();
            return tally.problem(format!("run: {place}"), text);
        }
    }
    bounded(begin, "run", text, tally);
}

fn bounded(begin: Instant, what: &str, text: &str, tally: &mut Tally) {
    let (elapsed, bytes) = (begin.elapsed(), allocator::peak());
    tally.slowest = tally.slowest.max(elapsed);
    tally.largest = tally.largest.max(bytes);
    if elapsed > PATIENCE {
        tally.problem(format!("{what}: takes long"), text);
    }
    if bytes > MEMORY_BYTES {
        tally.problem(format!("{what}: takes much memory"), text);
    }
}
