"""Kernels in Gluon, Triton's lower level, for what the compiler does not choose by itself: pairs of CTAs."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell
from triton.experimental.gluon.language.nvidia.blackwell import mbarrier, tma

# Over the pair, A and C are split by rows of A, B by its rows, which are columns of C.
PAIR_ROWS = gl.constexpr([[1, 0]])


@gluon.jit
def pair_load(a, b, a_tiles, b_tiles, full, row, column, depth, stage):
    """Loads one step of both operands; each CTA gets its half, and the even one's barrier counts both."""
    mbarrier.expect(full.index(stage), a.nbytes_per_cta + b.nbytes_per_cta)
    tma.async_load(a, [row, depth], full.index(stage), a_tiles.index(stage))
    tma.async_load(b, [column, depth], full.index(stage), b_tiles.index(stage))


@gluon.jit
def matmul_pair(a, b, c, k, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr):
    """One BM x BN tile by a pair of CTAs with `cta_group::2`."""
    row = gl.program_id(0) * BM
    column = gl.program_id(1) * BN
    a_tiles = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES, BN, BK], b.layout)
    full = mbarrier.allocate_mbarrier(batch=STAGES, two_ctas=True)
    empty = mbarrier.allocate_mbarrier(batch=STAGES)
    for index in gl.static_range(STAGES):
        mbarrier.init(full.index(index), count=1)
        mbarrier.init(empty.index(index), count=1)
    accumulator_layout: gl.constexpr = blackwell.TensorMemoryLayout(
        [BM // 2, BN], col_stride=1, cga_layout=PAIR_ROWS, two_ctas=True)
    accumulator = blackwell.allocate_tensor_memory(gl.float32, [BM, BN], accumulator_layout)
    blackwell.cluster.barrier()

    steps = gl.cdiv(k, BK)
    for step in range(0, steps + STAGES - 1):
        if step < steps:
            stage = step % STAGES
            # The first round finds every stage empty: the phase before the first counts as complete.
            mbarrier.wait(empty.index(stage), (step // STAGES & 1) ^ 1)
            pair_load(a, b, a_tiles, b_tiles, full, row, column, step * BK, stage)
        ready = step - (STAGES - 1)
        if ready >= 0:
            stage = ready % STAGES
            mbarrier.wait(full.index(stage), ready // STAGES & 1)
            blackwell.tcgen05_mma(
                a_tiles.index(stage), b_tiles.index(stage).permute((1, 0)), accumulator, use_acc=ready > 0,
                multicast=True, mbarriers=[empty.index(stage)])
    last = steps - 1
    mbarrier.wait(empty.index(last % STAGES), last // STAGES & 1)
    for index in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(index))
        mbarrier.invalidate(empty.index(index))

    result = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    result.store(accumulator.load().to(c.dtype))
    blackwell.fence_async_shared()
    tma.async_store(c, [row, column], result)
    tma.store_wait(0)


@gluon.jit
def scale_rows(atoms, ROWS: gl.constexpr, GROUPS: gl.constexpr):
    """A view of atoms [1, rows / 128, groups / 4, 2, 256] as [rows, groups]."""
    atoms = atoms.reshape((ROWS // 128, GROUPS // 4, 32, 4, 4))
    return atoms.permute((0, 3, 2, 1, 4)).reshape((ROWS, GROUPS))


@gluon.jit
def matmul_pair_mxfp8(a, a_scale, b, b_scale, c, k, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    """MXFP8 by a pair: each CTA holds the scales of its own rows of A and of all of B. One stage, so no overlap."""
    row = gl.program_id(0)
    column = gl.program_id(1)
    a_tile = gl.allocate_shared_memory(a.dtype, [BM, BK], a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, [BN, BK], b.layout)
    a_atoms = gl.allocate_shared_memory(a_scale.dtype, a_scale.block_shape, a_scale.layout)
    b_atoms = gl.allocate_shared_memory(b_scale.dtype, b_scale.block_shape, b_scale.layout)
    full = mbarrier.allocate_mbarrier(two_ctas=True)
    empty = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    mbarrier.init(empty, count=1)
    accumulator = blackwell.allocate_tensor_memory(
        gl.float32, [BM, BN],
        blackwell.TensorMemoryLayout([BM // 2, BN], col_stride=1, cga_layout=PAIR_ROWS, two_ctas=True))
    a_scales = blackwell.allocate_tensor_memory(
        gl.uint8, [BM, BK // 32], blackwell.TensorMemoryScalesLayout(cga_layout=PAIR_ROWS))
    b_scales = blackwell.allocate_tensor_memory(
        gl.uint8, [BN, BK // 32], blackwell.TensorMemoryScalesLayout(cga_layout=[[0, 0]]))
    blackwell.cluster.barrier()

    for step in range(0, gl.cdiv(k, BK)):
        mbarrier.wait(empty, (step & 1) ^ 1)
        mbarrier.expect(full, a.nbytes_per_cta + b.nbytes_per_cta + a_scale.nbytes_per_cta + b_scale.nbytes_per_cta)
        tma.async_load(a, [row * BM, step * BK], full, a_tile)
        tma.async_load(b, [column * BN, step * BK], full, b_tile)
        tma.async_load(a_scale, [0, row * (BM // 128), step * (BK // 128), 0, 0], full, a_atoms)
        tma.async_load(b_scale, [0, column * (BN // 128), step * (BK // 128), 0, 0], full, b_atoms, multicast=True)
        mbarrier.wait(full, step & 1)
        blackwell.tcgen05_copy(scale_rows(a_atoms, BM, BK // 32), a_scales)
        blackwell.tcgen05_copy(scale_rows(b_atoms, BN, BK // 32), b_scales)
        blackwell.tcgen05_mma_scaled(
            a_tile, b_tile.permute((1, 0)), accumulator, a_scales, b_scales, "e4m3", "e4m3", use_acc=step > 0,
            multicast=True, mbarriers=[empty])
    mbarrier.wait(empty, (gl.cdiv(k, BK) - 1) & 1)
    mbarrier.invalidate(full)
    mbarrier.invalidate(empty)

    result = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    result.store(accumulator.load().to(c.dtype))
    blackwell.fence_async_shared()
    tma.async_store(c, [row * BM, column * BN], result)
    tma.store_wait(0)
