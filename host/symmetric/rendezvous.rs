//! How ranks meet: the three calls that setting up a workspace needs.

use std::time::Duration;

use thiserror::Error;

use crate::driver::ShareableHandle;

/// The ranks' way to talk while they set up, never during a launch. Every call is collective: all ranks make the same
/// calls in the same order.
///
/// [`ThreadRendezvous`](super::ThreadRendezvous) is for threads of one process. An application that already has a
/// communicator implements the trait on top of it.
pub trait Rendezvous: Send + Sync {
    /// This rank.
    fn rank(&self) -> u32;

    /// Number of ranks.
    fn world_size(&self) -> u32;

    /// Gives `bytes` to every rank and returns every rank's, by rank. Lengths may differ.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, RendezvousError>;

    /// Returns when every rank has called it.
    fn barrier(&self) -> Result<(), RendezvousError>;

    /// Like [`Self::all_gather`] for handles, which may need more than copying, such as passing a descriptor to another
    /// process. A rank may have none to give.
    fn exchange_handles(
        &self,
        handle: Option<ShareableHandle>,
    ) -> Result<Vec<Option<ShareableHandle>>, RendezvousError>;
}

/// Why ranks did not meet. After an error the group cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RendezvousError {
    /// Some ranks did not arrive in time.
    #[error(
        "rank {rank} waited {waited:?} in {call} and ranks {missing:?} did not arrive; check that they run and make \
         the same calls"
    )]
    TimedOut {
        /// The rank that waited.
        rank: u32,
        /// What it waited in.
        call: &'static str,
        /// The ranks that did not arrive.
        missing: Vec<u32>,
        /// How long it waited.
        waited: Duration,
    },
    /// Some ranks left the group before they arrived.
    #[error("rank {rank} cannot finish {call}: ranks {lost:?} have left the group; look for the error they left with")]
    PeerLost {
        /// The rank that reports it.
        rank: u32,
        /// What it waited in.
        call: &'static str,
        /// The ranks that left.
        lost: Vec<u32>,
    },
    /// Ranks make different calls.
    #[error(
        "rank {rank} calls {given} while rank {other} is in {wanted}; every rank has to make the same calls in the \
         same order"
    )]
    CallMismatch {
        /// The rank that reports it.
        rank: u32,
        /// Its call.
        given: &'static str,
        /// A rank with another call.
        other: u32,
        /// That rank's call.
        wanted: &'static str,
    },
    /// An earlier call of some rank failed, and the ranks no longer agree where they are.
    #[error("rank {rank} cannot call {call}: the group broke earlier ({reason}); create a new group")]
    Broken {
        /// The rank that reports it.
        rank: u32,
        /// Its call.
        call: &'static str,
        /// The first error.
        reason: String,
    },
    /// An implementation on another communicator failed.
    #[error("the communicator failed in {call}: {reason}")]
    Communicator {
        /// The call.
        call: &'static str,
        /// What the communicator said.
        reason: String,
    },
}
