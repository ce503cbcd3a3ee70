#!/usr/bin/env python3
"""Runs the entries that `h200_vectors` wrote on a GPU and compares every result with the simulator's.

usage: run.py DIRECTORY [--all] [--only TEXT]

Needs nothing but Python and libcuda. Prints one row per instruction form that differs (with --all, every form), and exits
with 1 if any does, with 2 if the GPU cannot be used. NaNs that differ in their payload only are counted apart, in `nan`.
"""

import argparse
import ctypes
import json
import math
import pathlib
import re
import struct
import sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p

ERROR_LOG_BUFFER, ERROR_LOG_BYTES = 5, 6
LOG_BYTES = 16384


class CudaError(Exception):
    pass


class Driver:
    """The few driver calls that launching takes."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"no libcuda: {error}") from error
        self.call("cuInit", c_uint(0))
        device = c_int()
        self.call("cuDeviceGet", byref(device), c_int(0))
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, c_int(100), device)
        major, minor, version = c_int(), c_int(), c_int()
        self.call("cuDeviceGetAttribute", byref(major), c_int(75), device)
        self.call("cuDeviceGetAttribute", byref(minor), c_int(76), device)
        self.call("cuDriverGetVersion", byref(version))
        self.version = (version.value // 1000, version.value % 1000 // 10)
        self.description = (
            f"{name.value.decode()}, compute capability {major.value}.{minor.value},"
            f" CUDA {self.version[0]}.{self.version[1]}"
        )
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            text = c_char_p()
            self.library.cuGetErrorName(c_int(code), byref(text))
            error = text.value.decode() if text.value else str(code)
            raise CudaError(f"{name}: {error}")

    def load(self, text):
        """A module, or the assembler's complaint as a CudaError."""
        log = ctypes.create_string_buffer(LOG_BYTES)
        options = (c_int * 2)(ERROR_LOG_BUFFER, ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        module = c_void_p()
        image = ctypes.create_string_buffer(text.encode())
        try:
            self.call("cuModuleLoadDataEx", byref(module), image, c_uint(2), options, values)
        except CudaError as error:
            raise CudaError(f"{error}\n{log.value.decode(errors='replace').strip()}") from error
        return module

    def function(self, module, name):
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, name.encode())
        return function

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address

    def upload(self, address, data):
        self.call("cuMemcpyHtoD_v2", address, c_char_p(data), c_size_t(len(data)))

    def download(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, address, c_size_t(size))
        return data.raw

    def fill(self, address, byte, size):
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(byte), c_size_t(size))

    def launch(self, function, grid, block, addresses):
        values = [ctypes.c_uint64(address) for address in addresses]
        pointers = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        one = c_uint(1)
        self.call(
            "cuLaunchKernel",
            function,
            c_uint(grid), one, one,
            c_uint(block), one, one,
            c_uint(0), c_void_p(), pointers, c_void_p(),
        )
        self.call("cuCtxSynchronize")


def newest_version(cuda):
    """The newest PTX version that the driver is sure to take (PTX ISA, "Release Notes")."""
    major, minor = cuda
    if major == 12:
        return {0: "8.0", 1: "8.1", 2: "8.2", 3: "8.3", 4: "8.4", 5: "8.5", 6: "8.5", 7: "8.6", 8: "8.7"}.get(minor, "8.8")
    return "9.0" if major >= 13 else "7.8"


def split(text):
    """The module's head, and each entry's text by name."""
    head, *parts = re.split(r"(?=^// .*\n\.visible \.entry )", text, flags=re.MULTILINE)
    return head, {re.search(r"\.entry (\w+)", part)[1]: part for part in parts}


def load_entries(driver, text, names):
    """A function or a complaint per entry. All at once where the assembler takes all of them, else one by one."""
    try:
        module = driver.load(text)
        return {name: driver.function(module, name) for name in names}
    except CudaError:
        pass
    head, entries = split(text)
    functions = {}
    size = 64
    for start in range(0, len(names), size):
        group = names[start:start + size]
        try:
            module = driver.load(head + "".join(entries[name] for name in group))
            functions.update({name: driver.function(module, name) for name in group})
            continue
        except CudaError:
            pass
        for name in group:
            try:
                functions[name] = driver.function(driver.load(head + entries[name]), name)
            except CudaError as error:
                functions[name] = error
    return functions


LAYOUTS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}


def lanes(value, name):
    """The values in a register, as (bits, format)."""
    if name.endswith("x2"):
        return [(value & 0xFFFF, name[:-2]), (value >> 16, name[:-2])]
    return [(value, name)]


def is_nan(bits, name):
    exponent, fraction = LAYOUTS[name]
    infinity = ((1 << exponent) - 1) << fraction
    return bits & ((1 << (exponent + fraction)) - 1) > infinity


def number(bits, name):
    if name == "f64":
        return struct.unpack("<d", struct.pack("<Q", bits))[0]
    if name == "f16":
        return struct.unpack("<e", struct.pack("<H", bits))[0]
    return struct.unpack("<f", struct.pack("<I", bits << 16 if name == "bf16" else bits))[0]


def ordered(bits, name):
    exponent, fraction = LAYOUTS[name]
    sign = 1 << (exponent + fraction)
    return -(bits & (sign - 1)) if bits & sign else bits


def verdict(simulated, silicon, form):
    """`same`, `nan` (NaNs of different payloads) or `different`."""
    if form["format"] == "bits":
        return "same" if simulated == silicon else "different"
    result = "same"
    for (a, name), (b, _) in zip(lanes(simulated, form["format"]), lanes(silicon, form["format"])):
        if a == b:
            continue
        if is_nan(a, name) and is_nan(b, name):
            result = "nan"
            continue
        if is_nan(a, name) or is_nan(b, name) or form["ulps"] == 0 and form["absolute"] == 0:
            return "different"
        if abs(ordered(a, name) - ordered(b, name)) <= form["ulps"]:
            continue
        difference = abs(number(a, name) - number(b, name))
        if math.isnan(difference) or difference > form["absolute"]:
            return "different"
    return result


def values(data, bits):
    code = {16: "H", 32: "I", 64: "Q"}[bits]
    return struct.unpack(f"<{len(data) * 8 // bits}{code}", data)


def shown(value, bits):
    return f"0x{value:0{bits // 4}x}"


def compare(form, cases, operands, simulated, silicon):
    """Counts of differences, and the first one of either kind."""
    counts = {"different": 0, "nan": 0}
    first = {}
    if simulated == silicon:
        return counts, first
    results = zip(values(simulated, form["bits"]), values(silicon, form["bits"]))
    for case, (a, b) in enumerate(results):
        if a == b:
            continue
        kind = verdict(a, b, form)
        if kind == "same":
            continue
        counts[kind] += 1
        if kind not in first:
            inputs = []
            for column in form["inputs"]:
                size = column["bits"] // 8
                at = column["offset"] + case * size
                inputs.append(shown(int.from_bytes(operands[at:at + size], "little"), column["bits"]))
            first[kind] = f"({', '.join(inputs)}): simulator {shown(a, form['bits'])}, GPU {shown(b, form['bits'])}"
    return counts, first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="print forms that agree too")
    parser.add_argument("--only", default="", help="only forms whose name contains this")
    arguments = parser.parse_args()

    manifest = json.loads((arguments.directory / "manifest.json").read_text())
    text = (arguments.directory / "vectors.ptx").read_text()
    operands = (arguments.directory / "operands.bin").read_bytes()
    expected = (arguments.directory / "expected.bin").read_bytes()
    cases, block = manifest["cases"], manifest["block"]
    forms = [form for form in manifest["entries"] if arguments.only in form["name"]]

    try:
        driver = Driver()
        print(driver.description)
        text = re.sub(r"^\.version \S+", f".version {newest_version(driver.version)}", text, count=1)
        functions = load_entries(driver, text, [entry["entry"] for entry in manifest["entries"]])
        operand_base = driver.allocate(len(operands))
        driver.upload(operand_base, operands)
        output = driver.allocate(cases * 8)
    except CudaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2

    print(f"{'instruction':44} {'cases':>6} {'wrong':>6} {'nan':>6}  first difference (operands: results)")
    wrong = nan = refused = 0
    for form in forms:
        function = functions[form["entry"]]
        if isinstance(function, CudaError):
            refused += 1
            complaint = next((line for line in str(function).splitlines() if "error" in line), str(function))
            print(f"{form['name']:44} {'-':>6} {'-':>6} {'-':>6}  not assembled: {complaint}")
            continue
        size = cases * form["bits"] // 8
        addresses = [operand_base.value + column["offset"] for column in form["inputs"]] + [output.value]
        try:
            driver.fill(output, 0xA5, size)
            driver.launch(function, cases // block, block, addresses)
            silicon = driver.download(output, size)
        except CudaError as error:
            print(f"error: {form['name']}: {error}", file=sys.stderr)
            return 2
        simulated = expected[form["expected"]:form["expected"] + size]
        counts, first = compare(form, cases, operands, simulated, silicon)
        wrong += counts["different"] > 0
        nan += counts["nan"] > 0
        if first or arguments.all:
            difference = first.get("different", first.get("nan", ""))
            print(f"{form['name']:44} {cases:>6} {counts['different']:>6} {counts['nan']:>6}  {difference}")
    ran = len(forms) - refused
    print(
        f"{len(forms)} forms, {ran} run with {cases} cases each: {wrong} with wrong results,"
        f" {nan} with other NaN payloads, {refused} not assembled"
    )
    return 1 if wrong or nan or refused else 0


if __name__ == "__main__":
    sys.exit(main())
