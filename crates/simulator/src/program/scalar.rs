//! Per-thread arithmetic: everything that reads and writes registers of its own lane only.
//!
//! Values are kept in the register representation: zero above the width of the type (see [`Register`]).

use super::{
    ApproximateFormat, ApproximateOperation, BitUnaryOperation, Combine, Comparison, Convert, ConvertModes,
    DotProductForm, FloatFormat, FloatModes, FloatOperation, FloatProperty, FloatUnaryOperation, HalfFormat,
    IntegerOperation, IntegerType, IntegerUnaryOperation, LogicOperation, MultiplyAddPart, Operand, PermuteMode,
    Predicate, PredicateSource, Register, ShiftDirection,
};

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
    /// `mov.b128`: 128 bits, given as elements from the lowest on, taken as other elements.
    MoveWide {
        /// 2 or 4 elements; `None` for `_`.
        destinations: Box<[Option<Register>]>,
        /// Bits of one destination.
        destination_bits: u32,
        /// 2 or 4 elements.
        sources: Box<[Operand]>,
        /// Bits of one source.
        source_bits: u32,
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
