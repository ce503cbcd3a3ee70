//! Why symmetric memory could not be set up.

use thiserror::Error;

use super::RendezvousError;
use crate::driver::DriverError;

/// A step of the set-up that all ranks take together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Comparing what the ranks were asked for.
    Configure,
    /// Loading the kernels.
    LoadKernels,
    /// Creating this rank's memory.
    CreateMemory,
    /// Mapping every rank's memory.
    MapPeers,
    /// Creating the multicast object, on rank 0.
    CreateMulticast,
    /// Adding every device to it.
    JoinMulticast,
    /// Binding every rank's memory to it.
    BindMulticast,
    /// Mapping it.
    MapMulticast,
    /// Zeroing the control blocks.
    Initialise,
}

impl std::fmt::Display for Step {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Configure => "comparing the configuration",
            Self::LoadKernels => "loading the kernels",
            Self::CreateMemory => "creating its memory",
            Self::MapPeers => "mapping the ranks' memory",
            Self::CreateMulticast => "creating the multicast object",
            Self::JoinMulticast => "joining the multicast object",
            Self::BindMulticast => "binding its memory to the multicast object",
            Self::MapMulticast => "mapping the multicast object",
            Self::Initialise => "zeroing its control block",
        })
    }
}

/// Error of setting up symmetric memory. All ranks get one for the same step; everything made before it is released.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SymmetricError {
    /// This rank failed; the others get [`Self::PeerFailed`].
    #[error("this rank failed in {step}: {source}")]
    Failed {
        /// The step.
        step: Step,
        /// What the driver said.
        source: DriverError,
    },
    /// Another rank failed, so this one gave up what it had.
    #[error("rank {rank} failed in {step}: {reason}; this rank released what it had, fix that rank and start again")]
    PeerFailed {
        /// The lowest rank that failed.
        rank: u32,
        /// The step.
        step: Step,
        /// What went wrong there.
        reason: String,
    },
    /// Ranks were given different parameters.
    #[error("rank {rank} asks for {wanted} and this rank for {given}; give every rank the same configuration")]
    Disagreement {
        /// The lowest rank that differs from this one.
        rank: u32,
        /// What this rank asked for.
        given: String,
        /// What that rank asked for.
        wanted: String,
    },
    /// A peer sent no handle where one was due.
    #[error("rank {rank} sent no handle in {step}; its rendezvous has to deliver what it was given")]
    MissingHandle {
        /// The peer.
        rank: u32,
        /// The step.
        step: Step,
    },
    /// The ranks could not meet.
    #[error("the ranks did not meet in {step}: {source}")]
    Rendezvous {
        /// The step.
        step: Step,
        /// Why.
        source: RendezvousError,
    },
}
