//! The public face: a node of GPUs on which PTX runs.

/// Index of a GPU in its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GpuId(pub u32);

/// A device address, valid in the address space of the GPU it was mapped for.
pub type DevicePtr = u64;

/// Physical memory of one GPU; freed when unmapped everywhere and released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemoryHandle(pub u32);

/// A multicast object over several GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MulticastHandle(pub u32);

/// A loaded module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ModuleId(pub u32);

/// What a node consists of.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// GPUs.
    pub gpus: u32,
    /// SMs per GPU; one CTA is resident on an SM at a time when it needs most of its shared memory.
    pub sms_per_gpu: u32,
    /// Seeds every choice that hardware leaves open: warp order, completion order, reduction order.
    pub seed: u64,
    /// Upper bound on device memory of each GPU, in bytes.
    pub memory_bytes_per_gpu: u64,
    /// Which order between accesses counts as given.
    pub rules: OrderingRules,
}

/// How much order a program may take for granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OrderingRules {
    /// Every fence that the PTX ISA names for a case has to be there. What new code should be held to.
    #[default]
    Strict,
    /// What compilers in wide use rely on. Everything else is as in [`Strict`](Self::Strict):
    ///
    /// - **Release and acquire do without `tcgen05.fence`.** A release (by an arrival, a barrier, a fence or a store)
    ///   acts as `tcgen05.fence::before_thread_sync` too, an acquire as `tcgen05.fence::after_thread_sync`. The ISA's
    ///   canonical patterns have the two fences around *relaxed* operations, and it says of them: "Standard memory
    ///   consistency model synchronization mechanisms also apply" (specialized inter-thread synchronization for
    ///   tcgen05). `wait::ld`, `wait::st` and `commit` stay necessary, and so do the fences around relaxed operations.
    /// - **An mbarrier needs no `fence.mbarrier_init` for its own CTA.** Bulk copies and `tcgen05.commit` of the CTA may
    ///   use it once its initialisation is ordered before them, by `bar.sync` for instance. What they do to it at their
    ///   end comes, for copies, after an "implicit generic-async proxy fence" (async proxy), so may count as a generic
    ///   access; and `fence.mbarrier_init` is described for the other threads of a *cluster*. Towards another CTA the
    ///   fence stays necessary.
    /// - **A store may race with accesses that see the same value.** A weak store to shared memory which already holds
    ///   the value is no error, although another warp has accessed it without synchronisation. The ISA calls it a data
    ///   race, but does not leave its result open: a read returns what one of the writes before or beside it wrote (memory
    ///   consistency model, causality and coherence), and they wrote the same.
    /// - **Tensor memory may be freed without `tcgen05.wait::ld`.** Whoever has used the registers that `tcgen05.ld` fills
    ///   knows that it has read, as the ISA respects that dependency "regardless of the presence or absence of other forms
    ///   of synchronization" (tcgen05, register dependencies, same thread). That they were used is not checked. `wait::st`
    ///   stays necessary.
    Practised,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self { gpus: 1, sms_per_gpu: 148, seed: 0, memory_bytes_per_gpu: 2 << 30, rules: OrderingRules::Strict }
    }
}

/// Launch geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// CTAs.
    pub grid: [u32; 3],
    /// CTAs per cluster.
    pub cluster: [u32; 3],
    /// Threads per CTA.
    pub block: [u32; 3],
    /// Dynamic shared memory per CTA, in bytes.
    pub dynamic_shared_bytes: u32,
}

/// What a run did, summed over all CTAs of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Instructions executed by warps.
    pub warp_instructions: u64,
    /// Instructions executed, counted once per active lane.
    pub lane_instructions: u64,
    /// Bytes read from the GPU's own global memory by its own instructions, TMA included.
    pub global_bytes_read: u64,
    /// Bytes written to the GPU's own global memory by its own instructions.
    pub global_bytes_written: u64,
    /// 32-byte sectors touched by those writes, counted per warp instruction.
    pub global_sectors_written: u64,
    /// Bytes the GPU received over NVLink: peer loads' results, multicast reductions' results, and stores by others.
    pub nvlink_bytes_in: u64,
    /// Bytes the GPU sent over NVLink: stores to peers, one copy of each multicast store, and what others loaded from it.
    pub nvlink_bytes_out: u64,
    /// Bytes brought into shared memory by TMA.
    pub tma_bytes: u64,
    /// Multiply-accumulates done by tensor cores.
    pub tensor_macs: u64,
    /// Times a lane group was suspended in a wait.
    pub waits: u64,
    /// CTAs that ran to the end.
    pub ctas_retired: u64,
}

/// A tensor map in the 128-byte form that kernels receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct TensorMapBytes(pub [u8; 128]);

/// Element types of tensor maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorMapElement {
    /// 8-bit.
    U8,
    /// 16-bit.
    U16,
    /// 32-bit.
    U32,
    /// 64-bit.
    U64,
    /// bfloat16.
    Bf16,
    /// half.
    F16,
    /// float.
    F32,
}

/// Shared-memory swizzles of tensor maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorMapSwizzle {
    /// None.
    None,
    /// 32 bytes.
    B32,
    /// 64 bytes.
    B64,
    /// 128 bytes.
    B128,
}

/// What `cuTensorMapEncodeTiled` is given, with the same meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMapDescription {
    /// Element type.
    pub element: TensorMapElement,
    /// Address of element 0, 16-byte aligned.
    pub base: DevicePtr,
    /// Extent per dimension in elements, innermost first; 1 to 5 dimensions.
    pub dimensions: Vec<u64>,
    /// Byte strides of dimensions 1.., multiples of 16.
    pub strides_bytes: Vec<u64>,
    /// Box per dimension in elements, 1 to 256 each.
    pub box_dimensions: Vec<u32>,
    /// Element strides, 1 to 8 each.
    pub element_strides: Vec<u32>,
    /// Swizzle.
    pub swizzle: TensorMapSwizzle,
    /// True fills out-of-bounds elements of floating types with NaN instead of zero.
    pub nan_fill: bool,
}

/// Where one launch or copy stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Everything that was enqueued has completed.
    Idle,
    /// Work remains, but none of it can go on until something else is enqueued. `Node::blocked_report` says why.
    Blocked,
}

pub use crate::scheduler::Node;
