//! The fused projection: GEMM with reduce-scatter or all-reduce in one launch.

use std::sync::Arc;

use plan::arguments::{GemmArguments, Mode};
use plan::choice::{Choice, Machine, Problem};
use plan::kernels::{KERNELS, KernelSpec};
use plan::quantize::{self, QuantizeArguments};

use crate::checks::{BF16_BYTES, CheckedCall, check_call, check_placement, check_projection};
use crate::driver::{Device, DeviceProperties, LaunchConfig, RowCopy, Stream};
use crate::error::{ConfigError, DeviceUnsupported, GemmRsArError};
use crate::kernels::{self, LoadedKernels, SM100_FAMILY};
use crate::mxfp8::{DeviceActivations, check_room};
use crate::operand_maps::OperandMaps;
use crate::policy::Policy;
use crate::projection::{DeviceMatrix, Input, Output, Projection};
use crate::symmetric::{Rendezvous, Step, SymmetricError, agree, agree_on_parameters, least};
use crate::unsupported::Unsupported;
use crate::workspace::{Capacity, Workspace, check_group};

/// What a [`GemmRsAr`] is made for, the same on every rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GemmRsArConfig {
    /// Most rows of a call.
    pub max_m: u64,
    /// Most columns of a call, a multiple of 128.
    pub max_n: u64,
    /// When [`GemmRsAr::should_run`] says yes.
    pub policy: Policy,
    /// SMs of each GPU that launches leave to other kernels, so that communication or another stream's work can run beside
    /// them. At least one SM has to be left to the launches themselves.
    pub sm_margin: u32,
    /// The kernel to use for every call, by its name in [`plan::kernels::KERNELS`]; none to have one chosen by the cost
    /// model. For tests and measurements.
    pub kernel: Option<&'static str>,
}

impl GemmRsArConfig {
    /// Capacity for `[max_m, max_n]` results and the default policy.
    pub fn new(max_m: u64, max_n: u64) -> Self {
        Self { max_m, max_n, policy: Policy::default(), sm_margin: 0, kernel: None }
    }
}

/// One rank's fused GEMM with reduce-scatter and all-reduce, over a workspace that both share.
///
/// `Y = X · Wᵀ`, where this rank holds K_local columns of X `[M, K_local]` and of W `[N, K_local]`. Reduce-scatter
/// gives rank `r` the rows `[r * L, (r + 1) * L)` of the sum over ranks, `L = ceil(M / ranks)`, with rows past M set to
/// zero; all-reduce gives every rank all M rows. Any M from 1, any rank count from 2 to 16, any N that is a multiple of
/// 128 and any K_local that is a multiple of 64 (BF16) or 128 (MXFP8) will do, and calls may change mode, shape and type
/// from one to the next.
///
/// Operands are BF16, or MXFP8: E4M3 with an E8M0 scale for every 32 elements along K. Each rank's products are accumulated in FP32 and rounded to BF16 once; the ranks' partial sums
/// are added in FP32 and rounded to BF16 again. [`reference`](crate::reference) derives how far that may be from the
/// exact result.
///
/// Two simulated ranks, each with a K_local of 64; every element of X and W is one, so that of Y is 128:
///
/// ```
/// use std::sync::Arc;
///
/// use gemm_rs_ar::driver::simulated::{NodeConfig, SimulatedNode};
/// use gemm_rs_ar::driver::{DeviceBuffer, Stream};
/// use gemm_rs_ar::{DeviceMatrix, GemmRsAr, GemmRsArConfig, GemmRsArError, Input, Mode, Output, Projection};
/// use half::bf16;
///
/// let (m, n, k) = (3, 128, 64);
/// let node = SimulatedNode::new(NodeConfig { gpus: 2, ..NodeConfig::default() });
/// let results = node.run_ranks(|device, rendezvous| {
///     let gemm = GemmRsAr::new(Arc::clone(&device), &rendezvous, GemmRsArConfig::new(m, n))?;
///     let ones = |count: u64| {
///         let elements = bf16::ONE.to_le_bytes().repeat(count as usize);
///         DeviceBuffer::from_bytes(Arc::clone(&device), &elements)
///     };
///     let (x, weight) = (ones(m * k)?, ones(n * k)?);
///     let y = DeviceBuffer::new(Arc::clone(&device), m * n * 2)?;
///     let projection = Projection::new(DeviceMatrix::bf16(weight.address(), n, k));
///     let input = Input::new(DeviceMatrix::bf16(x.address(), m, k));
///     let output = Output { y: DeviceMatrix::bf16(y.address(), m, n) };
///     // SAFETY: the buffers have these sizes and outlive the call, which every rank makes.
///     unsafe { gemm.apply(Mode::AllReduce, &projection, &input, &output, Stream::DEFAULT)? };
///     device.synchronize(Stream::DEFAULT)?;
///     // SAFETY: the stream is synchronised.
///     Ok::<_, GemmRsArError>(unsafe { y.to_bytes()? })
/// });
/// for result in results {
///     assert_eq!(result?, bf16::from_f32(128.0).to_le_bytes().repeat(3 * 128));
/// }
/// # Ok::<(), GemmRsArError>(())
/// ```
pub struct GemmRsAr {
    device: Arc<dyn Device>,
    kernels: LoadedKernels,
    forced: Option<&'static KernelSpec>,
    machine: Machine,
    workspace: Workspace,
    policy: Policy,
}

impl GemmRsAr {
    /// Loads the kernels and creates the workspace. Collective: every rank calls it with the same `config`. If any rank
    /// fails, every rank gets an error and nothing stays allocated.
    ///
    /// # Errors
    /// [`GemmRsArError::Config`] for a wrong group or capacity, before the ranks meet; [`GemmRsArError::Device`] for a
    /// device without multicast, without enough shared memory or of another architecture; otherwise what the driver or
    /// the rendezvous said, on the rank it happened to, and the failing rank's reason on the others.
    pub fn new(
        device: Arc<dyn Device>,
        rendezvous: &dyn Rendezvous,
        config: GemmRsArConfig,
    ) -> Result<Self, GemmRsArError> {
        check_group(rendezvous.rank(), rendezvous.world_size())?;
        let capacity = Capacity::new(config.max_m, config.max_n)?;
        let forced = config.kernel.map(named_kernel).transpose()?;
        agree_on_parameters(
            rendezvous,
            &format!(
                "max_m = {}, max_n = {}, min_rows = {}, sm_margin = {}, kernel = {}",
                config.max_m,
                config.max_n,
                config.policy.min_rows,
                config.sm_margin,
                config.kernel.unwrap_or("chosen for each call")
            ),
        )?;
        let suitable = check_device(device.properties(), config.sm_margin).map_err(GemmRsArError::from);
        agree(rendezvous, Step::Configure, suitable)?;
        let sm_count = least(rendezvous, device.properties().sm_count)?;
        let machine = Machine { sm_count, sm_margin: config.sm_margin, ..Machine::B200 };
        let loaded = LoadedKernels::load(device.as_ref());
        let loaded = loaded.map_err(|source| SymmetricError::Failed { step: Step::LoadKernels, source });
        let kernels = agree(rendezvous, Step::LoadKernels, loaded)?;
        let workspace = Workspace::new(&device, rendezvous, capacity)?;
        Ok(Self { device, kernels, forced, machine, workspace, policy: config.policy })
    }

    /// The workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Whether [`Self::apply`] takes this call, and if not, why.
    pub fn can_run(
        &self,
        mode: Mode,
        projection: &Projection,
        input: &Input,
        output: &Output,
    ) -> Result<(), Unsupported> {
        self.check(mode, projection, input, output).map(drop)
    }

    /// The kernel that [`Self::apply`] would launch, and what the cost model expects of it: modelled times, to compare
    /// kernels with each other.
    ///
    /// # Errors
    /// As for [`Self::can_run`].
    pub fn choice(
        &self,
        mode: Mode,
        projection: &Projection,
        input: &Input,
        output: &Output,
    ) -> Result<Choice, Unsupported> {
        let (call, spec) = self.check(mode, projection, input, output)?;
        let CheckedCall { m, n, k, operands, .. } = call;
        let problem = Problem { m, n, k, operands, ranks: self.workspace.ranks(), mode };
        plan::choice::estimate(spec, &problem, &self.machine).ok_or(Unsupported::NoKernel)
    }

    /// Whether the policy sends a call of `m` rows here rather than to the unfused path. It says nothing about
    /// [`Self::can_run`], and [`Self::apply`] does not ask it.
    pub fn should_run(&self, m: u64) -> bool {
        self.policy.should_run(m)
    }

    /// Whether the constant part of a layer rules out every call. If so, logs the reason once as a warning, under the
    /// layer's `name`; meant for the time when layers are set up.
    pub fn warn_incompatible_projection(&self, name: &str, projection: &Projection) -> bool {
        let checked = check_projection(self.workspace.capacity(), projection);
        if let Err(reason) = &checked {
            tracing::warn!(layer = name, %reason, "the projection will not be fused");
        }
        checked.is_err()
    }

    /// Enqueues the quantisation of BF16 activations to MXFP8, by the rules of [`mxfp8`](crate::mxfp8), and returns them as
    /// the input of a call that follows on the stream.
    ///
    /// # Errors
    /// [`GemmRsArError::Mxfp8`] or [`GemmRsArError::Unsupported`] if `x` is of another type, shape or alignment than the
    /// room is made for: then nothing was enqueued. [`GemmRsArError::Driver`] if the driver refused the launch.
    ///
    /// # Safety
    /// * `x` is mapped memory of this rank's device, of the size and stride that it says, and stays as it is until the
    ///   stream has passed the call.
    /// * `room` is of the same device, lives until the stream has passed every call that uses it, and no enqueued work
    ///   still reads what an earlier call put there, unless the stream passes it first.
    pub unsafe fn quantize(
        &self,
        x: &DeviceMatrix,
        room: &DeviceActivations,
        stream: Stream,
    ) -> Result<Input, GemmRsArError> {
        let (m, x_row_stride) = check_room(x, room)?;
        check_placement("the input x", x)?;
        let input = room.input(m);
        let arguments = QuantizeArguments {
            x: x.address,
            values: input.x.address,
            scales: input.scales.map_or(0, |scales| scales.address),
            x_row_stride,
            values_row_stride: room.k(),
            m,
            k: room.k(),
        };
        let config = LaunchConfig {
            grid: [quantize::grid(m, room.k(), self.machine.usable_sms()), 1, 1],
            cluster: [1; 3],
            block: [quantize::THREADS, 1, 1],
            dynamic_shared_bytes: 0,
        };
        // SAFETY: the room is large enough, as checked; the caller vouches for the rest.
        unsafe { self.device.launch(self.kernels.quantize, config, stream, &[arguments.as_bytes()])? };
        Ok(input)
    }

    /// Enqueues the projection on the caller's stream. It does not allocate device memory and does not wait.
    ///
    /// Reduce-scatter writes the caller's output directly. All-reduce leaves its result in the workspace and enqueues a
    /// copy of the M rows to the caller's output; a later version leases the rows instead and saves the copy.
    ///
    /// # Errors
    /// [`GemmRsArError::Unsupported`] if the call cannot run: then nothing was enqueued and the rank's turn was not
    /// taken. [`GemmRsArError::Driver`] if the driver refused the launch: then the ranks' turns may differ, and the
    /// workspace has to be made anew.
    ///
    /// # Safety
    /// * The three matrices are mapped memory of this rank's device, of the sizes and strides that they say, and the
    ///   output overlaps neither operand.
    /// * They, and this object, stay as they are until the stream has passed the call.
    /// * Calls on one object run in the order they are made: all on one stream, or on streams ordered by events.
    /// * Every rank makes the same calls, with the same mode, M, N and K, in the same order.
    pub unsafe fn apply(
        &self,
        mode: Mode,
        projection: &Projection,
        input: &Input,
        output: &Output,
        stream: Stream,
    ) -> Result<(), GemmRsArError> {
        let (call, spec) = self.check(mode, projection, input, output)?;
        // Every entry of the table was loaded.
        let Some(kernel) = self.kernels.get(spec) else { return Ok(()) };
        let slot = self.workspace.next_slot();
        let maps =
            OperandMaps::encode(self.device.as_ref(), spec, &call, projection, input, self.workspace.slot(slot))?;
        let arguments = self.arguments(mode, call, output, slot);
        // SAFETY: the parameters are those of the kernel table's entry. The workspace has room for the call, as
        // checked; the caller vouches for the matrices and for the order of calls.
        unsafe {
            self.device.launch(
                kernel,
                self.geometry(spec, call),
                stream,
                maps.parameters(arguments.as_bytes()).as_slice(),
            )?;
        }
        if mode == Mode::AllReduce {
            let row_bytes = u64::from(call.n) * BF16_BYTES;
            let copy = RowCopy {
                destination: output.y.address,
                destination_stride_bytes: output.y.row_stride * BF16_BYTES,
                source: self.workspace.slot(slot),
                source_stride_bytes: row_bytes,
                row_bytes,
                rows: call.m.into(),
            };
            // SAFETY: the slot holds M rows of N elements once the kernel is done, and this rank's next launch on the
            // slot, without which no peer writes to it, comes after the copy on the stream. The caller vouches for the
            // output.
            unsafe { self.device.enqueue_row_copy(stream, copy)? };
        }
        Ok(())
    }

    fn check(
        &self,
        mode: Mode,
        projection: &Projection,
        input: &Input,
        output: &Output,
    ) -> Result<(CheckedCall, &'static KernelSpec), Unsupported> {
        let call = check_call(self.workspace.capacity(), self.workspace.ranks(), mode, projection, input, output)?;
        let spec = match self.forced {
            Some(spec) => {
                kernels::check_forced(spec, &call, projection)?;
                spec
            }
            None => {
                let choice = kernels::choose(&call, projection, self.workspace.ranks(), mode, &self.machine);
                choice.ok_or(Unsupported::NoKernel)?.kernel
            }
        };
        Ok((call, spec))
    }

    fn arguments(&self, mode: Mode, call: CheckedCall, output: &Output, slot: u32) -> GemmArguments {
        GemmArguments {
            partial: self.workspace.slot(slot),
            partial_multicast: self.workspace.slot_multicast(slot),
            output: output.y.address,
            control: self.workspace.control(),
            output_row_stride: call.output_row_stride,
            m: call.m,
            n: call.n,
            k: call.k,
            rank: self.workspace.rank(),
            ranks: self.workspace.ranks(),
            mode: mode as u32,
            slot,
        }
    }

    /// One CTA per SM outside of the margin, or per tile if there are fewer, in whole clusters. A rank that owns no rows still has tiles to
    /// compute for others.
    fn geometry(&self, spec: &KernelSpec, call: CheckedCall) -> LaunchConfig {
        let sms = self.machine.usable_sms() / spec.cluster * spec.cluster;
        let ctas = spec.tiles(call.m, call.n).len().min(sms.max(spec.cluster));
        LaunchConfig {
            grid: [ctas, 1, 1],
            cluster: [spec.cluster, 1, 1],
            block: [spec.threads, 1, 1],
            dynamic_shared_bytes: spec.shared.dynamic_bytes(),
        }
    }
}

/// The kernel that a configuration names.
fn named_kernel(name: &'static str) -> Result<&'static KernelSpec, ConfigError> {
    kernels::by_name(name).ok_or_else(|| {
        let known: Vec<_> = KERNELS.iter().map(|spec| spec.name).collect();
        ConfigError::UnknownKernel { given: name.to_owned(), known: known.join(", ") }
    })
}

/// Checks that a device can run the kernels at all.
fn check_device(properties: &DeviceProperties, sm_margin: u32) -> Result<(), DeviceUnsupported> {
    let (device, name) = (properties.ordinal, || properties.name.clone());
    if !SM100_FAMILY.contains(&properties.compute_capability) {
        return Err(DeviceUnsupported::Architecture { device, name: name(), given: properties.compute_capability });
    }
    if !properties.multicast_supported {
        return Err(DeviceUnsupported::NoMulticast { device, name: name() });
    }
    let (given, wanted) = (properties.shared_memory_per_block_optin, kernels::shared_bytes());
    if given < wanted {
        return Err(DeviceUnsupported::SharedMemory { device, given, wanted });
    }
    if properties.sm_count == 0 {
        return Err(DeviceUnsupported::NoSms { device });
    }
    if sm_margin >= properties.sm_count {
        return Err(DeviceUnsupported::Margin { device, given: sm_margin, sms: properties.sm_count });
    }
    Ok(())
}
