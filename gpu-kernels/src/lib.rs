//! The kernels: Rust for nvptx64, with PTX instructions as thin typed wrappers.
//!
//! A kernel is one exported function per entry of the plan's kernel table; the code behind it is generic over the
//! table's entry.
#![no_std]
#![feature(abi_ptx, asm_experimental_arch)]

mod epilogue;
mod gemm;
mod mainloop;
mod protocol;
mod ptx;
mod quantize;
mod reduce;
mod variant;

use kernel_macros::kernel;
use plan::arguments::GemmArguments;
use ptx::tma::TensorMap;

/// Single-CTA 128x128 BF16 GEMM, fused with reduce-scatter or all-reduce over multicast memory.
///
/// # Safety
/// `x` and `w` are tensor maps of the launch's operands with boxes of 64 x 128 elements and 128-byte swizzle;
/// `arguments` describes this rank's launch, and every rank launches with the same M, N, mode and slot.
#[kernel]
pub unsafe fn gemm_bf16_128x128(x: *const TensorMap, w: *const TensorMap, arguments: *const GemmArguments) {
    // SAFETY: the caller's promise is the callee's.
    unsafe { gemm::run::<variant::Bf16Tile128x128>(x, w, &*arguments) }
}

/// Quantises BF16 to MXFP8.
///
/// # Safety
/// `arguments` describes mapped memory as [`plan::quantize::QuantizeArguments`] says.
#[kernel]
pub unsafe fn quantize_mxfp8(arguments: *const plan::quantize::QuantizeArguments) {
    // SAFETY: the caller's promise is the callee's.
    unsafe { quantize::run(&*arguments) }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
