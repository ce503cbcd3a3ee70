//! The multicast transport: the switch adds.

use super::Transport;
use crate::gemm::Launch;
use crate::ptx::multimem;

/// NVLink multicast memory.
pub struct Multicast;

impl Transport for Multicast {
    #[inline(always)]
    unsafe fn reduce(launch: &Launch, offset: u64) -> [u32; 4] {
        // SAFETY: the caller's promise.
        unsafe { multimem::load_reduce_add_bf16x8(launch.arguments.partial_multicast + offset) }
    }

    #[inline(always)]
    unsafe fn broadcast(launch: &Launch, offset: u64, value: [u32; 4]) {
        // SAFETY: the caller's promise.
        unsafe { multimem::store_bf16x8(launch.arguments.partial_multicast + offset, value) }
    }
}
