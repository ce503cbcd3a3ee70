//! The syntax tree. Names are slices of the text; nothing is resolved yet.

use super::Span;

/// A name with its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name<'a> {
    pub(crate) text: &'a str,
    pub(crate) span: Span,
}

/// A whole module.
#[derive(Debug)]
pub(crate) struct Module<'a> {
    pub(crate) version: (u32, u32),
    /// The architecture of `.target`.
    pub(crate) target: Name<'a>,
    /// Module-scope variables of every space.
    pub(crate) variables: Vec<Variable<'a>>,
    pub(crate) functions: Vec<Function<'a>>,
}

/// An `.entry` or `.func`.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    /// True for `.entry`.
    pub(crate) entry: bool,
    pub(crate) name: Name<'a>,
    /// What a `.func` returns.
    pub(crate) results: Vec<Variable<'a>>,
    pub(crate) parameters: Vec<Variable<'a>>,
    /// `.reqntid`.
    pub(crate) required_threads: Option<[u32; 3]>,
    /// `.maxntid`.
    pub(crate) max_threads: Option<[u32; 3]>,
    /// `.reqnctapercluster`.
    pub(crate) required_cluster: Option<[u32; 3]>,
    /// None for a declaration.
    pub(crate) body: Option<Vec<Statement<'a>>>,
}

/// State space of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableSpace {
    Global,
    Constant,
    Shared,
    Local,
    Parameter,
    /// `.reg` parameters of functions.
    Register,
}

/// A variable or a parameter.
#[derive(Debug)]
pub(crate) struct Variable<'a> {
    pub(crate) space: VariableSpace,
    pub(crate) external: bool,
    pub(crate) name: Name<'a>,
    /// `.align`, or the element's natural alignment.
    pub(crate) align: u32,
    /// Bits of one element.
    pub(crate) element: Type,
    /// Number of elements; `None` for `name[]`.
    pub(crate) elements: Option<u64>,
    pub(crate) initializer: Vec<Initial>,
}

impl Variable<'_> {
    /// Size, 0 for an unsized array.
    pub(crate) fn bytes(&self) -> u64 {
        self.elements.unwrap_or(0) * u64::from(self.element.bits()).div_ceil(8)
    }
}

/// One element of an initialiser.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Initial {
    /// A number.
    Constant(Constant, Span),
    /// An address, which nothing but a relocation could provide.
    Address,
}

/// A statement of a function body.
#[derive(Debug)]
pub(crate) enum Statement<'a> {
    Registers { element: Type, names: Vec<RegisterNames<'a>> },
    Variable(Variable<'a>),
    Label(Name<'a>),
    Instruction(Instruction<'a>),
    Scope(Vec<Statement<'a>>),
    BranchTargets { label: Name<'a>, targets: Vec<Name<'a>> },
}

/// `%p` or `%p<34>`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegisterNames<'a> {
    pub(crate) name: Name<'a>,
    pub(crate) count: Option<u32>,
}

/// An instruction.
#[derive(Debug)]
pub(crate) struct Instruction<'a> {
    pub(crate) guard: Option<Guard<'a>>,
    pub(crate) opcode: Name<'a>,
    /// With their dots.
    pub(crate) modifiers: Vec<Name<'a>>,
    pub(crate) operands: Vec<Operand<'a>>,
}

impl Instruction<'_> {
    /// Opcode and modifiers.
    pub(crate) fn mnemonic(&self) -> String {
        self.modifiers.iter().fold(self.opcode.text.to_owned(), |text, modifier| text + modifier.text)
    }

    /// The place of the mnemonic.
    pub(crate) fn span(&self) -> Span {
        self.modifiers.last().map_or(self.opcode.span, |last| self.opcode.span.to(last.span))
    }
}

/// `@p` or `@!p`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard<'a> {
    pub(crate) predicate: Name<'a>,
    pub(crate) negated: bool,
}

/// An operand with its place.
#[derive(Debug, Clone)]
pub(crate) struct Operand<'a> {
    pub(crate) kind: OperandKind<'a>,
    pub(crate) span: Span,
}

/// What an operand is.
#[derive(Debug, Clone)]
pub(crate) enum OperandKind<'a> {
    /// A register, a variable, a label or a special register.
    Name(&'a str),
    /// `%tid.x`: the name and the component with its dot.
    Component(&'a str, &'a str),
    /// `symbol+4`.
    NameOffset(&'a str, i64),
    /// A literal or constant expression.
    Constant(Constant),
    /// `{a, b}`.
    Vector(Vec<Operand<'a>>),
    /// `[base + offset]` and `[base, {c0, c1}]`.
    Address(Box<AddressOperand<'a>>),
    /// `d|p`.
    Pair(Box<(Operand<'a>, Operand<'a>)>),
    /// `!p`.
    Not(&'a str),
    /// `_`
    Sink,
}

/// What stands between `[` and `]`.
#[derive(Debug, Clone)]
pub(crate) struct AddressOperand<'a> {
    pub(crate) base: Operand<'a>,
    pub(crate) offset: i64,
    /// Tensor coordinates.
    pub(crate) coordinates: Option<Vec<Operand<'a>>>,
}

/// A number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Constant {
    /// Between -2^63 and 2^64 - 1.
    Integer(i128),
    /// `0f…`
    Float32(u32),
    /// `0d…` and decimal fractions.
    Float64(u64),
}

macro_rules! types {
    ($($variant:ident $text:literal $bits:literal,)*) => {
        /// Fundamental, alternate and packed types (PTX ISA, "Types").
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Type { $($variant,)* }

        impl Type {
            /// From the modifier's text, dot included.
            pub(crate) fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }

            /// Width.
            pub(crate) fn bits(self) -> u32 {
                match self { $(Self::$variant => $bits,)* }
            }

            /// The modifier's text.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

types! {
    Pred ".pred" 1,
    B8 ".b8" 8, B16 ".b16" 16, B32 ".b32" 32, B64 ".b64" 64, B128 ".b128" 128,
    U8 ".u8" 8, U16 ".u16" 16, U32 ".u32" 32, U64 ".u64" 64,
    S8 ".s8" 8, S16 ".s16" 16, S32 ".s32" 32, S64 ".s64" 64,
    U16x2 ".u16x2" 32, S16x2 ".s16x2" 32,
    F16 ".f16" 16, F16x2 ".f16x2" 32, Bf16 ".bf16" 16, Bf16x2 ".bf16x2" 32,
    F32 ".f32" 32, F32x2 ".f32x2" 64, F64 ".f64" 64, Tf32 ".tf32" 32,
    E4m3x2 ".e4m3x2" 16, E5m2x2 ".e5m2x2" 16, Ue8m0x2 ".ue8m0x2" 16,
    E2m3x2 ".e2m3x2" 16, E3m2x2 ".e3m2x2" 16, E2m1x2 ".e2m1x2" 8,
    E4m3 ".e4m3" 8, E5m2 ".e5m2" 8, E4m3x4 ".e4m3x4" 32, E5m2x4 ".e5m2x4" 32,
}
