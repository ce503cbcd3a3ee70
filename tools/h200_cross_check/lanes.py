"""Per-lane instructions: one entry per form, thread i on operands i."""

import re
import struct

from driver import CudaError, load_entries, newest_version
from results import verdict


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


def run(driver, directory, manifest, only, show_all):
    """Prints what differs. Gives the numbers of forms, run, wrong, with other NaN payloads, and not assembled."""
    text = (directory / "vectors.ptx").read_text()
    operands = (directory / "operands.bin").read_bytes()
    expected = (directory / "expected.bin").read_bytes()
    cases, block = manifest["cases"], manifest["block"]
    forms = [form for form in manifest["entries"] if only in form["name"]]
    text = re.sub(r"^\.version \S+", f".version {newest_version(driver.version)}", text, count=1)
    functions = load_entries(driver, text, [entry["entry"] for entry in forms])
    operand_base = driver.allocate(len(operands))
    driver.upload(operand_base, operands)
    output = driver.allocate(cases * 8)
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
        driver.fill(output, 0xA5, size)
        driver.launch(function, cases // block, block, addresses)
        silicon = driver.download(output, size)
        simulated = expected[form["expected"]:form["expected"] + size]
        counts, first = compare(form, cases, operands, simulated, silicon)
        wrong += counts["different"] > 0
        nan += counts["nan"] > 0
        if first or show_all:
            difference = first.get("different", first.get("nan", ""))
            print(f"{form['name']:44} {cases:>6} {counts['different']:>6} {counts['nan']:>6}  {difference}")
    return {"forms": len(forms), "run": len(forms) - refused, "wrong": wrong, "nan": nan, "refused": refused}
