//! Shadow of one CTA's shared memory: who wrote and read each piece last, through which proxy.
//!
//! Generic accesses are stamped per 4 bytes with the accessing warp's epoch, after FastTrack (Flanagan and Freund, 2009):
//! a full read set is kept only where several unordered warps read. Accesses through the async proxy come in multiples
//! of 16 bytes and are stamped per 16. Both are allocated per page, so that a stage that only TMA and the tensor core
//! touch pays for neither generic stamps nor unused pages.

use super::knowledge::Clock;
use super::{Actor, OrderingError, WarpOrder};
use crate::shared::SharedRange;

const PAGE_SHIFT: u32 = 10;
const GENERIC_SHIFT: u32 = 2;
const ASYNC_SHIFT: u32 = 4;
const GENERIC_CELLS: usize = 1 << (PAGE_SHIFT - GENERIC_SHIFT);
const ASYNC_CELLS: usize = 1 << (PAGE_SHIFT - ASYNC_SHIFT);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    None,
    /// A warp's access at an epoch.
    Epoch,
    /// The same by a strong (atomic, volatile, relaxed...) access, which races with nothing.
    Strong,
    /// A write by `tcgen05.alloc`, which keeps the order of accesses to one address without a proxy fence (PTX ISA,
    /// tcgen05 asynchronous operations).
    Allocation,
    /// A `cp.async` of a warp that nobody has waited for.
    Copying,
    /// Several unordered readers: `value` indexes the read sets.
    Set,
    /// A bulk write that has not landed.
    InFlight,
    /// A bulk write that completed in a phase of an mbarrier: `actor` is the mbarrier, `value` the phase.
    Phase,
    /// Reductions that have not landed: `value` of them.
    Reducing,
    /// Like `Phase`, of the reduction that landed last.
    Reduced,
    /// Reads by bulk copies within the cluster that have not happened: `value` of them.
    Reading,
    /// Such reads whose copies completed in a phase: `actor` is the mbarrier, `value` the phase.
    ReadPhase,
    /// A read by a tcgen05 operation: `value` is its number.
    Operation,
    /// A read by a warpgroup product: `actor` is the first warp of the warpgroup, `value` the product's number.
    Warpgroup,
    /// A read by a bulk store that nobody has waited for.
    BulkPending,
}

fn is_reduction(kind: Kind) -> bool {
    matches!(kind, Kind::Reducing | Kind::Reduced)
}

fn is_remote(kind: Kind) -> bool {
    matches!(kind, Kind::InFlight | Kind::Phase) || is_reduction(kind)
}

/// The stamp of one more reduction under way.
fn one_more(stamp: Stamp, kind: Kind) -> Stamp {
    Stamp { kind, actor: 0, value: if stamp.kind == kind { stamp.value + 1 } else { 1 } }
}

/// The stamp once one of several operations under way has completed in a phase.
fn one_less(stamp: Stamp, (pending, done): (Kind, Kind), mbarrier: u32, phase: u32) -> Stamp {
    match stamp {
        Stamp { kind, value, .. } if kind == pending && value > 1 => Stamp { value: value - 1, ..stamp },
        Stamp { kind, .. } if kind == pending => Stamp { kind: done, actor: mbarrier as u16, value: phase },
        other => other,
    }
}

fn is_weak_write(kind: Kind) -> bool {
    matches!(kind, Kind::Epoch | Kind::Allocation)
}

#[derive(Debug, Clone, Copy, Default)]
struct Stamp {
    kind: Kind,
    actor: u16,
    value: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct GenericCell {
    write: Stamp,
    read: Stamp,
}

#[derive(Debug, Clone, Copy, Default)]
struct AsyncCell {
    write: Stamp,
    read: Stamp,
}

#[derive(Debug, Default)]
struct Page {
    generic: Option<Box<[GenericCell; GENERIC_CELLS]>>,
    asynchronous: Option<Box<[AsyncCell; ASYNC_CELLS]>>,
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
    /// A bulk store of the issuing warp.
    BulkStore,
    /// A bulk copy to the shared memory of a CTA of the cluster.
    ClusterCopy,
}

/// The shadow.
#[derive(Debug)]
pub(crate) struct SharedShadow {
    pages: Vec<Page>,
    read_sets: Vec<Clock>,
    free_sets: Vec<u32>,
    warps_per_cta: u32,
}

impl SharedShadow {
    pub(crate) fn new(bytes: u32, warps_per_cta: u32) -> Self {
        let pages = (bytes >> PAGE_SHIFT) as usize + 1;
        Self {
            pages: std::iter::repeat_with(Page::default).take(pages).collect(),
            read_sets: Vec::new(),
            free_sets: Vec::new(),
            warps_per_cta,
        }
    }

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
    fn check_async_read(&self, stamp: Stamp, offset: u32, order: &WarpOrder) -> Result<(), OrderingError> {
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

    fn check_generic_read(&self, stamp: Stamp, offset: u32, order: &WarpOrder) -> Result<(), OrderingError> {
        let late = |actor: u32, epoch: u32| order.known.generic.get(actor) < epoch;
        let reader = match stamp.kind {
            Kind::Epoch if late(stamp.actor.into(), stamp.value) => Some(stamp.actor),
            Kind::Set => {
                let set = &self.read_sets[stamp.value as usize];
                set.iter().find(|&(actor, epoch)| late(actor, epoch)).map(|(actor, _)| actor as u16)
            }
            _ => None,
        };
        match reader {
            Some(reader) => Err(OrderingError::UnsynchronisedRead { offset, reader: self.actor(reader) }),
            None => Ok(()),
        }
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
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let page_index = (at >> PAGE_SHIFT) as usize;
            let within = at & ((1 << PAGE_SHIFT) - 1);
            if let Some(cells) = &self.pages[page_index].asynchronous {
                self.check_async_write(cells[(within >> ASYNC_SHIFT) as usize].write, at, order)?;
            }
            let index = (within >> GENERIC_SHIFT) as usize;
            if strong {
                at = (at | 3) + 1;
                continue;
            }
            let mine = Stamp { kind: Kind::Epoch, actor: order.actor as u16, value: order.epoch() };
            let cell = self.generic_cell(page_index, index);
            let kind = cell.write.kind;
            if kind == Kind::Copying || is_remote(kind) || is_weak_write(kind) && cell.write.actor != mine.actor {
                self.check_generic_write(cell.write, at, order)?;
            }
            self.note_read(page_index, index, cell.read, mine, order);
            at = (at | 3) + 1;
        }
        Ok(())
    }

    #[inline]
    fn note_read(&mut self, page: usize, index: usize, earlier: Stamp, mine: Stamp, order: &WarpOrder) {
        match earlier.kind {
            Kind::Epoch if earlier.actor != mine.actor => {
                if order.known.generic.get(earlier.actor.into()) >= earlier.value {
                    self.set_read(page, index, mine);
                } else {
                    let set = self.new_set();
                    self.read_sets[set as usize].raise(earlier.actor.into(), earlier.value);
                    self.read_sets[set as usize].raise(order.actor, mine.value);
                    self.set_read(page, index, Stamp { kind: Kind::Set, actor: 0, value: set });
                }
            }
            Kind::Set => self.read_sets[earlier.value as usize].raise(order.actor, mine.value),
            _ => self.set_read(page, index, mine),
        }
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
        let kind = if sort == WriteSort::Strong { Kind::Strong } else { Kind::Epoch };
        let mine = Stamp { kind, actor: order.actor as u16, value: order.epoch() };
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let page_index = (at >> PAGE_SHIFT) as usize;
            let within = at & ((1 << PAGE_SHIFT) - 1);
            if let Some(cells) = &self.pages[page_index].asynchronous {
                let cell = cells[(within >> ASYNC_SHIFT) as usize];
                self.check_async_write(cell.write, at, order)?;
                self.check_async_read(cell.read, at, order)?;
            }
            let index = (within >> GENERIC_SHIFT) as usize;
            let cell = self.generic_cell(page_index, index);
            if sort != WriteSort::Strong {
                let ordered = self
                    .check_generic_write(cell.write, at, order)
                    .and_then(|()| self.check_generic_read(cell.read, at, order));
                if ordered.is_err()
                    && sort == WriteSort::Unchanged
                    && cell.write.kind != Kind::Copying
                    && !is_remote(cell.write.kind)
                {
                    // Nobody can tell this write from a read, except by overwriting what it may write yet.
                    self.note_read(page_index, index, cell.read, mine, order);
                    at = (at | 3) + 1;
                    continue;
                }
                ordered?;
            }
            if cell.read.kind == Kind::Set {
                self.recycle(cell.read.value);
            }
            let cells = self.pages[page_index].generic.as_mut().expect("just allocated");
            cells[index] = GenericCell { write: mine, read: Stamp::default() };
            at = (at | 3) + 1;
        }
        Ok(())
    }

    /// An `st.async` or `red.async` is issued to these bytes. Reductions do not race with each other.
    pub(crate) fn begin_remote_store(
        &mut self,
        offset: u32,
        bytes: u32,
        reduces: bool,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        for at in (offset..offset + bytes).step_by(1 << GENERIC_SHIFT) {
            let (page, within) = ((at >> PAGE_SHIFT) as usize, at & ((1 << PAGE_SHIFT) - 1));
            if let Some(cells) = &self.pages[page].asynchronous {
                let cell = cells[(within >> ASYNC_SHIFT) as usize];
                self.check_async_write(cell.write, at, order)?;
                self.check_async_read(cell.read, at, order)?;
            }
            let index = (within >> GENERIC_SHIFT) as usize;
            let cell = self.generic_cell(page, index);
            if !(reduces && is_reduction(cell.write.kind)) {
                self.check_generic_write(cell.write, at, order)?;
            }
            self.check_generic_read(cell.read, at, order)?;
            if cell.read.kind == Kind::Set {
                self.recycle(cell.read.value);
            }
            let write = one_more(cell.write, if reduces { Kind::Reducing } else { Kind::InFlight });
            let cells = self.pages[page].generic.as_mut().expect("just allocated");
            cells[index] = GenericCell { write, read: Stamp::default() };
        }
        Ok(())
    }

    /// It landed, in a phase of an mbarrier.
    pub(crate) fn end_remote_store(&mut self, offset: u32, bytes: u32, reduces: bool, mbarrier: u32, phase: u32) {
        let kinds = if reduces { (Kind::Reducing, Kind::Reduced) } else { (Kind::InFlight, Kind::Phase) };
        self.restamp(offset, bytes, |stamp| *stamp = one_less(*stamp, kinds, mbarrier, phase));
    }

    /// `tcgen05.alloc` writes an address.
    pub(crate) fn allocation(&mut self, offset: u32, bytes: u32, order: &WarpOrder) -> Result<(), OrderingError> {
        self.store(offset, bytes, WriteSort::Weak, order)?;
        self.restamp(offset, bytes, |stamp| stamp.kind = Kind::Allocation);
        Ok(())
    }

    /// A `cp.async` writes these bytes from now on.
    pub(crate) fn begin_copy(&mut self, offset: u32, bytes: u32, order: &WarpOrder) -> Result<(), OrderingError> {
        self.store(offset, bytes, WriteSort::Weak, order)?;
        self.restamp(offset, bytes, |stamp| *stamp = Stamp { kind: Kind::Copying, actor: stamp.actor, value: 0 });
        Ok(())
    }

    /// The thread that issued a `cp.async` has waited for it: the bytes are as if it wrote them now.
    pub(crate) fn end_copy(&mut self, offset: u32, bytes: u32, order: &WarpOrder) {
        let mine = Stamp { kind: Kind::Epoch, actor: order.actor as u16, value: order.epoch() };
        self.restamp(offset, bytes, |stamp| {
            if stamp.kind == Kind::Copying && stamp.actor == mine.actor {
                *stamp = mine;
            }
        });
    }

    /// Changes the write stamps of bytes that lie within 16 aligned ones, hence in one page.
    fn restamp(&mut self, offset: u32, bytes: u32, mut change: impl FnMut(&mut Stamp)) {
        if let Some(cells) = &mut self.pages[(offset >> PAGE_SHIFT) as usize].generic {
            let first = ((offset & ((1 << PAGE_SHIFT) - 1)) >> GENERIC_SHIFT) as usize;
            cells[first..first + (bytes >> GENERIC_SHIFT) as usize].iter_mut().for_each(|cell| change(&mut cell.write));
        }
    }

    #[inline]
    fn generic_cell(&mut self, page: usize, index: usize) -> GenericCell {
        self.pages[page].generic.get_or_insert_with(|| Box::new([GenericCell::default(); GENERIC_CELLS]))[index]
    }

    #[inline]
    fn set_read(&mut self, page: usize, index: usize, stamp: Stamp) {
        if let Some(cells) = &mut self.pages[page].generic {
            cells[index].read = stamp;
        }
    }

    fn new_set(&mut self) -> u32 {
        self.free_sets.pop().unwrap_or_else(|| {
            self.read_sets.push(Clock::default());
            self.read_sets.len() as u32 - 1
        })
    }

    fn recycle(&mut self, set: u32) {
        self.read_sets[set as usize].clear();
        self.free_sets.push(set);
    }

    /// Checks that the async proxy, on behalf of the issuing warp, sees the generic writes of a range.
    fn check_proxied(&self, range: &SharedRange, order: &WarpOrder) -> Result<(), OrderingError> {
        self.each_generic(range, |at, cell| {
            let write = cell.write;
            if write.kind == Kind::Copying {
                return self.check_generic_write(write, at, order);
            }
            if is_remote(write.kind) {
                self.check_generic_write(write, at, order)?;
                let fenced = order.known.proxied_phases.get(write.actor.into()) > write.value;
                return if fenced { Ok(()) } else { Err(OrderingError::RemoteStoreNotFenced { offset: at }) };
            }
            if !matches!(write.kind, Kind::Epoch | Kind::Strong | Kind::Allocation) {
                return Ok(());
            }
            if order.known.generic.get(write.actor.into()) < write.value {
                return Err(OrderingError::UnsynchronisedWrite { offset: at, writer: self.actor(write.actor) });
            }
            if write.kind != Kind::Allocation && order.known.proxied.get(write.actor.into()) < write.value {
                return Err(OrderingError::MissingProxyFence { offset: at, writer: self.actor(write.actor) });
            }
            Ok(())
        })
    }

    fn each_generic(
        &self,
        range: &SharedRange,
        mut check: impl FnMut(u32, &GenericCell) -> Result<(), OrderingError>,
    ) -> Result<(), OrderingError> {
        let mut at = range.start;
        while at < range.end {
            let page_end = ((at >> PAGE_SHIFT) + 1) << PAGE_SHIFT;
            if let Some(cells) = &self.pages[(at >> PAGE_SHIFT) as usize].generic {
                let end = page_end.min(range.end);
                while at < end {
                    check(at, &cells[((at & ((1 << PAGE_SHIFT) - 1)) >> GENERIC_SHIFT) as usize])?;
                    at = (at | 3) + 1;
                }
            }
            at = page_end;
        }
        Ok(())
    }

    fn each_async(&mut self, range: &SharedRange, mut visit: impl FnMut(&mut AsyncCell)) {
        let mut at = range.start;
        while at < range.end {
            let cells = self.pages[(at >> PAGE_SHIFT) as usize]
                .asynchronous
                .get_or_insert_with(|| Box::new([AsyncCell::default(); ASYNC_CELLS]));
            visit(&mut cells[((at & ((1 << PAGE_SHIFT) - 1)) >> ASYNC_SHIFT) as usize]);
            at = (at | 15) + 1;
        }
    }

    fn check_each_async(
        &self,
        range: &SharedRange,
        mut check: impl FnMut(u32, &AsyncCell) -> Result<(), OrderingError>,
    ) -> Result<(), OrderingError> {
        let mut at = range.start;
        while at < range.end {
            if let Some(cells) = &self.pages[(at >> PAGE_SHIFT) as usize].asynchronous {
                check(at, &cells[((at & ((1 << PAGE_SHIFT) - 1)) >> ASYNC_SHIFT) as usize])?;
            }
            at = (at | 15) + 1;
        }
        Ok(())
    }

    /// A bulk write is issued into a range; one that reduces does not race with others that do.
    pub(crate) fn begin_bulk_write(
        &mut self,
        range: &SharedRange,
        reduces: bool,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        self.check_proxied(range, order)?;
        self.each_generic(range, |at, cell| self.check_generic_read(cell.read, at, order))?;
        self.check_each_async(range, |at, cell| {
            if !(reduces && is_reduction(cell.write.kind)) {
                self.check_async_write(cell.write, at, order)?;
            }
            self.check_async_read(cell.read, at, order)
        })?;
        self.forget_generic(range);
        self.each_async(range, |cell| {
            let kind = if reduces { Kind::Reducing } else { Kind::InFlight };
            *cell = AsyncCell { write: one_more(cell.write, kind), read: Stamp::default() }
        });
        Ok(())
    }

    fn forget_generic(&mut self, range: &SharedRange) {
        let mut at = range.start;
        while at < range.end {
            let page_end = ((at >> PAGE_SHIFT) + 1) << PAGE_SHIFT;
            let end = page_end.min(range.end);
            if let Some(cells) = &mut self.pages[(at >> PAGE_SHIFT) as usize].generic {
                while at < end {
                    let cell = &mut cells[((at & ((1 << PAGE_SHIFT) - 1)) >> GENERIC_SHIFT) as usize];
                    if cell.read.kind == Kind::Set {
                        self.read_sets[cell.read.value as usize].clear();
                        self.free_sets.push(cell.read.value);
                    }
                    *cell = GenericCell::default();
                    at = (at | 3) + 1;
                }
            }
            at = page_end;
        }
    }

    /// A bulk write landed in a range, in a phase of an mbarrier.
    pub(crate) fn end_bulk_write(&mut self, range: &SharedRange, reduces: bool, mbarrier: u32, phase: u32) {
        let kinds = if reduces { (Kind::Reducing, Kind::Reduced) } else { (Kind::InFlight, Kind::Phase) };
        self.each_async(range, |cell| cell.write = one_less(cell.write, kinds, mbarrier, phase));
    }

    /// A bulk copy within the cluster has read a range, and completed in a phase of an mbarrier.
    pub(crate) fn end_copy_read(&mut self, range: &SharedRange, mbarrier: u32, phase: u32) {
        let kinds = (Kind::Reading, Kind::ReadPhase);
        self.each_async(range, |cell| cell.read = one_less(cell.read, kinds, mbarrier, phase));
    }

    /// The async proxy reads a range.
    pub(crate) fn async_read(
        &mut self,
        range: &SharedRange,
        reader: AsyncReader,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        self.check_proxied(range, order)?;
        self.check_each_async(range, |at, cell| self.check_async_write(cell.write, at, order))?;
        let actor = order.actor as u16;
        let stamp = match reader {
            AsyncReader::Operation(number) => Stamp { kind: Kind::Operation, actor, value: number },
            AsyncReader::Warpgroup { leader, number } => {
                Stamp { kind: Kind::Warpgroup, actor: leader as u16, value: number }
            }
            AsyncReader::BulkStore => Stamp { kind: Kind::BulkPending, actor, value: 0 },
            AsyncReader::ClusterCopy => Stamp { kind: Kind::Reading, actor: 0, value: 1 },
        };
        let copies = matches!(reader, AsyncReader::ClusterCopy);
        self.each_async(range, |cell| cell.read = if copies { one_more(cell.read, Kind::Reading) } else { stamp });
        Ok(())
    }

    /// A thread waited for its bulk store to have read a range: from its current epoch on the range is free.
    pub(crate) fn bulk_read_observed(&mut self, range: &SharedRange, order: &WarpOrder) {
        let stamp = Stamp { kind: Kind::Epoch, actor: order.actor as u16, value: order.epoch() };
        self.each_async(range, |cell| {
            if cell.read.kind == Kind::BulkPending && cell.read.actor == stamp.actor {
                cell.read = stamp;
            }
        });
    }
}
