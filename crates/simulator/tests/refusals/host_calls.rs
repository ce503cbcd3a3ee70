//! Memory, multicast objects and copies, asked of a node by the host.

use simulator::Node;
use simulator::node::{GpuId, MemoryHandle, MulticastHandle, NodeConfig};

use crate::fixture::{GPU, node};
use crate::support::refused;

const PEER: GpuId = GpuId(1);
const NOBODY: GpuId = GpuId(2);

#[test]
fn a_gpu_that_is_not_there() {
    let mut node = node(2, 0);
    let text = "there is no GPU 2 in a node of 2";
    refused(node.create_memory(NOBODY, 64), text);
    refused(node.allocate(NOBODY, 64), text);
    refused(node.write(NOBODY, 0, &[0]), text);
    let memory = node.create_memory(PEER, 64).unwrap();
    refused(node.map(NOBODY, memory), text);
    node.map(PEER, memory).unwrap();
}

#[test]
fn handles_that_are_unknown_or_released() {
    let mut node = node(1, 0);
    refused(node.map(GPU, MemoryHandle(7)), "memory handle 7 is unknown or was released");
    let memory = node.create_memory(GPU, 64).unwrap();
    node.release_memory(memory).unwrap();
    refused(node.map(GPU, memory), "memory handle 0 is unknown or was released");
    refused(node.map_multicast(GPU, MulticastHandle(7)), "multicast handle 7 is unknown or was released");
    let object = node.create_multicast(&[GPU], 64).unwrap();
    node.map_multicast(GPU, object).unwrap();
    node.release_multicast(object).unwrap();
    refused(node.release_multicast(object), "multicast handle 0 is unknown or was released");
}

#[test]
fn sizes() {
    let mut node = Node::new(NodeConfig { memory_bytes_per_gpu: 4096, ..NodeConfig::default() });
    refused(node.create_memory(GPU, 0), "0 bytes were asked for; ask for at least 1");
    refused(node.create_multicast(&[GPU], 0), "0 bytes were asked for; ask for at least 1");
    let first = node.allocate(GPU, 1024).unwrap();
    refused(
        node.allocate(GPU, 4096),
        "4096 bytes do not fit: GPU 0 has 3072 of its 4096 bytes left. Free memory or raise NodeConfig::memory_bytes_per_gpu",
    );
    node.free(GPU, first).unwrap();
    node.allocate(GPU, 4096).unwrap();
}

#[test]
fn mappings() {
    let mut node = node(2, 0);
    let memory = node.create_memory(GPU, 64).unwrap();
    let mapped = node.map(GPU, memory).unwrap();
    refused(node.unmap(GPU, mapped + 16), "0x700000200010 is not the start of a mapping of GPU 0");
    refused(node.unmap(PEER, mapped), "0x700000200000 is not the start of a mapping of GPU 1");
    refused(node.free(GPU, mapped), "0x700000200000 was mapped, not allocated: use unmap and release_memory");
    node.unmap(GPU, mapped).unwrap();
    refused(node.unmap(GPU, mapped), "0x700000200000 is not the start of a mapping of GPU 0");
    node.release_memory(memory).unwrap();
}

#[test]
fn multicast_objects() {
    let mut node = node(3, 0);
    let text = |given| format!("a multicast object needs distinct GPUs of the node, at least one; given {given}");
    refused(node.create_multicast(&[], 64), &text("[]"));
    refused(node.create_multicast(&[GPU, GPU], 64), &text("[0, 0]"));
    refused(node.create_multicast(&[GPU, GpuId(9)], 64), &text("[0, 9]"));
    let object = node.create_multicast(&[GPU, PEER], 64).unwrap();
    let [own, foreign] = [GPU, NOBODY].map(|gpu| node.create_memory(gpu, 32).unwrap());
    refused(
        node.bind_multicast(object, foreign, 0, 0, 32),
        "the memory is on GPU 2, which is not one of the multicast object's GPUs",
    );
    refused(
        node.map_multicast(NOBODY, object),
        "the memory is on GPU 2, which is not one of the multicast object's GPUs",
    );
    refused(
        node.bind_multicast(object, own, 48, 0, 32),
        "32 bytes at offset 48 reach past the end of the multicast object, which has 64 bytes",
    );
    refused(
        node.bind_multicast(object, own, 0, 16, 32),
        "32 bytes at offset 16 reach past the end of the memory, which has 32 bytes",
    );
    node.bind_multicast(object, own, 0, 0, 32).unwrap();
    refused(
        node.bind_multicast(object, own, 16, 0, 32),
        "GPU 0 has already bound memory to part of that range of the multicast object",
    );
    node.bind_multicast(object, own, 32, 0, 32).unwrap();
}

#[test]
fn bytes_that_are_not_there() {
    let mut node = node(1, 0);
    let address = node.allocate(GPU, 64).unwrap();
    refused(
        node.write(GPU, address + 60, &[0; 8]),
        "host access to 8 bytes at 0x70000020003c on GPU 0: no memory is mapped there: 4 bytes past the end of the 64 bytes mapped at 0x700000200000",
    );
    refused(
        node.read(GPU, address, &mut [0; 4]),
        "host access to 4 bytes at 0x700000200000 on GPU 0: the byte at 0x700000200000 was never written",
    );
    node.write(GPU, address + 56, &[0; 8]).unwrap();
    node.read(GPU, address + 56, &mut [0; 8]).unwrap();
}

#[test]
fn copies_of_a_stream() {
    let mut node = node(1, 0);
    let address = node.allocate(GPU, 64).unwrap();
    node.enqueue_fill(GPU, 3, address, 0, 128);
    refused(
        node.run(),
        "copy of 128 bytes enqueued on GPU 0, stream 3, at 0x700000200000: no memory is mapped there: 64 bytes past the end of the 64 bytes mapped at 0x700000200000",
    );
}
