"""The fixtures: which kernel, with which shapes, and what it computes.

Shapes are small because the simulator executes every one, and uneven where that reaches another path: masked tails,
boxes that hang over the edge, more tiles than programs.
"""

from dataclasses import dataclass

import triton
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.runtime.jit import JITFunction

import gluon_kernels
import kernels

ELEMENT_BYTES = {"u8": 1, "f8e4m3": 1, "e8m0": 1, "bf16": 2, "f32": 4, "i32": 4}
POINTER_TYPES = {"u8": "*u8", "f8e4m3": "*fp8e4nv", "e8m0": "*u8", "bf16": "*bf16", "f32": "*fp32", "i32": "*i32"}


@dataclass
class Buffer:
    """Device memory of a launch: its row-major shape and what it holds before."""

    element: str
    shape: list
    # "operand" is filled with random values, "zero" with zeros; "result" is left uninitialised.
    contents: str = "operand"

    def pointer_type(self):
        return POINTER_TYPES[self.element]

    def description(self, name):
        return {"name": name, "element": self.element, "shape": self.shape, "contents": self.contents}


@dataclass
class Pointer:
    """An argument that is a buffer's address."""

    buffer: str


@dataclass
class Map:
    """An argument that is a tensor map over a buffer; `shape` where it differs from the buffer's.

    Gluon also wants the layout that the block has in shared memory.
    """

    buffer: str
    block: list
    shape: list = None
    layout: NVMMASharedLayout = None

    def signature(self, buffer):
        layout = f", {self.layout!r}" if self.layout else ""
        return f"tensordesc<{buffer.pointer_type()[1:]}[{', '.join(map(str, self.block))}]{layout}>"


@dataclass
class Fixture:
    name: str
    kernel: JITFunction
    grid: tuple
    buffers: dict
    arguments: dict
    computes: dict
    architectures: tuple = (100, 90)
    warps: int = 4
    ctas: int = 1
    stages: int = 3

    def kernel_constants(self):
        """Names of the arguments that are compile-time constants."""
        return {parameter.name for parameter in self.kernel.params if parameter.is_constexpr}


def bf16_matrices(m, n, k):
    return {"a": Buffer("bf16", [m, k]), "b": Buffer("bf16", [n, k]), "c": Buffer("bf16", [m, n], "result")}


def mxfp8_matrices(m, n, k, layout):
    scales = {"rows": lambda r: [r, k // 32], "atoms": lambda r: [r // 128, k // 128, 32, 4, 4]}[layout]
    return {
        "a": Buffer("f8e4m3", [m, k]),
        "a_scale": Buffer("e8m0", scales(m)),
        "b": Buffer("f8e4m3", [n, k]),
        "b_scale": Buffer("e8m0", scales(n)),
        "c": Buffer("bf16", [m, n], "result"),
    }


def matmul(m, n, k, **more):
    return {"operation": "matmul", "m": m, "n": n, "k": k, **more}


def tiles(m, n, bm, bn):
    return triton.cdiv(m, bm), triton.cdiv(n, bn)


def tile_maps(bm, bn, bk):
    return {"a": Map("a", [bm, bk]), "b": Map("b", [bn, bk]), "c": Map("c", [bm, bn])}


def constants(bm, bn, bk):
    return {"BM": bm, "BN": bn, "BK": bk}


def add(count=1000, block=256):
    vector = Buffer("f32", [count])
    return Fixture(
        "add", kernels.add, (triton.cdiv(count, block), 1, 1),
        {"left": vector, "right": vector, "out": Buffer("f32", [count], "result")},
        {"left": Pointer("left"), "right": Pointer("right"), "out": Pointer("out"), "count": count, "BLOCK": block},
        {"operation": "add"})


def softmax(rows=5, columns=500):
    return Fixture(
        "softmax", kernels.softmax, (rows, 1, 1),
        {"scores": Buffer("f32", [rows, columns]), "out": Buffer("f32", [rows, columns], "result")},
        {"scores": Pointer("scores"), "out": Pointer("out"), "columns": columns, "BLOCK": 512},
        {"operation": "softmax"})


def sum_by_last(count=1000, block=128, programs=8):
    return Fixture(
        "sum_by_last", kernels.sum_by_last, (programs, 1, 1),
        {
            "values": Buffer("f32", [count]),
            "partials": Buffer("f32", [programs], "result"),
            "arrived": Buffer("i32", [1], "zero"),
            "out": Buffer("f32", [1], "result"),
        },
        {
            "values": Pointer("values"), "partials": Pointer("partials"), "arrived": Pointer("arrived"),
            "out": Pointer("out"), "count": count, "BLOCK": block, "PROGRAMS": programs,
        },
        {"operation": "sum"})


def column_sum(rows=100, columns=72, block=(32, 64)):
    return Fixture(
        "column_sum", kernels.column_sum, (*tiles(rows, columns, *block), 1),
        {"values": Buffer("f32", [rows, columns]), "out": Buffer("f32", [columns], "zero")},
        {
            "values": Pointer("values"), "out": Pointer("out"), "rows": rows, "columns": columns, "ROWS": block[0],
            "COLUMNS": block[1],
        },
        {"operation": "column_sum"})


def matmul_pointers(m=100, n=192, k=160, block=(64, 64, 32)):
    return Fixture(
        "matmul_pointers", kernels.matmul_pointers, (*tiles(m, n, *block[:2]), 1), bf16_matrices(m, n, k),
        {"a": Pointer("a"), "b": Pointer("b"), "c": Pointer("c"), "m": m, "n": n, "k": k, **constants(*block)},
        matmul(m, n, k))


def matmul_tensor_maps(m=200, n=256, k=352, block=(128, 128, 64)):
    return Fixture(
        "matmul_tensor_maps", kernels.matmul_tensor_maps, (*tiles(m, n, *block[:2]), 1), bf16_matrices(m, n, k),
        {**tile_maps(*block), "k": k, **constants(*block)}, matmul(m, n, k))


def matmul_cluster(m=256, n=256, k=192, block=(128, 128, 64)):
    return Fixture(
        "matmul_cluster", kernels.matmul_tensor_maps, (*tiles(m, n, *block[:2]), 1), bf16_matrices(m, n, k),
        {**tile_maps(*block), "k": k, **constants(*block)}, matmul(m, n, k), ctas=2)


def matmul_device_maps(m=128, n=256, k=192, block=(64, 128, 64)):
    return Fixture(
        "matmul_device_maps", kernels.matmul_device_maps, (*tiles(m, n, *block[:2]), 1), bf16_matrices(m, n, k),
        {"a": Pointer("a"), "b": Pointer("b"), "c": Pointer("c"), "m": m, "n": n, "k": k, **constants(*block)},
        matmul(m, n, k))


def matmul_persistent(specialize, m=256, n=384, k=256, block=(128, 128, 64), programs=4):
    return Fixture(
        "matmul_warp_specialized" if specialize else "matmul_persistent", kernels.matmul_persistent, (programs, 1, 1),
        bf16_matrices(m, n, k),
        {**tile_maps(*block), "m": m, "n": n, "k": k, **constants(*block), "SPECIALIZE": specialize}, matmul(m, n, k),
        # For Hopper the compiler ignores the request on the outer loop.
        architectures=(100,) if specialize else (100, 90))


def matmul_mxfp8(m=128, n=256, k=384, block=(128, 128, 128)):
    return Fixture(
        "matmul_mxfp8", kernels.matmul_mxfp8, (*tiles(m, n, *block[:2]), 1), mxfp8_matrices(m, n, k, "rows"),
        {
            **tile_maps(*block), "a_scale": Pointer("a_scale"), "b_scale": Pointer("b_scale"), "k": k,
            **constants(*block),
        },
        matmul(m, n, k, scales="rows"))


def scale_map(buffer, rows, k, extent, depth, split=None):
    """A map over scales in the 128x4 layout; an atom of 512 bytes is 2 x 256, since a box may be no wider than 256."""
    layout = split and NVMMASharedLayout(0, 8, rank=5, cga_layout=split)
    return Map(buffer, [1, extent // 128, depth // 128, 2, 256], [1, rows // 128, k // 128, 2, 256], layout)


def matmul_mxfp8_atoms(specialize, m=256, n=384, k=512, block=(128, 128, 128), programs=4):
    return Fixture(
        "matmul_mxfp8_warp_specialized" if specialize else "matmul_mxfp8_atoms", kernels.matmul_mxfp8_atoms,
        (programs, 1, 1), mxfp8_matrices(m, n, k, "atoms"),
        {
            **tile_maps(*block), "a_scale": scale_map("a_scale", m, k, block[0], block[2]),
            "b_scale": scale_map("b_scale", n, k, block[1], block[2]), "m": m, "n": n, "k": k, **constants(*block),
            "SPECIALIZE": specialize,
        },
        matmul(m, n, k, scales="atoms"), architectures=(100,))


def matmul_twice(m=256, n=128, k=128, block=(128, 128, 64)):
    return Fixture(
        "matmul_twice", kernels.matmul_twice, (triton.cdiv(m, block[0]), 1, 1),
        {**bf16_matrices(m, n, k), "d": Buffer("bf16", [n, n])},
        {**tile_maps(*block), "d": Map("d", [n, n]), "k": k, **constants(*block)},
        {**matmul(m, n, k), "operation": "matmul_twice"})


def pair_maps(element_bits, bm, bn, bk):
    def layout(bits):
        return NVMMASharedLayout(128, bits, rank=2, cga_layout=[[1, 0]])

    return {
        "a": Map("a", [bm, bk], layout=layout(element_bits)), "b": Map("b", [bn, bk], layout=layout(element_bits)),
        "c": Map("c", [bm, bn], layout=layout(16)),
    }


def matmul_pair(m=400, n=256, k=320, block=(256, 256, 64)):
    return Fixture(
        "matmul_pair", gluon_kernels.matmul_pair, (*tiles(m, n, *block[:2]), 1), bf16_matrices(m, n, k),
        {**pair_maps(16, *block), "k": k, **constants(*block), "STAGES": 3}, matmul(m, n, k), architectures=(100,),
        ctas=2)


def matmul_pair_mxfp8(m=256, n=512, k=384, block=(256, 256, 128)):
    bm, bn, bk = block
    return Fixture(
        "matmul_pair_mxfp8", gluon_kernels.matmul_pair_mxfp8, (*tiles(m, n, bm, bn), 1),
        mxfp8_matrices(m, n, k, "atoms"),
        {
            **pair_maps(8, *block), "a_scale": scale_map("a_scale", m, k, bm, bk, [[0, 1, 0, 0, 0]]),
            "b_scale": scale_map("b_scale", n, k, bn, bk, [[0, 0, 0, 0, 0]]), "k": k, **constants(*block),
        },
        matmul(m, n, k, scales="atoms"), architectures=(100,), ctas=2)


FIXTURES = [
    add(),
    softmax(),
    sum_by_last(),
    column_sum(),
    matmul_pointers(),
    matmul_tensor_maps(),
    matmul_cluster(),
    matmul_device_maps(),
    matmul_persistent(specialize=False),
    matmul_persistent(specialize=True),
    matmul_mxfp8(),
    matmul_mxfp8_atoms(specialize=False),
    matmul_mxfp8_atoms(specialize=True),
    matmul_twice(),
    matmul_pair(),
    matmul_pair_mxfp8(),
]
