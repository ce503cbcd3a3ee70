//! Executes per-lane instructions, a warp at a time.
//!
//! Each instruction is matched once; the loops over lanes inside are free of decisions, so that the compiler can
//! vectorise them.

mod approximate;
mod bits;
mod carry;
mod compare;
mod convert;
mod exact;
mod float;
mod format;
mod half;
mod integer;
mod lanes;
mod movement;

pub(crate) use exact::narrow as narrow_to_odd;
pub use format::{decode as decode_float, encode as encode_float};

use crate::program::{LaneMask, Registers, ScalarInstruction};
use lanes::Warp;

/// What the addresses in a warp's operands are relative to.
#[derive(Debug, Clone, Copy, Default)]
pub struct AddressBases<'a> {
    /// Addresses of the module's variables.
    pub variables: &'a [u64],
    /// First address of the CTA's shared memory in the cluster's window.
    pub shared: u64,
}

/// Executes an instruction for the lanes in the mask.
pub fn execute(
    instruction: &ScalarInstruction,
    registers: &mut Registers,
    lanes: LaneMask,
    addresses: AddressBases<'_>,
) {
    use ScalarInstruction as I;
    let mut warp = Warp { registers, lanes, addresses };
    let warp = &mut warp;
    match instruction {
        I::Move { destination, source } => movement::copy(warp, *destination, *source),
        I::Pack { destination, sources, element_bits } => movement::pack(warp, *destination, sources, *element_bits),
        I::MoveWide { destinations, destination_bits, sources, source_bits } => {
            movement::copy_wide(warp, (destinations, *destination_bits), (sources, *source_bits));
        }
        I::Unpack { destinations, source, element_bits } => {
            movement::unpack(warp, destinations, *source, *element_bits);
        }
        I::Select { destination, if_true, if_false, predicate } => {
            movement::select(warp, *destination, *if_true, *if_false, *predicate);
        }
        I::SelectBySign { float, destination, if_positive, if_negative, sign } => {
            movement::select_by_sign(warp, *float, *destination, [*if_positive, *if_negative, *sign]);
        }
        I::PredicateLogic { operation, destination, left, right } => {
            movement::predicate_logic(warp, *operation, *destination, *left, *right);
        }
        I::PredicateMove { destination, source } => {
            let value = warp.predicate_source(*source);
            warp.set_predicate(*destination, value);
        }
        I::Integer { operation, kind, destination, left, right } => {
            integer::binary(warp, *operation, *kind, *destination, *left, *right);
        }
        I::IntegerUnary { operation, kind, destination, source } => {
            integer::unary(warp, *operation, *kind, *destination, *source);
        }
        I::MultiplyAdd { part, kind, destination, left, right, addend } => {
            integer::multiply_add(warp, *part, *kind, *destination, [*left, *right, *addend]);
        }
        I::DotProduct { form, left_signed, right_signed, destination, left, right, addend } => {
            integer::dot_product(warp, *form, (*left_signed, *right_signed), *destination, [*left, *right, *addend]);
        }
        I::Carry { .. } | I::MultiplyAddCarry { .. } => carry::execute(warp, instruction),
        I::Bitwise { .. }
        | I::BitUnary { .. }
        | I::Lop3 { .. }
        | I::Shift { .. }
        | I::FunnelShift { .. }
        | I::ExtractField { .. }
        | I::InsertField { .. }
        | I::FindLeading { .. }
        | I::FindNth { .. }
        | I::BitMask { .. }
        | I::Extend { .. }
        | I::Permute { .. } => bits::execute(warp, instruction),
        I::SetPredicate { .. } | I::SetPredicatePair { .. } | I::Set { .. } | I::TestProperty { .. } => {
            compare::execute(warp, instruction);
        }
        I::Float { operation, double, modes, destination, left, right } => {
            float::binary(warp, *operation, *double, *modes, *destination, *left, *right);
        }
        I::FusedMultiplyAdd { double, modes, destination, left, right, addend } => {
            float::fused_multiply_add(warp, *double, *modes, *destination, [*left, *right, *addend]);
        }
        I::FloatUnary { operation, double, modes, destination, source } => {
            float::unary(warp, *operation, *double, *modes, *destination, *source);
        }
        I::FloatMinMax3 { operation, modes, destination, sources } => {
            float::min_or_max_of_three(warp, *operation, *modes, *destination, *sources);
        }
        I::FloatPair { operation, modes, destination, left, right } => {
            float::pair(warp, *operation, *modes, *destination, *left, *right);
        }
        I::FloatPairFusedMultiplyAdd { modes, destination, left, right, addend } => {
            float::pair_fused_multiply_add(warp, *modes, *destination, [*left, *right, *addend]);
        }
        I::CopySign { double, destination, sign, magnitude } => {
            float::copy_sign(warp, *double, *destination, *sign, *magnitude);
        }
        I::Approximate { operation, format, flush, destination, source } => {
            approximate::execute(warp, *operation, *format, *flush, *destination, *source);
        }
        I::Half { operation, format, packed, modes, destination, left, right } => {
            half::binary(warp, *operation, (*format, *packed), *modes, *destination, *left, *right);
        }
        I::HalfFusedMultiplyAdd { format, packed, modes, destination, left, right, addend } => {
            half::fused_multiply_add(warp, (*format, *packed), *modes, *destination, [*left, *right, *addend]);
        }
        I::HalfUnary { operation, format, packed, flush, destination, source } => {
            half::unary(warp, *operation, (*format, *packed), *flush, *destination, *source);
        }
        I::Convert(convert) => convert::one(warp, convert),
        I::ConvertPack { to, modes, destination, high, low } => {
            convert::pack(warp, *to, *modes, *destination, *high, *low);
        }
        I::ConvertPacked { from, to, modes, destination, source } => {
            convert::packed(warp, *from, *to, *modes, *destination, *source);
        }
    }
}
