//! Scales from row-major to the kernels' layout and back.

use plan::kernels::SCALE_ROWS;
use plan::scales::{PADDING_SCALE, SCALE_ELEMENTS, SCALE_GROUP_K, ScaleLayout};

use super::Mxfp8Error;

/// Repacks the scales of a matrix `[rows, k]`, row-major `[rows, k / 32]` E8M0 bytes, to the dense 128x4 layout:
/// [`ScaleLayout::dense`], with [`PADDING_SCALE`] for rows that do not exist.
///
/// This is what activations and weights need, and for weights [`repack_scales_in_groups`] in addition where tiles are
/// 224 columns wide.
///
/// ```
/// use gemm_rs_ar::mxfp8::{repack_scales, unpack_scales};
///
/// let scales: Vec<u8> = (0..2 * 4).collect(); // 2 rows, K = 128
/// let packed = repack_scales(&scales, 2, 128)?;
/// assert_eq!(packed.len(), 128 * 4);
/// assert_eq!(packed[..4], [0, 1, 2, 3]);
/// assert_eq!(packed[16..20], [4, 5, 6, 7]);
/// assert_eq!(unpack_scales(&packed, 2, 128, 128)?, scales);
/// # Ok::<(), gemm_rs_ar::mxfp8::Mxfp8Error>(())
/// ```
///
/// # Errors
/// `k` is not a positive multiple of 128, or `scales` is not `rows * k / 32` long.
pub fn repack_scales(scales: &[u8], rows: usize, k: usize) -> Result<Vec<u8>, Mxfp8Error> {
    repack_scales_in_groups(scales, rows, k, SCALE_ROWS as usize)
}

/// As [`repack_scales`], with every `rows_per_group` rows beginning a new group of 128 scale rows:
/// [`ScaleLayout::grouped`].
///
/// # Errors
/// As for [`repack_scales`], or `rows_per_group` is 0.
pub fn repack_scales_in_groups(
    scales: &[u8],
    rows: usize,
    k: usize,
    rows_per_group: usize,
) -> Result<Vec<u8>, Mxfp8Error> {
    let layout = layout(rows, k, rows_per_group)?;
    check_length("the scales", scales.len(), rows.saturating_mul(blocks_per_row(k)), rows, k)?;
    Ok(pack(scales, layout))
}

/// Row-major scales of the layout's shape, packed.
pub(super) fn pack(scales: &[u8], layout: ScaleLayout) -> Vec<u8> {
    let mut packed = vec![PADDING_SCALE; layout.bytes() as usize];
    for (row, scales) in (0..).zip(scales.chunks_exact(layout.k_groups() as usize)) {
        for (k_group, &scale) in (0..).zip(scales) {
            packed[layout.offset(row, k_group) as usize] = scale;
        }
    }
    packed
}

/// The row-major scales of a matrix `[rows, k]` from the layout for groups of `rows_per_group` rows, 128 for the dense
/// one. Padding is not looked at.
///
/// # Errors
/// As for [`repack_scales_in_groups`], with the layout's length for `packed`.
pub fn unpack_scales(packed: &[u8], rows: usize, k: usize, rows_per_group: usize) -> Result<Vec<u8>, Mxfp8Error> {
    let layout = layout(rows, k, rows_per_group)?;
    check_length("the packed scales", packed.len(), layout.bytes() as usize, rows, k)?;
    let places = (0..layout.rows()).flat_map(|row| (0..layout.k_groups()).map(move |k_group| (row, k_group)));
    Ok(places.map(|(row, k_group)| packed[layout.offset(row, k_group) as usize]).collect())
}

/// The layout of checked sizes.
fn layout(rows: usize, k: usize, rows_per_group: usize) -> Result<ScaleLayout, Mxfp8Error> {
    check_shape(rows, k)?;
    match narrow("the rows of a group", rows_per_group)? {
        0 => Err(Mxfp8Error::NoRowsInGroup),
        rows_per_group => Ok(ScaleLayout::grouped(rows as u32, k as u32, rows_per_group)),
    }
}

/// Checks that a shape has whole groups of scales and sizes that the kernels can count.
pub(super) fn check_shape(rows: usize, k: usize) -> Result<(), Mxfp8Error> {
    if k == 0 || !k.is_multiple_of(SCALE_GROUP_K as usize) {
        return Err(Mxfp8Error::InnerDimension { given: k, wanted: SCALE_GROUP_K as usize });
    }
    narrow("the number of rows", rows)?;
    narrow("K", k)?;
    Ok(())
}

pub(super) fn check_length(
    what: &'static str,
    given: usize,
    wanted: usize,
    rows: usize,
    k: usize,
) -> Result<(), Mxfp8Error> {
    if given == wanted { Ok(()) } else { Err(Mxfp8Error::Length { what, given, wanted, rows, k }) }
}

/// Sizes up to here can be rounded up to any of the layout's multiples.
const LIMIT: u32 = i32::MAX as u32;

fn narrow(what: &'static str, given: usize) -> Result<u32, Mxfp8Error> {
    let narrow = u32::try_from(given).ok().filter(|&value| value <= LIMIT);
    narrow.ok_or(Mxfp8Error::TooLarge { what, given, limit: LIMIT })
}

/// Scales of a row.
pub(super) fn blocks_per_row(k: usize) -> usize {
    k / SCALE_ELEMENTS as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scales(rows: usize, k: usize) -> Vec<u8> {
        // No zeros, so that padding can be told from scales.
        (0..rows * k / 32).map(|index| (index % 251 + 1) as u8).collect()
    }

    #[test]
    fn packing_and_unpacking_are_inverse() {
        for (rows, k, rows_per_group) in
            [(1, 128, 128), (300, 384, 128), (300, 384, 224), (448, 256, 224), (0, 128, 224)]
        {
            let row_major = scales(rows, k);
            let packed = repack_scales_in_groups(&row_major, rows, k, rows_per_group).unwrap();
            assert_eq!(unpack_scales(&packed, rows, k, rows_per_group).unwrap(), row_major);
            let padding = packed.iter().filter(|&&scale| scale == PADDING_SCALE).count();
            assert_eq!(padding, packed.len() - row_major.len(), "all else is padding");
        }
    }

    #[test]
    fn tiles_of_224_columns_begin_at_whole_groups() {
        let (rows, k) = (448, 256);
        let row_major = scales(rows, k);
        let packed = repack_scales_in_groups(&row_major, rows, k, 224).unwrap();
        assert_eq!(packed.len(), 2 * 256 * (k / 32));
        let second = repack_scales(&row_major[224 * k / 32..], 224, k).unwrap();
        assert_eq!(packed[packed.len() / 2..], second, "a tile's scales are those of its rows alone");
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let error = |result: Result<Vec<u8>, Mxfp8Error>| result.unwrap_err().to_string();
        assert_eq!(
            error(repack_scales(&[0; 4], 1, 96)),
            "K is 96; a positive multiple of 128 is wanted: pad both operands with zeros along K"
        );
        assert_eq!(
            error(repack_scales(&[0; 5], 1, 128)),
            "the scales have length 5; 4 is wanted for 1 rows and K = 128: check the shape and the slice"
        );
        assert_eq!(
            error(unpack_scales(&[0; 511], 1, 128, 128)),
            "the packed scales have length 511; 512 is wanted for 1 rows and K = 128: check the shape and the slice"
        );
        assert_eq!(
            error(repack_scales_in_groups(&[0; 4], 1, 128, 0)),
            "groups of 0 rows; at least 1 is wanted: pass the rows of a tile, 128, 224 or 256"
        );
        assert_eq!(
            error(repack_scales(&[], 1 << 32, 128)),
            "the number of rows is 4294967296; at most 2147483647 is wanted: split the matrix by rows"
        );
        assert!(matches!(repack_scales(&[], 1, 1 << 31), Err(Mxfp8Error::TooLarge { what: "K", .. })));
        assert!(matches!(repack_scales(&[], 0, 0), Err(Mxfp8Error::InnerDimension { given: 0, .. })));
    }
}
