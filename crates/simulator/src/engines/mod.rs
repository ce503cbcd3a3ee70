//! Engines that work while warps go on: bulk copies and the tensor core. Their completions are events in simulated time.

mod bulk;
mod cluster_copy;
mod launch_control;
mod tensor_core;
mod wgmma;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

pub(crate) use bulk::{BulkDestination, BulkSource, BulkThread, BulkTransfer, StoreGroup};
pub(crate) use cluster_copy::{ClusterCopy, Reduction, StoredValue};
pub(crate) use launch_control::Response;
pub(crate) use tensor_core::{TensorOperation, TensorPipe, TensorWork};
pub(crate) use wgmma::{GROUP_WARPS, WgmmaPipe};

use crate::fault::{Fault, FaultCause};
use crate::launch::Launch;
use crate::machine::Machine;
use crate::program::LaneMask;
use crate::warp::{Resume, WaitToken};

/// Which instruction an operation came from.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) launch: Arc<Launch>,
    /// The CTA's slot, unique number and place in the grid.
    pub(crate) slot: u32,
    pub(crate) uid: u32,
    pub(crate) cta: [u32; 3],
    pub(crate) warp: u32,
    pub(crate) lanes: LaneMask,
    pub(crate) pc: u32,
    /// Unique in the node's life.
    pub(crate) number: u64,
}

impl Site {
    #[cold]
    pub(crate) fn fault(&self, cause: FaultCause) -> Fault {
        self.launch.fault(self.pc, self.cta, self.warp, self.lanes, cause)
    }
}

/// Something that happens later.
#[derive(Debug)]
pub(crate) enum Event {
    /// A bulk copy makes its next step.
    Bulk(Box<(Site, BulkTransfer)>),
    /// A tensor-core pipe executes some of its operations.
    Pipe { cta: u32, pipe: usize },
    /// A sleeping lane group wakes.
    Timer(WaitToken),
}

/// Events by due time.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    slots: Vec<Option<Event>>,
    free: Vec<u32>,
    sequence: u64,
}

impl Events {
    pub(crate) fn push(&mut self, due: u64, event: Event) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(event);
                slot
            }
            None => {
                self.slots.push(Some(event));
                self.slots.len() as u32 - 1
            }
        };
        self.sequence += 1;
        self.heap.push(Reverse((due, self.sequence, slot)));
    }

    /// When the next event is due.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((due, _, _))| *due)
    }

    fn pop(&mut self) -> Option<Event> {
        let Reverse((_, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        self.slots[slot as usize].take()
    }
}

impl Machine {
    /// Lets the next event happen.
    pub(crate) fn next_event(&mut self) -> Result<(), Fault> {
        match self.events.pop() {
            Some(Event::Bulk(bulk)) => {
                let (site, transfer) = *bulk;
                self.effects += 1;
                self.step_bulk(&site, transfer).map_err(|cause| site.fault(cause))
            }
            Some(Event::Pipe { cta, pipe }) => {
                self.effects += 1;
                self.step_pipe(cta, pipe)
            }
            Some(Event::Timer(token)) => {
                self.wake(token, Resume::Retry);
                Ok(())
            }
            None => Ok(()),
        }
    }
}
