//! Cancelling clusters that have not begun (PTX ISA, "clusterlaunchcontrol.try_cancel").

use super::{BulkSource, BulkTransfer, Event, Site};
use crate::machine::Machine;
use crate::shared::SharedRange;

/// What `try_cancel` found: the first CTA of the cluster that it cancelled. The ISA leaves the encoding open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Response(pub(crate) Option<[u32; 3]>);

/// In the upper word, so that bytes which are no response are recognised.
const CANCELLED: u64 = 0x7c1a_0001;
const FAILED: u64 = 0x7c1a_0000;

impl Response {
    pub(crate) fn encode(self) -> [u8; 16] {
        let (low, high) = match self.0 {
            Some([x, y, z]) => (u64::from(x) | u64::from(y) << 32, u64::from(z) | CANCELLED << 32),
            None => (0, FAILED << 32),
        };
        (u128::from(low) | u128::from(high) << 64).to_le_bytes()
    }

    pub(crate) fn decode(low: u64, high: u64) -> Option<Self> {
        match high >> 32 {
            CANCELLED => Some(Self(Some([low as u32, (low >> 32) as u32, high as u32]))),
            FAILED if (low, high as u32) == (0, 0) => Some(Self(None)),
            _ => None,
        }
    }
}

impl Machine {
    /// Takes the next cluster of the requesting launch, if there is one, and sends the response to each CTA.
    pub(super) fn cancel(&mut self, site: &Site, targets: Vec<u32>, range: &SharedRange, barrier_offset: u32) {
        let launch = &site.launch;
        let first = launch.take_cluster().map(|number| {
            let index = launch.cluster_index(number);
            std::array::from_fn(|axis| index[axis] * launch.config.cluster[axis])
        });
        for cta in targets {
            let transfer = BulkTransfer::Load {
                source: BulkSource::Response(Response(first)),
                cta,
                range: range.clone(),
                barrier_cta: cta,
                barrier_offset,
            };
            let due = self.now + self.random.latency();
            self.events.push(due, Event::Bulk(Box::new((site.clone(), transfer))));
        }
    }
}
