//! A row-parallel layer from a safetensors file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use half::bf16;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use thiserror::Error;

/// A layer's operands: X `[m, k]`, W `[n, k]`, and Y `[m, n]` from elsewhere if the file has it.
pub struct Layer {
    pub name: String,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub x: Vec<bf16>,
    pub weight: Vec<bf16>,
    pub y: Option<Vec<f32>>,
}

/// Why a layer cannot be used.
#[derive(Debug, Error)]
pub enum LayerError {
    #[error("{}: cannot be read ({source}); pass a safetensors file with --file", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: not a whole safetensors file ({reason}); download or write it again", path.display())]
    Format { path: PathBuf, reason: String },
    #[error("{}: there is no tensor {tensor}; a layer needs <layer>.x and <layer>.weight", path.display())]
    Missing { path: PathBuf, tensor: String },
    #[error("tensor {tensor} is {given}; {wanted} is wanted: convert it before it is saved")]
    ElementType { tensor: String, given: String, wanted: &'static str },
    #[error("tensor {tensor} has shape {given:?}; {wanted} is wanted")]
    Shape { tensor: String, given: Vec<usize>, wanted: String },
    #[error(
        "layer {layer} has K = {k}, which {ranks} ranks cannot share; a multiple of {stage} on each rank is wanted, so \
         choose among {choices:?} ranks"
    )]
    Ranks { layer: String, k: usize, stage: usize, ranks: u32, choices: Vec<u32> },
}

impl Layer {
    /// Reads `<name>.x` and `<name>.weight`, and `<name>.y_f32` if it is there.
    pub fn read(path: &Path, name: &str) -> Result<Self, LayerError> {
        let bytes = fs::read(path).map_err(|source| LayerError::Read { path: path.to_owned(), source })?;
        Self::parse(path, &bytes, name)
    }

    fn parse(path: &Path, bytes: &[u8], name: &str) -> Result<Self, LayerError> {
        let file = SafeTensors::deserialize(bytes)
            .map_err(|error| LayerError::Format { path: path.to_owned(), reason: error.to_string() })?;
        let find = |tensor: &str| {
            let tensor = format!("{name}.{tensor}");
            match file.tensor(&tensor) {
                Ok(view) => Ok((tensor, view)),
                Err(_) => Err(LayerError::Missing { path: path.to_owned(), tensor }),
            }
        };
        let ((x_name, x), (weight_name, weight)) = (find("x")?, find("weight")?);
        let [m, k] = shape(&x_name, &x, None)?;
        let [n, _] = shape(&weight_name, &weight, Some([None, Some(k)]))?;
        let layer = Self {
            name: name.to_owned(),
            m,
            n,
            k,
            x: bf16_elements(&x_name, &x)?,
            weight: bf16_elements(&weight_name, &weight)?,
            y: match find("y_f32") {
                Ok((y_name, y)) => {
                    shape(&y_name, &y, Some([Some(m), Some(n)]))?;
                    Some(f32_elements(&y_name, &y)?)
                }
                Err(_) => None,
            },
        };
        Ok(layer)
    }

    /// The part of K that each rank gets, a multiple of `stage`.
    pub fn k_per_rank(&self, ranks: u32, stage: usize) -> Result<usize, LayerError> {
        let fits = |&ranks: &u32| self.k > 0 && self.k.is_multiple_of(ranks as usize * stage);
        let choices: Vec<u32> = (plan::MIN_RANKS..=plan::MAX_RANKS).filter(fits).collect();
        if choices.contains(&ranks) {
            return Ok(self.k / ranks as usize);
        }
        Err(LayerError::Ranks { layer: self.name.clone(), k: self.k, stage, ranks, choices })
    }
}

/// Bytes of the columns that a rank holds of a matrix of `k` columns.
pub fn shard(matrix: &[bf16], k: usize, part: usize, rank: usize) -> Vec<u8> {
    let rows = matrix.chunks_exact(k).map(|row| &row[rank * part..(rank + 1) * part]);
    rows.flat_map(bytemuck::cast_slice::<bf16, u8>).copied().collect()
}

/// The extents of a matrix, of which some are known.
fn shape(name: &str, view: &TensorView, wanted: Option<[Option<usize>; 2]>) -> Result<[usize; 2], LayerError> {
    let wanted = wanted.unwrap_or_default();
    if let &[rows, columns] = view.shape()
        && [rows, columns].iter().zip(wanted).all(|(&given, wanted)| wanted.is_none_or(|wanted| wanted == given))
    {
        return Ok([rows, columns]);
    }
    let extent = |wanted: Option<usize>| wanted.map_or("any".to_owned(), |wanted| wanted.to_string());
    let wanted = format!("[{}, {}]", extent(wanted[0]), extent(wanted[1]));
    Err(LayerError::Shape { tensor: name.to_owned(), given: view.shape().to_vec(), wanted })
}

fn check_type(name: &str, view: &TensorView, wanted: Dtype, wanted_name: &'static str) -> Result<(), LayerError> {
    if view.dtype() == wanted {
        return Ok(());
    }
    let given = format!("{:?}", view.dtype());
    Err(LayerError::ElementType { tensor: name.to_owned(), given, wanted: wanted_name })
}

fn bf16_elements(name: &str, view: &TensorView) -> Result<Vec<bf16>, LayerError> {
    check_type(name, view, Dtype::BF16, "BF16")?;
    // The file does not align its tensors, so the elements are copied out.
    Ok(view.data().as_chunks::<2>().0.iter().map(|&bytes| bf16::from_le_bytes(bytes)).collect())
}

fn f32_elements(name: &str, view: &TensorView) -> Result<Vec<f32>, LayerError> {
    check_type(name, view, Dtype::F32, "F32")?;
    Ok(view.data().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::serialize;

    /// A file with one layer, whose tensors have the given types and shapes.
    fn file(x: (Dtype, &[usize]), weight: (Dtype, &[usize])) -> Vec<u8> {
        let tensor = |(dtype, shape): (Dtype, &[usize])| {
            let bytes = shape.iter().product::<usize>() * dtype.bitsize() / 8;
            (dtype, shape.to_vec(), vec![0u8; bytes])
        };
        let tensors = [("l.x", tensor(x)), ("l.weight", tensor(weight))];
        let views = tensors
            .iter()
            .map(|(name, (dtype, shape, data))| (*name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
        serialize(views, None).unwrap()
    }

    fn refusal(bytes: &[u8], name: &str) -> String {
        Layer::parse(Path::new("f.safetensors"), bytes, name).map(drop).unwrap_err().to_string()
    }

    const X: (Dtype, &[usize]) = (Dtype::BF16, &[3, 128]);
    const WEIGHT: (Dtype, &[usize]) = (Dtype::BF16, &[128, 128]);

    #[test]
    fn a_layer_is_read_with_its_extents() {
        let layer = Layer::parse(Path::new(""), &file(X, WEIGHT), "l").unwrap();
        assert_eq!((layer.m, layer.n, layer.k), (3, 128, 128));
        assert_eq!(layer.k_per_rank(2, 64).unwrap(), 64);
        assert_eq!(
            layer.k_per_rank(3, 64).unwrap_err().to_string(),
            "layer l has K = 128, which 3 ranks cannot share; a multiple of 64 on each rank is wanted, so choose among \
             [2] ranks"
        );
    }

    #[test]
    fn a_wrong_element_type_names_the_tensor() {
        assert_eq!(
            refusal(&file(X, (Dtype::F16, &[128, 128])), "l"),
            "tensor l.weight is F16; BF16 is wanted: convert it before it is saved"
        );
    }

    #[test]
    fn shapes_that_do_not_fit_name_the_tensor() {
        assert_eq!(
            refusal(&file(X, (Dtype::BF16, &[128, 64])), "l"),
            "tensor l.weight has shape [128, 64]; [any, 128] is wanted"
        );
        assert_eq!(
            refusal(&file((Dtype::BF16, &[3, 2, 64]), WEIGHT), "l"),
            "tensor l.x has shape [3, 2, 64]; [any, any] is wanted"
        );
    }

    #[test]
    fn a_file_that_is_cut_short_or_lacks_the_layer_is_refused() {
        let whole = file(X, WEIGHT);
        for length in [0, 7, 100, whole.len() - 1] {
            let text = refusal(&whole[..length], "l");
            assert!(text.starts_with("f.safetensors: not a whole safetensors file ("), "{text}");
        }
        assert_eq!(
            refusal(&whole, "other"),
            "f.safetensors: there is no tensor other.x; a layer needs <layer>.x and <layer>.weight"
        );
    }
}
