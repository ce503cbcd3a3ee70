//! What an observer of a run is told: instructions, waits, mbarriers and asynchronous operations, in simulated order.
//!
//! Without an observer none of it is computed. [`Node::observe`] sets one:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use simulator::Node;
//! use simulator::node::{GpuId, LaunchConfig, NodeConfig};
//! use simulator::trace::EventKind;
//!
//! let mut node = Node::new(NodeConfig::default());
//! let ptx = ".version 8.8 .target sm_100a .address_size 64 .visible .entry k() { bar.sync 0; exit; }";
//! let module = node.load_module(ptx)?;
//! let issued = Arc::new(Mutex::new(0));
//! let seen = issued.clone();
//! node.observe(move |event| {
//!     if let EventKind::Instruction { .. } = event.kind {
//!         *seen.lock().unwrap() += 1;
//!     }
//! });
//! let config = LaunchConfig { grid: [1; 3], cluster: [1; 3], block: [32, 1, 1], dynamic_shared_bytes: 0 };
//! node.launch(GpuId(0), 0, module, "k", config, &[])?;
//! node.run()?;
//! assert_eq!(*issued.lock().unwrap(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use crate::deadlock::WaitReason;
use crate::engines::Site;
use crate::launch::Launch;
use crate::machine::Machine;
use crate::node::GpuId;
use crate::program::{Kernel, LaneMask};
use crate::scheduler::Node;
use crate::warp::{FragmentState, Resume, Warp};

/// Something that happened.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Simulated time. Every warp instruction takes one step; it passes also while everything waits.
    pub time: u64,
    /// GPU.
    pub gpu: GpuId,
    /// CTA in its grid: the executing one, or the one in whose shared memory an mbarrier is.
    pub cta: [u32; 3],
    /// What the CTA runs.
    pub kernel: &'a Kernel,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened.
#[derive(Debug, Clone, Copy)]
pub enum EventKind<'a> {
    /// A warp issues an instruction; what it does has not happened yet. A suspended instruction is issued again.
    Instruction {
        /// Warp in its CTA.
        warp: u32,
        /// Index in [`Kernel::instructions`]; their number when lanes fall off the end.
        pc: u32,
        /// Lanes that execute it; none when the guard is false for all.
        lanes: LaneMask,
    },
    /// The instruction just issued suspends its lanes.
    WaitBegins {
        /// Warp in its CTA.
        warp: u32,
        /// Index in [`Kernel::instructions`].
        pc: u32,
        /// Lanes that wait.
        lanes: LaneMask,
        /// What for.
        reason: &'a WaitReason,
    },
    /// Suspended lanes can run again.
    WaitEnds {
        /// Warp in its CTA.
        warp: u32,
        /// Index in [`Kernel::instructions`] at which they go on.
        pc: u32,
        /// Lanes that waited.
        lanes: LaneMask,
        /// Why.
        end: WaitEnd,
    },
    /// An mbarrier changed, by the instruction issued last or the operation of the last [`EventKind::Operation`],
    /// whichever came later.
    Mbarrier {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// How it changed.
        change: MbarrierChange,
        /// What it is now.
        state: MbarrierState,
    },
    /// An asynchronous operation begins or ends.
    Operation {
        /// Warp that issued it.
        warp: u32,
        /// Index in [`Kernel::instructions`] of the instruction that issued it.
        pc: u32,
        /// Number of the operation, unique in the node's life.
        number: u64,
        /// What it does.
        operation: AsyncOperation,
        /// How far it is.
        stage: Stage,
    },
}

/// Why lanes can run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// Something changed: the instruction is executed again and may suspend again.
    Changed,
    /// What was waited for is there.
    Complete,
    /// Simulated time has passed: a bounded wait may give up.
    TimedOut,
}

/// How an mbarrier changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MbarrierChange {
    /// `mbarrier.init`.
    Initialised,
    /// `mbarrier.inval`.
    Invalidated,
    /// Arrivals by a thread, or by a commit.
    Arrived {
        /// How many.
        arrivals: u32,
        /// Bytes added to the transaction count by the same instruction.
        expect_bytes: i64,
    },
    /// An arrival that comes on top of those expected, and so leaves the count as it was: that of
    /// `cp.async.mbarrier.arrive` without `.noinc`.
    ArrivedOnTop,
    /// Bytes added to the transaction count, or completed when negative.
    Transactions {
        /// How many.
        bytes: i64,
    },
    /// Everything of a phase has come, and the next begins.
    PhaseCompleted,
}

/// An mbarrier's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MbarrierState {
    /// The phase under way, counted from `mbarrier.init`.
    pub phase: u32,
    /// Arrivals pending in it.
    pub pending: u32,
    /// Arrivals expected per phase.
    pub expected: u32,
    /// Bytes pending in it.
    pub transaction_bytes: i64,
}

/// What an asynchronous operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsyncOperation {
    /// `cp.async.bulk`, with or without `.tensor`, into the shared memory of one CTA.
    BulkLoad {
        /// Bytes of shared memory.
        bytes: u32,
    },
    /// `cp.async.bulk` or `cp.reduce.async.bulk` out of shared memory.
    BulkStore {
        /// Bytes of shared memory.
        bytes: u32,
    },
    /// `st.async` or `red.async`.
    RemoteStore {
        /// Bytes of shared memory.
        bytes: u32,
    },
    /// `clusterlaunchcontrol.try_cancel`; its responses follow as bulk loads.
    LaunchCancel,
    /// `cp.async` of a warp's lanes. It is complete when the last of them has waited for it, or has let an mbarrier tell
    /// of it.
    AsyncCopy {
        /// Bytes of shared memory.
        bytes: u32,
    },
    /// `tcgen05.mma`, or one warp's share of a `wgmma.mma_async`.
    Mma {
        /// Multiply-accumulates.
        macs: u64,
    },
    /// `tcgen05.cp`.
    TensorCopy,
    /// `tcgen05.commit`.
    Commit,
}

/// How far an asynchronous operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It was issued.
    Issued,
    /// A store has read shared memory.
    SourceRead,
    /// Its result is there. What it does to mbarriers comes next.
    Completed,
}

/// Who is told.
pub(crate) struct Observer(Box<dyn FnMut(&Event<'_>) + Send>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl Node {
    /// Tells `observer` of everything that happens from now on, in place of an earlier observer.
    pub fn observe(&mut self, observer: impl FnMut(&Event<'_>) + Send + 'static) {
        self.machine.observer = Some(Observer(Box::new(observer)));
    }

    /// Ends the observation and drops the observer.
    pub fn stop_observing(&mut self) {
        self.machine.observer = None;
    }
}

impl Machine {
    #[cold]
    fn tell(&mut self, launch: &Launch, cta: [u32; 3], kind: EventKind<'_>) {
        let time = self.now;
        if let Some(Observer(observer)) = &mut self.observer {
            observer(&Event { time, gpu: GpuId(launch.gpu), cta, kernel: &launch.kernel, kind });
        }
    }

    /// A warp issues an instruction.
    #[cold]
    pub(crate) fn tell_instruction(&mut self, warp: &Warp, pc: u32, lanes: LaneMask) {
        let cta = self.cta(warp.cta).index;
        self.tell(&warp.launch, cta, EventKind::Instruction { warp: warp.index, pc, lanes });
    }

    /// A lane group was suspended.
    #[cold]
    pub(crate) fn tell_wait_begins(&mut self, warp: &Warp, fragment: usize) {
        let group = &warp.fragments[fragment];
        let FragmentState::Waiting(wait) = &group.state else { return };
        let reason = self.wait_reason(warp.cta, wait);
        let cta = self.cta(warp.cta).index;
        let (pc, lanes) = (group.pc, group.lanes);
        self.tell(&warp.launch, cta, EventKind::WaitBegins { warp: warp.index, pc, lanes, reason: &reason });
    }

    /// A lane group was resumed.
    #[cold]
    pub(crate) fn tell_wait_ends(&mut self, warp: &Warp, fragment: u32, resume: Resume) {
        let end = match resume {
            Resume::Retry => WaitEnd::Changed,
            Resume::Next | Resume::Completed => WaitEnd::Complete,
            Resume::TimedOut => WaitEnd::TimedOut,
        };
        let group = &warp.fragments[fragment as usize];
        let cta = self.cta(warp.cta).index;
        let (pc, lanes) = (group.pc, group.lanes);
        self.tell(&warp.launch, cta, EventKind::WaitEnds { warp: warp.index, pc, lanes, end });
    }

    /// An mbarrier changed.
    #[inline]
    pub(crate) fn mbarrier_changed(&mut self, cta: u32, index: usize, change: MbarrierChange) {
        if self.observer.is_some() {
            self.tell_mbarrier(cta, index, change);
        }
    }

    #[cold]
    fn tell_mbarrier(&mut self, cta: u32, index: usize, change: MbarrierChange) {
        let cta = self.cta(cta);
        let object = &cta.shared.mbarriers[index];
        let state = MbarrierState {
            phase: object.phase_since_init(),
            pending: object.pending,
            expected: object.expected,
            transaction_bytes: object.transactions,
        };
        let (launch, place, offset) = (cta.launch.clone(), cta.index, object.offset);
        self.tell(&launch, place, EventKind::Mbarrier { offset, change, state });
    }

    /// An asynchronous operation is at another stage.
    #[inline]
    pub(crate) fn operation_at(&mut self, site: &Site, stage: Stage, describe: impl FnOnce() -> AsyncOperation) {
        if self.observer.is_some() {
            self.tell_operation(site, stage, describe());
        }
    }

    #[cold]
    fn tell_operation(&mut self, site: &Site, stage: Stage, operation: AsyncOperation) {
        let kind = EventKind::Operation { warp: site.warp, pc: site.pc, number: site.number, operation, stage };
        self.tell(&site.launch, site.cta, kind);
    }
}
