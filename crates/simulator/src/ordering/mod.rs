//! Who may rely on what: the happens-before rules that a missing fence or wait breaks.
//!
//! A run that happens to read the right bytes proves nothing about the next one, so every access is checked against what
//! its warp has *learnt* through synchronisation, not against when things happened. Clocks are kept per warp of a
//! cluster: finer would cost a clock per lane and find little more, since lanes of a warp rarely talk through memory.
//! Knowledge travels with mbarriers, named and cluster barriers, and release/acquire accesses, within a cluster and, through
//! words of device memory, between clusters and GPUs.

mod cells;
mod error;
mod foreign;
mod global;
mod knowledge;
mod shared;
mod tensor;

pub use error::{Actor, OrderingError};
pub(crate) use foreign::{Foreign, GlobalWord, WordAccess};
pub(crate) use global::{AccessSort, GlobalAccess, GlobalTracker};
pub(crate) use knowledge::{Knowledge, WarpOrder, is_acquire, is_release};
pub(crate) use shared::{AsyncReader, SharedShadow, WriteSort};
pub(crate) use tensor::{TensorIssuer, TensorShadow};
