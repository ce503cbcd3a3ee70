//! Every GPU's buffers, and parameters that point into them.

use std::collections::BTreeMap;
use std::fs;

use simulator::node::{DevicePtr, GpuId, MemoryHandle, TensorMapDescription};
use simulator::{Node, encode_tensor_map};

use crate::element::Element;
use crate::error::CliError;
use crate::specification::{Argument, Buffer, Contents, Fill, Place, Tensor};

/// Bytes read back at once.
const PIECE: usize = 4096;

/// A buffer of one GPU or another.
struct Replica {
    memory: MemoryHandle,
    address: DevicePtr,
}

/// A buffer on every GPU.
pub struct DeviceBuffer {
    pub element: Element,
    pub bytes: u64,
    /// `None` where it was never written.
    pub initial: Option<Vec<u8>>,
    replicas: Vec<Replica>,
}

/// All buffers of the node.
pub struct Buffers {
    gpus: u32,
    pub list: Vec<DeviceBuffer>,
    /// Multicast addresses by buffer and GPU.
    multicasts: BTreeMap<(usize, u32), DevicePtr>,
    /// Peers' buffers by the GPU that maps them, the GPU that owns them, and their number.
    peers: BTreeMap<(u32, u32, usize), DevicePtr>,
}

impl Buffers {
    pub fn new(node: &mut Node, specifications: &[&Buffer]) -> Result<Self, CliError> {
        let gpus = node.config().gpus;
        let list = specifications.iter().map(|buffer| allocate(node, gpus, buffer)).collect::<Result<_, _>>()?;
        Ok(Self { gpus, list, multicasts: BTreeMap::new(), peers: BTreeMap::new() })
    }

    pub fn get(&self, buffer: usize) -> Result<&DeviceBuffer, CliError> {
        self.list.get(buffer).ok_or(CliError::NoSuchBuffer { given: buffer, available: self.list.len() })
    }

    /// The bytes that a GPU gets for each parameter.
    pub fn parameters(&mut self, node: &mut Node, gpu: u32, arguments: &[Argument]) -> Result<Vec<Vec<u8>>, CliError> {
        let mut next = self.list.len() - arguments.iter().map(made_by).sum::<usize>();
        arguments.iter().map(|argument| self.parameter(node, gpu, argument, &mut next)).collect()
    }

    fn parameter(
        &mut self,
        node: &mut Node,
        gpu: u32,
        argument: &Argument,
        next: &mut usize,
    ) -> Result<Vec<u8>, CliError> {
        let pointer = |address: DevicePtr| address.to_le_bytes().to_vec();
        Ok(match argument {
            Argument::Scalar(bytes) => bytes.clone(),
            Argument::Zeros(bytes) => vec![0; usize::from(*bytes)],
            Argument::Rank => gpu.to_le_bytes().to_vec(),
            Argument::Gpus => self.gpus.to_le_bytes().to_vec(),
            Argument::Buffer(_) => {
                *next += 1;
                pointer(self.list[*next - 1].replicas[gpu as usize].address)
            }
            Argument::Pointer(place) => pointer(self.place(*place)?.replicas[gpu as usize].address + place.offset),
            Argument::Peer { gpu: owner, place } => pointer(self.peer(node, gpu, *owner, *place)? + place.offset),
            Argument::Multicast(place) => pointer(self.multicast(node, gpu, *place)? + place.offset),
            Argument::Tensor(tensor) => self.tensor_map(gpu, tensor)?,
            Argument::Struct(members) => {
                let mut bytes: Vec<u8> = Vec::new();
                let mut largest = 1;
                for member in members {
                    let bytes_of_member = self.parameter(node, gpu, member, next)?;
                    let align = alignment(member, bytes_of_member.len());
                    largest = largest.max(align);
                    bytes.resize(bytes.len().next_multiple_of(align), 0);
                    bytes.extend(bytes_of_member);
                }
                bytes.resize(bytes.len().next_multiple_of(largest), 0);
                bytes
            }
        })
    }

    fn place(&self, place: Place) -> Result<&DeviceBuffer, CliError> {
        let buffer = self.get(place.buffer)?;
        if place.offset > buffer.bytes {
            return Err(CliError::OffsetOutside { given: place.offset, buffer: place.buffer, bytes: buffer.bytes });
        }
        Ok(buffer)
    }

    fn peer(&mut self, node: &mut Node, gpu: u32, owner: u32, place: Place) -> Result<DevicePtr, CliError> {
        let buffer = self.place(place)?;
        let replica =
            buffer.replicas.get(owner as usize).ok_or(CliError::NoSuchGpu { given: owner, gpus: self.gpus })?;
        if owner == gpu {
            return Ok(replica.address);
        }
        let key = (gpu, owner, place.buffer);
        if let Some(&address) = self.peers.get(&key) {
            return Ok(address);
        }
        let address = node.map(GpuId(gpu), replica.memory)?;
        self.peers.insert(key, address);
        Ok(address)
    }

    fn multicast(&mut self, node: &mut Node, gpu: u32, place: Place) -> Result<DevicePtr, CliError> {
        let buffer = self.place(place)?;
        if !self.multicasts.contains_key(&(place.buffer, 0)) {
            let gpus: Vec<GpuId> = (0..self.gpus).map(GpuId).collect();
            let multicast = node.create_multicast(&gpus, buffer.bytes)?;
            for replica in &buffer.replicas {
                node.bind_multicast(multicast, replica.memory, 0, 0, buffer.bytes)?;
            }
            for gpu in gpus {
                self.multicasts.insert((place.buffer, gpu.0), node.map_multicast(gpu, multicast)?);
            }
        }
        Ok(self.multicasts[&(place.buffer, gpu)])
    }

    fn tensor_map(&self, gpu: u32, tensor: &Tensor) -> Result<Vec<u8>, CliError> {
        let buffer = self.get(tensor.buffer)?;
        let wrong = |problem: String| CliError::TensorMap { buffer: tensor.buffer, problem };
        let element = tensor.element.unwrap_or(buffer.element).tensor_map();
        let overflows = || wrong(format!("given extents {:?}, wanted fewer than 2^64 bytes", tensor.dimensions));
        // Bytes up to the end of each dimension, were the tensor dense.
        let mut dense = Vec::with_capacity(tensor.dimensions.len());
        let mut bytes = u64::from(element.bytes());
        for &extent in &tensor.dimensions {
            bytes = bytes.checked_mul(extent).ok_or_else(overflows)?;
            dense.push(bytes);
        }
        dense.pop();
        let description = TensorMapDescription {
            element,
            base: buffer.replicas[gpu as usize].address,
            dimensions: tensor.dimensions.clone(),
            strides_bytes: tensor.strides_bytes.clone().unwrap_or(dense),
            box_dimensions: tensor.box_dimensions.clone(),
            element_strides: vec![1; tensor.dimensions.len()],
            swizzle: tensor.swizzle,
            nan_fill: false,
        };
        Ok(encode_tensor_map(&description).map_err(|error| wrong(error.to_string()))?.0.to_vec())
    }

    /// A buffer's contents now; `None` for bytes that were never written.
    pub fn read(&self, node: &Node, gpu: u32, buffer: usize) -> Vec<Option<u8>> {
        let buffer = &self.list[buffer];
        let start = buffer.replicas[gpu as usize].address;
        let mut contents = Vec::with_capacity(buffer.bytes as usize);
        let mut piece = [0; PIECE];
        let mut done = 0;
        while done < buffer.bytes {
            let length = (PIECE as u64).min(buffer.bytes - done) as usize;
            match node.read(GpuId(gpu), start + done, &mut piece[..length]) {
                Ok(()) => contents.extend(piece[..length].iter().copied().map(Some)),
                // Somewhere in the piece is a hole.
                Err(_) => contents.extend((0..length as u64).map(|index| {
                    let mut byte = [0];
                    node.read(GpuId(gpu), start + done + index, &mut byte).is_ok().then_some(byte[0])
                })),
            }
            done += length as u64;
        }
        contents
    }
}

/// What a member of a structure is aligned to.
fn alignment(member: &Argument, bytes: usize) -> usize {
    match member {
        Argument::Zeros(_) => 1,
        // CUDA driver API, CUtensorMap.
        Argument::Tensor(_) => 64,
        _ => bytes,
    }
}

/// How many buffers an argument makes.
fn made_by(argument: &Argument) -> usize {
    match argument {
        Argument::Buffer(_) => 1,
        Argument::Struct(members) => members.iter().map(made_by).sum(),
        _ => 0,
    }
}

/// Buffers that arguments make, in order.
pub fn made(arguments: &[Argument]) -> Vec<&Buffer> {
    let mut buffers = Vec::new();
    for argument in arguments {
        match argument {
            Argument::Buffer(buffer) => buffers.push(buffer),
            Argument::Struct(members) => buffers.extend(made(members)),
            _ => {}
        }
    }
    buffers
}

fn allocate(node: &mut Node, gpus: u32, buffer: &Buffer) -> Result<DeviceBuffer, CliError> {
    let limit = node.config().memory_bytes_per_gpu;
    let fits = |bytes: u128| match u64::try_from(bytes) {
        Ok(size) if (1..=limit).contains(&size) => Ok(size),
        _ => Err(CliError::BufferSize { given: bytes, limit }),
    };
    let element = buffer.element;
    let (bytes, initial) = match &buffer.contents {
        Contents::Fill { count, fill } => {
            let bytes = fits(u128::from(*count) * u128::from(element.bytes()))?;
            (bytes, filled(element, *count, *fill))
        }
        Contents::File(path) => {
            let failed = |error: std::io::Error| CliError::File { path: path.clone(), problem: error.to_string() };
            let contents = fs::read(path).map_err(failed)?;
            let bytes = fits(contents.len() as u128)?;
            if !bytes.is_multiple_of(element.bytes().into()) {
                return Err(CliError::FileSize { path: path.clone(), given: bytes, element: element.bytes() });
            }
            (bytes, Some(contents))
        }
    };
    let mut replicas = Vec::new();
    for gpu in (0..gpus).map(GpuId) {
        let memory = node.create_memory(gpu, bytes)?;
        let address = node.map(gpu, memory)?;
        if let Some(initial) = &initial {
            node.write(gpu, address, initial)?;
        }
        replicas.push(Replica { memory, address });
    }
    Ok(DeviceBuffer { element, bytes, initial, replicas })
}

fn filled(element: Element, count: u64, fill: Fill) -> Option<Vec<u8>> {
    let by_index =
        |value: &mut dyn FnMut(u64) -> f64| (0..count).flat_map(|index| element.round(value(index))).collect();
    Some(match fill {
        Fill::Zero => vec![0; count as usize * element.bytes() as usize],
        Fill::One => by_index(&mut |_| 1.0),
        Fill::Iota => by_index(&mut |index| index as f64),
        Fill::Random { seed } => {
            let mut state = seed;
            by_index(&mut |_| {
                let word = splitmix64(&mut state);
                if element.is_float() { (word >> 11) as f64 / (1_u64 << 52) as f64 - 1.0 } else { (word >> 56) as f64 }
            })
        }
        Fill::Uninitialised => return None,
    })
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators".
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
