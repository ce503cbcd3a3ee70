//! Memory that has two addresses: its own and that of a multicast object.
//!
//! Accesses through different virtual aliases need a proxy fence between them (PTX ISA, "Proxies": a `fence.proxy.alias`
//! along the causality path). The path may lead through other GPUs, so it is followed by time: the writing CTA may fence
//! after its write, or the reading warp after the acquire that made the write visible.

use std::collections::HashMap;

use super::knowledge::Clock;
use super::{OrderingError, WarpOrder};
use crate::memory::Place;

const GRANULE_SHIFT: u32 = 4;
const PAGE_SHIFT: u32 = 16;
const CELLS: usize = 1 << (PAGE_SHIFT - GRANULE_SHIFT);

#[derive(Debug)]
struct Write {
    cta: u32,
    warp: u32,
    epoch: u32,
    time: u64,
    multicast: bool,
}

#[derive(Debug)]
struct CtaRecord {
    gpu: u32,
    index: [u32; 3],
    /// Per warp of its cluster: writes that an alias fence of this CTA covers.
    fenced: Clock,
    /// All its writes are visible to kernels that start later.
    retired: Option<u64>,
}

/// Writes to memory with a multicast alias.
#[derive(Debug, Default)]
pub(crate) struct AliasTracker {
    writes: Vec<Write>,
    ctas: HashMap<u32, CtaRecord>,
    /// Write number plus one per granule, per page of a memory.
    pages: HashMap<(u32, u64), Box<[u32; CELLS]>>,
}

/// One warp's side of an access.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AliasAccess {
    /// Unique number of its CTA.
    pub(crate) cta: u32,
    pub(crate) gpu: u32,
    pub(crate) index: [u32; 3],
    /// When its kernel was launched.
    pub(crate) launched: u64,
    pub(crate) now: u64,
}

impl AliasTracker {
    fn record(&mut self, access: &AliasAccess) -> &mut CtaRecord {
        self.ctas.entry(access.cta).or_insert_with(|| CtaRecord {
            gpu: access.gpu,
            index: access.index,
            fenced: Clock::default(),
            retired: None,
        })
    }

    /// `fence.proxy.alias` on the writing side.
    pub(crate) fn fence(&mut self, access: &AliasAccess, order: &WarpOrder) {
        self.record(access).fenced.join(&order.known.generic);
    }

    pub(crate) fn retire(&mut self, cta: u32, now: u64) {
        if let Some(record) = self.ctas.get_mut(&cta) {
            record.retired = Some(now);
        }
    }

    /// A write of `bytes` at `place` through one of the aliases, by a warp of its cluster at an epoch.
    pub(crate) fn write(
        &mut self,
        place: Place,
        bytes: u64,
        multicast: bool,
        access: &AliasAccess,
        (warp, epoch): (u32, u32),
    ) {
        self.record(access);
        let (cta, time) = (access.cta, access.now);
        match self.writes.last_mut() {
            Some(last) if (last.cta, last.warp, last.epoch, last.multicast) == (cta, warp, epoch, multicast) => {
                last.time = time;
            }
            _ => self.writes.push(Write { cta, warp, epoch, time, multicast }),
        }
        let number = self.writes.len() as u32;
        let mut at = place.offset;
        while at < place.offset + bytes {
            let page = self.pages.entry((place.memory, at >> PAGE_SHIFT)).or_insert_with(|| Box::new([0; CELLS]));
            page[((at & ((1 << PAGE_SHIFT) - 1)) >> GRANULE_SHIFT) as usize] = number;
            at = (at | ((1 << GRANULE_SHIFT) - 1)) + 1;
        }
    }

    /// A read of `bytes` at `place` through one of the aliases; `address` is for the diagnostic.
    pub(crate) fn read(
        &self,
        place: Place,
        bytes: u32,
        multicast: bool,
        address: u64,
        access: &AliasAccess,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let mut at = place.offset;
        while at < place.offset + u64::from(bytes) {
            if let Some(page) = self.pages.get(&(place.memory, at >> PAGE_SHIFT)) {
                let number = page[((at & ((1 << PAGE_SHIFT) - 1)) >> GRANULE_SHIFT) as usize];
                if let Some(write) = number.checked_sub(1).map(|index| &self.writes[index as usize])
                    && write.multicast != multicast
                    && write.time > order.alias_covered
                {
                    let writer = &self.ctas[&write.cta];
                    let before_launch = writer.retired.is_some_and(|time| time <= access.launched);
                    if !before_launch && writer.fenced.get(write.warp) < write.epoch {
                        let name = |multicast| if multicast { "a multicast" } else { "its own (unicast)" };
                        return Err(OrderingError::MissingAliasFence {
                            address: address + (at - place.offset),
                            written: name(write.multicast),
                            read: name(multicast),
                            writer_gpu: writer.gpu,
                            writer_cta: writer.index,
                        });
                    }
                }
            }
            at = (at | ((1 << GRANULE_SHIFT) - 1)) + 1;
        }
        Ok(())
    }

    /// The host wrote: nothing to fence.
    pub(crate) fn forget(&mut self, place: Place, bytes: u64) {
        if self.pages.is_empty() {
            return;
        }
        let mut at = place.offset;
        while at < place.offset + bytes {
            if let Some(page) = self.pages.get_mut(&(place.memory, at >> PAGE_SHIFT)) {
                page[((at & ((1 << PAGE_SHIFT) - 1)) >> GRANULE_SHIFT) as usize] = 0;
            }
            at = (at | ((1 << GRANULE_SHIFT) - 1)) + 1;
        }
    }
}
