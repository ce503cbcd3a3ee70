#!/usr/bin/env python3
"""What ptxas makes of every kernel, as the table of docs/kernels.md.

    run.py PTX [--ptxas PATH] [--nvdisasm PATH] [--arch sm_100a] [--check docs/kernels.md]

Counts are of SASS instructions in the innermost loop around the operation: per K block for the MMA and the TMA thread, per
32 columns (16 rows in a swapped kernel) for the epilogue. With --check, exits with 1 if the document has other lines.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# The operation that makes a loop a role's, and the largest loop allowed for BF16.
ROLES = {"MMA": ("UTCHMMA", "UTCQMMA"), "TMA": ("UTMALDG",), "epilogue": ("LDTM",)}
LIMITS = {"MMA": 40, "TMA": 40}


def resources(ptxas, arch, ptx, cubin):
    """Registers, stack and spills of each entry, from ptxas's own report."""
    report = subprocess.run(
        [ptxas, f"-arch={arch}", "-v", ptx, "-o", cubin], check=True, capture_output=True, text=True
    ).stderr
    found = {}
    name = None
    for line in report.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            name = match[1]
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            found[name] = {"stack": int(match[1]), "spills": int(match[2]) + int(match[3])}
        elif match := re.search(r"Used (\d+) registers", line):
            found[name]["registers"] = int(match[1])
    return found


def innermost(instructions, labels, operations):
    """Instructions of the smallest loop that holds one of the operations."""
    best = None
    for end, text in enumerate(instructions):
        target = re.search(r"\bBRA\b.*?(\.L_x_\d+)", text)
        start = labels.get(target[1]) if target else None
        if start is None or start > end:
            continue
        body = instructions[start:end + 1]
        if any(operation in line for line in body for operation in operations):
            best = len(body) if best is None else min(best, len(body))
    return best


def loops(nvdisasm, cubin):
    text = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
    found = {}
    for section in re.split(r"(?=//-+ \.text\.)", text):
        name = re.match(r"//-+ \.text\.(\w+)", section)
        if not name:
            continue
        instructions, labels = [], {}
        for line in section.splitlines():
            if label := re.match(r"\s*(\.L_x_\d+):", line):
                labels[label[1]] = len(instructions)
            elif instruction := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
                instructions.append(instruction[1])
        found[name[1]] = {role: innermost(instructions, labels, operations) for role, operations in ROLES.items()}
        found[name[1]]["instructions"] = len(instructions)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ptx")
    parser.add_argument("--ptxas", default=os.environ.get("PTXAS", "ptxas"))
    parser.add_argument("--nvdisasm", default=os.environ.get("NVDISASM", "nvdisasm"))
    parser.add_argument("--arch", default="sm_100a")
    parser.add_argument("--check", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        cubin = str(pathlib.Path(directory) / "kernels.cubin")
        entries = resources(arguments.ptxas, arguments.arch, arguments.ptx, cubin)
        for name, counts in loops(arguments.nvdisasm, cubin).items():
            entries[name] |= counts
    # In the order of the PTX, which is that of the kernel table.
    order = re.findall(r"\.visible \.entry (\w+)", pathlib.Path(arguments.ptx).read_text())
    lines = ["| kernel | registers | stack, spills | MMA loop | TMA loop | epilogue loop |", "|---|---|---|---|---|---|"]
    wrong = []
    for name in order:
        entry = entries[name]
        cells = [entry[role] if entry[role] is not None else "-" for role in ROLES]
        lines.append(
            f"| `{name}` | {entry['registers']} | {entry['stack']}, {entry['spills']} | "
            + " | ".join(str(cell) for cell in cells) + " |"
        )
        if entry["stack"] or entry["spills"]:
            wrong.append(f"{name}: {entry['stack']} bytes of stack, {entry['spills']} of spills; 0 wanted")
        for role, limit in LIMITS.items():
            if "bf16" in name and entry[role] is not None and entry[role] > limit:
                wrong.append(f"{name}: {entry[role]} instructions in the {role} loop; at most {limit} wanted")
    print("\n".join(lines))
    if arguments.check:
        text = arguments.check.read_text().splitlines()
        wrong += [f"{arguments.check} lacks: {line}" for line in lines if line not in text]
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
