#!/usr/bin/env python3
"""Runs what `h200_vectors` wrote on a GPU and compares every result with the simulator's.

usage: run.py DIRECTORY [--all] [--only TEXT] [--nan-payloads] [--results DIRECTORY]

Needs nothing but Python and libcuda. Prints one row per instruction form or operation that differs (with --all, every one),
what was measured of sums that are rounded in the tensor core, and a summary. Exits with 1 if a result is wrong, or a kernel
is not assembled or does not end, with 2 if the GPU cannot be used. NaNs that differ in their payload only are counted apart,
in `nan`, and make it fail only with --nan-payloads.
"""

import argparse
import json
import pathlib
import sys

import engines
import lanes
from driver import CudaError, Driver


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="print what agrees too")
    parser.add_argument("--only", default="", help="only forms and operations whose name contains this")
    parser.add_argument("--nan-payloads", action="store_true", help="fail on NaNs that differ in their payload too")
    parser.add_argument("--results", type=pathlib.Path, help="where engines_results.json and engines_gpu.bin go")
    arguments = parser.parse_args()
    directory = arguments.directory
    try:
        driver = Driver()
        print(driver.description)
        manifest = json.loads((directory / "manifest.json").read_text())
        forms = lanes.run(driver, directory, manifest, arguments.only, arguments.all)
        operations = engines.run(directory, arguments.only, arguments.all, arguments.results or directory)
    except CudaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\n{'':24} {'listed':>7} {'run':>7} {'wrong':>7} {'nan':>7} {'refused':>7} {'failed':>7}")
    for name, row in (("per-lane instructions", {**forms, "cases": forms["forms"], "failed": 0}), ("operations", operations)):
        columns = [row[key] for key in ("cases", "run", "wrong", "nan", "refused", "failed")]
        print(f"{name:24} " + " ".join(f"{column:>7}" for column in columns))
    total = {key: forms.get(key, 0) + operations[key] for key in ("wrong", "nan", "refused", "failed")}
    bad = total["wrong"] or total["refused"] or total["failed"] or arguments.nan_payloads and total["nan"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
