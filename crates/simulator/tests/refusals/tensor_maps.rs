//! Tensor maps: what the encoder refuses, and the instructions that use one.

use simulator::encode_tensor_map;
use simulator::node::{TensorMapBytes, TensorMapDescription, TensorMapElement as Element, TensorMapSwizzle as Swizzle};
use simulator::tensor_map::TensorMap;

use crate::fixture::{GPU, Machine};
use crate::support::{refused, refuses_when, threads};

fn matrix(element: Element, base: u64) -> TensorMapDescription {
    TensorMapDescription {
        element,
        base,
        dimensions: vec![64, 8],
        strides_bytes: vec![128],
        box_dimensions: vec![64, 8],
        element_strides: vec![1, 1],
        swizzle: Swizzle::B128,
        nan_fill: false,
    }
}

#[test]
fn what_the_encoder_refuses() {
    encode_tensor_map(&matrix(Element::Bf16, 0x1000)).unwrap();
    #[track_caller]
    fn refusal(change: impl Fn(&mut TensorMapDescription), text: &str) {
        let mut description = matrix(Element::Bf16, 0x1000);
        change(&mut description);
        refused(encode_tensor_map(&description), text);
    }
    refusal(|d| d.dimensions = vec![1; 6], "a tensor map has 1 to 5 dimensions, not 6");
    refusal(|d| d.strides_bytes = vec![], "strides_bytes has 0 entries; 2 dimensions need 1");
    refusal(|d| d.base += 8, "the tensor's address 0x1008 is not a multiple of 16");
    refusal(|d| d.base = !15, "the tensor's last byte is beyond the 64-bit address space");
    refusal(|d| d.dimensions[1] = 0, "dimension 1 has extent 0; 1 to 2^32 is legal");
    let stride = "dimension 1 has a stride of 136 bytes; it must be a multiple of 16 below 2^40";
    refusal(|d| d.strides_bytes[0] = 136, stride);
    refusal(|d| d.box_dimensions[1] = 257, "the box has extent 257 in dimension 1; 1 to 256 is legal");
    refusal(|d| d.element_strides[1] = 9, "dimension 1 has element stride 9; 1 to 8 is legal");
    let inner = "the inner row of the box has 120 bytes; it must be a multiple of 16";
    refusal(|d| d.box_dimensions[0] = 60, inner);
    let span = "the inner row of the box has 144 bytes, more than the span of swizzle B128, 128";
    refusal(|d| d.box_dimensions[0] = 72, span);
    let span = "the inner row of the box has 64 bytes, less than the span of swizzle B128, 128; the simulator knows no layout for that";
    refusal(|d| d.box_dimensions[0] = 32, span);
    let fill = |d: &mut TensorMapDescription| (d.element, d.nan_fill) = (Element::U16, true);
    refusal(fill, "NaN fill is for floating-point elements, not U16");
}

#[test]
fn a_walk_over_a_box() {
    let map = TensorMap::decode(&encode_tensor_map(&matrix(Element::Bf16, 0x1000)).unwrap().0).unwrap();
    let walk = |coordinates: &[i32], shared| map.for_each_chunk(coordinates, shared, |_| ());
    refused(walk(&[0], 0), "1 coordinates for a tensor map of 2 dimensions");
    refused(walk(&[0, 0], 64), "the box's shared-memory address 0x40 is not a multiple of 128");
    walk(&[0, 0], 128).unwrap();
}

/// A kernel of one thread that takes a tensor map in `%rd1` and one of another kind in `%rd2`.
#[track_caller]
fn refuses_map(maps: impl Fn(u64) -> [TensorMapBytes; 2], body: &str, text: &str, edit: (&str, &str)) {
    let run = |seed, body: &str| {
        let ptx = format!(
            ".version 8.8\n.target sm_100a\n.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .align 64 .b8 other[128])
{{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .shared .align 1024 .b8 tile[1024]; .shared .align 8 .b64 bar;
mov.u64 %rd1, map; cvta.param.u64 %rd1, %rd1; mov.u64 %rd2, other; cvta.param.u64 %rd2, %rd2; mov.u32 %r1, 0;
{body}
ret; }}"
        );
        let mut machine = Machine::new(1, seed, &ptx);
        let tensor = machine.buffer(GPU, &[0; 256]);
        let [map, other] = maps(tensor);
        machine.node.launch(GPU, 0, machine.module, "k", threads(1), &[&map.0, &other.0]).unwrap();
        machine.node.run()
    };
    refuses_when(run, body, text, edit);
}

fn encoded(element: Element, base: u64) -> TensorMapBytes {
    encode_tensor_map(&matrix(element, base)).unwrap()
}

const LOAD: &str = "mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {%r1, %r1}], [bar];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;";

#[test]
fn bytes_that_are_no_map() {
    let maps = |base| [TensorMapBytes([0; 128]), encoded(Element::Bf16, base)];
    refuses_map(
        maps,
        "prefetch.tensormap [%rd1];",
        "kernel `k`, PTX line 7: `prefetch.tensormap [%rd1];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: these 128 bytes are not a tensor map",
        ("%rd1", "%rd2"),
    );
    let maps = |base| {
        let mut changed = encoded(Element::Bf16, base);
        changed.0[127] ^= 1;
        [changed, encoded(Element::Bf16, base)]
    };
    refuses_map(
        maps,
        LOAD,
        "kernel `k`, PTX line 9: `cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {%r1, %r1}], [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the tensor map's 128 bytes were changed after it was encoded",
        ("[%rd1", "[%rd2"),
    );
}

#[test]
fn where_a_map_lies() {
    let maps = |base| [Element::Bf16; 2].map(|element| encoded(element, base));
    refuses_map(
        maps,
        "prefetch.tensormap [%rd1+32];",
        "kernel `k`, PTX line 7: `prefetch.tensormap [%rd1+32];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: tensor map read of 128 bytes at 0x30000000020: the address must be a multiple of 64",
        ("+32", "+128"),
    );
    refuses_map(
        maps,
        "prefetch.tensormap [%rd1+192];",
        "kernel `k`, PTX line 7: `prefetch.tensormap [%rd1+192];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: tensor map read of 128 bytes at 0x300000000c0: offset 0xc0 is outside the kernel's 256 bytes of parameters",
        ("+192", "+128"),
    );
    let body = "mov.u64 %rd3, tile; cvta.shared.u64 %rd3, %rd3;\nprefetch.tensormap [%rd3];";
    refuses_map(
        maps,
        body,
        "kernel `k`, PTX line 8: `prefetch.tensormap [%rd3];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: tensor map read of 128 bytes at 0x10000000000: a global, constant or parameter address is needed here",
        ("[%rd3]", "[%rd1]"),
    );
}

#[test]
fn coordinates_and_alignment() {
    let maps = |base| [Element::Bf16; 2].map(|element| encoded(element, base));
    let wrong = LOAD.replace("2d", "1d").replace("{%r1, %r1}", "{%r1}");
    refuses_map(
        maps,
        &wrong,
        "kernel `k`, PTX line 9: `cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {%r1}], [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: 1 coordinates for a tensor map of 2 dimensions",
        (
            "1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {%r1}]",
            "2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {%r1, %r1}]",
        ),
    );
    let wrong = LOAD.replace("[tile]", "[tile+64]");
    refuses_map(
        maps,
        &wrong,
        "kernel `k`, PTX line 9: `cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile+64], [%rd1, {%r1, %r1}], [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the shared address 0x40 must be a multiple of 128",
        ("[tile+64]", "[tile]"),
    );
}

#[test]
fn coordinates_that_stop_the_kernel() {
    let maps = |base| [Element::Bf16; 2].map(|element| encoded(element, base));
    let inner = LOAD.replace("{%r1, %r1}", "{-4, %r1}");
    refuses_map(
        maps,
        &inner,
        "kernel `k`, PTX line 9: `cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {-4, %r1}], [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the innermost coordinate, -4, is -8 bytes from the tensor's first element; it must be a multiple of 16 bytes",
        ("{-4,", "{-8,"),
    );
    // The same of every form that stores, in either dimension.
    let fill: String = (0..64).map(|i| format!("st.shared.v4.u32 [tile+{}], {{0, 0, 0, 0}}; ", 16 * i)).collect();
    for (copy, suffix) in [("cp", ""), ("cp.reduce", ".add")] {
        for (coordinates, problem, right) in [
            (
                "{12, 0}",
                "the innermost coordinate, 12, is 24 bytes from the tensor's first element; it must be a multiple of 16 bytes",
                "{16, 0}",
            ),
            (
                "{-8, 0}",
                "coordinate -8 in dimension 0: only loads may begin before the tensor's first element",
                "{8, 0}",
            ),
            (
                "{0, -1}",
                "coordinate -1 in dimension 1: only loads may begin before the tensor's first element",
                "{0, 1}",
            ),
        ] {
            let store = format!(
                "{copy}.async.bulk.tensor.2d.global.shared::cta{suffix}.tile.bulk_group [%rd1, {coordinates}], [tile];"
            );
            let body = format!(
                "{fill}\nfence.proxy.async.shared::cta;\n{store}\ncp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
            );
            let text = format!("kernel `k`, PTX line 9: `{store}`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: {problem}");
            refuses_map(maps, &body, &text, (coordinates, right));
        }
    }
}

/// Fills the tile and reduces it into the tensor.
fn reduce(operation: &str) -> String {
    let fill: String = (0..64).map(|i| format!("st.shared.v4.u32 [tile+{}], {{0, 0, 0, 0}}; ", 16 * i)).collect();
    format!(
        "{fill} fence.proxy.async;
cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.tile.bulk_group [%rd1, {{%r1, %r1}}], [tile];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    )
}

#[test]
fn reductions_by_type() {
    let maps = |base| [encoded(Element::U16, base), encoded(Element::Bf16, base)];
    refuses_map(
        maps,
        &reduce("add"),
        "kernel `k`, PTX line 8: `cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd1, {%r1, %r1}], [tile];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: cp.reduce.async.bulk on 8- and 16-bit integers is not executed by the simulator",
        ("[%rd1", "[%rd2"),
    );
    let maps = |base| [encoded(Element::Bf16, base), encoded(Element::Bf16, base)];
    refuses_map(
        maps,
        &reduce("and"),
        "kernel `k`, PTX line 8: `cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.tile.bulk_group [%rd1, {%r1, %r1}], [tile];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: there is no atomic And on Bf16",
        (".and.", ".add."),
    );
}
