"""Floating-point results: their formats, and when two count as the same."""

import math
import struct

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
