//! Runs what loaded, on a small node and for a short while.

use super::inputs::Random;
use simulator::Node;
use simulator::node::{GpuId, LaunchConfig, NodeConfig, TensorMapDescription, TensorMapElement, TensorMapSwizzle};
use simulator::program::Module;

const GPU: GpuId = GpuId(0);
const BUFFER_BYTES: u64 = 4096;
const INSTRUCTIONS: u64 = 20_000;
/// Registers and local memory of a warp above which a kernel is not run: it would only take time.
const WARP_BYTES: u64 = 8 << 20;

/// Whether every kernel came to its end, and not to an error. Parameters are a buffer, a multicast address, and a tensor map.
pub fn execute(text: &str, module: &Module, random: &mut Random) -> bool {
    let config = NodeConfig {
        gpus: 2,
        sms_per_gpu: 2,
        seed: random.next(),
        memory_bytes_per_gpu: 256 << 20,
        ..NodeConfig::default()
    };
    let mut node = Node::new(config);
    node.set_spin_limit(INSTRUCTIONS / 4);
    node.set_instruction_limit(INSTRUCTIONS);
    let Ok(loaded) = node.load_module(text) else { return false };
    let (buffer, multicast) = memory(&mut node);
    let map = TensorMapDescription {
        element: TensorMapElement::Bf16,
        base: buffer,
        dimensions: vec![32, 16],
        strides_bytes: vec![64],
        box_dimensions: vec![32, 8],
        element_strides: vec![1, 1],
        swizzle: TensorMapSwizzle::B64,
        nan_fill: false,
    };
    let map = simulator::encode_tensor_map(&map).expect("a legal tensor map").0;
    let mut well = true;
    for kernel in &module.kernels {
        if u64::from(kernel.register_count) * 256 + u64::from(kernel.local_bytes) * 32 > WARP_BYTES {
            continue;
        }
        let parameters: Vec<Vec<u8>> = kernel
            .parameters
            .iter()
            .enumerate()
            .map(|(i, parameter)| {
                let mut bytes = match (i, parameter.bytes) {
                    (_, 128) => map.to_vec(),
                    (1, 8) => multicast.to_le_bytes().to_vec(),
                    _ => buffer.to_le_bytes().to_vec(),
                };
                bytes.resize(parameter.bytes as usize, 0);
                bytes
            })
            .collect();
        let arguments: Vec<&[u8]> = parameters.iter().map(Vec::as_slice).collect();
        let cluster = kernel.required_cluster.unwrap_or(if random.below(4) == 0 { [2, 1, 1] } else { [1; 3] });
        let block = kernel.required_threads.unwrap_or([[1, 31, 32, 64][random.below(4) as usize], 1, 1]);
        let config = LaunchConfig { grid: cluster, cluster, block, dynamic_shared_bytes: random.below(3) as u32 * 512 };
        if node.launch(GPU, 0, loaded, &kernel.name, config, &arguments).is_err() {
            well = false;
            continue;
        }
        match node.run() {
            Ok(()) => {}
            // What a run leaves behind after a fault is not meant to go on.
            Err(fault) => {
                let _ = fault.to_string();
                return false;
            }
        }
    }
    well
}

/// Memory of the first GPU, and both GPUs' memory behind one multicast address.
fn memory(node: &mut Node) -> (u64, u64) {
    let data: Vec<u8> = (0..BUFFER_BYTES).map(|i| (i * 7) as u8).collect();
    let buffer = node.allocate(GPU, BUFFER_BYTES).expect("the node has memory");
    node.write(GPU, buffer, &data).expect("the buffer is mapped");
    let gpus = [GpuId(0), GpuId(1)];
    let object = node.create_multicast(&gpus, BUFFER_BYTES).expect("the node has multicast");
    for gpu in gpus {
        let memory = node.create_memory(gpu, BUFFER_BYTES).expect("the node has memory");
        node.bind_multicast(object, memory, 0, 0, BUFFER_BYTES).expect("the memory is as large as the object");
        let unicast = node.map(gpu, memory).expect("the memory exists");
        node.write(gpu, unicast, &data).expect("the memory is mapped");
    }
    (buffer, node.map_multicast(GPU, object).expect("every GPU is bound"))
}
