//! A fixture: a kernel's PTX, and what `tools/triton_fixtures/generate.py` wrote down about launching it.

use serde::Deserialize;
use simulator::node::{TensorMapElement, TensorMapSwizzle};
use simulator::ptx;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything that a launch needs.
#[derive(Debug, Deserialize)]
pub struct Fixture {
    pub target: String,
    pub entry: String,
    pub grid: [u32; 3],
    pub cluster: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared_bytes: u32,
    pub buffers: Vec<Buffer>,
    pub parameters: Vec<Parameter>,
    pub computes: Computation,
}

/// Device memory that the kernel works on.
#[derive(Debug, Deserialize)]
pub struct Buffer {
    pub name: String,
    pub element: Element,
    pub shape: Vec<usize>,
    pub contents: Contents,
}

impl Buffer {
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    F8e4m3,
    E8m0,
    Bf16,
    F32,
    I32,
}

/// What a buffer holds before the launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contents {
    Operand,
    Zero,
    Result,
}

/// A kernel parameter, in the order of the PTX.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Parameter {
    Pointer {
        buffer: String,
    },
    I32 {
        value: i32,
    },
    I64 {
        value: i64,
    },
    TensorMap {
        buffer: String,
        element: MapElement,
        dimensions: Vec<u64>,
        strides_bytes: Vec<u64>,
        #[serde(rename = "box")]
        box_dimensions: Vec<u32>,
        swizzle: MapSwizzle,
    },
    Scratch {
        bytes_per_cta: u64,
        align: u64,
    },
}

impl Parameter {
    /// Size in the parameter space.
    pub fn bytes(&self) -> u32 {
        match self {
            Self::I32 { .. } => 4,
            Self::Pointer { .. } | Self::I64 { .. } | Self::Scratch { .. } => 8,
            Self::TensorMap { .. } => 128,
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(remote = "TensorMapElement", rename_all = "lowercase")]
enum RemoteElement {
    U8,
    U16,
    U32,
    U64,
    Bf16,
    F16,
    F32,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct MapElement(#[serde(with = "RemoteElement")] pub TensorMapElement);

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(remote = "TensorMapSwizzle")]
enum RemoteSwizzle {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "32B")]
    B32,
    #[serde(rename = "64B")]
    B64,
    #[serde(rename = "128B")]
    B128,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct MapSwizzle(#[serde(with = "RemoteSwizzle")] pub TensorMapSwizzle);

/// What the kernel computes, on buffers whose names the operation implies.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum Computation {
    /// `out = left + right`.
    Add,
    /// `out` = softmax of each row of `scores`.
    Softmax,
    /// `out` = sum of `values`.
    Sum,
    /// `out` = sum of each column of `values`.
    ColumnSum,
    /// `c` = `a` (m x k) times the transpose of `b` (n x k), each scaled by 32 elements along k if there are scales.
    Matmul { m: usize, n: usize, k: usize, scales: Option<ScaleLayout> },
    /// `c` = `a` times the transpose of `b`, rounded to BF16, times the transpose of `d` (n x n).
    MatmulTwice { m: usize, n: usize, k: usize },
}

/// Where the scale of (row, group of 32 along k) is.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScaleLayout {
    /// Row-major.
    Rows,
    /// [rows / 128, groups / 4, 32, 4, 4], where a row within its 128 is 32 times the fourth index plus the third.
    Atoms,
}

pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/triton")
}

/// The description and the PTX of `NAME.ARCH`.
pub fn read(stem: &str) -> (Fixture, String) {
    let read = |extension: &str| {
        let path = directory().join(format!("{stem}.{extension}"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let fixture = serde_json::from_str(&read("json")).unwrap_or_else(|error| panic!("{stem}.json: {error}"));
    (fixture, read("ptx"))
}

/// What the front end refuses in a PTX text, each once: unlike `load`, it goes on behind the first.
pub fn refusals(text: &str) -> Vec<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut found: BTreeMap<String, u32> = BTreeMap::new();
    while let Err(error) = ptx::load(&lines.join("\n")) {
        let line = error.location().line;
        found.entry(error.to_string()).or_insert(line);
        match lines.get_mut(line as usize - 1) {
            Some(text) if !text.is_empty() => *text = "",
            // Not a line that can be left out.
            _ => break,
        }
    }
    found.into_iter().map(|(error, line)| format!("line {line}: {error}")).collect()
}
