//! What per-lane instructions are made of: operations, types and modes.

use super::{Operand, PredicateOperand, Register};

/// `cvt` of one value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Convert {
    /// Source type.
    pub from: NumberFormat,
    /// Destination type.
    pub to: NumberFormat,
    /// Modes.
    pub modes: ConvertModes,
    /// Bits of the destination register, to which a narrower integer result is extended.
    pub register_bits: u32,
    /// Destination.
    pub destination: Register,
    /// Source.
    pub source: Operand,
}

/// Modes of a `cvt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvertModes {
    /// How the result is rounded, to the format or, for `.rni` and its kin, to an integer.
    pub rounding: Rounding,
    /// `.rni`, `.rzi`, `.rmi`, `.rpi` between floating types: round to an integral value.
    pub to_integral: bool,
    /// `.ftz`.
    pub flush: bool,
    /// `.sat`: clamp floats to [0, 1], integers to the destination's range.
    pub saturate: bool,
    /// `.satfinite`: overflow gives the largest finite value.
    pub saturate_finite: bool,
    /// `.relu`: negative results become 0.
    pub relu: bool,
}

/// A number's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberFormat {
    /// Unsigned integer of this many bits.
    Unsigned(u32),
    /// Signed integer of this many bits.
    Signed(u32),
    /// Floating point.
    Float(FloatFormat),
}

/// Floating-point formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatFormat {
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
    /// `.tf32`: f32 with a 10-bit fraction, in a 32-bit register.
    Tf32,
    /// `.f32`
    F32,
    /// `.f64`
    F64,
    /// `.e4m3`: no infinities, one NaN per sign.
    E4m3,
    /// `.e5m2`
    E5m2,
    /// `.ue8m0`: a power of two.
    Ue8m0,
}

/// Integer types of arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerType {
    /// `.u16`
    U16,
    /// `.s16`
    S16,
    /// `.u32`
    U32,
    /// `.s32`
    S32,
    /// `.u64`
    U64,
    /// `.s64`
    S64,
    /// `.u16x2`
    U16x2,
    /// `.s16x2`
    S16x2,
}

/// Integer operations on two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerOperation {
    /// `add`
    Add,
    /// `add.sat.s32`
    AddSaturate,
    /// `sub`
    Subtract,
    /// `sub.sat.s32`
    SubtractSaturate,
    /// `mul.lo`
    MultiplyLow,
    /// `mul.hi`
    MultiplyHigh,
    /// `mul.wide`
    MultiplyWide,
    /// `mul24.lo`
    Multiply24Low,
    /// `mul24.hi`
    Multiply24High,
    /// `div`; division by zero gives all ones, as hardware does
    Divide,
    /// `rem`
    Remainder,
    /// `min`
    Minimum,
    /// `max`
    Maximum,
    /// `min.relu`
    MinimumRelu,
    /// `max.relu`
    MaximumRelu,
}

/// Integer operations on one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerUnaryOperation {
    /// `neg`
    Negate,
    /// `abs`
    Absolute,
}

/// What is added up by `mad` and its kin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MultiplyAddPart {
    /// `mad.lo`
    Low,
    /// `mad.hi`
    High,
    /// `mad.hi.sat.s32`
    HighSaturate,
    /// `mad.wide`: the addend is as wide as the product.
    Wide,
    /// `mad24.lo`
    Low24,
    /// `mad24.hi`
    High24,
    /// `sad`: the absolute difference instead of the product.
    AbsoluteDifference,
}

/// Forms of `dp4a` and `dp2a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DotProductForm {
    /// Four bytes with four bytes.
    Four,
    /// Two halfwords with the low two bytes.
    TwoLow,
    /// Two halfwords with the high two bytes.
    TwoHigh,
}

/// Logic on two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogicOperation {
    /// And.
    And,
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
}

/// Bit operations on one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitUnaryOperation {
    /// `not`
    Not,
    /// `cnot`: 1 for zero, else 0
    LogicalNot,
    /// `clz`
    CountLeadingZeros,
    /// `popc`
    PopulationCount,
    /// `brev`
    Reverse,
}

/// Directions of `shl` and `shr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShiftDirection {
    /// `shl`
    Left,
    /// `shr` of unsigned or untyped values
    RightLogical,
    /// `shr` of signed values
    RightArithmetic,
}

/// Modes of `prmt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermuteMode {
    /// Each selector nibble picks a byte, or its sign.
    Index,
    /// `.f4e`
    Forward4,
    /// `.b4e`
    Backward4,
    /// `.rc8`
    Replicate8,
    /// `.ecl`
    EdgeClampLeft,
    /// `.ecr`
    EdgeClampRight,
    /// `.rc16`
    Replicate16,
}

/// A comparison: of what, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// Relation.
    pub relation: Relation,
    /// Type of the operands.
    pub kind: ComparedType,
    /// `.ftz`.
    pub flush: bool,
}

/// Types that comparisons take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparedType {
    /// Unsigned or untyped of 16, 32 or 64 bits: the register representation compares as it is.
    Unsigned,
    /// Signed, of this many bits.
    Signed(u32),
    /// `.f32`
    F32,
    /// `.f64`
    F64,
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
}

/// Relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `.eq`
    Equal,
    /// `.ne`
    NotEqual,
    /// `.lt`, `.lo`
    Less,
    /// `.le`, `.ls`
    LessEqual,
    /// `.gt`, `.hi`
    Greater,
    /// `.ge`, `.hs`
    GreaterEqual,
    /// `.equ`: or unordered
    EqualUnordered,
    /// `.neu`
    NotEqualUnordered,
    /// `.ltu`
    LessUnordered,
    /// `.leu`
    LessEqualUnordered,
    /// `.gtu`
    GreaterUnordered,
    /// `.geu`
    GreaterEqualUnordered,
    /// `.num`: neither is NaN
    Ordered,
    /// `.nan`: one is NaN
    Unordered,
}

/// The boolean that a comparison is combined with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Combine {
    /// `.and`, `.or`, `.xor`.
    pub operation: LogicOperation,
    /// With what.
    pub predicate: PredicateSource,
}

/// A predicate operand, or a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PredicateSource {
    /// A register, possibly negated.
    Predicate(PredicateOperand),
    /// A constant.
    Constant(bool),
}

/// Rounding of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// `.rn`: to nearest, ties to even
    NearestEven,
    /// `.rna`: to nearest, ties away from zero
    NearestAway,
    /// `.rz`: towards zero
    Zero,
    /// `.rm`: towards negative infinity
    Down,
    /// `.rp`: towards positive infinity
    Up,
}

/// Modes of floating-point arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatModes {
    /// Rounding.
    pub rounding: Rounding,
    /// `.ftz`: subnormal operands and results become zero of the same sign.
    pub flush: bool,
    /// `.sat`: clamp to [0, 1], NaN to 0.
    pub saturate: bool,
    /// `.NaN` of `min` and `max`: NaN if either operand is.
    pub propagate_nan: bool,
    /// `.xorsign.abs` of `min` and `max`.
    pub xor_sign: bool,
    /// `.abs` of three-operand `min` and `max`.
    pub absolute: bool,
    /// `.relu`: negative results become 0.
    pub relu: bool,
}

impl FloatModes {
    /// Round to nearest even, and nothing else.
    pub const NEAREST: Self = Self {
        rounding: Rounding::NearestEven,
        flush: false,
        saturate: false,
        propagate_nan: false,
        xor_sign: false,
        absolute: false,
        relu: false,
    };
}

/// Floating-point operations on two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatOperation {
    /// `add`
    Add,
    /// `sub`
    Subtract,
    /// `mul`
    Multiply,
    /// `div`
    Divide,
    /// `min`
    Minimum,
    /// `max`
    Maximum,
}

/// Exactly rounded floating-point operations on one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatUnaryOperation {
    /// `rcp`
    Reciprocal,
    /// `sqrt`
    SquareRoot,
    /// `neg`
    Negate,
    /// `abs`
    Absolute,
}

/// `.approx` operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApproximateOperation {
    /// `rcp.approx`
    Reciprocal,
    /// `sqrt.approx`
    SquareRoot,
    /// `rsqrt.approx`
    ReciprocalSquareRoot,
    /// `sin.approx`
    Sine,
    /// `cos.approx`
    Cosine,
    /// `lg2.approx`
    Log2,
    /// `ex2.approx`
    Exp2,
    /// `tanh.approx`
    Tanh,
}

/// Formats of `.approx` operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApproximateFormat {
    /// `.f32`
    F32,
    /// `.f64` (`rcp` and `rsqrt` only)
    F64,
    /// `.f16`, `.bf16` and pairs of them
    Half {
        /// Format.
        format: HalfFormat,
        /// Two values in a 32-bit register.
        packed: bool,
    },
}

/// 16-bit floating-point formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HalfFormat {
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
}

/// Properties that `testp` asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatProperty {
    /// `.finite`
    Finite,
    /// `.infinite`
    Infinite,
    /// `.number`
    Number,
    /// `.notanumber`
    NotANumber,
    /// `.normal`
    Normal,
    /// `.subnormal`
    Subnormal,
}
