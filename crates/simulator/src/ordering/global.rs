//! Device memory: who wrote each piece last, and whether a reader may rely on it.
//!
//! Every write of a kernel is stamped with a number in a log of writes; a warp's writes between two releases share one.
//! A weak read must be ordered after the write it sees, by release and acquire of sufficient scope. Only reads are
//! checked: racing writes whose value nobody reads are not found.
//!
//! Memory bound to a multicast object has two addresses. Accesses through different aliases need a proxy fence between
//! them as well (PTX ISA, "Proxies": a `fence.proxy.alias` along the causality path). That path may lead through other
//! GPUs, so it is followed by time: the writing CTA may fence after its write, or the reading warp after the acquire that
//! made the write visible.

use std::collections::HashMap;

use super::knowledge::Clock;
use super::{OrderingError, WarpOrder};

#[derive(Debug)]
struct Write {
    cta: u32,
    cluster: u32,
    /// The warp's number in its cluster.
    warp: u32,
    epoch: u32,
    time: u64,
    multicast: bool,
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

/// The log of writes to device memory.
#[derive(Debug, Default)]
pub(crate) struct GlobalTracker {
    writes: Vec<Write>,
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

    fn push(&mut self, access: &GlobalAccess, order: &WarpOrder, multicast: bool, bulk: bool) -> u32 {
        self.record(access);
        let GlobalAccess { cta, cluster, now: time, .. } = *access;
        self.writes.push(Write {
            cta,
            cluster,
            warp: order.actor,
            epoch: order.epoch(),
            time,
            multicast,
            bulk,
            pending: bulk,
        });
        self.writes.len() as u32
    }

    /// The stamp of a write by a warp now.
    #[inline]
    pub(crate) fn stamp(&mut self, access: &GlobalAccess, order: &mut WarpOrder, multicast: bool) -> u32 {
        let (epoch, last) = order.last_stamp[usize::from(multicast)];
        if epoch == order.epoch() {
            self.writes[last as usize - 1].time = access.now;
            return last;
        }
        let stamp = self.push(access, order, multicast, false);
        order.last_stamp[usize::from(multicast)] = (order.epoch(), stamp);
        stamp
    }

    /// The stamp of a bulk store that is issued now.
    pub(crate) fn bulk_stamp(&mut self, access: &GlobalAccess, order: &WarpOrder) -> u32 {
        self.push(access, order, false, true)
    }

    /// The bytes of a bulk store land.
    pub(crate) fn bulk_landed(&mut self, stamp: u32, now: u64) {
        self.writes[stamp as usize - 1].time = now;
    }

    /// The thread of a bulk store has waited for its writes.
    pub(crate) fn bulk_waited(&mut self, stamp: u32, epoch: u32) {
        let write = &mut self.writes[stamp as usize - 1];
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
        let write = &self.writes[stamp as usize - 1];
        let asynchronous = write.bulk;
        if write.cluster == access.cluster && !asynchronous && order.known.proxied.get(write.warp) < write.epoch {
            return Err(OrderingError::MissingGlobalProxyFence { address, writer_cta: self.ctas[&write.cta].index });
        }
        Ok(())
    }

    /// A weak read of bytes with this stamp; `address` is for the diagnostic.
    pub(crate) fn check(
        &self,
        stamp: u32,
        address: u64,
        multicast: bool,
        access: &GlobalAccess,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let write = &self.writes[stamp as usize - 1];
        let writer = &self.ctas[&write.cta];
        if writer.retired.is_some_and(|time| time <= access.launched) {
            return Ok(());
        }
        let epoch = if write.cluster == access.cluster {
            order.known.generic.get(write.warp)
        } else {
            order.known.foreign.get(write.cluster).map_or(0, |clock| clock.get(write.warp))
        };
        let (writer_gpu, writer_cta) = (writer.gpu, writer.index);
        if write.pending {
            return Err(OrderingError::BulkStoreNotWaited { address, writer_gpu, writer_cta });
        }
        if epoch < write.epoch {
            return Err(OrderingError::GlobalRace { address, writer_gpu, writer_cta });
        }
        let covered = write.time <= order.alias_covered || writer.alias_fenced.get(write.warp) >= write.epoch;
        if write.multicast != multicast && !covered {
            let name = |multicast| if multicast { "a multicast" } else { "its own (unicast)" };
            let (written, read) = (name(write.multicast), name(multicast));
            return Err(OrderingError::MissingAliasFence { address, written, read, writer_gpu, writer_cta });
        }
        Ok(())
    }
}
