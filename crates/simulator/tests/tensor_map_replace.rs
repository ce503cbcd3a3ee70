//! Tensor maps that a kernel writes itself: `tensormap.replace` and `tensormap.cp_fenceproxy`.

mod fixture;

use fixture::{GPU, Machine, kernel, launch};
use simulator::Fault;
use simulator::program::{Operation, TensorMapField, TensorMapUpdate};

/// The fields of a map of 8 x 32 words with boxes of 4 x 8.
const FIELDS: [&str; 10] = [
    "global_address.shared::cta.b1024.b64 [%r2], %rd1",
    "rank.shared::cta.b1024.b32 [%r2], 1",
    "box_dim.shared::cta.b1024.b32 [%r2], 0, 8",
    "box_dim.shared::cta.b1024.b32 [%r2], 1, 4",
    "global_dim.shared::cta.b1024.b32 [%r2], 0, 32",
    "global_dim.shared::cta.b1024.b32 [%r2], 1, 8",
    "global_stride.shared::cta.b1024.b64 [%r2], 0, 128",
    "element_stride.shared::cta.b1024.b32 [%r2], 0, 1",
    "element_stride.shared::cta.b1024.b32 [%r2], 1, 1",
    "elemtype.shared::cta.b1024.b32 [%r2], 2",
];

/// One warp builds the map from zero bytes in shared memory, copies it to global memory, and loads the box at (16, 2).
fn run(fields: &[&str]) -> Result<Vec<u32>, Fault> {
    let replaces: String = fields.iter().map(|field| format!("@%p1 tensormap.replace.tile.{field};\n")).collect();
    let ptx = kernel(
        ".param .u64 source, .param .u64 map, .param .u64 out",
        &format!(
            ".shared .align 128 .b8 tile[128]; .shared .align 128 .b8 building[128]; .shared .align 8 .b64 bar;
             ld.param.u64 %rd1, [source]; ld.param.u64 %rd2, [map]; ld.param.u64 %rd3, [out]; mov.u32 %r1, %tid.x;
             setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, building; mov.u32 %r3, 0; mad.lo.u32 %r4, %r1, 4, %r2;
             st.shared.b32 [%r4], %r3; bar.warp.sync 0xffffffff;
             {replaces}
             bar.warp.sync 0xffffffff;
             tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd2], [%r2], 128;
             fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;
             mov.u32 %r5, bar; mov.u32 %r6, tile; mov.u32 %r7, 16; mov.u32 %r8, 2;
             @%p1 mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster; bar.warp.sync 0xffffffff;
             @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 128;
             @%p1 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r6], [%rd2, {{%r7, %r8}}], [%r5];
             WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra WAIT;
             mad.lo.u32 %r6, %r1, 4, %r6; ld.shared.b32 %r9, [%r6];
             mul.wide.u32 %rd4, %r1, 4; add.s64 %rd3, %rd3, %rd4; st.global.b32 [%rd3], %r9; ret;"
        ),
    );
    let mut machine = Machine::new(1, 1, &ptx);
    let source = machine.buffer(GPU, &(0..256).collect::<Vec<_>>());
    let map = machine.buffer(GPU, &[0; 32]);
    let out = machine.buffer(GPU, &[0; 32]);
    machine.run(launch(1, 1, 32), &[source, map, out])?;
    Ok(machine.words(GPU, out, 32))
}

#[test]
fn a_map_built_from_nothing_works() {
    let expected: Vec<u32> = (2..6).flat_map(|row| (16..24).map(move |column| 32 * row + column)).collect();
    assert_eq!(run(&FIELDS).unwrap(), expected);
}

#[track_caller]
fn assert_refused(fields: &[&str], ending: &str) {
    let message = run(fields).expect_err("no fault").to_string();
    assert!(message.ends_with(ending), "{message}");
}

#[test]
fn fields_that_do_not_go_together_are_refused_at_use() {
    let without = |index: usize| {
        let mut fields = FIELDS.to_vec();
        fields.remove(index);
        fields
    };
    assert_refused(&without(1), "a tensor map has 1 to 5 dimensions, not 0");
    assert!(run(&without(2)).is_err());
    let mut fields = FIELDS.to_vec();
    fields.push("swizzle_mode.shared::cta.b1024.b32 [%r2], 9");
    assert_refused(&fields, "tensormap.replace: SwizzleMode cannot be 9");
}

#[test]
fn a_map_is_aligned_and_where_it_can_be() {
    assert_refused(&["rank.shared::cta.b1024.b32 [%r2+32], 1"], "the address must be a multiple of 64");
}

#[test]
fn every_field_decodes() {
    use TensorMapField as F;
    for (text, expected) in [
        ("global_address.global.b1024.b64 [%rd1], %rd2;", F::GlobalAddress),
        ("rank.b1024.b32 [%rd1], %r1;", F::Rank),
        ("box_dim.shared::cta.b1024.b32 [%r2], 4, %r1;", F::BoxDimension(4)),
        ("global_dim.global.b1024.b32 [%rd1], 2, %r1;", F::GlobalDimension(2)),
        ("global_stride.global.b1024.b64 [%rd1], 3, %rd2;", F::GlobalStride(3)),
        ("element_stride.global.b1024.b32 [%rd1], 0, %r1;", F::ElementStride(0)),
        ("elemtype.global.b1024.b32 [%rd1], 10;", F::ElementType),
        ("interleave_layout.global.b1024.b32 [%rd1], 0;", F::InterleaveLayout),
        ("swizzle_mode.global.b1024.b32 [%rd1], 3;", F::SwizzleMode),
        ("fill_mode.global.b1024.b32 [%rd1], 1;", F::FillMode),
    ] {
        let module = simulator::ptx::load(&kernel("", &format!("tensormap.replace.tile.{text}"))).unwrap();
        let operation = &module.kernels[0].instructions[0].operation;
        assert!(
            matches!(operation, Operation::TensorMap(TensorMapUpdate::Replace { field, .. }) if *field == expected),
            "{text}: {operation:?}"
        );
    }
    let text = kernel("", "tensormap.replace.tile.global_stride.global.b1024.b64 [%rd1], 4, %rd2;");
    assert_eq!(simulator::ptx::load(&text).expect_err("accepted").to_string(), "the ordinal must be from 0 to 3");
}
