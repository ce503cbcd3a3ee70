"""The Triton kernels whose compiler output the simulator is tested with.

Each is written to make the compiler emit one family of instructions; the arithmetic is the simplest that does.
Matrices are row-major, and every product is C[M, N] = A[M, K] times the transpose of B[N, K].
"""

import triton
import triton.language as tl


@triton.jit
def add(left, right, out, count, BLOCK: tl.constexpr):
    """Element-wise sum; the last block is partly masked."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    total = tl.load(left + index, mask=inside) + tl.load(right + index, mask=inside)
    tl.store(out + index, total, mask=inside)


@triton.jit
def softmax(scores, out, columns, BLOCK: tl.constexpr):
    """Softmax of each row by one program: reductions within warps, then across them through shared memory."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    score = tl.load(scores + row * columns + column, mask=inside, other=float("-inf"))
    power = tl.exp(score - tl.max(score, axis=0))
    tl.store(out + row * columns + column, power / tl.sum(power, axis=0), mask=inside)


@triton.jit
def sum_by_last(values, partials, arrived, out, count, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    """Sum over all programs: each publishes its part, and whichever arrives last adds the parts up."""
    program = tl.program_id(0)
    index = program * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(values + index, mask=index < count, other=0.0), axis=0)
    tl.store(partials + program, part)
    before = tl.atomic_add(arrived, 1, sem="acq_rel", scope="gpu")
    if before == PROGRAMS - 1:
        parts = tl.load(partials + tl.arange(0, PROGRAMS), cache_modifier=".cg")
        tl.store(out, tl.sum(parts, axis=0))


@triton.jit
def column_sum(values, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sum of each column: programs add the sums of their blocks to the output atomically."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    block = tl.load(values + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
    tl.atomic_add(out + column, tl.sum(block, axis=0), mask=column < columns, sem="relaxed")


@triton.jit
def matmul_pointers(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Operands through pointers, so that they come by `cp.async`; rows beyond M are masked."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_block = a + row[:, None] * k + depth[None, :]
    b_block = b + column[None, :] * k + depth[:, None]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k, BK):
        left = tl.load(a_block, mask=(row < m)[:, None], other=0.0)
        right = tl.load(b_block, mask=(column < n)[None, :], other=0.0)
        total = tl.dot(left, right, total)
        a_block += BK
        b_block += BK
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(c + row[:, None] * n + column[None, :], total.to(tl.bfloat16), mask=inside)


@triton.jit
def matmul_tensor_maps(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Operands and result by TMA, through tensor maps that are kernel parameters."""
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for depth in range(0, k, BK):
        total = tl.dot(a.load([row, depth]), b.load([column, depth]).T, total)
    c.store([row, column], total.to(tl.bfloat16))


@triton.jit
def matmul_device_maps(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """As `matmul_tensor_maps`, but the kernel makes its tensor maps itself, in scratch memory."""
    a_map = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
    b_map = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BN, BK])
    c_map = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BM, BN])
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for depth in range(0, k, BK):
        total = tl.dot(a_map.load([row, depth]), b_map.load([column, depth]).T, total)
    c_map.store([row, column], total.to(tl.bfloat16))


@triton.jit
def matmul_persistent(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                      SPECIALIZE: tl.constexpr):
    """Programs walk over tiles with a static stride; with SPECIALIZE, warps are split into roles."""
    row_tiles = tl.cdiv(m, BM)
    tiles = row_tiles * tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True, warp_specialize=SPECIALIZE):
        row = tile % row_tiles * BM
        column = tile // row_tiles * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for depth in range(0, k, BK):
            total = tl.dot(a.load([row, depth]), b.load([column, depth]).T, total)
        c.store([row, column], total.to(tl.bfloat16))


@triton.jit
def matmul_mxfp8(a, a_scale, b, b_scale, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """MXFP8 product; the scales are row-major bytes, one for 32 elements along K, read through pointers."""
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    groups = tl.arange(0, BK // 32)
    a_scale_block = a_scale + (row + tl.arange(0, BM))[:, None] * (k // 32) + groups[None, :]
    b_scale_block = b_scale + (column + tl.arange(0, BN))[:, None] * (k // 32) + groups[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for depth in range(0, k, BK):
        left = tl.load(a_scale_block + depth // 32)
        right = tl.load(b_scale_block + depth // 32)
        total = tl.dot_scaled(a.load([row, depth]), left, "e4m3", b.load([column, depth]).T, right, "e4m3", total)
    c.store([row, column], total.to(tl.bfloat16))


@triton.jit
def unpack_scales(atoms, ROWS: tl.constexpr, GROUPS: tl.constexpr):
    """From the 128x4 layout [rows / 128, groups / 4, 32, 4, 4] to [rows, groups]."""
    atoms = atoms.reshape(ROWS // 128, GROUPS // 4, 32, 4, 4)
    return atoms.trans(0, 3, 2, 1, 4).reshape(ROWS, GROUPS)


@triton.jit
def matmul_mxfp8_atoms(a, a_scale, b, b_scale, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                       SPECIALIZE: tl.constexpr):
    """Persistent MXFP8 product; the scales are in the 128x4 layout and come by TMA, then `tcgen05.cp`."""
    row_tiles = tl.cdiv(m, BM)
    tiles = row_tiles * tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True, warp_specialize=SPECIALIZE):
        row = tile % row_tiles
        column = tile // row_tiles
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(0, k // BK):
            left = a_scale.load([0, row * (BM // 128), step * (BK // 128), 0, 0])
            right = b_scale.load([0, column * (BN // 128), step * (BK // 128), 0, 0])
            total = tl.dot_scaled(
                a.load([row * BM, step * BK]), unpack_scales(left, BM, BK // 32), "e4m3",
                b.load([column * BN, step * BK]).T, unpack_scales(right, BN, BK // 32), "e4m3", total)
        c.store([row * BM, column * BN], total.to(tl.bfloat16))


@triton.jit
def matmul_twice(a, b, d, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = bf16(A times B transposed) times D transposed: the second left operand is a first result."""
    row = tl.program_id(0) * BM
    first = tl.zeros((BM, BN), dtype=tl.float32)
    for depth in range(0, k, BK):
        first = tl.dot(a.load([row, depth]), b.load([0, depth]).T, first)
    second = tl.dot(first.to(tl.bfloat16), d.load([0, 0]).T)
    c.store([row, 0], second.to(tl.bfloat16))
