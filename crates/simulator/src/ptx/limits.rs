//! Bounds on what a text may ask for, so that a malformed one can neither hang the simulator nor exhaust its memory.

/// The bounds; every one is far above what compilers emit.
pub(crate) struct Limits;

impl Limits {
    /// Bytes of PTX text.
    pub(crate) const TEXT_BYTES: usize = 16 << 20;
    /// Depth of nested `{ }` scopes and of parentheses in constant expressions.
    pub(crate) const NESTING: usize = 64;
    /// Modifiers of one instruction.
    pub(crate) const MODIFIERS: usize = 32;
    /// Elements of one vector operand (`tcgen05.ld.32x32b.x128` has 128).
    pub(crate) const VECTOR_ELEMENTS: usize = 256;
    /// Operands of one instruction.
    pub(crate) const OPERANDS: usize = 64;
    /// Registers of one `%r<n>` declaration.
    pub(crate) const REGISTER_RANGE: u64 = 1 << 24;
    /// Register slots that one kernel may use.
    pub(crate) const KERNEL_REGISTERS: u32 = 1 << 16;
    /// Instructions of a kernel, those of called functions included as often as they are called.
    pub(crate) const KERNEL_INSTRUCTIONS: usize = 1 << 20;
    /// Bytes of one declared variable.
    pub(crate) const VARIABLE_BYTES: u64 = 16 << 20;
    /// Bytes of all module-scope variables together.
    pub(crate) const MODULE_VARIABLE_BYTES: u64 = 64 << 20;
    /// Bytes of `.local` variables per thread.
    pub(crate) const LOCAL_BYTES: u64 = 512 << 10;
    /// Bytes of `.shared` variables per CTA.
    pub(crate) const SHARED_BYTES: u64 = 1 << 20;
    /// Bytes of kernel parameters (PTX ISA, "Kernel Function Parameters").
    pub(crate) const PARAMETER_BYTES: u64 = 32764;
    /// `.align` of a variable.
    pub(crate) const ALIGNMENT: u64 = 1 << 16;
}
