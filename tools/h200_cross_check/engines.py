"""Operations of warps, warpgroups and asynchronous engines: one launch per case, all buffers compared.

Each batch of cases runs in a process of its own. An instruction that the GPU refuses at run time takes the CUDA context of
its process along, so the rest of the batch then goes on in a new one; batches side by side also share the assembling.
"""

import concurrent.futures
import json
import math
import multiprocessing
import os
import re
import struct

from driver import CudaError, Driver, load_entries, newest_version, split
from results import number, verdict

BATCH = 48
LOAD_SECONDS = 120
CASE_SECONDS = 20
# How the driver names what a tensor copy with bad coordinates does.
ILLEGAL = "CUDA_ERROR_ILLEGAL_INSTRUCTION"


def part(data, place):
    return data[place["offset"]:place["offset"] + place["bytes"]]


def numbers(data, place):
    return struct.unpack(f"<{place['bytes'] // 8}d", part(data, place))


def execute(driver, function, case, data):
    """The outputs of one launch, in order."""
    arguments, outputs, buffers = [], [], []
    for parameter in case["parameters"]:
        if "map" in parameter:
            arguments.append(driver.encode(arguments[parameter["map"]["buffer"]], parameter["map"]))
            continue
        initial = part(data, parameter["initial"])
        address = driver.allocate(len(initial))
        buffers.append(address)
        driver.upload(address, initial)
        arguments.append(address.value)
        if "expected" in parameter:
            outputs.append((address, len(initial)))
    driver.launch(function, case["grid"], case["block"], arguments)
    results = [driver.download(address, size) for address, size in outputs]
    for address in buffers:
        driver.call("cuMemFree_v2", address)
    return results


def work(connection, directory, cases):
    """Runs cases and sends each result; ends at the first that the driver reports as failed."""
    try:
        driver = Driver()
        text = (directory / "engines.ptx").read_text()
        data = (directory / "engines.bin").read_bytes()
        version = newest_version(driver.version)
        head, entries = split(re.sub(r"^\.version \S+", f".version {version}", text, count=1))
        names = sorted({case["entry"] for case in cases})
        functions = load_entries(driver, head + "".join(entries[name] for name in names), names)
        connection.send(("ready", None))
        for case in cases:
            function = functions[case["entry"]]
            if isinstance(function, CudaError):
                complaint = next((line for line in str(function).splitlines() if "error" in line), str(function))
                connection.send(("refused", complaint))
                continue
            connection.send(("done", execute(driver, function, case, data)))
    except CudaError as error:
        connection.send(("failed", str(error)))
    except EOFError:
        pass


def run_batch(directory, cases):
    """A list of (kind, result), one for each case."""
    context = multiprocessing.get_context("spawn")
    results = []
    while len(results) < len(cases):
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, directory, cases[len(results):]), daemon=True)
        process.start()
        theirs.close()
        ready = False
        try:
            while len(results) < len(cases):
                if not ours.poll(CASE_SECONDS if ready else LOAD_SECONDS):
                    results.append(("failed", "no answer: the kernel does not end" if ready else "loading takes too long"))
                    break
                kind, value = ours.recv()
                if kind == "ready":
                    ready = True
                    continue
                if kind == "failed" and not ready:
                    # Nothing can run: no use trying again.
                    results += [(kind, value)] * (len(cases) - len(results))
                    break
                results.append((kind, value))
                if kind == "failed":
                    break
        except EOFError:
            results.append(("failed", "the process ended"))
        process.kill()
        process.join()
    return results


def elements(data, name):
    code = "H" if name == "f16" else "I"
    return struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)


def compare_exact(case, simulated, silicon):
    """Numbers of different elements and of different NaNs, and the first few."""
    counts = {"different": 0, "nan": 0}
    first = []
    form = {"format": case["format"], "ulps": 0, "absolute": 0}
    for index, (ours, theirs) in enumerate(zip(simulated, silicon)):
        if ours == theirs:
            continue
        for at, (a, b) in enumerate(zip(elements(ours, case["format"]), elements(theirs, case["format"]))):
            if a == b:
                continue
            kind = verdict(a, b, form)
            counts[kind] += 1
            if len(first) < 8:
                first.append({"buffer": index, "element": at, "simulator": hex(a), "gpu": hex(b)})
    return counts, first


def logarithm(value):
    return math.log2(value) if value > 0 else None


def compare_inexact(case, simulated, silicon, data):
    """The largest errors as powers of two of the sum of magnitudes."""
    exact, bound = numbers(data, case["exact"]), numbers(data, case["bound"])
    name = case["format"]
    largest = {"gpu": 0.0, "simulator": 0.0, "between": 0.0}
    mean = {"gpu": 0.0, "simulator": 0.0}
    equal = unequal_overflow = 0
    rows = zip(elements(simulated[0], name), elements(silicon[0], name), exact, bound)
    for a, b, true, scale in rows:
        equal += a == b
        if scale == 0:
            continue
        ours, theirs = number(a, name), number(b, name)
        if not (math.isfinite(ours) and math.isfinite(theirs)):
            unequal_overflow += a != b
            continue
        for who, error in (("simulator", ours - true), ("gpu", theirs - true)):
            largest[who] = max(largest[who], abs(error) / scale)
            # Positive away from zero, so that truncation shows.
            mean[who] += math.copysign(error, error * true) / scale if true else 0.0
        largest["between"] = max(largest["between"], abs(ours - theirs) / scale)
    count = len(exact)
    return {
        "equal": equal / count,
        "unequal_overflow": unequal_overflow,
        "largest_log2": {who: logarithm(value) for who, value in largest.items()},
        "mean_away_from_zero": {who: value / count for who, value in mean.items()},
    }


def probe_rows(case, output, data):
    """For each column, the result in small units by distance."""
    keys = [numbers(data, case[key]) for key in ("base", "unit", "distance", "column")]
    columns = {}
    for bits, base, unit, distance, column in zip(elements(output, case["format"]), *keys):
        if distance >= 0:
            value = number(bits, case["format"])
            columns.setdefault(int(column), {})[int(distance)] = (value - base) / unit
    return [[[distance, by[distance]] for distance in sorted(by)] for _, by in sorted(columns.items())]


def runs(rows):
    """`1.75 to 22, 1.5 at 23, 0 from 26`: what is left of the small product, by distance."""
    groups = []
    for distance, value in rows:
        if groups and groups[-1][2] == value:
            groups[-1][1] = distance
        else:
            groups.append([distance, distance, value])
    shown = [f"{value:g}@{first}" + (f"-{last}" if last > first else "") for first, last, value in groups]
    return " ".join(shown if len(shown) <= 14 else shown[:10] + ["..."] + shown[-3:])


def run(directory, only, show_all, output_directory):
    """Prints what differs and what was measured, and writes both. Gives the numbers of cases."""
    manifest = json.loads((directory / "engines.json").read_text())
    cases = [case for case in manifest["cases"] if only in case["name"]]
    data = (directory / "engines.bin").read_bytes()
    batches = [cases[start:start + BATCH] for start in range(0, len(cases), BATCH)]
    results = []
    with concurrent.futures.ThreadPoolExecutor(max(1, min(8, os.cpu_count() or 1))) as pool:
        for batch in pool.map(lambda batch: run_batch(directory, batch), batches):
            results += batch
    counts = {"cases": len(cases), "run": 0, "wrong": 0, "nan": 0, "refused": 0, "failed": 0}
    report, raw = [], bytearray()
    print(f"\n{'operation, bit for bit':100} {'wrong':>6} {'nan':>6}  first difference")
    for case, (kind, value) in zip(cases, results):
        item = {"name": case["name"], "class": case["class"], "result": kind}
        report.append(item)
        if case["class"] == "illegal" and kind != "refused":
            # The kernel has to be stopped, and for this reason.
            item["complaint"] = value if kind == "failed" else None
            stopped = kind == "failed" and ILLEGAL in value
            counts["run"] += 1
            counts["wrong"] += not stopped
            if show_all or not stopped:
                shown = f"{kind}: {value}" if kind == "failed" else "runs on the GPU, is refused by the simulator"
                print(f"{case['name']:100} {int(not stopped):>6} {'-':>6}  {shown}")
            continue
        if case["class"] == "open" and kind == "failed":
            counts["run"] += 1
            item["complaint"] = value
            continue
        if kind != "done":
            counts[kind] += 1
            item["complaint"] = value
            print(f"{case['name']:100} {'-':>6} {'-':>6}  {kind}: {value}")
            continue
        counts["run"] += 1
        simulated = [part(data, parameter["expected"]) for parameter in case["parameters"] if "expected" in parameter]
        if simulated != value:
            # What silicon gave, for whoever wants to look closer.
            item["gpu_bytes"] = [{"offset": len(raw), "bytes": sum(map(len, value))}]
            raw += b"".join(value)
        different, first = compare_exact(case, simulated, value)
        item.update(different, first=first)
        if case["class"] == "open":
            item["refused"] = case["refused"]
        else:
            counts["wrong"] += different["different"] > 0
            counts["nan"] += different["nan"] > 0
            if first or show_all:
                text = ""
                if first:
                    text = "buffer {buffer}, element {element}: simulator {simulator}, GPU {gpu}".format(**first[0])
                print(f"{case['name']:100} {different['different']:>6} {different['nan']:>6}  {text}")
        if case["class"] == "inexact":
            item.update(compare_inexact(case, simulated, value, data))
        elif case["class"] == "probe":
            item["group"] = case["group"]
            item["columns"] = dict(zip(case["columns"], probe_rows(case, value[0], data)))
            item["simulator"] = dict(zip(case["columns"], probe_rows(case, simulated[0], data)))
    print_measurements(report)
    print_probes(report)
    print_open(report)
    output_directory.mkdir(parents=True, exist_ok=True)
    (output_directory / "engines_results.json").write_text(json.dumps({"counts": counts, "cases": report}))
    (output_directory / "engines_gpu.bin").write_bytes(bytes(raw))
    return counts


def print_measurements(report):
    measured = [item for item in report if item["class"] == "inexact" and item["result"] == "done"]
    if not measured:
        return
    print("\nlargest error as log2 of its share of sum |a b| + |c|; mean error away from zero, the same")
    print(f"{'product of random floats':100} {'equal':>6} {'GPU':>7} {'simul.':>7} {'between':>7}  mean GPU")
    for item in measured:
        largest = ["exact" if value is None else f"{value:.1f}" for value in item["largest_log2"].values()]
        mean = item["mean_away_from_zero"]["gpu"]
        shown = "0" if mean == 0 else f"{'-' if mean < 0 else '+'}2^{math.log2(abs(mean)):.1f}"
        unequal = item["unequal_overflow"]
        overflow = f", {unequal} overflows differ" if unequal else ""
        print(f"{item['name']:100} {item['equal']:>6.1%} {largest[0]:>7} {largest[1]:>7} {largest[2]:>7}  {shown}{overflow}")


def print_open(report):
    """What is not known, and counts as neither right nor wrong."""
    cases = [item for item in report if item["class"] == "open" and item["result"] != "refused"]
    if cases:
        print("\nopen questions: what silicon does, beside the simulator")
    for item in cases:
        if item["result"] == "failed":
            text = item["complaint"]
        elif item["refused"]:
            text = f"refused by the simulator, runs on the GPU and changes {item['different']} elements"
        else:
            text = f"{item['different']} elements differ, and the payload of {item['nan']} NaNs"
            if item["first"]:
                text += ": element {element}: simulator {simulator}, GPU {gpu}".format(**item["first"][0])
        print(f"{item['name']:100} {text}")


def print_probes(report):
    """One table for each group; of its variants, those that differ from the first."""
    groups = {}
    for item in report:
        if item["class"] == "probe" and item["result"] == "done":
            groups.setdefault(item["group"], []).append(item)
    if groups:
        print("\nprobes: units of s left in the sum (value@distances of s below L, in powers of two); [places in K of L, -L, s]")
    for group, variants in groups.items():
        print(group)
        seen = {}
        for item in variants:
            places = item["name"][len(group):].strip()
            for column, rows in item["columns"].items():
                shown = runs(rows)
                if shown not in seen.setdefault(column, {}):
                    seen[column][shown] = []
                seen[column][shown].append(places)
        for column, results in seen.items():
            for shown, places in results.items():
                where = "" if len(results) == 1 else f"  [{' '.join(places)}]"
                print(f"    {column:18} {shown}{where}")
