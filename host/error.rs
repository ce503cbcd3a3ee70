//! The errors of the library's front, one enum per concern beneath.

use thiserror::Error;

use crate::driver::DriverError;
use crate::mxfp8::Mxfp8Error;
use crate::symmetric::SymmetricError;
use crate::unsupported::Unsupported;

/// A configuration that no workspace can be made for. It is found before the ranks meet.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// One rank, or none.
    #[error("the group has {given} rank(s); {min} to {max} are wanted: with 1 rank a plain GEMM does the work")]
    TooFewRanks {
        /// Ranks.
        given: u32,
        /// Fewest.
        min: u32,
        /// Most.
        max: u32,
    },
    /// More ranks than the control block has words for.
    #[error("the group has {given} ranks; {min} to {max} are wanted: use smaller tensor-parallel groups")]
    TooManyRanks {
        /// Ranks.
        given: u32,
        /// Fewest.
        min: u32,
        /// Most.
        max: u32,
    },
    /// The rendezvous says a rank outside its group.
    #[error("the rank is {given}; 0 to {} are wanted in a group of {ranks}: check the rendezvous", ranks - 1)]
    RankOutOfRange {
        /// The rank.
        given: u32,
        /// Ranks of the group.
        ranks: u32,
    },
    /// Capacity for no rows.
    #[error("max_m is 0; at least 1 is wanted: set it to the largest number of tokens in a call")]
    NoRows,
    /// Capacity for no whole tile of columns.
    #[error("max_n is {given}; a positive multiple of {wanted} is wanted: set it to the largest N, rounded up")]
    ColumnsNotMultiple {
        /// `max_n`.
        given: u64,
        /// The multiple.
        wanted: u64,
    },
    /// The configuration names a kernel that is not in the table.
    #[error("there is no kernel {given}; one of {known} is wanted, or none to have one chosen for each call")]
    UnknownKernel {
        /// The name.
        given: String,
        /// The names that there are.
        known: String,
    },
    /// The capacity is beyond the kernels' 32-bit index arithmetic.
    #[error(
        "max_m * max_n is {max_m} * {max_n}; at most {limit} elements are wanted: make max_m smaller and split larger \
         calls by rows"
    )]
    CapacityTooLarge {
        /// `max_m`.
        max_m: u64,
        /// `max_n`.
        max_n: u64,
        /// Largest product.
        limit: u64,
    },
}

/// A device that the kernels do not run on. All ranks learn of it before anything is made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceUnsupported {
    /// There is no kernel for the architecture.
    #[error(
        "device {device} ({name}) has compute capability {}.{}; 10.0 or 10.3 is wanted: use the unfused path on this \
         device", given.0, given.1
    )]
    Architecture {
        /// The device.
        device: u32,
        /// Its name.
        name: String,
        /// Its compute capability.
        given: (u32, u32),
    },
    /// The device cannot take part in a multicast object.
    #[error(
        "device {device} ({name}) does not support multicast; a device with NVLink multicast is wanted: use the \
         unfused path, or check that the fabric manager runs"
    )]
    NoMulticast {
        /// The device.
        device: u32,
        /// Its name.
        name: String,
    },
    /// A block cannot have the shared memory that the kernel needs.
    #[error(
        "device {device} allows {given} bytes of shared memory per block; {wanted} are wanted: use the unfused path"
    )]
    SharedMemory {
        /// The device.
        device: u32,
        /// What it allows.
        given: u32,
        /// What the kernel needs.
        wanted: u32,
    },
    /// The margin leaves no SM.
    #[error(
        "sm_margin is {given} on device {device}, which has {sms} SMs; fewer are wanted: leave at least 1 to the kernels"
    )]
    Margin {
        /// The device.
        device: u32,
        /// The margin.
        given: u32,
        /// Its SMs.
        sms: u32,
    },
    /// The driver reports a device without SMs.
    #[error("device {device} reports 0 SMs; at least 1 is wanted: check the driver")]
    NoSms {
        /// The device.
        device: u32,
    },
}

/// Error of [`GemmRsAr`](crate::GemmRsAr).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GemmRsArError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device cannot run the kernels.
    #[error(transparent)]
    Device(#[from] DeviceUnsupported),
    /// The call cannot run; nothing was enqueued.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// An MXFP8 operand does not fit its shape.
    #[error(transparent)]
    Mxfp8(#[from] Mxfp8Error),
    /// The workspace could not be set up.
    #[error(transparent)]
    Symmetric(#[from] SymmetricError),
    /// The driver refused something.
    #[error(transparent)]
    Driver(#[from] DriverError),
}
