//! Shadow of one SM's tensor memory: who accessed each column last, and whether the next access may rely on it.
//!
//! Rests on the canonical synchronization patterns of PTX ISA "tcgen05 memory consistency model": `mma` and `cp` complete
//! with a `commit` that an mbarrier reports, `ld` and `st` with `wait::{ld,st}`; across threads a `before_thread_sync`
//! on one side and an `after_thread_sync` on the other enclose the synchronisation.

use std::ops::Range;

use super::{Actor, OrderingError, WarpOrder};
use crate::node::OrderingRules;
use crate::tensor_memory::{COLUMNS, LANES, TensorRange};

const QUADRANTS: u32 = 4;
const QUADRANT_LANES: u32 = LANES / QUADRANTS;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    None,
    Operation,
    Store,
}

#[derive(Debug, Clone, Copy, Default)]
struct Stamp {
    kind: Kind,
    actor: u16,
    number: u32,
}

#[derive(Debug, Clone, Default)]
struct Cell {
    write: Stamp,
    /// Last operation that read it.
    operation_read: Stamp,
    /// Last `tcgen05.ld` per warp since the last write.
    loads: Vec<(u16, u32)>,
}

/// The warp that accesses, and what the others have done so far.
pub(crate) struct TensorIssuer<'a> {
    pub(crate) order: &'a WarpOrder,
    /// The ordering state of any warp of the cluster.
    pub(crate) other: &'a dyn Fn(u32) -> Option<&'a WarpOrder>,
    pub(crate) warps_per_cta: u32,
}

impl TensorIssuer<'_> {
    fn name(&self, actor: u16) -> Actor {
        let actor = u32::from(actor);
        Actor { cta_rank: actor / self.warps_per_cta, warp: actor % self.warps_per_cta }
    }

    /// True when a counter of the actor's has not come to a number.
    fn is_behind(&self, actor: u16, counter: impl Fn(&WarpOrder) -> u32, number: u32) -> bool {
        let actor = actor.into();
        let order = if actor == self.order.actor { Some(self.order) } else { (self.other)(actor) };
        order.is_some_and(|order| counter(order) < number)
    }

    /// An earlier `mma` or `cp` must be known complete.
    fn check_operation(&self, stamp: Stamp, column: u32) -> Result<(), OrderingError> {
        let actor = stamp.actor.into();
        let issuer = self.name(stamp.actor);
        if self.order.after_commits.get(actor) >= stamp.number {
            Ok(())
        } else if self.order.known.commits.get(actor) >= stamp.number {
            Err(OrderingError::MissingAfterThreadSync { column, issuer })
        } else {
            Err(OrderingError::CommitNotObserved { column, issuer })
        }
    }

    fn check_store(&self, stamp: Stamp, column: u32) -> Result<(), OrderingError> {
        let (actor, writer) = (u32::from(stamp.actor), self.name(stamp.actor));
        if actor == self.order.actor {
            return if self.order.stores_waited >= stamp.number {
                Ok(())
            } else {
                Err(OrderingError::MissingWaitStore { column, writer })
            };
        }
        if self.order.after_stores.get(actor) >= stamp.number {
            return Ok(());
        }
        if self.order.known.stores.get(actor) >= stamp.number {
            return Err(OrderingError::MissingAfterThreadSync { column, issuer: writer });
        }
        Err(match (self.other)(actor) {
            Some(other) if other.stores_waited < stamp.number => OrderingError::MissingWaitStore { column, writer },
            Some(other) if other.known.stores.get(actor) < stamp.number => {
                OrderingError::MissingBeforeThreadSync { column, other: writer }
            }
            _ => OrderingError::TensorAccessNotOrdered { column, other: writer },
        })
    }

    fn check_load(&self, actor: u16, number: u32, column: u32) -> Result<(), OrderingError> {
        let reader = self.name(actor);
        let actor = u32::from(actor);
        if actor == self.order.actor {
            return if self.order.loads_waited >= number {
                Ok(())
            } else {
                Err(OrderingError::MissingWaitLoad { column, reader })
            };
        }
        if self.order.after_loads.get(actor) >= number {
            return Ok(());
        }
        if self.order.known.loads.get(actor) >= number {
            return Err(OrderingError::MissingAfterThreadSync { column, issuer: reader });
        }
        Err(match (self.other)(actor) {
            Some(other) if other.loads_waited < number => OrderingError::MissingWaitLoad { column, reader },
            Some(other) if other.known.loads.get(actor) < number => {
                OrderingError::MissingBeforeThreadSync { column, other: reader }
            }
            _ => OrderingError::TensorAccessNotOrdered { column, other: reader },
        })
    }

    fn check_written(&self, stamp: Stamp, column: u32, by_operation: bool) -> Result<(), OrderingError> {
        match stamp.kind {
            // Operations of one thread are pipelined: they execute in the order of issue.
            Kind::Operation if by_operation && u32::from(stamp.actor) == self.order.actor => Ok(()),
            Kind::Operation => self.check_operation(stamp, column),
            Kind::Store => self.check_store(stamp, column),
            Kind::None => Ok(()),
        }
    }

    fn check_overwrite(&self, cell: &Cell, column: u32, by_operation: bool) -> Result<(), OrderingError> {
        self.check_written(cell.write, column, by_operation)?;
        self.check_written(cell.operation_read, column, by_operation)?;
        cell.loads.iter().try_for_each(|&(actor, number)| self.check_load(actor, number, column))
    }
}

/// The shadow.
#[derive(Debug)]
pub(crate) struct TensorShadow {
    /// Column-major, four lane quadrants each.
    cells: Vec<Cell>,
}

impl TensorShadow {
    pub(crate) fn new() -> Self {
        Self { cells: vec![Cell::default(); (COLUMNS * QUADRANTS) as usize] }
    }

    /// Forgets columns that change owner.
    pub(crate) fn clear(&mut self, first: u32, columns: u32) {
        let (start, end) = (first * QUADRANTS, (first + columns) * QUADRANTS);
        for cell in &mut self.cells[start as usize..end as usize] {
            cell.write = Stamp::default();
            cell.operation_read = Stamp::default();
            cell.loads.clear();
        }
    }

    /// `tcgen05.dealloc`, of columns that no `mma` or `cp` uses any more. The ISA has no rule of its own for it; whoever
    /// allocates the columns next cannot know of this CTA's loads and stores, so that these must be complete.
    ///
    /// A load is also complete once its registers are used, and under the practised rules that is taken for granted.
    /// A store has no other sign of completion than `wait::st`.
    pub(crate) fn free(&self, range: Range<u32>, issuer: &TensorIssuer<'_>) -> Result<(), OrderingError> {
        let strict = issuer.order.rules == OrderingRules::Strict;
        let cells = &self.cells[(range.start * QUADRANTS) as usize..(range.end * QUADRANTS) as usize];
        for (index, cell) in cells.iter().enumerate() {
            let column = range.start + index as u32 / QUADRANTS;
            let Stamp { kind, actor, number } = cell.write;
            if kind == Kind::Store && issuer.is_behind(actor, |order| order.stores_waited, number) {
                return Err(OrderingError::FreedBeforeWaitStore { column, writer: issuer.name(actor) });
            }
            let late = |&&(actor, number): &&(u16, u32)| issuer.is_behind(actor, |order| order.loads_waited, number);
            if strict && let Some(&(actor, _)) = cell.loads.iter().find(late) {
                return Err(OrderingError::FreedBeforeWaitLoad { column, reader: issuer.name(actor) });
            }
        }
        Ok(())
    }

    fn indices(range: &TensorRange) -> impl Iterator<Item = (u32, usize)> + use<> {
        let quadrants = range.lanes.start / QUADRANT_LANES..range.lanes.end.div_ceil(QUADRANT_LANES).min(QUADRANTS);
        let columns = range.columns.start..range.columns.end.min(COLUMNS);
        columns.flat_map(move |column| {
            quadrants.clone().map(move |quadrant| (column, (column * QUADRANTS + quadrant) as usize))
        })
    }

    /// `tcgen05.ld`; the warp has counted it in `loads_issued`.
    pub(crate) fn load(&mut self, range: &TensorRange, issuer: &TensorIssuer<'_>) -> Result<(), OrderingError> {
        let actor = issuer.order.actor as u16;
        for (column, index) in Self::indices(range) {
            let cell = &mut self.cells[index];
            issuer.check_written(cell.write, column, false)?;
            let number = issuer.order.loads_issued;
            match cell.loads.iter_mut().find(|(reader, _)| *reader == actor) {
                Some(entry) => entry.1 = number,
                None => cell.loads.push((actor, number)),
            }
        }
        Ok(())
    }

    /// `tcgen05.st`; the warp has counted it in `stores_issued`.
    pub(crate) fn store(&mut self, range: &TensorRange, issuer: &TensorIssuer<'_>) -> Result<(), OrderingError> {
        let actor = issuer.order.actor as u16;
        for (column, index) in Self::indices(range) {
            let cell = &mut self.cells[index];
            issuer.check_overwrite(cell, column, false)?;
            cell.write = Stamp { kind: Kind::Store, actor, number: issuer.order.stores_issued };
            cell.operation_read = Stamp::default();
            cell.loads.clear();
        }
        Ok(())
    }

    /// `mma` or `cp` reads; the warp has counted the operation in `operations_issued`.
    pub(crate) fn operation_reads(
        &mut self,
        range: &TensorRange,
        issuer: &TensorIssuer<'_>,
    ) -> Result<(), OrderingError> {
        let stamp =
            Stamp { kind: Kind::Operation, actor: issuer.order.actor as u16, number: issuer.order.operations_issued };
        for (column, index) in Self::indices(range) {
            let cell = &mut self.cells[index];
            issuer.check_written(cell.write, column, true)?;
            cell.operation_read = stamp;
        }
        Ok(())
    }

    /// `mma` or `cp` writes.
    pub(crate) fn operation_writes(
        &mut self,
        range: &TensorRange,
        issuer: &TensorIssuer<'_>,
    ) -> Result<(), OrderingError> {
        let stamp =
            Stamp { kind: Kind::Operation, actor: issuer.order.actor as u16, number: issuer.order.operations_issued };
        for (column, index) in Self::indices(range) {
            let cell = &mut self.cells[index];
            issuer.check_overwrite(cell, column, true)?;
            cell.write = stamp;
            cell.loads.clear();
        }
        Ok(())
    }
}
