//! Symmetric memory: how ranks meet, and the memory that they share.

mod agreement;
mod error;
mod memory;
mod owned;
mod rendezvous;
mod thread_rendezvous;

pub(crate) use agreement::{agree, agree_on_parameters, least};
pub use error::{Step, SymmetricError};
pub use memory::SymmetricMemory;
pub use rendezvous::{Rendezvous, RendezvousError};
pub use thread_rendezvous::{DEFAULT_DEADLINE, ThreadRendezvous};
