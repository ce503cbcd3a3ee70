//! Every family decodes from its PTX spelling, and what is not PTX is refused.

#![allow(missing_docs)]

mod common;

use common::{module, module_for};
use simulator::program::*;
use simulator::ptx::{PtxError, load};

const REGISTERS: &str = ".reg .pred %p, %q; .reg .b16 %h<4>; .reg .b32 %r<40>; .reg .b64 %rd<10>; .reg .f32 %f<4>;
.shared .align 16 .b8 buffer[64];\n";

fn decode(text: &str) -> Operation {
    let module = load(&module(&format!("{REGISTERS}{text}"))).unwrap_or_else(|error| panic!("{}", error.diagnostic()));
    let [instruction] = &module.kernels[0].instructions[..] else { panic!("one instruction") };
    instruction.operation.clone()
}

fn refuse(text: &str) -> PtxError {
    match load(&module(&format!("{REGISTERS}{text}"))) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error,
    }
}

macro_rules! decodes {
    ($text:expr, $pattern:pat $(if $guard:expr)?) => {{
        let operation = decode($text);
        assert!(matches!(&operation, $pattern $(if $guard)?), "{}\n{operation:?}", $text);
    }};
}

fn constant(address: &Address, base: u64, offset: i64) -> bool {
    *address == Address { base: Operand::Immediate(base), offset }
}

fn register(operand: &Operand) -> bool {
    matches!(operand, Operand::Register(_))
}

#[test]
fn tensor_copies() {
    use Operation::Bulk;
    use simulator::program::Bulk as B;
    for space in ["cta", "cluster"] {
        for (group, expected) in [("", 0), (".cta_group::1", 1), (".cta_group::2", 2)] {
            for (hint, policy) in [("", ""), (".L2::cache_hint", ", %rd3")] {
                let text = format!(
                    "cp.async.bulk.tensor.2d.shared::{space}.global.tile.mbarrier::complete_tx::bytes{hint}{group} [%r1], [%rd1, {{%r2, %r3}}], [%r4+8]{policy};"
                );
                let destination = if space == "cta" { StateSpace::SharedCta } else { StateSpace::SharedCluster };
                decodes!(
                    &text,
                    Bulk(B::TensorLoad { destination_space, coordinates, barrier, multicast: None, cta_group, .. })
                        if *destination_space == destination && coordinates.len() == 2 && barrier.offset == 8 && *cta_group == expected
                );
            }
        }
    }
    decodes!(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1, {%r2, %r3, 0}], [%r4], %h1;",
        Bulk(B::TensorLoad { coordinates, multicast: Some(mask), .. }) if coordinates.len() == 3 && register(mask)
    );
    decodes!(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r2, %r3}], [%r1];",
        Bulk(B::TensorStore { reduction: None, .. })
    );
    decodes!(
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd1, {%r2, %r3}], [%r1];",
        Bulk(B::TensorStore { reduction: Some(AtomicOperation::Add), .. })
    );
    decodes!(
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 256, [%r2];",
        Bulk(B::Load { bytes: Operand::Immediate(256), multicast: None, .. })
    );
    decodes!("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;", Bulk(B::Store { .. }));
    decodes!("cp.async.bulk.commit_group;", Bulk(B::CommitGroup));
    decodes!("cp.async.bulk.wait_group.read 1;", Bulk(B::WaitGroup { pending: 1, read: true }));
    decodes!("prefetch.tensormap [%rd1];", Operation::Prefetch { tensor_map: true, space: StateSpace::Generic, .. });
    decodes!("prefetch.param.tensormap [%rd1];", Operation::Prefetch { space: StateSpace::Parameter, .. });
    decodes!("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r1, %r2}];", Operation::Prefetch { .. });
    refuse(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r4];",
    );
    refuse(
        "cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];",
    );
    refuse("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 100, [%r2];");
}

#[test]
fn mbarriers() {
    use MbarrierKind as K;
    fn kind(text: &str) -> (StateSpace, MbarrierKind) {
        match decode(text) {
            Operation::Mbarrier(mbarrier) => (mbarrier.space, mbarrier.kind),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(
        kind("mbarrier.init.shared::cta.b64 [%r1], 2;"),
        (StateSpace::SharedCta, K::Init(Operand::Immediate(2)))
    ));
    assert!(matches!(kind("mbarrier.inval.shared.b64 [buffer+8];"), (StateSpace::SharedCta, K::Invalidate)));
    assert!(matches!(
        kind("mbarrier.try_wait.parity.shared::cta.b64 %p, [%r1], %r2;"),
        (
            StateSpace::SharedCta,
            K::Wait {
                phase: MbarrierPhase::Parity(_),
                suspends: true,
                hint_ns: None,
                order: MemoryOrder::Acquire,
                scope: Scope::Cta,
                ..
            }
        )
    ));
    assert!(matches!(
        kind("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [%r1], %r2, 1000;"),
        (_, K::Wait { hint_ns: Some(Operand::Immediate(1000)), scope: Scope::Cluster, .. })
    ));
    assert!(matches!(
        kind("mbarrier.test_wait.b64 %p, [%rd1], %rd2;"),
        (StateSpace::Generic, K::Wait { phase: MbarrierPhase::Token(_), suspends: false, .. })
    ));
    assert!(matches!(
        kind("mbarrier.arrive.relaxed.cta.shared::cluster.b64 _, [%r1];"),
        (
            StateSpace::SharedCluster,
            K::Arrive {
                state: None,
                count: None,
                expect_bytes: None,
                drop: false,
                order: MemoryOrder::Relaxed,
                scope: Scope::Cta
            }
        )
    ));
    assert!(matches!(
        kind("mbarrier.arrive.expect_tx.relaxed.cta.shared::cluster.b64 _, [%r1], 4096;"),
        (StateSpace::SharedCluster, K::Arrive { expect_bytes: Some(Operand::Immediate(4096)), count: None, .. })
    ));
    assert!(matches!(
        kind("mbarrier.arrive.shared::cta.b64 %rd1, [%r1], 3;"),
        (
            StateSpace::SharedCta,
            K::Arrive { state: Some(_), count: Some(Operand::Immediate(3)), order: MemoryOrder::Release, .. }
        )
    ));
    assert!(matches!(kind("mbarrier.arrive_drop.shared.b64 _, [%r1];"), (_, K::Arrive { drop: true, .. })));
    assert!(matches!(
        kind("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], %r2;"),
        (_, K::ExpectTransactions { .. })
    ));
    assert!(matches!(kind("mbarrier.complete_tx.shared::cta.b64 [%r1], 16;"), (_, K::CompleteTransactions { .. })));
    assert!(matches!(kind("mbarrier.pending_count.b64 %r1, %rd1;"), (_, K::PendingCount { .. })));
    refuse("mbarrier.arrive.shared::cta.b64 [%r1];");
    refuse("mbarrier.arrive.release.shared::cta.b64 _, [%r1];");
    refuse("mbarrier.init.shared::cta.b64 [%r1], 0;");
    refuse("mbarrier.arrive.shared::cluster.b64 %rd1, [%r1];");
    refuse("mbarrier.init.shared::cluster.b64 [%r1], 1;");
    refuse("mbarrier.try_wait.parity.shared::cta.b64 %r3, [%r1], %r2;");
}

#[test]
fn tensor_memory() {
    use Operation::Tcgen05 as O;
    use simulator::program::Tcgen05 as T;
    decodes!(
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r1], 512;",
        O(T::Allocate { cta_group: 2, destination_space: StateSpace::SharedCta, columns: Operand::Immediate(512), .. })
    );
    decodes!("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 256;", O(T::Deallocate { cta_group: 1, .. }));
    decodes!("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", O(T::RelinquishPermit { cta_group: 1 }));
    decodes!(
        "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p;",
        O(T::Mma(Tcgen05Mma {
            cta_group: 1,
            kind: Tcgen05Kind::F16,
            a: Tcgen05Operand::Descriptor(_),
            scales: None,
            scale_block: 0,
            ..
        }))
    );
    decodes!(
        "tcgen05.mma.cta_group::2.kind::f16 [%r1], [%r3], %rd2, %r2, {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, !%p;",
        O(T::Mma(Tcgen05Mma { a: Tcgen05Operand::TensorMemory(_), disable_output_lane, enable_input_d, .. }))
            if disable_output_lane.len() == 8 && enable_input_d.negated
    );
    decodes!(
        "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p;",
        O(T::Mma(Tcgen05Mma { kind: Tcgen05Kind::Mxf8f6f4, scales: Some(_), scale_block: 0, .. }))
    );
    decodes!(
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p;",
        O(T::Mma(Tcgen05Mma { scale_block: 32, .. }))
    );
    decodes!(
        "tcgen05.cp.cta_group::2.32x128b.warpx4 [%r1], %rd1;",
        O(T::Copy { cta_group: 2, shape: Tcgen05CopyShape::Lanes32x128bWarpx4, .. })
    );
    decodes!(
        "tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [%r1], %rd1;",
        O(T::Copy { shape: Tcgen05CopyShape::Lanes64x128bWarpx2At0213, .. })
    );
    decodes!(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], %h1;",
        O(T::Commit { cta_group: 2, barrier_space: StateSpace::SharedCluster, multicast: Some(_), .. })
    );
    decodes!(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd1];",
        O(T::Commit { barrier_space: StateSpace::Generic, multicast: None, .. })
    );
    let sixteen: Vec<_> = (0..16).map(|i| format!("%r{i}")).collect();
    let text = format!("tcgen05.ld.sync.aligned.32x32b.x16.b32 {{{}}}, [%r20];", sixteen.join(", "));
    decodes!(&text, O(T::Load { shape: Tcgen05Shape::Lanes32x32b, repeat: 16, pack: false, destinations, .. }) if destinations.len() == 16);
    decodes!(
        "tcgen05.st.sync.aligned.16x128b.x1.unpack::16b.b32 [%r1], {%r2, %r3};",
        O(T::Store { shape: Tcgen05Shape::Lanes16x128b, repeat: 1, unpack: true, .. })
    );
    decodes!("tcgen05.wait::ld.sync.aligned;", O(T::WaitLoad));
    decodes!("tcgen05.wait::st.sync.aligned;", O(T::WaitStore));
    decodes!("tcgen05.fence::before_thread_sync;", O(T::FenceBeforeThreadSync));
    decodes!("tcgen05.fence::after_thread_sync;", O(T::FenceAfterThreadSync));
    refuse("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 48;");
    refuse("tcgen05.mma.cta_group::3.kind::f16 [%r1], %rd1, %rd2, %r2, %p;");
    refuse("tcgen05.mma.cta_group::1.kind::mxf8f6f4 [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p;");
    refuse("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r1, %r2}, [%r20];");
    refuse("tcgen05.ld.sync.aligned.32x32b.x1.b32 %r1, [%r20];");
    refuse("tcgen05.ld.sync.32x32b.x1.b32 {%r1}, [%r20];");
}

#[test]
fn multicast_memory() {
    use simulator::program::Multimem as M;
    decodes!(
        "multimem.ld_reduce.relaxed.gpu.global.add.acc::f32.v4.bf16x2 {%r1, %r2, %r3, %r4}, [%rd1+32];",
        Operation::Multimem(M {
            kind: MultimemKind::LoadReduce { operation: AtomicOperation::Add, wide_accumulate: true, destinations },
            order: MemoryOrder::Relaxed, scope: Scope::Gpu, element: ElementType::Bf16x2, space: StateSpace::Global, address,
        }) if destinations.len() == 4 && address.offset == 32
    );
    decodes!(
        "multimem.st.relaxed.sys.global.v4.f32 [%rd1], {%f0, %f1, %f2, %f3};",
        Operation::Multimem(M { kind: MultimemKind::Store { sources }, scope: Scope::System, element: ElementType::F32, .. })
            if sources.len() == 4
    );
    for (scope, expected) in [("gpu", Scope::Gpu), ("sys", Scope::System)] {
        decodes!(
            &format!("multimem.red.release.{scope}.global.add.s32 [%rd1], 1;"),
            Operation::Multimem(M { kind: MultimemKind::Reduce { operation: AtomicOperation::Add, .. }, order: MemoryOrder::Release, scope, element: ElementType::Signed(4), .. })
                if *scope == expected
        );
    }
    refuse("multimem.ld_reduce.relaxed.global.add.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1];");
    refuse("multimem.ld_reduce.relaxed.gpu.global.add.acc::f32.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1];");
    refuse("multimem.red.acquire.gpu.global.add.u32 [%rd1], 1;");
}

#[test]
fn memory() {
    decodes!(
        "ld.relaxed.gpu.global.u32 %r1, [%rd1];",
        Operation::Load(Load {
            space: StateSpace::Global,
            order: MemoryOrder::Relaxed,
            scope: Scope::Gpu,
            element: ElementType::Bits(4),
            register_bytes: 4,
            ..
        })
    );
    decodes!(
        "ld.acquire.sys.b64 %rd2, [%rd1+-16];",
        Operation::Load(Load {
            space: StateSpace::Generic,
            order: MemoryOrder::Acquire,
            scope: Scope::System,
            address: Address { offset: -16, .. },
            ..
        })
    );
    decodes!(
        "ld.global.s8 %r1, [%rd1];",
        Operation::Load(Load { element: ElementType::Signed(1), register_bytes: 4, .. })
    );
    decodes!("ld.global.nc.L1::no_allocate.v4.b32 {%r1, _, %r3, %r4}, [%rd1];", Operation::Load(Load { non_coherent: true, destinations, .. }) if destinations.len() == 4 && destinations[1].is_none());
    decodes!("ld.volatile.shared.b32 %r1, [buffer+4];", Operation::Load(Load { order: MemoryOrder::Volatile, space: StateSpace::SharedCta, address, .. }) if constant(address, 0, 4));
    decodes!("ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1];", Operation::Load(Load { destinations, .. }) if destinations.len() == 8);
    decodes!(
        "st.relaxed.gpu.global.b32 [%rd1], 7;",
        Operation::Store(Store { order: MemoryOrder::Relaxed, scope: Scope::Gpu, sources, .. }) if sources[..] == [Operand::Immediate(7)]
    );
    decodes!("st.global.v8.b32 [%rd1], {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8};", Operation::Store(Store { sources, .. }) if sources.len() == 8);
    decodes!("st.shared::cluster.b32 [%r1], %r2;", Operation::Store(Store { space: StateSpace::SharedCluster, .. }));
    decodes!("st.global.f32 [%rd1], 0f3F800000;", Operation::Store(Store { element: ElementType::F32, sources, .. }) if sources[..] == [Operand::Immediate(0x3f80_0000)]);
    decodes!("st.release.sys.global.b32 [%rd1], %r1;", Operation::Store(Store { order: MemoryOrder::Release, .. }));
    decodes!(
        "red.release.gpu.global.add.s32 [%rd1], 1;",
        Operation::Atomic(Atomic { order: MemoryOrder::Release, scope: Scope::Gpu, operation: AtomicOperation::Add, element: ElementType::Signed(4), destinations, .. })
            if destinations.is_empty()
    );
    decodes!(
        "atom.global.sys.acquire.cas.b32 %r1, [%rd1], 0, 1;",
        Operation::Atomic(Atomic { order: MemoryOrder::Acquire, scope: Scope::System, operation: AtomicOperation::CompareAndSwap, element: ElementType::Bits(4), sources, .. })
            if sources[..] == [Operand::Immediate(0), Operand::Immediate(1)]
    );
    decodes!("atom.global.acquire.cas.b32 %r1, [%rd1], %r2, %r3;", Operation::Atomic(Atomic { scope: Scope::Gpu, .. }));
    decodes!(
        "atom.add.noftz.bf16x2 %r1, [%rd1], %r2;",
        Operation::Atomic(Atomic { element: ElementType::Bf16x2, order: MemoryOrder::Relaxed, .. })
    );
    decodes!("atom.shared.exch.b64 %rd1, [%r1], %rd2;", Operation::Atomic(Atomic { space: StateSpace::SharedCta, .. }));
    decodes!("red.global.add.v4.f32 [%rd1], {%f0, %f1, %f2, %f3};", Operation::Atomic(Atomic { sources, .. }) if sources.len() == 4);
    refuse("ld.acquire.gpu.nc.b32 %r1, [%rd1];");
    refuse("ld.shared.b32 %r1, [16];");
    refuse("ld.shared.b32 %r1, [%r1-4];");
    refuse("ld.relaxed.global.u32 %r1, [%rd1];");
    refuse("ld.global.u32 %r1, [%r2];");
    refuse("ld.global.f32 %rd2, [%rd1];");
    refuse("st.global.b32 [%rd1], %h1;");
    refuse("ld.shared.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%r1];");
    refuse("atom.global.add.b32 %r1, [%rd1], %r2;");
    refuse("red.acquire.gpu.global.add.u32 [%rd1], 1;");
}

#[test]
fn fences_and_barriers() {
    use Operation::Fence as O;
    use simulator::program::Fence as F;
    decodes!("fence.mbarrier_init.release.cluster;", O(F::MbarrierInit));
    decodes!("fence.acq_rel.gpu;", O(F::Memory { order: MemoryOrder::AcquireRelease, scope: Scope::Gpu }));
    decodes!("fence.sc.sys;", O(F::Memory { order: MemoryOrder::SequentiallyConsistent, scope: Scope::System }));
    decodes!("fence.acquire.cluster;", O(F::Memory { order: MemoryOrder::Acquire, .. }));
    decodes!("membar.gl;", O(F::Memory { order: MemoryOrder::SequentiallyConsistent, scope: Scope::Gpu }));
    decodes!("fence.proxy.alias;", O(F::ProxyAlias));
    decodes!("fence.proxy.async;", O(F::ProxyAsync(None)));
    decodes!("fence.proxy.async.shared::cta;", O(F::ProxyAsync(Some(StateSpace::SharedCta))));
    decodes!("fence.proxy.async.global;", O(F::ProxyAsync(Some(StateSpace::Global))));
    decodes!("fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;", O(F::ProxyTensorMap { address: Some(_), .. }));
    decodes!("fence.proxy.tensormap::generic.release.cta;", O(F::ProxyTensorMap { address: None, .. }));
    refuse("fence.acq_rel;");
    refuse("fence.proxy.texture;");

    decodes!(
        "bar.sync 0;",
        Operation::Barrier(Barrier {
            barrier: Operand::Immediate(0),
            threads: None,
            kind: BarrierKind::Synchronize,
            aligned: true
        })
    );
    decodes!("bar.sync 1, 128;", Operation::Barrier(Barrier { threads: Some(Operand::Immediate(128)), .. }));
    decodes!("barrier.cta.sync %r1;", Operation::Barrier(Barrier { aligned: false, .. }));
    decodes!("bar.arrive 2, 64;", Operation::Barrier(Barrier { kind: BarrierKind::Arrive, .. }));
    decodes!(
        "bar.red.popc.u32 %r1, 0, %p;",
        Operation::Barrier(Barrier { kind: BarrierKind::Reduce { destination: BarrierReduction::Count(_), .. }, .. })
    );
    decodes!(
        "bar.red.or.pred %p, 0, 64, !%q;",
        Operation::Barrier(Barrier {
            kind: BarrierKind::Reduce {
                destination: BarrierReduction::Or(_),
                source: PredicateOperand { negated: true, .. }
            },
            ..
        })
    );
    decodes!("bar.warp.sync 0xffffffff;", Operation::WarpSync { members: Operand::Immediate(0xffff_ffff) });
    decodes!(
        "barrier.cluster.arrive.relaxed.aligned;",
        Operation::ClusterArrive { order: MemoryOrder::Relaxed, aligned: true }
    );
    decodes!("barrier.cluster.arrive;", Operation::ClusterArrive { order: MemoryOrder::Release, aligned: false });
    decodes!("barrier.cluster.wait.acquire.aligned;", Operation::ClusterWait { aligned: true });
    refuse("bar.sync 16;");
    refuse("bar.sync 0, 33;");
    refuse("barrier.cluster.arrive.acquire;");
}

#[test]
fn lanes_and_addresses() {
    decodes!("elect.sync _|%p, 0xffffffff;", Operation::Elect { lane: None, .. });
    decodes!(
        "elect.sync %r1|%p, -1;",
        Operation::Elect { lane: Some(_), members: Operand::Immediate(0xffff_ffff), .. }
    );
    decodes!(
        "shfl.sync.idx.b32 %r1, %r2, 0, 0x1f, 0xffffffff;",
        Operation::Shuffle(Shuffle { mode: ShuffleMode::Index, in_range: None, .. })
    );
    decodes!(
        "shfl.sync.bfly.b32 %r1|%p, %r2, 16, 31, -1;",
        Operation::Shuffle(Shuffle { mode: ShuffleMode::Butterfly, in_range: Some(_), .. })
    );
    decodes!("vote.sync.ballot.b32 %r1, %p, -1;", Operation::Vote(Vote { kind: VoteKind::Ballot(_), .. }));
    decodes!(
        "vote.sync.all.pred %p, !%q, -1;",
        Operation::Vote(Vote { kind: VoteKind::All(_), source: PredicateOperand { negated: true, .. }, .. })
    );
    decodes!("match.any.sync.b32 %r1, %r2, -1;", Operation::Match { all: None, .. });
    decodes!("match.all.sync.b64 %r1|%p, %rd1, -1;", Operation::Match { all: Some(Some(_)), .. });
    decodes!(
        "redux.sync.add.s32 %r1, %r2, -1;",
        Operation::Redux { reduction: AtomicOperation::Add, element: ElementType::Signed(4), .. }
    );
    decodes!("activemask.b32 %r1;", Operation::ActiveMask(_));
    decodes!("mapa.shared::cluster.u32 %r1, %r2, 1;", Operation::MapShared { shared: true, .. });
    decodes!("mapa.u64 %rd1, %rd2, %r1;", Operation::MapShared { shared: false, .. });
    decodes!("getctarank.shared::cluster.u32 %r1, %r2;", Operation::GetCtaRank { shared: true, .. });
    decodes!(
        "cvta.to.global.u64 %rd1, %rd2;",
        Operation::ConvertAddress { space: StateSpace::Global, to_space: true, .. }
    );
    decodes!(
        "cvta.shared.u64 %rd1, buffer;",
        Operation::ConvertAddress {
            space: StateSpace::SharedCta,
            to_space: false,
            source: Operand::SharedAddress { .. },
            ..
        }
    );
    decodes!("isspacep.shared::cluster %p, %rd1;", Operation::IsSpace { space: StateSpace::SharedCluster, .. });
    decodes!("mov.u32 %r1, %tid.x;", Operation::ReadSpecial { source: SpecialRegister::ThreadIndex(0), .. });
    decodes!(
        "mov.u32 %r1, %cluster_ctaid.y;",
        Operation::ReadSpecial { source: SpecialRegister::ClusterCtaIndex(1), .. }
    );
    decodes!("mov.u64 %rd1, %globaltimer;", Operation::ReadSpecial { source: SpecialRegister::GlobalTimer, .. });
    decodes!(
        "mov.u32 %r1, %lanemask_lt;",
        Operation::ReadSpecial { source: SpecialRegister::LaneMask(LaneRelation::Less), .. }
    );
    decodes!("mov.u32 %r1, %clock;", Operation::ReadSpecial { source: SpecialRegister::ClockLow, .. });
    refuse("mov.u64 %rd1, %tid.x;");
    refuse("mov.u32 %r1, %tid.w;");
    refuse("elect.sync %r1, -1;");
    refuse("shfl.idx.b32 %r1, %r2, 0, 0x1f;");
}

#[test]
fn control() {
    decodes!("exit;", Operation::Exit);
    decodes!("ret;", Operation::Exit);
    decodes!("trap;", Operation::Trap);
    decodes!("nanosleep.u32 20;", Operation::NanoSleep(Operand::Immediate(20)));
    decodes!("nanosleep.u32 %r1;", Operation::NanoSleep(Operand::Register(_)));
    decodes!("L: bra.uni L;", Operation::Branch { target: 0, uniform: true });
    decodes!("setmaxnreg.inc.sync.aligned.u32 232;", Operation::NoEffect(_));
    decodes!("griddepcontrol.wait;", Operation::NoEffect(_));
    decodes!("T: .branchtargets A, B; A: brx.idx %r1, T; B:", Operation::BranchIndexed { targets, .. } if targets[..] == [0, 1]);
    refuse("setmaxnreg.inc.sync.aligned.u32 233;");
    refuse("call.uni (%r1), f, (%r2);");
    refuse("bra M;");
}

#[test]
fn per_lane_instructions_are_checked() {
    for text in [
        "add.f32 %f1, %f2, %r1; add.f32 %f1, 0f3F800000, %f2;",
        "setp.eq.and.s32 %p, %r1, 3, %q;",
        "cvt.rn.f16.f32 %h1, %f1;",
        "cvt.rn.satfinite.relu.bf16x2.f32 %r1, %f1, %f2;",
        "cvt.rna.tf32.f32 %r1, %f1;",
        "mul.wide.u16 %r1, %h1, %h2;",
        "min.f32 %f1, %f2, %f3; max.f32 %f1, %f1, %f2, %f3;",
        "mov.b32 %r1, buffer; add.s32 %r1, %r1, buffer+16;",
        "mov.b64 {%r1, _}, %rd1; mov.b64 %rd1, {%r1, 0};",
        "createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;",
        "div.full.f32 %f1, %f2, %f3; rcp.approx.ftz.f32 %f1, %f2;",
        "mov.f32 %f1, 0f00000000; mov.b32 %f1, %r1;",
    ] {
        let text = format!("{REGISTERS}{text}");
        load(&module(&text)).unwrap_or_else(|error| panic!("{}", error.diagnostic()));
    }
    for text in [
        "add.f32 %f1, %f2, %h1;",
        "add.f32 %f1, %f2, 1;",
        "add.s32 %r1, %r2, %f1;",
        "add.s32 %r1, %r2, 0x1ffffffff;",
        "add.rn.s32 %r1, %r2, %r3;",
        "add.sat.u32 %r1, %r2, %r3;",
        "add.s32 %r1, %r2;",
        "add.s32 %r1, %r2, %r3, %r4;",
        "add.s32 %r1, %r2, %tid.x;",
        "mul.s32 %r1, %r2, %r3;",
        "mul.wide.s64 %rd1, %rd2, %rd3;",
        "cvt.f32.s32 %f1, %r1;",
        "cvt.s32.f32 %r1, %f1;",
        "cvt.rn.f64.f32 %rd1, %f1;",
        "cvt.f16.f32 %h1, %f1;",
        "cvt.rn.e4m3x2.f32 %h1, %f1, %f2;",
        "setp.lo.s32 %p, %r1, %r2;",
        "setp.lt.b32 %p, %r1, %r2;",
        "setp.eq.s32 %r3, %r1, %r2;",
        "selp.b32 %r1, %r2, %r3, %r4;",
        "lop3.b32 %r1, %r2, %r3, %r4, 256;",
        "and.u32 %r1, %r2, %r3;",
        "div.f32 %f1, %f2, %f3;",
        "fma.f32 %f1, %f2, %f3, %f0;",
        "add.ftz.f64 %rd1, %rd2, %rd3;",
        "shl.b32 %r1, %r2, %rd1;",
        "mov.b32 %r1, {%r2, %r3};",
        "mov.b32 %rd1, %rd2;",
    ] {
        refuse(text);
    }
}

#[test]
fn targets() {
    let tensor_memory = "tcgen05.wait::ld.sync.aligned;";
    for (target, accepted) in [
        ("sm_100a", true),
        ("sm_100f", true),
        ("sm_103a", true),
        ("sm_100", false),
        ("sm_90a", false),
        ("sm_120a", false),
    ] {
        assert_eq!(load(&module_for(target, tensor_memory)).is_ok(), accepted, "{target}");
    }
    let registers = "setmaxnreg.dec.sync.aligned.u32 40;";
    for (target, accepted) in [("sm_90a", true), ("sm_90", false), ("sm_100a", true), ("sm_80", false)] {
        assert_eq!(load(&module_for(target, registers)).is_ok(), accepted, "{target}");
    }
    assert!(load(&module_for("sm_80", "barrier.cluster.wait;")).is_err());
    assert!(load(&module_for("compute_90", "exit;")).is_err());
}
