//! Shadow of one CTA's shared memory: who wrote and read each byte last, through which proxy.
//!
//! Generic accesses are stamped per 4 bytes with the accessing warp's epoch, after FastTrack (Flanagan and Freund, 2009):
//! a full read set is kept only where several unordered warps read. Accesses through the async proxy mostly come in
//! multiples of 16 bytes and are stamped per 16. Where an access covers only a part of those, each byte gets its own stamp.
//! Both are allocated per page, so that a stage that only TMA and the tensor core touch pays for neither generic stamps nor
//! unused pages.

use super::cells::{Cell, CellMap, Kind, Pool, Stamp};
use super::knowledge::Clock;
use super::{Actor, OrderingError, WarpOrder};
use crate::shared::SharedRange;

/// Epochs by warp: whoever reads through the generic proxy.
type GenericCells = CellMap<Clock, 256, 4>;
/// Unordered readers of the async proxy, at most one for each thread and kind of operation, or for each mbarrier.
type AsyncCells = CellMap<Vec<Stamp>, 64, 16>;

fn is_weak_write(kind: Kind) -> bool {
    matches!(kind, Kind::Epoch | Kind::Allocation)
}

fn is_reduction(kind: Kind) -> bool {
    matches!(kind, Kind::Reducing | Kind::Reduced)
}

fn is_remote(kind: Kind) -> bool {
    matches!(kind, Kind::InFlight | Kind::Phase) || is_reduction(kind)
}

/// The kinds of a write under way and of one that has landed.
fn write_kinds(reduces: bool) -> (Kind, Kind) {
    if reduces { (Kind::Reducing, Kind::Reduced) } else { (Kind::InFlight, Kind::Phase) }
}

/// The stamp of one more write under way.
fn one_more(stamp: Stamp, kind: Kind) -> Stamp {
    Stamp::new(kind, 0, if stamp.kind == kind { stamp.value + 1 } else { 1 })
}

/// The stamp once one of several writes under way has completed in a phase.
fn one_less(stamp: Stamp, (pending, done): (Kind, Kind), mbarrier: u32, phase: u32) -> Stamp {
    match stamp {
        Stamp { kind, value, .. } if kind == pending && value > 1 => Stamp { value: value - 1, ..stamp },
        Stamp { kind, .. } if kind == pending => Stamp::new(done, mbarrier as u16, phase),
        other => other,
    }
}

/// How a generic write may race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteSort {
    /// Atomic, volatile, relaxed...: races with nothing.
    Strong,
    /// Races with every access that it is not ordered with.
    Weak,
    /// Weak, of the value that is there, where the rules let it race with such accesses.
    Unchanged,
}

/// Who reads through the async proxy.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AsyncReader {
    /// A tcgen05 operation of the issuing warp, by number.
    Operation(u32),
    /// A product of a warpgroup: its first warp and the product's number.
    Warpgroup { leader: u32, number: u32 },
    /// A bulk store of a thread of the issuing warp, by the number of its bulk group.
    BulkStore { lane: u32, group: u64 },
    /// A bulk copy to the shared memory of a CTA of the cluster.
    ClusterCopy,
}

/// The shadow.
#[derive(Debug)]
pub(crate) struct SharedShadow {
    generic: GenericCells,
    asynchronous: AsyncCells,
    rules: Rules,
}

/// What each stamp asks of those who come later.
#[derive(Debug, Clone, Copy)]
struct Rules {
    warps_per_cta: u32,
}

impl Rules {
    fn actor(&self, actor: u16) -> Actor {
        Actor { cta_rank: u32::from(actor) / self.warps_per_cta, warp: u32::from(actor) % self.warps_per_cta }
    }

    /// Checks a generic read against what the async proxy writes.
    fn check_async_write(&self, stamp: Stamp, offset: u32, order: &WarpOrder) -> Result<(), OrderingError> {
        match stamp.kind {
            Kind::InFlight | Kind::Reducing => Err(OrderingError::BulkWriteInFlight { offset }),
            Kind::Phase | Kind::Reduced if order.known.phases.get(stamp.actor.into()) <= stamp.value => {
                Err(OrderingError::BulkWriteNotObserved { offset })
            }
            _ => Ok(()),
        }
    }

    /// Checks a write, of either proxy, against what the async proxy reads.
    fn check_async_read(
        &self,
        stamp: Stamp,
        sets: &Pool<Vec<Stamp>>,
        offset: u32,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        match stamp.kind {
            Kind::Set => {
                sets.get(stamp.value).iter().try_for_each(|&stamp| self.check_async_reader(stamp, offset, order))
            }
            _ => self.check_async_reader(stamp, offset, order),
        }
    }

    fn check_async_reader(&self, stamp: Stamp, offset: u32, order: &WarpOrder) -> Result<(), OrderingError> {
        let issuer = self.actor(stamp.actor);
        match stamp.kind {
            Kind::Operation if order.known.commits.get(stamp.actor.into()) < stamp.value => {
                Err(OrderingError::TensorReadPending { offset, issuer })
            }
            Kind::Warpgroup if order.known.commits.get(stamp.actor.into()) < stamp.value => {
                Err(OrderingError::WgmmaReadPending { offset, first_warp: issuer })
            }
            Kind::Reading => Err(OrderingError::CopyReadPending { offset }),
            Kind::ReadPhase if order.known.phases.get(stamp.actor.into()) <= stamp.value => {
                Err(OrderingError::CopyReadPending { offset })
            }
            Kind::BulkPending => Err(OrderingError::BulkReadPending { offset, issuer }),
            Kind::Epoch if order.known.generic.get(stamp.actor.into()) < stamp.value => {
                Err(OrderingError::BulkReadPending { offset, issuer })
            }
            _ => Ok(()),
        }
    }

    /// True if whoever is ordered after the new reader, of which the warp issues an operation now, is after the earlier
    /// one too.
    fn covers(&self, new: Stamp, earlier: Stamp, order: &WarpOrder) -> bool {
        new.is_of_same_reader(earlier) || self.check_async_reader(earlier, 0, order).is_ok()
    }

    fn check_generic_write(&self, stamp: Stamp, offset: u32, order: &WarpOrder) -> Result<(), OrderingError> {
        if stamp.kind == Kind::Copying {
            return Err(OrderingError::CopyInFlight { offset, issuer: self.actor(stamp.actor) });
        }
        if matches!(stamp.kind, Kind::InFlight | Kind::Reducing) {
            return Err(OrderingError::RemoteStoreInFlight { offset });
        }
        if matches!(stamp.kind, Kind::Phase | Kind::Reduced)
            && order.known.phases.get(stamp.actor.into()) <= stamp.value
        {
            return Err(OrderingError::RemoteStoreNotObserved { offset });
        }
        if is_weak_write(stamp.kind) && order.known.generic.get(stamp.actor.into()) < stamp.value {
            return Err(OrderingError::UnsynchronisedWrite { offset, writer: self.actor(stamp.actor) });
        }
        Ok(())
    }

    fn check_generic_read(
        &self,
        stamp: Stamp,
        sets: &Pool<Clock>,
        offset: u32,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let late = |actor: u32, epoch: u32| order.known.generic.get(actor) < epoch;
        let reader = match stamp.kind {
            Kind::Epoch if late(stamp.actor.into(), stamp.value) => Some(stamp.actor),
            Kind::Set => {
                let mut set = sets.get(stamp.value).iter();
                set.find(|&(actor, epoch)| late(actor, epoch)).map(|(actor, _)| actor as u16)
            }
            _ => None,
        };
        match reader {
            Some(reader) => Err(OrderingError::UnsynchronisedRead { offset, reader: self.actor(reader) }),
            None => Ok(()),
        }
    }
}

/// Notes a generic read after the earlier ones.
#[inline]
fn note_read(read: &mut Stamp, sets: &mut Pool<Clock>, mine: Stamp, order: &WarpOrder) {
    match read.kind {
        Kind::Epoch if read.actor != mine.actor && order.known.generic.get(read.actor.into()) < read.value => {
            let number = sets.take(Clock::default);
            let set = sets.get_mut(number);
            set.raise(read.actor.into(), read.value);
            set.raise(order.actor, mine.value);
            *read = Stamp::new(Kind::Set, 0, number);
        }
        Kind::Set => sets.get_mut(read.value).raise(order.actor, mine.value),
        _ => *read = mine,
    }
}

/// Replaces the stamps of a cell whose readers matter no more.
#[inline]
fn forget_generic(cell: &mut Cell, sets: &mut Pool<Clock>, write: Stamp) {
    if cell.read.kind == Kind::Set {
        sets.get_mut(cell.read.value).clear();
        sets.give_back(cell.read.value);
    }
    *cell = Cell { write, read: Stamp::default() };
}

impl SharedShadow {
    pub(crate) fn new(bytes: u32, warps_per_cta: u32) -> Self {
        Self { generic: CellMap::new(bytes), asynchronous: CellMap::new(bytes), rules: Rules { warps_per_cta } }
    }

    /// A generic load of one lane. `strong` accesses race with nothing.
    #[inline]
    pub(crate) fn load(
        &mut self,
        offset: u32,
        bytes: u32,
        strong: bool,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let (range, rules) = (offset..offset + bytes, self.rules);
        self.asynchronous.visit(&range, |at, cell, _| rules.check_async_write(cell.write, at, order))?;
        if strong {
            return Ok(());
        }
        let mine = Stamp::new(Kind::Epoch, order.actor as u16, order.epoch());
        self.generic.update(&range, |at, cell, sets| {
            let kind = cell.write.kind;
            if kind == Kind::Copying || is_remote(kind) || is_weak_write(kind) && cell.write.actor != mine.actor {
                rules.check_generic_write(cell.write, at, order)?;
            }
            note_read(&mut cell.read, sets, mine, order);
            Ok(())
        })
    }

    /// A generic store, or atomic, of one lane.
    #[inline]
    pub(crate) fn store(
        &mut self,
        offset: u32,
        bytes: u32,
        sort: WriteSort,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let (range, rules) = (offset..offset + bytes, self.rules);
        let kind = if sort == WriteSort::Strong { Kind::Strong } else { Kind::Epoch };
        let mine = Stamp::new(kind, order.actor as u16, order.epoch());
        self.asynchronous.visit(&range, |at, cell, sets| {
            rules.check_async_write(cell.write, at, order)?;
            rules.check_async_read(cell.read, sets, at, order)
        })?;
        self.generic.update(&range, |at, cell, sets| {
            if sort != WriteSort::Strong {
                let ordered = rules
                    .check_generic_write(cell.write, at, order)
                    .and_then(|()| rules.check_generic_read(cell.read, sets, at, order));
                if ordered.is_err()
                    && sort == WriteSort::Unchanged
                    && cell.write.kind != Kind::Copying
                    && !is_remote(cell.write.kind)
                {
                    // Nobody can tell this write from a read, except by overwriting what it may write yet.
                    note_read(&mut cell.read, sets, mine, order);
                    return Ok(());
                }
                ordered?;
            }
            forget_generic(cell, sets, mine);
            Ok(())
        })
    }

    /// An `st.async` or `red.async` is issued to these bytes. Reductions do not race with each other.
    pub(crate) fn begin_remote_store(
        &mut self,
        offset: u32,
        bytes: u32,
        reduces: bool,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let (range, rules) = (offset..offset + bytes, self.rules);
        self.asynchronous.visit(&range, |at, cell, sets| {
            rules.check_async_write(cell.write, at, order)?;
            rules.check_async_read(cell.read, sets, at, order)
        })?;
        self.generic.update(&range, |at, cell, sets| {
            if !(reduces && is_reduction(cell.write.kind)) {
                rules.check_generic_write(cell.write, at, order)?;
            }
            rules.check_generic_read(cell.read, sets, at, order)?;
            forget_generic(cell, sets, one_more(cell.write, write_kinds(reduces).0));
            Ok(())
        })
    }

    /// It landed, in a phase of an mbarrier.
    pub(crate) fn end_remote_store(&mut self, offset: u32, bytes: u32, reduces: bool, mbarrier: u32, phase: u32) {
        self.generic.set(&(offset..offset + bytes), |cell, _| {
            cell.write = one_less(cell.write, write_kinds(reduces), mbarrier, phase);
        });
    }

    /// `tcgen05.alloc` writes an address.
    pub(crate) fn allocation(&mut self, offset: u32, bytes: u32, order: &WarpOrder) -> Result<(), OrderingError> {
        self.store(offset, bytes, WriteSort::Weak, order)?;
        self.generic.set(&(offset..offset + bytes), |cell, _| cell.write.kind = Kind::Allocation);
        Ok(())
    }

    /// A `cp.async` writes these bytes from now on.
    pub(crate) fn begin_copy(&mut self, offset: u32, bytes: u32, order: &WarpOrder) -> Result<(), OrderingError> {
        self.store(offset, bytes, WriteSort::Weak, order)?;
        let stamp = Stamp::new(Kind::Copying, order.actor as u16, 0);
        self.generic.set(&(offset..offset + bytes), |cell, _| cell.write = stamp);
        Ok(())
    }

    /// The thread that issued a `cp.async` has waited for it: the bytes are as if it wrote them now.
    pub(crate) fn end_copy(&mut self, offset: u32, bytes: u32, order: &WarpOrder) {
        let mine = Stamp::new(Kind::Epoch, order.actor as u16, order.epoch());
        self.generic.set(&(offset..offset + bytes), |cell, _| {
            if cell.write.kind == Kind::Copying && cell.write.actor == mine.actor {
                cell.write = mine;
            }
        });
    }

    /// Checks that the async proxy, on behalf of the issuing warp, sees the generic writes of a range.
    fn check_proxied(&self, range: &SharedRange, order: &WarpOrder) -> Result<(), OrderingError> {
        let rules = self.rules;
        self.generic.visit(range, |at, cell, _| {
            let write = cell.write;
            if write.kind == Kind::Copying {
                return rules.check_generic_write(write, at, order);
            }
            if is_remote(write.kind) {
                rules.check_generic_write(write, at, order)?;
                let fenced = order.known.proxied_phases.get(write.actor.into()) > write.value;
                return if fenced { Ok(()) } else { Err(OrderingError::RemoteStoreNotFenced { offset: at }) };
            }
            if !matches!(write.kind, Kind::Epoch | Kind::Strong | Kind::Allocation) {
                return Ok(());
            }
            if order.known.generic.get(write.actor.into()) < write.value {
                return Err(OrderingError::UnsynchronisedWrite { offset: at, writer: rules.actor(write.actor) });
            }
            if write.kind != Kind::Allocation && order.known.proxied.get(write.actor.into()) < write.value {
                return Err(OrderingError::MissingProxyFence { offset: at, writer: rules.actor(write.actor) });
            }
            Ok(())
        })
    }

    /// A bulk write is issued into a range; one that reduces does not race with others that do.
    pub(crate) fn begin_bulk_write(
        &mut self,
        range: &SharedRange,
        reduces: bool,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let rules = self.rules;
        self.check_proxied(range, order)?;
        self.generic.visit(range, |at, cell, sets| rules.check_generic_read(cell.read, sets, at, order))?;
        self.asynchronous.visit(range, |at, cell, sets| {
            if !(reduces && is_reduction(cell.write.kind)) {
                rules.check_async_write(cell.write, at, order)?;
            }
            rules.check_async_read(cell.read, sets, at, order)
        })?;
        self.generic.update_touched(range, |cell, sets| forget_generic(cell, sets, Stamp::default()));
        self.asynchronous.set(range, |cell, sets| {
            if cell.read.kind == Kind::Set {
                sets.get_mut(cell.read.value).clear();
                sets.give_back(cell.read.value);
            }
            *cell = Cell { write: one_more(cell.write, write_kinds(reduces).0), read: Stamp::default() };
        });
        Ok(())
    }

    /// A bulk write landed in a range, in a phase of an mbarrier.
    pub(crate) fn end_bulk_write(&mut self, range: &SharedRange, reduces: bool, mbarrier: u32, phase: u32) {
        self.asynchronous.set(range, |cell, _| {
            cell.write = one_less(cell.write, write_kinds(reduces), mbarrier, phase);
        });
    }

    /// A bulk copy within the cluster has read a range, and completed in a phase of an mbarrier.
    pub(crate) fn end_copy_read(&mut self, range: &SharedRange, mbarrier: u32, phase: u32) {
        let done = Stamp::new(Kind::ReadPhase, mbarrier as u16, phase);
        self.asynchronous.set(range, |cell, sets| {
            if (cell.read.kind, cell.read.value) == (Kind::Reading, 1) {
                cell.read = done;
                return;
            }
            if cell.read.kind == Kind::Reading {
                let number = sets.take(Vec::new);
                sets.get_mut(number).push(cell.read);
                cell.read = Stamp::new(Kind::Set, 0, number);
            }
            if cell.read.kind == Kind::Set {
                let set = sets.get_mut(cell.read.value);
                set.iter_mut().filter(|read| read.kind == Kind::Reading).for_each(|read| read.value -= 1);
                // Earlier phases of an mbarrier are complete when a later one is.
                set.retain(|read| (read.kind, read.value) != (Kind::Reading, 0) && !done.is_of_same_reader(*read));
                set.push(done);
            }
        });
    }

    /// The async proxy reads a range.
    pub(crate) fn async_read(
        &mut self,
        range: &SharedRange,
        reader: AsyncReader,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let rules = self.rules;
        self.check_proxied(range, order)?;
        self.asynchronous.visit(range, |at, cell, _| rules.check_async_write(cell.write, at, order))?;
        let mine = reader.stamp(order);
        self.asynchronous.set(range, |cell, sets| match cell.read.kind {
            Kind::Set => {
                let set = sets.get_mut(cell.read.value);
                let mut joined = mine;
                set.retain(|&earlier| {
                    joined = joined.with_pending(earlier);
                    !rules.covers(mine, earlier, order)
                });
                set.push(joined);
            }
            Kind::None => cell.read = mine,
            _ if rules.covers(mine, cell.read, order) => cell.read = mine.with_pending(cell.read),
            _ => {
                let number = sets.take(Vec::new);
                sets.get_mut(number).extend([cell.read, mine]);
                cell.read = Stamp::new(Kind::Set, 0, number);
            }
        });
        Ok(())
    }

    /// A thread waited for its bulk stores of a group to have read a range: from its current epoch on the range is free.
    pub(crate) fn bulk_read_observed(&mut self, range: &SharedRange, lane: u32, group: u64, order: &WarpOrder) {
        let pending = AsyncReader::BulkStore { lane, group }.stamp(order);
        let done = Stamp::new(Kind::Epoch, order.actor as u16, order.epoch());
        self.asynchronous.set(range, |cell, sets| match cell.read.kind {
            Kind::Set => {
                sets.get_mut(cell.read.value).iter_mut().filter(|read| **read == pending).for_each(|read| *read = done)
            }
            _ if cell.read == pending => cell.read = done,
            _ => {}
        });
    }
}

impl AsyncReader {
    fn stamp(self, order: &WarpOrder) -> Stamp {
        let actor = order.actor as u16;
        match self {
            Self::Operation(number) => Stamp::new(Kind::Operation, actor, number),
            Self::Warpgroup { leader, number } => Stamp::new(Kind::Warpgroup, leader as u16, number),
            Self::BulkStore { lane, group } => {
                Stamp { kind: Kind::BulkPending, lane: lane as u8, actor, value: group as u32 }
            }
            Self::ClusterCopy => Stamp::new(Kind::Reading, 0, 1),
        }
    }
}
