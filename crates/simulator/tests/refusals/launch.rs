//! What a launch must agree with: the kernel's declaration and the GPU's limits.

use simulator::node::{GpuId, LaunchConfig, ModuleId};

use crate::fixture::{GPU, node};
use crate::support::{cluster, refused, threads};

/// Launches kernel `k` with these directives between its parameters and its body, first wrongly, then rightly.
#[track_caller]
fn launches(directives: &str, wrong: LaunchConfig, text: &str, right: LaunchConfig) {
    let ptx = format!(".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k() {directives} {{ ret; }}");
    let mut node = node(1, 0);
    let module = node.load_module(&ptx).unwrap();
    refused(node.launch(GPU, 0, module, "k", wrong, &[]), text);
    node.launch(GPU, 0, module, "k", right, &[]).unwrap();
    node.run().unwrap();
}

fn block(block: [u32; 3]) -> LaunchConfig {
    LaunchConfig { block, ..threads(1) }
}

#[test]
fn what_is_launched_where() {
    let ptx = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry a() { ret; }\n.visible .entry b(.param .u64 p) { ret; }";
    let mut node = node(2, 0);
    let module = node.load_module(ptx).unwrap();
    refused(node.launch(GpuId(2), 0, module, "a", threads(1), &[]), "there is no GPU 2 in a node of 2");
    refused(node.launch(GPU, 0, ModuleId(4), "a", threads(1), &[]), "module 4 is not loaded");
    refused(node.launch(GPU, 0, module, "c", threads(1), &[]), "the module has no kernel `c`; it has: a, b");
    refused(node.launch(GPU, 0, module, "b", threads(1), &[]), "kernel `b` takes 1 parameters, given 0");
    refused(
        node.launch(GPU, 0, module, "b", threads(1), &[&[0; 4]]),
        "parameter 0 (`p`) of kernel `b` has 8 bytes, given 4",
    );
    node.launch(GPU, 0, module, "b", threads(1), &[&[0; 8]]).unwrap();
}

#[test]
fn geometry() {
    launches("", block([32, 0, 1]), "the block [32, 0, 1] has a dimension of 0", block([32, 1, 1]));
    launches(
        "",
        block([32, 33, 1]),
        "a block of [32, 33, 1] threads exceeds the limit of 1024 threads",
        block([32, 32, 1]),
    );
    launches("", cluster(9, 1), "a cluster of [9, 1, 1] CTAs exceeds the limit of 8", cluster(8, 1));
    let grid = |ctas| LaunchConfig { grid: [ctas, 1, 1], ..cluster(2, 1) };
    launches("", grid(3), "the grid [3, 1, 1] is not divisible by the cluster [2, 1, 1]", grid(4));
}

#[test]
fn what_the_kernel_declares() {
    launches(
        ".reqntid 64, 2, 1",
        block([128, 1, 1]),
        "kernel `k` requires blocks of [64, 2, 1] threads (.reqntid), given [128, 1, 1]",
        block([64, 2, 1]),
    );
    launches(
        ".maxntid 64, 1, 1",
        block([65, 1, 1]),
        "kernel `k` allows blocks of at most 64 threads (.maxntid [64, 1, 1]), given [65, 1, 1]",
        block([64, 1, 1]),
    );
    launches(
        ".reqnctapercluster 2, 1, 1",
        threads(1),
        "kernel `k` requires clusters of [2, 1, 1] CTAs (.reqnctapercluster), given [1, 1, 1]",
        cluster(2, 1),
    );
}

#[test]
fn shared_memory() {
    let dynamic = |dynamic_shared_bytes| LaunchConfig { dynamic_shared_bytes, ..threads(1) };
    launches(
        "",
        dynamic(232_449),
        "0 bytes of static and 232449 of dynamic shared memory exceed the limit of 232448 per CTA",
        dynamic(232_448),
    );
}
