#!/usr/bin/env python3
"""Compiles the kernels of this directory with Triton, without a GPU, to the fixtures of the simulator's test.

    python3 -m venv /tmp/triton && /tmp/triton/bin/pip install -r requirements.txt
    /tmp/triton/bin/python generate.py [--check] [NAME ...]

For each fixture and architecture it writes `NAME.ARCH.ptx`, the compiler's output as it is, and `NAME.ARCH.json`, all
that a launch needs. With `--check` it writes nothing and fails if a file would change.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path

# Before Triton is imported: no paths and lines of this machine in the PTX, multiply-adds fused as by default.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton-fixtures-")

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon import GluonASTSource

from fixtures import FIXTURES, Map, Pointer

OUTPUT = Path(__file__).resolve().parents[2] / "crates/simulator/tests/fixtures/triton"

# Triton's numbers for element types and swizzles of tensor maps (element types on the device side).
MAP_ELEMENTS = {0: "u8", 10: "bf16"}
MAP_SWIZZLES = {0: "none", 1: "32B", 2: "64B", 3: "128B"}
PTX_TYPES = {"tensor_map": "b8[128]", "i32": "u32", "i64": "u64", "pointer": "u64", "scratch": "u64"}


def signature(fixture):
    """Types, constants and attributes of a kernel's arguments, as Triton's launcher would derive them."""
    types, constants, attributes = {}, {}, {}
    for index, name in enumerate(fixture.kernel.arg_names):
        value = fixture.arguments[name]
        if name in fixture.kernel_constants():
            types[name] = "constexpr"
            constants[name] = value
        elif isinstance(value, Map):
            types[name] = value.signature(fixture.buffers[value.buffer])
        else:
            pointer = isinstance(value, Pointer)
            types[name] = fixture.buffers[value.buffer].pointer_type() if pointer else "i32"
            # Memory is allocated at 512 bytes, so every pointer is a multiple of 16.
            if pointer or value % 16 == 0:
                attributes[(index,)] = [["tt.divisibility", 16]]
    return types, constants, attributes


def parameters(fixture, metadata):
    """The PTX parameters in order, with what a launch puts there."""
    maps = iter(metadata.tensordesc_meta or [])
    for name in fixture.kernel.arg_names:
        value = fixture.arguments[name]
        if name in fixture.kernel_constants():
            continue
        if isinstance(value, Pointer):
            yield {"kind": "pointer", "buffer": value.buffer}
        elif isinstance(value, Map):
            buffer = fixture.buffers[value.buffer]
            encoded = next(maps)
            assert not encoded["fp4_padded"] and not encoded["is_im2col"]
            shape = value.shape or buffer.shape
            strides = [1]
            for extent in reversed(shape[1:]):
                strides.insert(0, strides[0] * extent)
            # CUDA counts dimensions from the innermost, Triton from the outermost.
            yield {
                "kind": "tensor_map",
                "buffer": value.buffer,
                "element": MAP_ELEMENTS[encoded["elem_type"]],
                "dimensions": shape[::-1],
                "strides_bytes": [stride * encoded["elem_size"] for stride in strides[-2::-1]],
                "box": encoded["block_size"][::-1],
                "swizzle": MAP_SWIZZLES[encoded["swizzle"]],
            }
            # The descriptor's shape and strides follow it, whether or not the kernel reads them.
            yield from ({"kind": "i32", "value": extent} for extent in shape)
            yield from ({"kind": "i64", "value": stride} for stride in strides)
        else:
            yield {"kind": "i32", "value": value}
    for scratch in ("global", "profile"):
        size = getattr(metadata, f"{scratch}_scratch_size")
        align = getattr(metadata, f"{scratch}_scratch_align")
        yield {"kind": "scratch", "bytes_per_cta": size, "align": align}


def declared(ptx):
    """Types of the entry's parameters, as the PTX declares them."""
    entry = re.search(r"\.visible \.entry \w+\((.*?)\n\)", ptx, re.S).group(1)
    for line in entry.strip().splitlines():
        line = line.strip().rstrip(",")
        array = re.search(r"\[\d+\]$", line)
        yield re.search(r"\.([bu]\d+)", line).group(1) + (array.group() if array else "")


def compile_fixture(fixture, arch):
    """The PTX text, and the description as a dictionary."""
    source = (GluonASTSource if fixture.kernel.is_gluon() else ASTSource)(fixture.kernel, *signature(fixture))
    options = {"num_warps": fixture.warps, "num_ctas": fixture.ctas, "num_stages": fixture.stages}
    kernel = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    ptx, metadata = kernel.asm["ptx"], kernel.metadata
    given = list(parameters(fixture, metadata))
    kinds = [PTX_TYPES[parameter["kind"]] for parameter in given]
    assert kinds == list(declared(ptx)), f"{fixture.name}: {kinds} {list(declared(ptx))}"
    threads = metadata.num_warps * 32
    assert f".reqntid {threads}\n" in ptx, f"{fixture.name}: {threads} threads"
    return ptx, {
        "compiler": f"triton {triton.__version__}",
        "target": f"sm_{arch}a",
        "entry": metadata.name,
        "grid": [fixture.grid[0] * metadata.num_ctas, *fixture.grid[1:]],
        "cluster": [metadata.num_ctas, 1, 1],
        "block": [threads, 1, 1],
        "dynamic_shared_bytes": metadata.shared,
        "buffers": [buffer.description(name) for name, buffer in fixture.buffers.items()],
        "parameters": given,
        "computes": fixture.computes,
    }


def render(description):
    """JSON with a line for each buffer and parameter."""
    lines = []
    for key, value in description.items():
        if key in ("buffers", "parameters"):
            items = ",\n".join(f"    {json.dumps(item)}" for item in value)
            lines.append(f'  "{key}": [\n{items}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("names", nargs="*", help="fixtures to generate; all without any")
    options = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    stale = []
    for fixture in FIXTURES:
        if options.names and fixture.name not in options.names:
            continue
        for arch in fixture.architectures:
            ptx, description = compile_fixture(fixture, arch)
            stem = f"{fixture.name}.sm_{arch}a"
            for name, text in ((f"{stem}.ptx", ptx), (f"{stem}.json", render(description))):
                path = OUTPUT / name
                if not options.check:
                    path.write_text(text)
                elif not path.exists() or path.read_text() != text:
                    stale.append(name)
            print(f"{stem}: {len(ptx)} bytes, {description['block'][0]} threads")
    if stale:
        sys.exit(f"not what the generator writes: {', '.join(stale)}")


if __name__ == "__main__":
    main()
