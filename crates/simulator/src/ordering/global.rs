//! Device memory: who wrote each piece last, and whether a reader may rely on it.
//!
//! Every write of a kernel is stamped with a number in a log of accesses; a warp's writes between two releases share one.
//! A weak read must be ordered after the write it sees, and a write of data after the write and the read before it, by
//! release and acquire of sufficient scope. Of several unordered readers only the last is remembered. Flags, that is
//! strong accesses to single elements, race with nothing.
//!
//! Memory bound to a multicast object has two addresses. Accesses through different aliases need a proxy fence between
//! them as well (PTX ISA, "Proxies": a `fence.proxy.alias` along the causality path). That path may lead through other
//! GPUs, so it is followed by time: the writing CTA may fence after its write, or the reading warp after the acquire that
//! made the write visible.

use std::collections::HashMap;

use super::knowledge::Clock;
use super::{OrderingError, WarpOrder};

/// What sort of access a stamp stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessSort {
    /// A write of data.
    Data,
    /// A strong write of one element.
    Flag,
    /// The same through a multicast address.
    MulticastData,
    /// The same through a multicast address.
    MulticastFlag,
    /// A read of data.
    Read,
}

/// Sorts of accesses.
pub(super) const SORTS: usize = 5;

#[derive(Debug)]
struct Access {
    cta: u32,
    cluster: u32,
    /// The warp's number in its cluster.
    warp: u32,
    epoch: u32,
    time: u64,
    sort: AccessSort,
    /// By a bulk store, which its thread has not waited for while it is pending.
    bulk: bool,
    pending: bool,
}

#[derive(Debug)]
struct CtaRecord {
    gpu: u32,
    index: [u32; 3],
    /// Per warp of its cluster: writes that an alias fence of this CTA covers.
    alias_fenced: Clock,
    /// All its writes are visible to kernels that start later.
    retired: Option<u64>,
}

/// The log of accesses to device memory.
#[derive(Debug, Default)]
pub(crate) struct GlobalTracker {
    log: Vec<Access>,
    ctas: HashMap<u32, CtaRecord>,
}

/// One warp's side of an access.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GlobalAccess {
    /// Unique numbers of its CTA and cluster.
    pub(crate) cta: u32,
    pub(crate) cluster: u32,
    pub(crate) gpu: u32,
    pub(crate) index: [u32; 3],
    /// When its kernel was launched.
    pub(crate) launched: u64,
    pub(crate) now: u64,
}

impl GlobalTracker {
    fn record(&mut self, access: &GlobalAccess) -> &mut CtaRecord {
        self.ctas.entry(access.cta).or_insert_with(|| CtaRecord {
            gpu: access.gpu,
            index: access.index,
            alias_fenced: Clock::default(),
            retired: None,
        })
    }

    /// `fence.proxy.alias` on the writing side.
    pub(crate) fn alias_fence(&mut self, access: &GlobalAccess, order: &WarpOrder) {
        self.record(access).alias_fenced.join(&order.known.generic);
    }

    /// A CTA has exited.
    pub(crate) fn retire(&mut self, cta: u32, now: u64) {
        if let Some(record) = self.ctas.get_mut(&cta) {
            record.retired = Some(now);
        }
    }

    fn push(&mut self, access: &GlobalAccess, order: &WarpOrder, sort: AccessSort, bulk: bool) -> u32 {
        self.record(access);
        let GlobalAccess { cta, cluster, now: time, .. } = *access;
        self.log.push(Access {
            cta,
            cluster,
            warp: order.actor,
            epoch: order.epoch(),
            time,
            sort,
            bulk,
            pending: bulk,
        });
        self.log.len() as u32
    }

    /// The stamp of an access by a warp now.
    #[inline]
    pub(crate) fn stamp(&mut self, access: &GlobalAccess, order: &mut WarpOrder, sort: AccessSort) -> u32 {
        let (epoch, last) = order.last_stamp[sort as usize];
        if epoch == order.epoch() {
            self.log[last as usize - 1].time = access.now;
            return last;
        }
        let stamp = self.push(access, order, sort, false);
        order.last_stamp[sort as usize] = (order.epoch(), stamp);
        stamp
    }

    /// The stamp of a bulk store that is issued now.
    pub(crate) fn bulk_stamp(&mut self, access: &GlobalAccess, order: &WarpOrder) -> u32 {
        self.push(access, order, AccessSort::Data, true)
    }

    /// The bytes of a bulk store land.
    pub(crate) fn bulk_landed(&mut self, stamp: u32, now: u64) {
        self.log[stamp as usize - 1].time = now;
    }

    /// The thread of a bulk store has waited for its writes.
    pub(crate) fn bulk_waited(&mut self, stamp: u32, epoch: u32) {
        let write = &mut self.log[stamp as usize - 1];
        (write.epoch, write.pending) = (epoch, false);
    }

    /// A read through the async proxy of what a warp of the same cluster wrote through the generic one. (A fence that
    /// another cluster executed is not followed.)
    pub(crate) fn check_proxy(
        &self,
        stamp: u32,
        address: u64,
        access: &GlobalAccess,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let write = &self.log[stamp as usize - 1];
        let asynchronous = write.bulk;
        if write.cluster == access.cluster && !asynchronous && order.known.proxied.get(write.warp) < write.epoch {
            return Err(OrderingError::MissingGlobalProxyFence { address, writer_cta: self.ctas[&write.cta].index });
        }
        Ok(())
    }

    /// True when the access happens before what the warp does now.
    fn is_ordered(&self, earlier: &Access, access: &GlobalAccess, order: &WarpOrder) -> bool {
        let epoch = if earlier.cluster == access.cluster {
            order.known.generic.get(earlier.warp)
        } else {
            order.known.foreign.get(earlier.cluster).map_or(0, |clock| clock.get(earlier.warp))
        };
        epoch >= earlier.epoch || self.is_history(earlier, access)
    }

    /// True when the accessing CTA had exited before the kernel began that accesses now.
    fn is_history(&self, earlier: &Access, access: &GlobalAccess) -> bool {
        self.ctas[&earlier.cta].retired.is_some_and(|time| time <= access.launched)
    }

    /// A weak read of bytes whose last write has this stamp; `address` is for the diagnostic.
    pub(crate) fn check_read(
        &self,
        stamp: u32,
        address: u64,
        multicast: bool,
        access: &GlobalAccess,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let write = &self.log[stamp as usize - 1];
        if self.is_history(write, access) {
            return Ok(());
        }
        let writer = &self.ctas[&write.cta];
        let (writer_gpu, writer_cta) = (writer.gpu, writer.index);
        if write.pending {
            return Err(OrderingError::BulkStoreNotWaited { address, writer_gpu, writer_cta });
        }
        if !self.is_ordered(write, access, order) {
            return Err(OrderingError::GlobalRace { address, writer_gpu, writer_cta });
        }
        let by_multicast = matches!(write.sort, AccessSort::MulticastData | AccessSort::MulticastFlag);
        let covered = write.time <= order.alias_covered || writer.alias_fenced.get(write.warp) >= write.epoch;
        if by_multicast != multicast && !covered {
            let name = |multicast| if multicast { "a multicast" } else { "its own (unicast)" };
            let (written, read) = (name(by_multicast), name(multicast));
            return Err(OrderingError::MissingAliasFence { address, written, read, writer_gpu, writer_cta });
        }
        Ok(())
    }

    /// A write of data over bytes whose last write, or last read, has this stamp.
    pub(crate) fn check_write(
        &self,
        stamp: u32,
        address: u64,
        access: &GlobalAccess,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let earlier = &self.log[stamp as usize - 1];
        if matches!(earlier.sort, AccessSort::Flag | AccessSort::MulticastFlag) || self.is_history(earlier, access) {
            return Ok(());
        }
        let other = &self.ctas[&earlier.cta];
        let (gpu, cta) = (other.gpu, other.index);
        if earlier.pending {
            return Err(OrderingError::BulkStoreNotWaited { address, writer_gpu: gpu, writer_cta: cta });
        }
        if !self.is_ordered(earlier, access, order) {
            let done = if earlier.sort == AccessSort::Read { "read" } else { "wrote" };
            return Err(OrderingError::GlobalOverwrite { address, done, gpu, cta });
        }
        Ok(())
    }
}
