//! MXFP8 operands in device memory.

use std::sync::Arc;

use plan::scales::ScaleLayout;

use super::scales::check_shape;
use super::{Mxfp8Error, QuantizedMatrix, repack_scales, repack_scales_in_groups, unpack_scales};
use crate::checks::GROUPED_ROWS;
use crate::driver::{Device, DeviceBuffer};
use crate::error::GemmRsArError;
use crate::projection::{DeviceMatrix, DeviceScales, ElementType, Input, Projection, WeightScales};

impl DeviceScales {
    fn of(buffer: &DeviceBuffer) -> Self {
        Self { address: buffer.address(), bytes: buffer.bytes() }
    }
}

/// The scales of a weight in device memory, in every layout that a kernel reads, for values that the caller holds. Made
/// once, when the weight is loaded.
pub struct DeviceWeightScales {
    groups_of_128: DeviceBuffer,
    groups_of_224: DeviceBuffer,
}

impl DeviceWeightScales {
    /// From row-major scales, `[n, k / 32]` E8M0 bytes, as checkpoints have them.
    ///
    /// # Errors
    /// [`GemmRsArError::Mxfp8`] if `k` is not a positive multiple of 128 or `scales` has not the length of its shape;
    /// [`GemmRsArError::Driver`] if the device has no room for them.
    pub fn from_row_major(device: &Arc<dyn Device>, scales: &[u8], n: usize, k: usize) -> Result<Self, GemmRsArError> {
        Self::upload(
            device,
            &repack_scales(scales, n, k)?,
            &repack_scales_in_groups(scales, n, k, GROUPED_ROWS as usize)?,
        )
    }

    /// From scales in the dense 128x4 layout, padding included.
    ///
    /// # Errors
    /// As for [`Self::from_row_major`].
    pub fn from_packed(device: &Arc<dyn Device>, packed: &[u8], n: usize, k: usize) -> Result<Self, GemmRsArError> {
        let scales = unpack_scales(packed, n, k, plan::kernels::SCALE_ROWS as usize)?;
        Self::upload(device, packed, &repack_scales_in_groups(&scales, n, k, GROUPED_ROWS as usize)?)
    }

    fn upload(device: &Arc<dyn Device>, of_128: &[u8], of_224: &[u8]) -> Result<Self, GemmRsArError> {
        Ok(Self {
            groups_of_128: DeviceBuffer::from_bytes(Arc::clone(device), of_128)?,
            groups_of_224: DeviceBuffer::from_bytes(Arc::clone(device), of_224)?,
        })
    }

    /// Their addresses, for as long as this object lives.
    pub fn scales(&self) -> WeightScales {
        WeightScales {
            groups_of_128: DeviceScales::of(&self.groups_of_128),
            groups_of_224: Some(DeviceScales::of(&self.groups_of_224)),
        }
    }
}

/// An MXFP8 weight in device memory: values and scales.
pub struct DeviceWeight {
    values: DeviceBuffer,
    scales: DeviceWeightScales,
    n: usize,
    k: usize,
}

impl DeviceWeight {
    /// Copies a quantised weight `[n, k]` to the device.
    ///
    /// # Errors
    /// [`GemmRsArError::Driver`] if the device has no room for it.
    pub fn new(device: &Arc<dyn Device>, weight: &QuantizedMatrix) -> Result<Self, GemmRsArError> {
        let (n, k) = (weight.rows(), weight.k());
        Ok(Self {
            values: DeviceBuffer::from_bytes(Arc::clone(device), weight.values())?,
            scales: DeviceWeightScales::from_row_major(device, weight.scales(), n, k)?,
            n,
            k,
        })
    }

    /// The projection of this weight, for as long as this object lives.
    pub fn projection(&self) -> Projection {
        let weight = DeviceMatrix::e4m3(self.values.address(), self.n as u64, self.k as u64);
        Projection::new(weight).with_scales(self.scales.scales())
    }
}

/// Room in device memory for quantised activations, used by one call after the other:
/// [`GemmRsAr::quantize`](crate::GemmRsAr::quantize) fills it.
pub struct DeviceActivations {
    values: DeviceBuffer,
    scales: DeviceBuffer,
    max_m: u32,
    k: u32,
}

impl DeviceActivations {
    /// Room for up to `max_m` rows of `k` elements.
    ///
    /// # Errors
    /// [`GemmRsArError::Mxfp8`] if `k` is not a positive multiple of 128 or the sizes are beyond the kernels';
    /// [`GemmRsArError::Driver`] if the device has no room.
    pub fn new(device: &Arc<dyn Device>, max_m: usize, k: usize) -> Result<Self, GemmRsArError> {
        check_shape(max_m, k)?;
        if max_m == 0 {
            return Err(Mxfp8Error::NoRows.into());
        }
        let (rows, columns) = (max_m as u32, k as u32);
        let layout = ScaleLayout::dense(rows, columns);
        Ok(Self {
            values: DeviceBuffer::new(Arc::clone(device), u64::from(rows) * u64::from(columns))?,
            scales: DeviceBuffer::new(Arc::clone(device), layout.bytes())?,
            max_m: rows,
            k: columns,
        })
    }

    /// Most rows.
    pub fn max_m(&self) -> u32 {
        self.max_m
    }

    /// Elements of a row.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// The first `m` rows as a call's input.
    pub(crate) fn input(&self, m: u32) -> Input {
        let values = DeviceMatrix::e4m3(self.values.address(), m.into(), self.k.into());
        let bytes = ScaleLayout::dense(m, self.k).bytes();
        Input::new(values).with_scales(DeviceScales { address: self.scales.address(), bytes })
    }
}

/// Checks the BF16 activations that are to be quantised into `room`; their sizes as the kernel takes them.
pub(crate) fn check_room(x: &DeviceMatrix, room: &DeviceActivations) -> Result<(u32, u32), Mxfp8Error> {
    if x.element_type != ElementType::Bf16 {
        return Err(Mxfp8Error::ElementType { given: x.element_type });
    }
    if x.columns != u64::from(room.k) {
        return Err(Mxfp8Error::Columns { given: x.columns, wanted: room.k });
    }
    if x.rows == 0 {
        return Err(Mxfp8Error::NoRows);
    }
    if x.rows > u64::from(room.max_m) {
        return Err(Mxfp8Error::Rows { given: x.rows, room: room.max_m });
    }
    let Ok(stride) = u32::try_from(x.row_stride) else {
        return Err(Mxfp8Error::TooLarge { what: "the row stride", given: x.row_stride as usize, limit: u32::MAX });
    };
    Ok((x.rows as u32, stride))
}
