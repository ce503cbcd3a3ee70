//! MXFP8 on the host: quantisation, dequantisation, and the scales' layout.
//!
//! An MXFP8 matrix `[rows, k]` has E4M3 values and, for every 32 of them along K (a *block*), an E8M0 scale: element
//! `[row, at]` is `value * 2^(scale - 127)` (OCP Microscaling Formats (MX) Specification
//! 1.0; for E4M3, OCP 8-bit Floating Point Specification 1.0).
//!
//! # Quantisation
//! [`quantize`] and the kernel `quantize_mxfp8` give the same bytes. For each block, with `a` the largest magnitude:
//!
//! * the scale is the least power of two that is at least `a / 448`, 448 being E4M3's largest value, and not less than
//!   E8M0's least, `2^-127`. So no value of a finite block saturates;
//! * a value is `x / scale` in E4M3, to nearest even, with the sign of `x` even when it is zero.
//!
//! | block | scale | values |
//! |---|---|---|
//! | finite, `a > 448 * 2^-127` | `2^e` with `a / 448 <= 2^e < a / 224` | `x / 2^e`, rounded |
//! | finite, `a <= 448 * 2^-127` (about `2^-118.2`), zero included | 0x00 | zeros, each with its sign |
//! | with an infinity or a NaN | 0xff, NaN | all 0x7f, NaN |
//!
//! The smallest blocks are given up as zeros because that is what implementations in use make of them: they treat the
//! scale byte 0x00 as zero. What is lost is less than `2^-118` per element. The largest finite BF16 value has the scale
//! `2^120`, so the upper end of E8M0 is never reached; rounded to E4M3 it is `2^128`, one step past what FP32 holds.
//!
//! E4M3 has no infinity, and the conversion instruction turns one into 448 and so into a finite number. Therefore a
//! block with an infinity or a NaN becomes NaN as a whole, by its scale (MX specification: a NaN scale makes every
//! value of the block NaN) and by its values, so that it does not depend on how a consumer reads either. With IEEE
//! arithmetic such an element makes every result that it enters infinite or NaN; here it makes the same results NaN. No
//! result is finite that would not be with IEEE arithmetic, and none is NaN that would be finite, short of overflow at
//! that `2^128`.
//!
//! # Scales
//! Row-major `[rows, k / 32]` is how checkpoints keep scales. The kernels take the 128x4 layout of [`plan::scales`];
//! [`repack_scales`] and [`repack_scales_in_groups`] make it, [`unpack_scales`] undoes it.

mod device;
mod error;
mod format;
mod matrix;
mod scales;

pub(crate) use device::check_room;
pub use device::{DeviceActivations, DeviceWeight, DeviceWeightScales};
pub use error::Mxfp8Error;
pub use format::{E4M3_MAX, e4m3_from_f32, e4m3_to_f32, e8m0_round_up, e8m0_to_f64};
pub use matrix::{QuantizedMatrix, quantize};
pub use plan::scales::{PADDING_SCALE, SCALE_ELEMENTS, ScaleLayout};
pub use scales::{repack_scales, repack_scales_in_groups, unpack_scales};
