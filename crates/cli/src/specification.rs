//! What `--arg`, `--buffer`, `--dump` and `--trace` say, parsed.

use std::path::PathBuf;
use std::str::FromStr;

use simulator::node::TensorMapSwizzle;

use crate::element::Element;
use crate::error::CliError;

/// A buffer, of which every GPU has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Buffer {
    pub element: Element,
    pub contents: Contents,
}

/// What is in a buffer at first.
#[derive(Debug, Clone, PartialEq)]
pub enum Contents {
    /// A number of elements of a kind.
    Fill { count: u64, fill: Fill },
    /// A file's bytes.
    File(PathBuf),
}

/// Elements by rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    Zero,
    One,
    /// 0, 1, 2 and so on.
    Iota,
    /// Floats from -1 to 1, integers from 0 to 255.
    Random {
        seed: u64,
    },
    /// Never written: reading it is a fault.
    Uninitialised,
}

/// A place in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub buffer: usize,
    pub offset: u64,
}

/// A tensor map over a buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    pub buffer: usize,
    pub dimensions: Vec<u64>,
    pub box_dimensions: Vec<u32>,
    pub swizzle: TensorMapSwizzle,
    /// Dense without.
    pub strides_bytes: Option<Vec<u64>>,
    /// The buffer's own without.
    pub element: Option<Element>,
}

/// A kernel's parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    Scalar(Vec<u8>),
    /// So many bytes.
    Zeros(u16),
    Buffer(Buffer),
    Pointer(Place),
    Peer {
        gpu: u32,
        place: Place,
    },
    Multicast(Place),
    Rank,
    Gpus,
    Tensor(Tensor),
    Struct(Vec<Argument>),
}

/// A buffer to write to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    pub buffer: usize,
    pub gpu: u32,
    pub path: PathBuf,
}

/// A CTA by its number in the grid, or by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CtaName {
    Number(u64),
    Place([u32; 3]),
}

/// What a trace follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceTarget {
    Warp {
        gpu: u32,
        cta: CtaName,
        warp: u32,
    },
    /// One mbarrier, or all of the CTA.
    Barrier {
        gpu: u32,
        cta: CtaName,
        offset: Option<u32>,
    },
}

fn form(given: &str, wanted: &'static str) -> CliError {
    CliError::Form { given: given.to_owned(), wanted }
}

fn number<T: TryFrom<u64>>(text: &str, wanted: &'static str) -> Result<T, CliError> {
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    value.and_then(|value| T::try_from(value).ok()).ok_or_else(|| form(text, wanted))
}

fn numbers<T: TryFrom<u64>>(text: &str, wanted: &'static str) -> Result<Vec<T>, CliError> {
    text.split('x').map(|part| number(part, wanted)).collect()
}

impl FromStr for Buffer {
    type Err = CliError;

    fn from_str(text: &str) -> Result<Self, CliError> {
        const WANTED: &str = "buffer:TYPE:COUNT[=FILL] or file:PATH:TYPE";
        match text.split_once(':') {
            Some(("buffer", rest)) => {
                let (element, rest) = rest.split_once(':').ok_or_else(|| form(text, WANTED))?;
                let (count, fill) = rest.split_once('=').unwrap_or((rest, "zero"));
                let count = number(count, "a number of elements")?;
                Ok(Self { element: element.parse()?, contents: Contents::Fill { count, fill: fill.parse()? } })
            }
            Some(("file", rest)) => {
                let (path, element) = rest.rsplit_once(':').ok_or_else(|| form(text, WANTED))?;
                Ok(Self { element: element.parse()?, contents: Contents::File(path.into()) })
            }
            _ => Err(form(text, WANTED)),
        }
    }
}

impl FromStr for Fill {
    type Err = CliError;

    fn from_str(text: &str) -> Result<Self, CliError> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("zero", "") => Ok(Self::Zero),
            ("one", "") => Ok(Self::One),
            ("iota", "") => Ok(Self::Iota),
            ("uninit", "") => Ok(Self::Uninitialised),
            ("random", "") => Ok(Self::Random { seed: 0 }),
            ("random", seed) => Ok(Self::Random { seed: number(seed, "a seed")? }),
            _ => Err(form(text, "zero, one, iota, random, random:SEED or uninit")),
        }
    }
}

impl FromStr for Place {
    type Err = CliError;

    fn from_str(text: &str) -> Result<Self, CliError> {
        let (buffer, offset) = text.split_once('+').unwrap_or((text, "0"));
        Ok(Self { buffer: number(buffer, "a buffer's number")?, offset: number(offset, "an offset in bytes")? })
    }
}

impl FromStr for Tensor {
    type Err = CliError;

    fn from_str(text: &str) -> Result<Self, CliError> {
        const WANTED: &str = "K:dims=..:box=..[:swizzle=..][:strides=..][:type=..] after `tensormap:`";
        let mut parts = text.split(':');
        let buffer = number(parts.next().unwrap_or(""), "a buffer's number")?;
        let (mut dimensions, mut box_dimensions, mut strides_bytes, mut element) = (None, None, None, None);
        let mut swizzle = TensorMapSwizzle::None;
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(|| form(part, WANTED))?;
            match key {
                "dims" => dimensions = Some(numbers(value, "extents in elements, like 64x128")?),
                "box" => box_dimensions = Some(numbers(value, "box extents in elements, like 64x128")?),
                "strides" => strides_bytes = Some(numbers(value, "strides in bytes of dimensions 1 and up")?),
                "type" => element = Some(value.parse()?),
                "swizzle" => {
                    swizzle = match value {
                        "none" => TensorMapSwizzle::None,
                        "32" => TensorMapSwizzle::B32,
                        "64" => TensorMapSwizzle::B64,
                        "128" => TensorMapSwizzle::B128,
                        _ => return Err(form(value, "a swizzle of none, 32, 64 or 128 bytes")),
                    }
                }
                _ => return Err(form(part, WANTED)),
            }
        }
        let dimensions = dimensions.ok_or_else(|| form(text, "dims=.. of a tensor map"))?;
        let box_dimensions = box_dimensions.ok_or_else(|| form(text, "box=.. of a tensor map"))?;
        Ok(Self { buffer, dimensions, box_dimensions, swizzle, strides_bytes, element })
    }
}

impl FromStr for Argument {
    type Err = CliError;

    fn from_str(text: &str) -> Result<Self, CliError> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("rank", "") => Ok(Self::Rank),
            ("gpus", "") => Ok(Self::Gpus),
            ("buffer" | "file", _) => text.parse().map(Self::Buffer),
            ("zeros", bytes) => Ok(Self::Zeros(number::<u16>(bytes, "a number of bytes up to 65535")?)),
            ("pointer", place) => place.parse().map(Self::Pointer),
            ("multicast", place) => place.parse().map(Self::Multicast),
            ("peer", rest) => {
                let (gpu, place) = rest.split_once(':').ok_or_else(|| form(text, "peer:G:K[+BYTES]"))?;
                Ok(Self::Peer { gpu: number(gpu, "a GPU's number")?, place: place.parse()? })
            }
            ("tensormap", rest) => rest.parse().map(Self::Tensor),
            ("struct", rest) => {
                let members: Vec<Self> = rest.split(',').map(str::parse).collect::<Result<_, _>>()?;
                if members.iter().any(|member| matches!(member, Self::Struct(_))) {
                    return Err(form(text, "a struct without structs in it"));
                }
                Ok(Self::Struct(members))
            }
            (_, "") => Err(form(text, "TYPE:VALUE, or one of the other forms that --help lists")),
            (element, value) => Ok(Self::Scalar(element.parse::<Element>()?.parse(value)?)),
        }
    }
}

impl FromStr for Dump {
    type Err = CliError;

    fn from_str(text: &str) -> Result<Self, CliError> {
        let (place, path) = text.split_once('=').ok_or_else(|| form(text, "K=PATH or K@G=PATH"))?;
        let (buffer, gpu) = place.split_once('@').unwrap_or((place, "0"));
        Ok(Self {
            buffer: number(buffer, "a buffer's number")?,
            gpu: number(gpu, "a GPU's number")?,
            path: path.into(),
        })
    }
}

impl FromStr for CtaName {
    type Err = CliError;

    fn from_str(text: &str) -> Result<Self, CliError> {
        const WANTED: &str = "a CTA's number, or its X,Y,Z";
        let parts: Vec<u32> = match text.split_once(',') {
            None => return number(text, WANTED).map(Self::Number),
            Some(_) => text.split(',').map(|part| number(part, WANTED)).collect::<Result<_, _>>()?,
        };
        parts.try_into().map(Self::Place).map_err(|_| form(text, WANTED))
    }
}

impl FromStr for TraceTarget {
    type Err = CliError;

    fn from_str(text: &str) -> Result<Self, CliError> {
        const WANTED: &str = "warp=GPU:CTA:WARP or barrier=GPU:CTA:ADDRESS";
        let (what, rest) = text.split_once('=').ok_or_else(|| form(text, WANTED))?;
        let [gpu, cta, last] = rest.split(':').collect::<Vec<_>>()[..] else { return Err(form(text, WANTED)) };
        let (gpu, cta) = (number(gpu, "a GPU's number")?, cta.parse()?);
        match (what, last) {
            ("warp", warp) => Ok(Self::Warp { gpu, cta, warp: number(warp, "a warp's number")? }),
            ("barrier", "all") => Ok(Self::Barrier { gpu, cta, offset: None }),
            ("barrier", offset) => {
                Ok(Self::Barrier { gpu, cta, offset: Some(number(offset, "an mbarrier's offset, or all")?) })
            }
            _ => Err(form(text, WANTED)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_what_they_say() {
        assert_eq!("i32:-3".parse(), Ok(Argument::Scalar((-3_i32).to_le_bytes().to_vec())));
        let contents = Contents::Fill { count: 1024, fill: Fill::Random { seed: 7 } };
        assert_eq!(
            "buffer:bf16:1024=random:7".parse(),
            Ok(Argument::Buffer(Buffer { element: Element::Bf16, contents }))
        );
        assert_eq!("pointer:2+0x10".parse(), Ok(Argument::Pointer(Place { buffer: 2, offset: 16 })));
        let file = Buffer { element: Element::U8, contents: Contents::File("a:b.bin".into()) };
        assert_eq!("file:a:b.bin:u8".parse(), Ok(file));
        assert_eq!(
            "struct:rank,u32:1".parse(),
            Ok(Argument::Struct(vec![Argument::Rank, Argument::Scalar(vec![1, 0, 0, 0])]))
        );
        assert_eq!(
            "tensormap:0:dims=64x128:box=64x8:swizzle=128".parse(),
            Ok(Argument::Tensor(Tensor {
                buffer: 0,
                dimensions: vec![64, 128],
                box_dimensions: vec![64, 8],
                swizzle: TensorMapSwizzle::B128,
                strides_bytes: None,
                element: None,
            }))
        );
    }

    #[test]
    fn wrong_arguments_say_what_was_wanted() {
        let message = |text: &str| text.parse::<Argument>().unwrap_err().to_string();
        assert_eq!(
            message("x32:5"),
            "given type `x32`, wanted one of u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64"
        );
        assert_eq!(message("u32:five"), "given `five`, wanted a value of type u32");
        assert_eq!(message("buffer:f32"), "given `buffer:f32`, wanted buffer:TYPE:COUNT[=FILL] or file:PATH:TYPE");
        assert_eq!(message("buffer:f32:4=two"), "given `two`, wanted zero, one, iota, random, random:SEED or uninit");
        assert_eq!(message("tensormap:0:dims=4"), "given `0:dims=4`, wanted box=.. of a tensor map");
    }

    #[test]
    fn traces_name_ctas_by_number_or_place() {
        assert_eq!("warp=1:2,0,0:3".parse(), Ok(TraceTarget::Warp { gpu: 1, cta: CtaName::Place([2, 0, 0]), warp: 3 }));
        assert_eq!(
            "barrier=0:5:all".parse(),
            Ok(TraceTarget::Barrier { gpu: 0, cta: CtaName::Number(5), offset: None })
        );
        assert!("barrier=0:5".parse::<TraceTarget>().is_err());
    }
}
