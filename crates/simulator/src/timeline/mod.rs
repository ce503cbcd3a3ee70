//! What each CTA's engines did over simulated time, and a picture of it.
//!
//! ```
//! # use std::sync::{Arc, Mutex};
//! # use simulator::{Node, node::NodeConfig, timeline::Timeline};
//! # let mut node = Node::new(NodeConfig::default());
//! let timeline = Arc::new(Mutex::new(Timeline::default()));
//! let told = timeline.clone();
//! node.observe(move |event| told.lock().unwrap().event(event));
//! // Launches and a run come here.
//! let picture = timeline.lock().unwrap().svg("what it shows");
//! assert!(picture.starts_with("<svg"));
//! ```

mod svg;

use std::collections::{BTreeMap, HashMap};

use crate::WaitReason;
use crate::program::{Operation, StateSpace, Tcgen05};
use crate::trace::{AsyncOperation, Event, EventKind, Stage};

/// A row of a CTA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Copies,
    Mma,
    Epilogue,
    Communication,
}

/// What a mark stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    BulkLoad,
    BulkStore,
    AsyncCopy,
    Mma,
    TensorCopy,
    Commit,
    TensorLoad,
    GlobalStore,
    Multimem,
    Poll,
}

impl Mark {
    const ALL: [Mark; 10] = [
        Self::BulkLoad,
        Self::BulkStore,
        Self::AsyncCopy,
        Self::Mma,
        Self::TensorCopy,
        Self::Commit,
        Self::TensorLoad,
        Self::GlobalStore,
        Self::Multimem,
        Self::Poll,
    ];

    fn row(self) -> Row {
        match self {
            Self::BulkLoad | Self::BulkStore | Self::AsyncCopy => Row::Copies,
            Self::Mma | Self::TensorCopy | Self::Commit => Row::Mma,
            Self::TensorLoad | Self::GlobalStore => Row::Epilogue,
            Self::Multimem | Self::Poll => Row::Communication,
        }
    }
}

/// Something that took from one time to another; an instruction takes one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    mark: Mark,
    start: u64,
    end: u64,
}

/// A CTA's life.
#[derive(Debug, Default)]
struct CtaLife {
    first: u64,
    last: u64,
    spans: Vec<Span>,
}

/// GPU, and the CTA's z, y and x, so that CTAs sort as they are numbered.
type CtaKey = (u32, [u32; 3]);
/// A lane group that waits: its CTA, warp and lanes.
type Waiter = (CtaKey, u32, u32);

/// Everything to draw, from the events of a run.
#[derive(Debug, Default)]
pub struct Timeline {
    ctas: BTreeMap<CtaKey, CtaLife>,
    /// Operations under way, by number: when they were issued.
    issued: HashMap<u64, u64>,
    /// Lane groups that poll memory, and since when.
    polling: HashMap<Waiter, u64>,
}

impl Timeline {
    /// Takes notice of an event; for [`Node::observe`](crate::Node::observe).
    pub fn event(&mut self, event: &Event<'_>) {
        let [x, y, z] = event.cta;
        let key = (event.gpu.0, [z, y, x]);
        let time = event.time;
        let life = self.ctas.entry(key).or_insert_with(|| CtaLife { first: time, ..CtaLife::default() });
        life.last = time;
        match event.kind {
            EventKind::Instruction { pc, lanes, .. } if lanes != 0 => {
                let Some(instruction) = event.kernel.instructions.get(pc as usize) else { return };
                let mark = match &instruction.operation {
                    Operation::Tcgen05(Tcgen05::Load { .. }) => Mark::TensorLoad,
                    Operation::Store(store) if store.space == StateSpace::Global => Mark::GlobalStore,
                    Operation::Multimem(_) => Mark::Multimem,
                    _ => return,
                };
                life.spans.push(Span { mark, start: time, end: time + 1 });
            }
            EventKind::Operation { number, stage: Stage::Issued, .. } => {
                self.issued.insert(number, time);
            }
            EventKind::Operation { number, operation, stage: Stage::Completed, .. } => {
                let start = self.issued.remove(&number).unwrap_or(time);
                let (mark, start) = match operation {
                    AsyncOperation::BulkLoad { .. } => (Mark::BulkLoad, start),
                    AsyncOperation::RemoteStore { .. } | AsyncOperation::LaunchCancel => return,
                    AsyncOperation::BulkStore { .. } => (Mark::BulkStore, start),
                    AsyncOperation::AsyncCopy { .. } => (Mark::AsyncCopy, start),
                    AsyncOperation::Mma { .. } => (Mark::Mma, start),
                    AsyncOperation::TensorCopy => (Mark::TensorCopy, start),
                    AsyncOperation::Commit => (Mark::Commit, time),
                };
                life.spans.push(Span { mark, start, end: time + 1 });
            }
            EventKind::WaitBegins { warp, lanes, reason: WaitReason::Poll { .. }, .. } => {
                self.polling.insert((key, warp, lanes), time);
            }
            EventKind::WaitEnds { warp, lanes, .. } => {
                if let Some(start) = self.polling.remove(&(key, warp, lanes)) {
                    life.spans.push(Span { mark: Mark::Poll, start, end: time });
                }
            }
            _ => {}
        }
    }

    /// The picture; `caption` says of what.
    pub fn svg(&self, caption: &str) -> String {
        svg::svg(self, caption)
    }
}
