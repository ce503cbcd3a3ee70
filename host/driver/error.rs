//! What a driver call can fail with.

use thiserror::Error;

/// Error of one call into a [`Device`](super::Device).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DriverError {
    /// A call was refused. The device goes on.
    #[error("{call} failed on device {device}: {reason}")]
    Call {
        /// The driver call, by the name of the trait's method.
        call: &'static str,
        /// The device it was made on.
        device: u32,
        /// What the driver said.
        reason: String,
    },
    /// A stream waits for something that nobody can provide any more.
    #[error(
        "the work on device {device} can never finish, because every rank is waiting; check that all ranks made the \
         same calls with the same shapes: {report}"
    )]
    Deadlock {
        /// The device whose stream was synchronised.
        device: u32,
        /// Who waits for what.
        report: String,
    },
    /// A kernel did something that hardware leaves undefined or traps on. Nothing runs on the node any more.
    #[error("a kernel faulted, seen by device {device}; the node has stopped, create a new one to go on: {fault}")]
    Fault {
        /// The device that reports it, not always the one that caused it.
        device: u32,
        /// What happened, and where in the program.
        fault: String,
    },
}

impl DriverError {
    /// A refused call.
    pub fn call(call: &'static str, device: u32, reason: impl ToString) -> Self {
        Self::Call { call, device, reason: reason.to_string() }
    }
}
