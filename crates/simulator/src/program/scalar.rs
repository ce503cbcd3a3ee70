//! Per-thread arithmetic: everything that reads and writes registers of its own lane only.
//!
//! Values are kept in the register representation: zero above the width of the type (see [`Register`]).

use super::{Operand, Predicate, PredicateOperand, Register};

/// One arithmetic, logic, conversion, comparison, move or select instruction, decoded.
#[derive(Debug, Clone, PartialEq)]
pub enum ScalarInstruction {
    /// `mov` of one value of any width.
    Move {
        /// Destination.
        destination: Register,
        /// Source.
        source: Operand,
    },
    /// `mov` that packs elements into one register, the first in the lowest bits.
    Pack {
        /// Destination.
        destination: Register,
        /// 2 or 4 elements.
        sources: Box<[Operand]>,
        /// Bits of one element.
        element_bits: u32,
    },
    /// `mov` that unpacks a register into elements.
    Unpack {
        /// 2 or 4 elements; `None` for `_`.
        destinations: Box<[Option<Register>]>,
        /// Source.
        source: Operand,
        /// Bits of one element.
        element_bits: u32,
    },
    /// Integer arithmetic on two operands.
    Integer {
        /// Operation.
        operation: IntegerOperation,
        /// Type of the operands (the result of `mul.wide` is twice as wide).
        kind: IntegerType,
        /// Destination.
        destination: Register,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
    /// Integer arithmetic on one operand.
    IntegerUnary {
        /// Operation.
        operation: IntegerUnaryOperation,
        /// Type.
        kind: IntegerType,
        /// Destination.
        destination: Register,
        /// Operand.
        source: Operand,
    },
    /// `mad`: a product plus an addend; also `sad`.
    MultiplyAdd {
        /// Which part of the product.
        part: MultiplyAddPart,
        /// Type of the factors.
        kind: IntegerType,
        /// Destination.
        destination: Register,
        /// First factor.
        left: Operand,
        /// Second factor.
        right: Operand,
        /// Addend.
        addend: Operand,
    },
    /// `add.cc`, `addc`, `sub.cc`, `subc`: arithmetic with the carry flag.
    Carry {
        /// `sub` instead of `add`; the flag then is the borrow.
        subtract: bool,
        /// Reads the flag (`addc`, `subc`).
        carry_in: bool,
        /// Writes the flag (`.cc`).
        carry_out: bool,
        /// 64-bit instead of 32-bit.
        wide: bool,
        /// Destination.
        destination: Register,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
    /// `mad.cc` and `madc`.
    MultiplyAddCarry {
        /// Upper half of the product instead of the lower.
        high: bool,
        /// Reads the flag (`madc`).
        carry_in: bool,
        /// Writes the flag (`.cc`).
        carry_out: bool,
        /// Type.
        kind: IntegerType,
        /// Destination.
        destination: Register,
        /// First factor.
        left: Operand,
        /// Second factor.
        right: Operand,
        /// Addend.
        addend: Operand,
    },
    /// `dp4a` and `dp2a`.
    DotProduct {
        /// Which elements are multiplied.
        form: DotProductForm,
        /// The first operand's elements are signed.
        left_signed: bool,
        /// The second operand's elements are signed.
        right_signed: bool,
        /// Destination.
        destination: Register,
        /// First vector.
        left: Operand,
        /// Second vector.
        right: Operand,
        /// Addend.
        addend: Operand,
    },
    /// `and`, `or`, `xor` on bits.
    Bitwise {
        /// Operation.
        operation: LogicOperation,
        /// Destination.
        destination: Register,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
    /// `not`, `cnot`, `clz`, `popc`, `brev`.
    BitUnary {
        /// Operation.
        operation: BitUnaryOperation,
        /// Bits of the operand: 16, 32 or 64.
        bits: u32,
        /// Destination.
        destination: Register,
        /// Operand.
        source: Operand,
    },
    /// `lop3.b32`.
    Lop3 {
        /// Truth table.
        table: u8,
        /// Destination.
        destination: Register,
        /// Operands.
        sources: [Operand; 3],
    },
    /// `shl` and `shr`; amounts past the width are clamped.
    Shift {
        /// Direction.
        direction: ShiftDirection,
        /// Bits of the operand: 16, 32 or 64.
        bits: u32,
        /// Destination.
        destination: Register,
        /// What is shifted.
        source: Operand,
        /// By how much (32-bit).
        amount: Operand,
    },
    /// `shf`: 32 bits out of a 64-bit pair.
    FunnelShift {
        /// `.l` instead of `.r`.
        left: bool,
        /// `.wrap` (amount modulo 32) instead of `.clamp`.
        wrap: bool,
        /// Destination.
        destination: Register,
        /// Low word.
        low: Operand,
        /// High word.
        high: Operand,
        /// Amount.
        amount: Operand,
    },
    /// `bfe`.
    ExtractField {
        /// Type, 32 or 64 bits.
        kind: IntegerType,
        /// Destination.
        destination: Register,
        /// Source.
        source: Operand,
        /// Position.
        position: Operand,
        /// Length.
        length: Operand,
    },
    /// `bfi`.
    InsertField {
        /// 64 bits instead of 32.
        wide: bool,
        /// Destination.
        destination: Register,
        /// The field.
        field: Operand,
        /// What it is inserted into.
        base: Operand,
        /// Position.
        position: Operand,
        /// Length.
        length: Operand,
    },
    /// `bfind`.
    FindLeading {
        /// Type, 32 or 64 bits.
        kind: IntegerType,
        /// `.shiftamt`.
        shift_amount: bool,
        /// Destination.
        destination: Register,
        /// Source.
        source: Operand,
    },
    /// `fns.b32`: the n-th set bit.
    FindNth {
        /// Destination.
        destination: Register,
        /// Mask.
        mask: Operand,
        /// Base bit.
        base: Operand,
        /// Offset.
        offset: Operand,
    },
    /// `bmsk`.
    BitMask {
        /// `.wrap` instead of `.clamp`.
        wrap: bool,
        /// Destination.
        destination: Register,
        /// Position.
        position: Operand,
        /// Width.
        width: Operand,
    },
    /// `szext`.
    Extend {
        /// Sign instead of zero extension.
        signed: bool,
        /// `.wrap` instead of `.clamp`.
        wrap: bool,
        /// Destination.
        destination: Register,
        /// Source.
        source: Operand,
        /// Bits that are kept.
        width: Operand,
    },
    /// `prmt`.
    Permute {
        /// Mode.
        mode: PermuteMode,
        /// Destination.
        destination: Register,
        /// Low word.
        low: Operand,
        /// High word.
        high: Operand,
        /// Selector.
        selector: Operand,
    },
    /// `setp`.
    SetPredicate {
        /// What is compared.
        comparison: Comparison,
        /// The boolean combined with, if any.
        combine: Option<Combine>,
        /// `p`; `None` for `_`.
        destination: Option<Predicate>,
        /// `q` of `p|q`: the negated comparison, combined too.
        complement: Option<Predicate>,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
    /// `set`: writes all ones, or 1.0, where the comparison holds.
    Set {
        /// What is compared.
        comparison: Comparison,
        /// The boolean combined with, if any.
        combine: Option<Combine>,
        /// What is written for true.
        truth: u64,
        /// Destination.
        destination: Register,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
    /// `setp.f16x2` and `setp.bf16x2`: one comparison per half.
    SetPredicatePair {
        /// What is compared, per half.
        comparison: Comparison,
        /// The boolean combined with, if any.
        combine: Option<Combine>,
        /// The low halves' result.
        low: Option<Predicate>,
        /// The high halves' result.
        high: Option<Predicate>,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
    /// `selp`.
    Select {
        /// Destination.
        destination: Register,
        /// Taken where the predicate is true.
        if_true: Operand,
        /// Taken elsewhere.
        if_false: Operand,
        /// Predicate.
        predicate: PredicateSource,
    },
    /// `slct`: by the sign of a third operand.
    SelectBySign {
        /// The third operand is `.f32` instead of `.s32`.
        float: bool,
        /// Destination.
        destination: Register,
        /// Taken where the third operand is at least zero.
        if_positive: Operand,
        /// Taken elsewhere.
        if_negative: Operand,
        /// The third operand.
        sign: Operand,
    },
    /// `and.pred`, `or.pred`, `xor.pred`.
    PredicateLogic {
        /// Operation.
        operation: LogicOperation,
        /// Destination.
        destination: Predicate,
        /// First operand.
        left: PredicateSource,
        /// Second operand.
        right: PredicateSource,
    },
    /// `mov.pred` and `not.pred`.
    PredicateMove {
        /// Destination.
        destination: Predicate,
        /// Source.
        source: PredicateSource,
    },
    /// `f32` and `f64` arithmetic on two operands.
    Float {
        /// Operation.
        operation: FloatOperation,
        /// `.f64` instead of `.f32`.
        double: bool,
        /// Modes.
        modes: FloatModes,
        /// Destination.
        destination: Register,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
    /// `fma` and `mad` on `f32` and `f64`.
    FusedMultiplyAdd {
        /// `.f64` instead of `.f32`.
        double: bool,
        /// Modes.
        modes: FloatModes,
        /// Destination.
        destination: Register,
        /// First factor.
        left: Operand,
        /// Second factor.
        right: Operand,
        /// Addend.
        addend: Operand,
    },
    /// Exactly rounded `f32` and `f64` operations on one operand.
    FloatUnary {
        /// Operation.
        operation: FloatUnaryOperation,
        /// `.f64` instead of `.f32`.
        double: bool,
        /// Modes.
        modes: FloatModes,
        /// Destination.
        destination: Register,
        /// Operand.
        source: Operand,
    },
    /// `.approx` operations. Hardware's error bounds are in the ISA; the simulator takes the host's functions, so results
    /// may differ from hardware's in the last bits.
    Approximate {
        /// Operation.
        operation: ApproximateOperation,
        /// Format of operand and result.
        format: ApproximateFormat,
        /// `.ftz`.
        flush: bool,
        /// Destination.
        destination: Register,
        /// Operand.
        source: Operand,
    },
    /// `min` and `max` of three `f32` operands.
    FloatMinMax3 {
        /// `Minimum` or `Maximum`.
        operation: FloatOperation,
        /// Modes.
        modes: FloatModes,
        /// Destination.
        destination: Register,
        /// Operands.
        sources: [Operand; 3],
    },
    /// `f16`, `bf16` and their pairs: arithmetic on two operands.
    Half {
        /// Operation.
        operation: FloatOperation,
        /// Format.
        format: HalfFormat,
        /// Two values in a 32-bit register.
        packed: bool,
        /// Modes.
        modes: FloatModes,
        /// Destination.
        destination: Register,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
    /// `fma` on `f16`, `bf16` and their pairs.
    HalfFusedMultiplyAdd {
        /// Format.
        format: HalfFormat,
        /// Two values in a 32-bit register.
        packed: bool,
        /// Modes.
        modes: FloatModes,
        /// Destination.
        destination: Register,
        /// First factor.
        left: Operand,
        /// Second factor.
        right: Operand,
        /// Addend.
        addend: Operand,
    },
    /// `neg` and `abs` on `f16`, `bf16` and their pairs.
    HalfUnary {
        /// `Negate` or `Absolute`.
        operation: FloatUnaryOperation,
        /// Format.
        format: HalfFormat,
        /// Two values in a 32-bit register.
        packed: bool,
        /// `.ftz`.
        flush: bool,
        /// Destination.
        destination: Register,
        /// Operand.
        source: Operand,
    },
    /// `add`, `sub` and `mul` on `.f32x2`.
    FloatPair {
        /// Operation.
        operation: FloatOperation,
        /// Modes.
        modes: FloatModes,
        /// Destination.
        destination: Register,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
    /// `fma` on `.f32x2`.
    FloatPairFusedMultiplyAdd {
        /// Modes.
        modes: FloatModes,
        /// Destination.
        destination: Register,
        /// First factor.
        left: Operand,
        /// Second factor.
        right: Operand,
        /// Addend.
        addend: Operand,
    },
    /// `copysign`: the magnitude of one operand with the sign of the other.
    CopySign {
        /// `.f64` instead of `.f32`.
        double: bool,
        /// Destination.
        destination: Register,
        /// Where the sign comes from.
        sign: Operand,
        /// Where the rest comes from.
        magnitude: Operand,
    },
    /// `testp`.
    TestProperty {
        /// Property.
        property: FloatProperty,
        /// `.f64` instead of `.f32`.
        double: bool,
        /// Destination.
        destination: Predicate,
        /// Operand.
        source: Operand,
    },
    /// `cvt` of one value.
    Convert(Convert),
    /// `cvt` of two `f32` values into a packed register.
    ConvertPack {
        /// Format of each result.
        to: FloatFormat,
        /// Modes.
        modes: ConvertModes,
        /// Destination.
        destination: Register,
        /// Goes to the upper half.
        high: Operand,
        /// Goes to the lower half.
        low: Operand,
    },
    /// `cvt` of a packed register into another, value by value.
    ConvertPacked {
        /// Format of each source value.
        from: FloatFormat,
        /// Format of each result.
        to: FloatFormat,
        /// Modes.
        modes: ConvertModes,
        /// Destination.
        destination: Register,
        /// Source.
        source: Operand,
    },
}

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
