//! Knowledge that travels between clusters and GPUs, through release and acquire on words of device memory.
//!
//! Inside a cluster knowledge is a few short vectors. Between clusters it is sparse: a list of clusters with the epochs of
//! their warps, shared between everybody who knows the same, since producers publish word after word with it unchanged.

use std::sync::Arc;

use super::knowledge::{Clock, Knowledge, WarpOrder};
use super::{is_acquire, is_release};
use crate::program::{MemoryOrder, Scope};

/// Epochs of other clusters' warps, by the cluster's unique number, in ascending order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Foreign(Option<Arc<Vec<Entry>>>);

type Entry = (u32, Arc<Clock>);

impl Foreign {
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }

    fn entries(&self) -> &[Entry] {
        self.0.as_ref().map_or(&[], |entries| entries)
    }

    pub(crate) fn get(&self, cluster: u32) -> Option<&Clock> {
        let entries = self.entries();
        let index = entries.binary_search_by_key(&cluster, |entry| entry.0).ok()?;
        Some(&entries[index].1)
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
        *mine = if includes(theirs, mine) { theirs.clone() } else { Arc::new(merge(mine, theirs)) };
    }

    pub(crate) fn join_cluster(&mut self, cluster: u32, clock: &Clock) {
        if self.get(cluster).is_some_and(|known| known.includes(clock)) {
            return;
        }
        let entries = Arc::make_mut(self.0.get_or_insert_default());
        match entries.binary_search_by_key(&cluster, |entry| entry.0) {
            Ok(index) => Arc::make_mut(&mut entries[index].1).join(clock),
            Err(index) => entries.insert(index, (cluster, Arc::new(clock.clone()))),
        }
    }

    /// Forgets clusters before `horizon`.
    pub(crate) fn forget_before(&mut self, horizon: u32) {
        let stale = self.entries().partition_point(|entry| entry.0 < horizon);
        if stale > 0 {
            self.0 = Some(Arc::new(self.entries()[stale..].to_vec()));
        }
    }
}

fn clock_includes(clock: &Arc<Clock>, other: &Arc<Clock>) -> bool {
    Arc::ptr_eq(clock, other) || clock.includes(other)
}

fn includes(entries: &[Entry], others: &[Entry]) -> bool {
    let mut mine = entries.iter();
    others.iter().all(|(cluster, clock)| {
        mine.find(|entry| entry.0 >= *cluster)
            .is_some_and(|entry| entry.0 == *cluster && clock_includes(&entry.1, clock))
    })
}

fn merge(a: &[Entry], b: &[Entry]) -> Vec<Entry> {
    let mut merged = Vec::with_capacity(a.len().max(b.len()));
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        let entry = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.0 == y.0 => {
                let (x, y) = (a.next().expect("peeked"), b.next().expect("peeked"));
                if clock_includes(&x.1, &y.1) {
                    x.clone()
                } else {
                    let mut clock = Clock::clone(&x.1);
                    clock.join(&y.1);
                    (x.0, Arc::new(clock))
                }
            }
            (Some(x), Some(y)) if x.0 < y.0 => a.next().expect("peeked").clone(),
            (_, Some(_)) => b.next().expect("peeked").clone(),
            (Some(_), None) => a.next().expect("peeked").clone(),
            (None, None) => return merged,
        };
        merged.push(entry);
    }
}

/// Who accesses a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordAccess {
    /// Unique number of the cluster.
    pub(crate) cluster: u32,
    pub(crate) gpu: u32,
    pub(crate) order: MemoryOrder,
    pub(crate) scope: Scope,
    /// Clusters before this one had retired when the oldest running launch began: whoever runs now sees their writes.
    pub(crate) horizon: u32,
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
        into.foreign.forget_before(access.horizon);
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
    use crate::node::OrderingRules;

    fn access(cluster: u32, gpu: u32, order: MemoryOrder, scope: Scope) -> WordAccess {
        WordAccess { cluster, gpu, order, scope, horizon: 0 }
    }

    /// What warp 0 of cluster 2 on GPU 1 knows of cluster 1 on GPU 0 after a handshake.
    fn handshake(release: (MemoryOrder, Scope), acquire: (MemoryOrder, Scope)) -> u32 {
        let (mut writer, mut reader) =
            (WarpOrder::new(0, 0, OrderingRules::Strict), WarpOrder::new(0, 0, OrderingRules::Strict));
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
    fn joining_takes_the_later_epoch_of_each_cluster() {
        let clock = |value| {
            let mut clock = Clock::default();
            clock.raise(0, value);
            clock
        };
        let list = |entries: &[(u32, u32)]| {
            let mut foreign = Foreign::default();
            entries.iter().for_each(|&(cluster, value)| foreign.join_cluster(cluster, &clock(value)));
            foreign
        };
        let epochs = |foreign: &Foreign| foreign.entries().iter().map(|e| (e.0, e.1.get(0))).collect::<Vec<_>>();
        let mut joined = list(&[(5, 1), (2, 7), (9, 3)]);
        joined.join(&list(&[(1, 1), (5, 4), (9, 2)]));
        assert_eq!(epochs(&joined), [(1, 1), (2, 7), (5, 4), (9, 3)]);
        joined.join(&list(&[(2, 6)]));
        assert_eq!(epochs(&joined), [(1, 1), (2, 7), (5, 4), (9, 3)]);
        joined.forget_before(5);
        assert_eq!(epochs(&joined), [(5, 4), (9, 3)]);
    }

    #[test]
    fn knowledge_is_transitive_and_shared() {
        let (mut a, mut b, mut c) = (
            WarpOrder::new(0, 0, OrderingRules::Strict),
            WarpOrder::new(0, 0, OrderingRules::Strict),
            WarpOrder::new(0, 0, OrderingRules::Strict),
        );
        let (mut first, mut second) = (GlobalWord::default(), GlobalWord::default());
        let order = |cluster, order| access(cluster, cluster, order, Scope::System);
        first.write(&order(1, MemoryOrder::Release), false, &mut a);
        first.read(&order(2, MemoryOrder::Acquire), &mut b, 1);
        second.write(&order(2, MemoryOrder::Release), false, &mut b);
        second.read(&order(3, MemoryOrder::Acquire), &mut c, 2);
        assert_eq!(c.known.foreign.get(1).map(|clock| clock.get(0)), Some(1));
    }
}
