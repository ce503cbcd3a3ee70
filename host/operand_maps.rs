//! The tensor maps of a launch.

use plan::kernels::{KernelSpec, MMA_ROWS, OperandType, Orientation, STORE_COLUMNS};
use plan::shared_memory::SCALE_GROUP_BYTES;

use crate::checks::{BF16_BYTES, CheckedCall};
use crate::driver::{
    Device, DevicePtr, DriverError, TensorMap, TensorMapDescription, TensorMapElement, TensorMapSwizzle,
};
use crate::kernels::wants_grouped_scales;
use crate::projection::{DeviceMatrix, DeviceScales, Input, Projection};

/// Most parameters of a kernel.
const MAX_PARAMETERS: usize = 6;

/// The maps in the order of the kernel's parameters.
pub(crate) struct OperandMaps {
    maps: [TensorMap; MAX_PARAMETERS - 1],
    count: usize,
}

/// Parameters as bytes, in the form that a launch takes.
pub(crate) struct Parameters<'a> {
    bytes: [&'a [u8]; MAX_PARAMETERS],
    count: usize,
}

impl<'a> Parameters<'a> {
    pub fn as_slice(&self) -> &[&'a [u8]] {
        &self.bytes[..self.count]
    }
}

impl OperandMaps {
    /// Encodes the maps of a checked call. `slot` is the slot of the partial buffer on this rank.
    pub fn encode(
        device: &dyn Device,
        spec: &KernelSpec,
        call: &CheckedCall,
        projection: &Projection,
        input: &Input,
        slot: DevicePtr,
    ) -> Result<Self, DriverError> {
        let x = (&input.x, input.scales);
        let scales = projection.scales.map(|scales| match scales.groups_of_224 {
            Some(grouped) if wants_grouped_scales(spec) => grouped,
            _ => scales.groups_of_128,
        });
        let w = (&projection.weight, scales);
        let (a, b) = match spec.orientation {
            Orientation::Normal => (x, w),
            Orientation::Swapped => (w, x),
        };
        let mut result = Self { maps: [TensorMap([0; 128]); MAX_PARAMETERS - 1], count: 0 };
        result.add(device, operand(spec, a.0, MMA_ROWS))?;
        result.add(device, operand(spec, b.0, spec.b_rows()))?;
        if let (Some(scale_a), Some(scale_b)) = (a.1, b.1) {
            result.add(device, scale_groups(scale_a, call.k, 1))?;
            result.add(device, scale_groups(scale_b, call.k, spec.scale_b_groups()))?;
        }
        result.add(device, partial(spec, call, slot))?;
        Ok(result)
    }

    fn add(&mut self, device: &dyn Device, description: TensorMapDescription) -> Result<(), DriverError> {
        self.maps[self.count] = device.encode_tensor_map(&description)?;
        self.count += 1;
        Ok(())
    }

    /// The kernel's parameters: the maps, then the arguments.
    pub fn parameters<'a>(&'a self, arguments: &'a [u8]) -> Parameters<'a> {
        let mut bytes: [&[u8]; MAX_PARAMETERS] = [&[]; MAX_PARAMETERS];
        for (parameter, map) in bytes.iter_mut().zip(&self.maps[..self.count]) {
            *parameter = &map.0;
        }
        bytes[self.count] = arguments;
        Parameters { bytes, count: self.count + 1 }
    }
}

/// An operand, in boxes of one stage.
fn operand(spec: &KernelSpec, matrix: &DeviceMatrix, box_rows: u32) -> TensorMapDescription {
    let element = match spec.operands {
        OperandType::Bf16 => TensorMapElement::Bf16,
        OperandType::Mxfp8 => TensorMapElement::U8,
    };
    TensorMapDescription::row_major(
        element,
        matrix.address,
        [matrix.rows, matrix.columns],
        matrix.row_stride * element.bytes(),
        [box_rows, spec.tile.k],
        TensorMapSwizzle::B128,
    )
}

/// Scales, as a matrix of groups of 512 bytes, in boxes of `groups` groups below each other. The elements are 64-bit words,
/// because a box has at most 256.
fn scale_groups(scales: DeviceScales, k: u32, groups: u32) -> TensorMapDescription {
    let element = TensorMapElement::U64;
    let words = SCALE_GROUP_BYTES / element.bytes() as u32;
    let groups_along_k = u64::from(k / OperandType::Mxfp8.stage_k());
    let row_bytes = groups_along_k * u64::from(SCALE_GROUP_BYTES);
    TensorMapDescription::row_major(
        element,
        scales.address,
        [scales.bytes / row_bytes.max(1), groups_along_k * u64::from(words)],
        row_bytes,
        [groups, words],
        TensorMapSwizzle::None,
    )
}

/// The M rows of a slot, in boxes of the epilogue's stores.
fn partial(spec: &KernelSpec, call: &CheckedCall, slot: DevicePtr) -> TensorMapDescription {
    TensorMapDescription::row_major(
        TensorMapElement::Bf16,
        slot,
        [call.m.into(), call.n.into()],
        u64::from(call.n) * BF16_BYTES,
        [spec.store_rows(), STORE_COLUMNS],
        TensorMapSwizzle::B64,
    )
}
