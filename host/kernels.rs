//! The kernels that are embedded in the library, as PTX text, and which of them runs a call.

use plan::arguments::Mode;
use plan::choice::{Choice, Machine, Problem, choose_among};
use plan::kernels::{KERNELS, KernelSpec, OperandType, Orientation};
use plan::quantize::QUANTIZE_MXFP8;

use crate::checks::{CheckedCall, GROUPED_ROWS};
use crate::driver::{Device, DriverError, Kernel};
use crate::projection::Projection;
use crate::unsupported::Unsupported;

/// PTX for the SM100 family, every kernel of [`plan::kernels::KERNELS`] in it.
pub const SM100_PTX: &str = include_str!(concat!(env!("GEMM_RS_AR_PTX_DIR"), "/sm_100f.ptx"));

/// Compute capabilities that load [`SM100_PTX`].
pub(crate) const SM100_FAMILY: [(u32, u32); 2] = [(10, 0), (10, 3)];

/// Most shared memory that a kernel asks for.
pub(crate) fn shared_bytes() -> u32 {
    KERNELS.iter().map(|spec| spec.shared.dynamic_bytes()).max().unwrap_or(0)
}

/// Most tiles that a call within a capacity is cut into.
pub(crate) fn max_tiles(max_m: u32, max_n: u32) -> u32 {
    let tiles = |spec: &KernelSpec| spec.tiles(spec.max_rows().map_or(max_m, |rows| rows.min(max_m)), max_n).len();
    KERNELS.iter().map(tiles).max().unwrap_or(0)
}

/// A kernel of the table by its name.
pub(crate) fn by_name(name: &str) -> Option<&'static KernelSpec> {
    KERNELS.iter().find(|spec| spec.name == name)
}

/// The kernels as a device knows them.
pub(crate) struct LoadedKernels {
    gemms: Vec<Kernel>,
    /// [`QUANTIZE_MXFP8`].
    pub quantize: Kernel,
}

impl LoadedKernels {
    /// Loads all of them.
    pub fn load(device: &dyn Device) -> Result<Self, DriverError> {
        let module = device.load_module(SM100_PTX)?;
        let gemms = KERNELS.iter().map(|spec| device.kernel(module, spec.name)).collect::<Result<_, _>>()?;
        Ok(Self { gemms, quantize: device.kernel(module, QUANTIZE_MXFP8.name)? })
    }

    /// The handle of an entry of the table.
    pub fn get(&self, spec: &'static KernelSpec) -> Option<Kernel> {
        KERNELS.iter().position(|entry| entry.name == spec.name).and_then(|index| self.gemms.get(index)).copied()
    }
}

/// Whether the kernel's weight scales come in groups of their own.
pub(crate) fn wants_grouped_scales(spec: &KernelSpec) -> bool {
    spec.operands == OperandType::Mxfp8
        && spec.orientation == Orientation::Normal
        && u64::from(spec.tile.n) == GROUPED_ROWS
}

/// Checks a kernel that the configuration names against a call.
pub(crate) fn check_forced(
    spec: &'static KernelSpec,
    call: &CheckedCall,
    projection: &Projection,
) -> Result<(), Unsupported> {
    let refused = |max_rows| Unsupported::ForcedKernel { name: spec.name, operands: spec.operands, max_rows };
    if spec.operands != call.operands {
        return Err(refused(None));
    }
    if spec.max_rows().is_some_and(|rows| call.m > rows) {
        return Err(refused(spec.max_rows()));
    }
    if wants_grouped_scales(spec) && !has_grouped_scales(projection) {
        return Err(Unsupported::GroupedScalesMissing { name: spec.name });
    }
    Ok(())
}

fn has_grouped_scales(projection: &Projection) -> bool {
    projection.scales.is_some_and(|scales| scales.groups_of_224.is_some())
}

/// The kernel for a call and what the cost model expects of it.
pub(crate) fn choose(
    call: &CheckedCall,
    projection: &Projection,
    ranks: u32,
    mode: Mode,
    machine: &Machine,
) -> Option<Choice> {
    let problem = Problem { m: call.m, n: call.n, k: call.k, operands: call.operands, ranks, mode };
    choose_among(&problem, machine, |spec| !wants_grouped_scales(spec) || has_grouped_scales(projection))
}
