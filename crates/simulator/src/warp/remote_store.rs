//! `st.async` and `red.async` as the executing thread sees them; the storing itself is `engines::cluster_copy`.
//!
//! Both access memory and mbarrier through the generic proxy (PTX ISA, "st.async", "red.async"), so neither needs a proxy
//! fence before.

use super::Context;
use super::step::{Flow, Step};
use crate::engines::{BulkTransfer, StoredValue};
use crate::fault::{RemoteStoreError, access_failure, at_lane};
use crate::memory::{AccessKind, AccessProblem};
use crate::program::RemoteStore;

impl Context<'_> {
    pub(super) fn remote_store(&mut self, store: &RemoteStore) -> Step {
        let own = self.machine.cta(self.warp.cta);
        if self.machine.clusters.get(own.cluster).ctas.len() == 1 {
            return Err(RemoteStoreError::NoCluster.into());
        }
        let width = store.element.bytes();
        let bytes = width * store.sources.len() as u32;
        let kind = if store.reduction.is_some() { AccessKind::Atomic } else { AccessKind::Store };
        self.try_each_lane(|context, lane| {
            let fail = |value, problem| access_failure(lane, kind, value, bytes, problem);
            let (value, cta, offset) =
                context.shared(store.address, store.space, lane).map_err(|(value, problem)| fail(value, problem))?;
            if !offset.is_multiple_of(bytes) {
                return Err(fail(value, AccessProblem::Misaligned { required: bytes }));
            }
            context.machine.check_shared(cta, offset, bytes).map_err(|problem| fail(value, problem))?;
            context.machine.cta(cta).shared.check_plain(offset, bytes).map_err(|problem| fail(value, problem))?;
            let (barrier_cta, barrier) = context.known_mbarrier(store.barrier, store.space, lane)?;
            let rank_of = |cta: u32| context.machine.cta(cta).rank;
            if barrier_cta != cta {
                let (destination, barrier) = (rank_of(cta), rank_of(barrier_cta));
                return Err(at_lane(lane, RemoteStoreError::BarrierElsewhere { destination, barrier }));
            }
            let mut stored = StoredValue { bytes: [0; 16], length: bytes, reduction: None };
            for (piece, &source) in stored.bytes.chunks_exact_mut(width as usize).zip(&store.sources) {
                piece.copy_from_slice(&context.operand(source, lane).to_le_bytes()[..width as usize]);
            }
            stored.reduction = store.reduction.map(|operation| (operation, store.element));
            let reduces = stored.reduction.is_some();
            context
                .with_shadow(cta, |shared, order| shared.shadow.begin_remote_store(offset, bytes, reduces, order))
                .map_err(|error| at_lane(lane, error))?;
            let barrier_offset = context.machine.cta(cta).shared.mbarriers[barrier].offset;
            context.machine.cta_mut(cta).operations += 1;
            context.push_bulk(BulkTransfer::RemoteStore { cta, offset, value: stored, barrier_offset }, lane);
            Ok(())
        })?;
        self.effect();
        Ok(Flow::Next)
    }
}
