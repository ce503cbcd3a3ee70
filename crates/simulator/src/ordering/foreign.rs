//! Knowledge that travels between clusters and GPUs, through release and acquire on words of device memory.
//!
//! Inside a cluster knowledge is a few short vectors. Between clusters it is sparse: a map from cluster to the epochs of
//! its warps, shared between everybody who knows the same, since producers publish word after word with it unchanged.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::knowledge::{Clock, Knowledge, WarpOrder};
use super::{is_acquire, is_release};
use crate::program::{MemoryOrder, Scope};

/// Epochs of other clusters' warps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Foreign(Option<Arc<BTreeMap<u32, Clock>>>);

impl Foreign {
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }

    pub(crate) fn get(&self, cluster: u32) -> Option<&Clock> {
        self.0.as_ref()?.get(&cluster)
    }

    pub(crate) fn join(&mut self, other: &Foreign) {
        let Some(theirs) = &other.0 else { return };
        let Some(mine) = &mut self.0 else {
            self.0 = Some(theirs.clone());
            return;
        };
        if Arc::ptr_eq(mine, theirs) || includes(mine, theirs) {
            return;
        }
        if includes(theirs, mine) {
            *mine = theirs.clone();
            return;
        }
        let mine = Arc::make_mut(mine);
        for (&cluster, clock) in theirs.iter() {
            mine.entry(cluster).or_default().join(clock);
        }
    }

    fn join_cluster(&mut self, cluster: u32, clock: &Clock) {
        if self.get(cluster).is_some_and(|known| known.includes(clock)) {
            return;
        }
        Arc::make_mut(self.0.get_or_insert_default()).entry(cluster).or_default().join(clock);
    }
}

fn includes(map: &BTreeMap<u32, Clock>, other: &BTreeMap<u32, Clock>) -> bool {
    map.len() >= other.len()
        && other.iter().all(|(cluster, clock)| map.get(cluster).is_some_and(|known| known.includes(clock)))
}

/// Who accesses a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordAccess {
    /// Unique number of the cluster.
    pub(crate) cluster: u32,
    pub(crate) gpu: u32,
    pub(crate) order: MemoryOrder,
    pub(crate) scope: Scope,
}

#[derive(Debug)]
struct Release {
    cluster: u32,
    gpu: u32,
    scope: Scope,
    /// Foreign knowledge included.
    knowledge: Knowledge,
}

/// What releases left at a word of device memory.
#[derive(Debug, Default)]
pub(crate) struct GlobalWord {
    /// One per cluster that takes part in the release sequence.
    releases: Vec<Release>,
}

impl GlobalWord {
    /// A strong write. One that is not a read-modify-write starts a new release sequence (PTX ISA, release patterns).
    pub(crate) fn write(&mut self, access: &WordAccess, modifies: bool, order: &mut WarpOrder) {
        let WordAccess { cluster, gpu, scope, .. } = *access;
        if !modifies {
            // Keep one release for its buffers: words are written again and again.
            self.releases.truncate(1);
            if let Some(release) = self.releases.first_mut() {
                (release.cluster, release.gpu) = (cluster, gpu);
                release.knowledge.clear();
            }
        }
        let index = self.releases.iter().position(|release| release.cluster == cluster).unwrap_or_else(|| {
            self.releases.push(Release { cluster, gpu, scope, knowledge: Knowledge::default() });
            self.releases.len() - 1
        });
        let release = &mut self.releases[index];
        // A relaxed write after a release fence reaches as far as both.
        release.scope = if is_release(access.order) { access.scope } else { access.scope.min(order.fence_scope()) };
        order.publish(access.order, &mut release.knowledge);
    }

    /// A strong read.
    pub(crate) fn read(&self, access: &WordAccess, order: &mut WarpOrder, now: u64) {
        for release in &self.releases {
            let required = if release.gpu != access.gpu {
                Scope::System
            } else if release.cluster != access.cluster {
                Scope::Gpu
            } else {
                Scope::Cta
            };
            if release.scope < required || (is_acquire(access.order) && access.scope < required) {
                continue;
            }
            if release.cluster == access.cluster {
                order.observe(access.order, &release.knowledge, now);
            } else {
                order.observe_foreign(access, release.cluster, &release.knowledge);
            }
        }
        if is_acquire(access.order) {
            order.note_acquire(now);
        }
    }
}

impl WarpOrder {
    /// Takes in what another cluster published.
    fn observe_foreign(&mut self, access: &WordAccess, cluster: u32, knowledge: &Knowledge) {
        let into = if is_acquire(access.order) { &mut self.known } else { &mut self.pending };
        into.foreign.join(&knowledge.foreign);
        into.foreign.join_cluster(cluster, &knowledge.generic);
        // It may come back with news of this cluster's own warps.
        if let Some(own) = knowledge.foreign.get(access.cluster) {
            into.generic.join(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(cluster: u32, gpu: u32, order: MemoryOrder, scope: Scope) -> WordAccess {
        WordAccess { cluster, gpu, order, scope }
    }

    /// What warp 0 of cluster 2 on GPU 1 knows of cluster 1 on GPU 0 after a handshake.
    fn handshake(release: (MemoryOrder, Scope), acquire: (MemoryOrder, Scope)) -> u32 {
        let (mut writer, mut reader) = (WarpOrder::new(0, 0), WarpOrder::new(0, 0));
        let mut word = GlobalWord::default();
        word.write(&access(1, 0, release.0, release.1), false, &mut writer);
        word.read(&access(2, 1, acquire.0, acquire.1), &mut reader, 1);
        reader.known.foreign.get(1).map_or(0, |clock| clock.get(0))
    }

    #[test]
    fn scope_and_order_must_suffice_on_both_sides() {
        use MemoryOrder::{Acquire, Relaxed, Release};
        assert_eq!(handshake((Release, Scope::System), (Acquire, Scope::System)), 1);
        assert_eq!(handshake((Release, Scope::Gpu), (Acquire, Scope::System)), 0);
        assert_eq!(handshake((Release, Scope::System), (Acquire, Scope::Gpu)), 0);
        assert_eq!(handshake((Relaxed, Scope::System), (Acquire, Scope::System)), 0);
        assert_eq!(handshake((Release, Scope::System), (Relaxed, Scope::System)), 0);
    }

    #[test]
    fn knowledge_is_transitive_and_shared() {
        let (mut a, mut b, mut c) = (WarpOrder::new(0, 0), WarpOrder::new(0, 0), WarpOrder::new(0, 0));
        let (mut first, mut second) = (GlobalWord::default(), GlobalWord::default());
        let order = |cluster, order| access(cluster, cluster, order, Scope::System);
        first.write(&order(1, MemoryOrder::Release), false, &mut a);
        first.read(&order(2, MemoryOrder::Acquire), &mut b, 1);
        second.write(&order(2, MemoryOrder::Release), false, &mut b);
        second.read(&order(3, MemoryOrder::Acquire), &mut c, 2);
        assert_eq!(c.known.foreign.get(1).map(|clock| clock.get(0)), Some(1));
    }
}
