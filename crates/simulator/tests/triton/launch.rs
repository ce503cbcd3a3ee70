//! A launch of a fixture on a node of one GPU.

use crate::fixture::{Contents, Fixture, Parameter};
use crate::numbers::{Operands, Random};
use simulator::encode_tensor_map;
use simulator::node::{DevicePtr, GpuId, LaunchConfig, Node, NodeConfig, OrderingRules, TensorMapDescription};
use std::collections::HashMap;

const GPU: GpuId = GpuId(0);

/// The numbers in each buffer, by name.
pub type Values = HashMap<String, Vec<f64>>;

/// Fills memory, runs the kernel, and returns what the operands were and what the other buffers hold afterwards.
pub fn run(fixture: &Fixture, ptx: &str, operands: Operands, seed: u64) -> Values {
    // Fewer SMs than CTAs for some fixtures, so that not all of a grid is resident.
    let mut node =
        Node::new(NodeConfig { sms_per_gpu: 4, seed, rules: OrderingRules::Practised, ..NodeConfig::default() });
    let module = node.load_module(ptx).expect("it loads");
    let mut random = Random::new(seed);
    let mut addresses = HashMap::new();
    let mut values = Values::new();
    for buffer in &fixture.buffers {
        let bytes = buffer.elements() * buffer.element.bytes();
        let address = node.allocate(GPU, bytes as u64).expect("the node has memory");
        let contents = match buffer.contents {
            Contents::Operand => Some(operands.fill(buffer.element, buffer.elements(), &mut random)),
            Contents::Zero => Some(vec![0; bytes]),
            Contents::Result => None,
        };
        if let Some(contents) = contents {
            node.write(GPU, address, &contents).expect("it is mapped");
            values.insert(buffer.name.clone(), buffer.element.decode(&contents));
        }
        addresses.insert(buffer.name.as_str(), address);
    }
    let parameters: Vec<Vec<u8>> =
        fixture.parameters.iter().map(|parameter| encode(parameter, &addresses, fixture, &mut node)).collect();
    let parameters: Vec<&[u8]> = parameters.iter().map(Vec::as_slice).collect();
    let config = LaunchConfig {
        grid: fixture.grid,
        cluster: fixture.cluster,
        block: fixture.block,
        dynamic_shared_bytes: fixture.dynamic_shared_bytes,
    };
    node.launch(GPU, 0, module, &fixture.entry, config, &parameters).expect("the launch is legal");
    node.run().unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    for buffer in fixture.buffers.iter().filter(|buffer| buffer.contents != Contents::Operand) {
        let mut bytes = vec![0; buffer.elements() * buffer.element.bytes()];
        // Fails if the kernel left a part unwritten.
        let read = node.read(GPU, addresses[buffer.name.as_str()], &mut bytes);
        read.unwrap_or_else(|error| panic!("seed {seed}: buffer {}: {error}", buffer.name));
        values.insert(buffer.name.clone(), buffer.element.decode(&bytes));
    }
    values
}

/// The bytes of a parameter; scratch memory is allocated here.
fn encode(parameter: &Parameter, addresses: &HashMap<&str, DevicePtr>, fixture: &Fixture, node: &mut Node) -> Vec<u8> {
    match parameter {
        Parameter::Pointer { buffer } => addresses[buffer.as_str()].to_le_bytes().to_vec(),
        Parameter::I32 { value } => value.to_le_bytes().to_vec(),
        Parameter::I64 { value } => value.to_le_bytes().to_vec(),
        Parameter::TensorMap { buffer, element, dimensions, strides_bytes, box_dimensions, swizzle } => {
            let description = TensorMapDescription {
                element: element.0,
                base: addresses[buffer.as_str()],
                dimensions: dimensions.clone(),
                strides_bytes: strides_bytes.clone(),
                box_dimensions: box_dimensions.clone(),
                element_strides: vec![1; dimensions.len()],
                swizzle: swizzle.0,
                nan_fill: false,
            };
            encode_tensor_map(&description).expect("the map is legal").0.to_vec()
        }
        Parameter::Scratch { bytes_per_cta: 0, .. } => 0u64.to_le_bytes().to_vec(),
        Parameter::Scratch { bytes_per_cta, align } => {
            let ctas: u64 = fixture.grid.iter().map(|&extent| u64::from(extent)).product();
            let address = node.allocate(GPU, bytes_per_cta * ctas).expect("the node has memory");
            assert_eq!(address % align, 0, "scratch memory of alignment {align}");
            address.to_le_bytes().to_vec()
        }
    }
}
