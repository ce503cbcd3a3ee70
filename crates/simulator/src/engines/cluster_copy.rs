//! What moves between the shared memories of a cluster: bulk copies and reductions, `st.async`, `red.async`.

use super::Site;
use crate::fault::FaultCause;
use crate::machine::Machine;
use crate::memory::{AccessKind, AccessProblem, atomic_update};
use crate::program::{AtomicOperation, ElementType};
use crate::shared::{SharedRange, SharedReader};
use crate::trace::{AsyncOperation, Stage};

/// What a reduction does to each element.
pub(crate) type Reduction = (AtomicOperation, ElementType);

/// The value of an `st.async` or `red.async`.
#[derive(Debug)]
pub(crate) struct StoredValue {
    pub(crate) bytes: [u8; 16],
    pub(crate) length: u32,
    pub(crate) reduction: Option<Reduction>,
}

/// A copy from the issuing CTA's shared memory to another's.
#[derive(Debug)]
pub(crate) struct ClusterCopy {
    pub(crate) source_cta: u32,
    pub(crate) source: SharedRange,
    pub(crate) cta: u32,
    pub(crate) start: u32,
    pub(crate) barrier_offset: u32,
    pub(crate) reduction: Option<Reduction>,
}

impl Machine {
    pub(super) fn land_cluster_copy(&mut self, site: &Site, copy: &ClusterCopy) -> Result<(), FaultCause> {
        let length = copy.source.end - copy.source.start;
        let mut bytes = vec![0; length as usize];
        self.cta(copy.source_cta).shared.read(copy.source.start, &mut bytes)?;
        self.land_in_shared(copy.cta, copy.start, &bytes, copy.reduction)?;
        self.operation_at(site, Stage::Completed, || AsyncOperation::BulkLoad { bytes: length });
        let (mbarrier, phase) = self.complete_transactions(copy.cta, copy.barrier_offset, length)?;
        let source = self.cta_mut(copy.source_cta);
        source.shared.shadow.end_copy_read(&copy.source, mbarrier, phase);
        source.operations -= 1;
        let target = self.cta_mut(copy.cta);
        let range = copy.start..copy.start + length;
        target.shared.shadow.end_bulk_write(&range, copy.reduction.is_some(), mbarrier, phase);
        target.operations -= 1;
        Ok(())
    }

    pub(super) fn land_remote_store(
        &mut self,
        site: &Site,
        cta: u32,
        offset: u32,
        value: &StoredValue,
        barrier_offset: u32,
    ) -> Result<(), FaultCause> {
        let bytes = value.length;
        self.land_in_shared(cta, offset, &value.bytes[..bytes as usize], value.reduction)?;
        self.operation_at(site, Stage::Completed, || AsyncOperation::RemoteStore { bytes });
        let (mbarrier, phase) = self.complete_transactions(cta, barrier_offset, bytes)?;
        let target = self.cta_mut(cta);
        target.shared.shadow.end_remote_store(offset, bytes, value.reduction.is_some(), mbarrier, phase);
        target.operations -= 1;
        Ok(())
    }

    fn land_in_shared(
        &mut self,
        cta: u32,
        start: u32,
        bytes: &[u8],
        reduction: Option<Reduction>,
    ) -> Result<(), FaultCause> {
        let shared = &mut self.cta_mut(cta).shared;
        let watched = match reduction {
            None => shared.bytes.write(start.into(), bytes),
            Some((operation, element)) => {
                let width = element.bytes();
                let mut watched = false;
                for (at, value) in (start..).step_by(width as usize).zip(bytes.chunks_exact(width as usize)) {
                    let old = shared.bytes.load(at.into(), width).ok_or_else(|| FaultCause::Access {
                        kind: AccessKind::BulkWrite,
                        address: at.into(),
                        bytes: width,
                        problem: AccessProblem::Uninitialised { first: at.into() },
                    })?;
                    let mut word = [0; 8];
                    word[..value.len()].copy_from_slice(value);
                    let new = atomic_update(operation, element, old, 0, u64::from_le_bytes(word))?;
                    watched |= shared.bytes.store(at.into(), width, new);
                }
                watched
            }
        };
        if watched {
            self.wake_shared_watchers(cta, start, bytes.len() as u32);
        }
        Ok(())
    }
}
