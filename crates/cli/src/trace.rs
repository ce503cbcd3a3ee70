//! The text trace of chosen warps and mbarriers.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

use simulator::WaitReason;
use simulator::trace::{AsyncOperation, Event, EventKind, MbarrierChange, Stage, WaitEnd};

use crate::statements::Statements;

/// What is followed, with CTAs by their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    Warp { gpu: u32, cta: [u32; 3], warp: u32 },
    Barrier { gpu: u32, cta: [u32; 3], offset: Option<u32> },
}

/// What an event concerns that may change an mbarrier.
#[derive(Clone, Copy)]
struct Cause {
    gpu: u32,
    cta: [u32; 3],
    warp: u32,
    pc: u32,
    asynchronous: bool,
}

/// Writes a line for each event that somebody follows.
pub struct TextTrace {
    followed: Vec<Followed>,
    statements: Arc<Statements>,
    out: Box<dyn Write + Send>,
    cause: Option<Cause>,
    /// Lane groups that wait for a followed mbarrier, by GPU, CTA, warp and lanes.
    waiting: HashMap<(u32, [u32; 3], u32, u32), u32>,
    /// The first write that failed.
    pub failed: Option<std::io::Error>,
}

impl TextTrace {
    pub fn new(followed: Vec<Followed>, statements: Arc<Statements>, out: Box<dyn Write + Send>) -> Self {
        let mut trace = Self { followed, statements, out, cause: None, waiting: HashMap::new(), failed: None };
        trace.line(format_args!("    time  what                  event"));
        trace
    }

    pub fn event(&mut self, event: &Event<'_>) {
        match event.kind {
            EventKind::Instruction { warp, pc, .. } => self.caused_by(event, warp, pc, false),
            EventKind::Operation { warp, pc, stage: Stage::Completed, .. } => self.caused_by(event, warp, pc, true),
            _ => {}
        }
        for index in 0..self.followed.len() {
            match self.followed[index] {
                Followed::Warp { gpu, cta, warp } if (gpu, cta) == (event.gpu.0, event.cta) => {
                    self.warp_event(event, warp);
                }
                Followed::Barrier { gpu, cta, offset } if (gpu, cta) == (event.gpu.0, event.cta) => {
                    self.barrier_event(event, offset);
                }
                _ => {}
            }
        }
    }

    /// Writes out what is buffered.
    pub fn finish(&mut self) {
        if let Err(error) = self.out.flush() {
            self.failed.get_or_insert(error);
        }
    }

    fn caused_by(&mut self, event: &Event<'_>, warp: u32, pc: u32, asynchronous: bool) {
        self.cause = Some(Cause { gpu: event.gpu.0, cta: event.cta, warp, pc, asynchronous });
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        if self.failed.is_none()
            && let Err(error) = writeln!(self.out, "{line}")
        {
            self.failed = Some(error);
        }
    }

    fn warp_event(&mut self, event: &Event<'_>, followed: u32) {
        let statements = self.statements.clone();
        let at =
            |warp: u32| format!("{:>8}  {:<20}", event.time, format!("warp {}:{}:{warp}", event.gpu.0, Cta(event.cta)));
        match event.kind {
            EventKind::Instruction { warp, pc, lanes } if warp == followed => {
                let (line, text) = statements.get(pc);
                self.line(format_args!("{}  pc {pc:>4}  line {line:>4}  {}  {text}", at(warp), Lanes(lanes)));
            }
            EventKind::WaitBegins { warp, lanes, reason, .. } if warp == followed => {
                self.line(format_args!("{}  lanes {lanes:08x} {reason}", at(warp)));
            }
            EventKind::WaitEnds { warp, lanes, end, .. } if warp == followed => {
                self.line(format_args!("{}  lanes {lanes:08x} {}", at(warp), wait_end(end)));
            }
            EventKind::Operation { warp, pc, number, operation, stage } if warp == followed => {
                let (line, _) = statements.get(pc);
                let (operation, stage) = (Operation(operation), stage_name(stage));
                self.line(format_args!("{}  operation {number}, {operation} of line {line}: {stage}", at(warp)));
            }
            _ => {}
        }
    }

    fn barrier_event(&mut self, event: &Event<'_>, followed: Option<u32>) {
        let at = |offset: u32| {
            format!("{:>8}  {:<20}", event.time, format!("barrier {}:{}:{offset:#x}", event.gpu.0, Cta(event.cta)))
        };
        match event.kind {
            EventKind::Mbarrier { offset, change, state } if followed.is_none_or(|followed| followed == offset) => {
                let change = match change {
                    MbarrierChange::Initialised => format!("initialised for {} arrivals", state.expected),
                    MbarrierChange::Invalidated => "invalidated".to_owned(),
                    MbarrierChange::Arrived { arrivals, expect_bytes: 0 } => format!("{arrivals} arrived"),
                    MbarrierChange::Arrived { arrivals, expect_bytes } => {
                        format!("{arrivals} arrived, {expect_bytes} bytes expected")
                    }
                    MbarrierChange::ArrivedOnTop => "1 arrived on top of those expected".to_owned(),
                    MbarrierChange::Transactions { bytes: bytes @ ..0 } => format!("{} bytes came", -bytes),
                    MbarrierChange::Transactions { bytes } => format!("{bytes} bytes expected"),
                    MbarrierChange::PhaseCompleted => {
                        let completed = state.phase.wrapping_sub(1);
                        self.line(format_args!(
                            "{}  phase {completed} (parity {}) is complete, phase {} begins",
                            at(offset),
                            completed & 1,
                            state.phase
                        ));
                        return;
                    }
                };
                let by = self.cause.map(|cause| self.described(cause)).unwrap_or_default();
                self.line(format_args!(
                    "{}  {change}; phase {}: {} of {} arrivals and {} bytes pending{by}",
                    at(offset),
                    state.phase,
                    state.pending,
                    state.expected,
                    state.transaction_bytes
                ));
            }
            EventKind::WaitBegins { warp, lanes, reason: WaitReason::Mbarrier { offset, phase, .. }, .. }
                if followed.is_none_or(|followed| followed == *offset) =>
            {
                self.waiting.insert((event.gpu.0, event.cta, warp, lanes), *offset);
                self.line(format_args!("{}  warp {warp} lanes {lanes:08x} waits in phase {phase}", at(*offset)));
            }
            EventKind::WaitEnds { warp, lanes, end, .. } => {
                if let Some(offset) = self.waiting.remove(&(event.gpu.0, event.cta, warp, lanes)) {
                    self.line(format_args!("{}  warp {warp} lanes {lanes:08x} {}", at(offset), wait_end(end)));
                }
            }
            _ => {}
        }
    }

    fn described(&self, cause: Cause) -> String {
        let Cause { gpu, cta, warp, pc, asynchronous } = cause;
        let (line, text) = self.statements.get(pc);
        let name = text.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or(text);
        let verb = if asynchronous { "completion of" } else { "by" };
        format!("; {verb} warp {gpu}:{}:{warp} line {line} {}", Cta(cta), name.trim_end_matches(';'))
    }
}

fn wait_end(end: WaitEnd) -> &'static str {
    match end {
        WaitEnd::Changed => "looks again",
        WaitEnd::Complete => "goes on",
        WaitEnd::TimedOut => "looks again, since time has passed and nothing else",
    }
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Issued => "issued",
        Stage::SourceRead => "shared memory was read",
        Stage::Completed => "complete",
    }
}

/// `x,y,z`, or `x` alone where the others are zero.
struct Cta([u32; 3]);

impl fmt::Display for Cta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [x, 0, 0] => write!(f, "{x}"),
            [x, y, z] => write!(f, "{x},{y},{z}"),
        }
    }
}

struct Lanes(u32);

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("no lanes      "),
            lanes => write!(f, "lanes {lanes:08x}"),
        }
    }
}

struct Operation(AsyncOperation);

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            AsyncOperation::BulkLoad { bytes } => write!(f, "bulk load of {bytes} bytes"),
            AsyncOperation::BulkStore { bytes } => write!(f, "bulk store of {bytes} bytes"),
            AsyncOperation::RemoteStore { bytes } => write!(f, "asynchronous store of {bytes} bytes"),
            AsyncOperation::LaunchCancel => f.write_str("cancellation of a cluster"),
            AsyncOperation::AsyncCopy { bytes } => write!(f, "asynchronous copies of {bytes} bytes"),
            AsyncOperation::Mma { macs } => write!(f, "MMA of {macs} multiply-accumulates"),
            AsyncOperation::TensorCopy => f.write_str("copy to tensor memory"),
            AsyncOperation::Commit => f.write_str("commit"),
        }
    }
}
