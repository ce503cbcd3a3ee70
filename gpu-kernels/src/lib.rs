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

use core::ptr::null;

use gemm::Operands;
use kernel_macros::kernel;
use plan::arguments::GemmArguments;
use plan::kernels::{self, KernelSpec};
use ptx::tma::TensorMap;
use variant::Variant;

/// Stamps a kernel for every entry of the table, and the type that carries the entry to the generic code.
macro_rules! gemm_kernels {
    (bf16: $($name:ident = $variant:ident, $spec:ident;)*) => {$(
        gemm_kernels!(@variant $variant, $spec);

        /// BF16 GEMM, fused with reduce-scatter or all-reduce over multicast memory.
        ///
        /// # Safety
        /// `a`, `b` and `partial` are tensor maps as the table's entry wants them, of the launch's operands and slot;
        /// `arguments` describes this rank's launch, and every rank launches the same kernel with the same M, N, mode
        /// and slot.
        #[kernel]
        pub unsafe fn $name(
            a: *const TensorMap,
            b: *const TensorMap,
            partial: *const TensorMap,
            arguments: *const GemmArguments,
        ) {
            let operands = Operands { a, b, scale_a: null(), scale_b: null(), partial };
            // SAFETY: the caller's promise is the callee's.
            unsafe { gemm::run::<$variant>(&operands, &*arguments) }
        }
    )*};
    (mxfp8: $($name:ident = $variant:ident, $spec:ident;)*) => {$(
        gemm_kernels!(@variant $variant, $spec);

        /// MXFP8 GEMM, fused with reduce-scatter or all-reduce over multicast memory.
        ///
        /// # Safety
        /// As for the BF16 kernels; `scale_a` and `scale_b` are tensor maps of the operands' scales.
        #[kernel]
        pub unsafe fn $name(
            a: *const TensorMap,
            b: *const TensorMap,
            scale_a: *const TensorMap,
            scale_b: *const TensorMap,
            partial: *const TensorMap,
            arguments: *const GemmArguments,
        ) {
            let operands = Operands { a, b, scale_a, scale_b, partial };
            // SAFETY: the caller's promise is the callee's.
            unsafe { gemm::run::<$variant>(&operands, &*arguments) }
        }
    )*};
    (@variant $variant:ident, $spec:ident) => {
        struct $variant;

        impl Variant for $variant {
            const SPEC: KernelSpec = kernels::$spec;
        }
    };
}

gemm_kernels! { bf16:
    gemm_bf16_128x128 = Bf16Tile128x128, GEMM_BF16_128X128;
    gemm_bf16_128x224 = Bf16Tile128x224, GEMM_BF16_128X224;
    gemm_bf16_128x256 = Bf16Tile128x256, GEMM_BF16_128X256;
    gemm_bf16_pair_128x128 = Bf16Pair128x128, GEMM_BF16_PAIR_128X128;
    gemm_bf16_pair_128x224 = Bf16Pair128x224, GEMM_BF16_PAIR_128X224;
    gemm_bf16_pair_128x256 = Bf16Pair128x256, GEMM_BF16_PAIR_128X256;
    gemm_bf16_swapped_32x128 = Bf16Swapped32x128, GEMM_BF16_SWAPPED_32X128;
    gemm_bf16_swapped_64x128 = Bf16Swapped64x128, GEMM_BF16_SWAPPED_64X128;
}

gemm_kernels! { mxfp8:
    gemm_mxfp8_128x128 = Mxfp8Tile128x128, GEMM_MXFP8_128X128;
    gemm_mxfp8_128x224 = Mxfp8Tile128x224, GEMM_MXFP8_128X224;
    gemm_mxfp8_128x256 = Mxfp8Tile128x256, GEMM_MXFP8_128X256;
    gemm_mxfp8_pair_128x128 = Mxfp8Pair128x128, GEMM_MXFP8_PAIR_128X128;
    gemm_mxfp8_pair_128x224 = Mxfp8Pair128x224, GEMM_MXFP8_PAIR_128X224;
    gemm_mxfp8_pair_128x256 = Mxfp8Pair128x256, GEMM_MXFP8_PAIR_128X256;
    gemm_mxfp8_swapped_32x128 = Mxfp8Swapped32x128, GEMM_MXFP8_SWAPPED_32X128;
    gemm_mxfp8_swapped_64x128 = Mxfp8Swapped64x128, GEMM_MXFP8_SWAPPED_64X128;
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
