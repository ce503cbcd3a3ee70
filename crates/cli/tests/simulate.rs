//! What `gemm-rs-ar simulate` prints and how it exits.

#![allow(missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_gemm-rs-ar");

/// A file that a test writes.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Runs with words separated by spaces, in the folder of the PTX files.
fn run(arguments: &str) -> Output {
    Command::new(BINARY)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
        .arg("simulate")
        .args(arguments.split_whitespace())
        .output()
        .expect("the binary starts")
}

/// Exit status, standard output and standard error.
#[track_caller]
fn expect(arguments: &str, status: i32, stdout: &str, stderr: &str) {
    let output = run(arguments);
    assert_eq!(String::from_utf8_lossy(&output.stderr), stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), stdout);
    assert_eq!(output.status.code(), Some(status));
}

/// Exit status 2, nothing on standard output, and this text in the message.
#[track_caller]
fn refused(arguments: &str, message: &str) {
    let output = run(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(message), "expected\n  {message}\nin\n  {stderr}");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn a_kernel_runs_and_its_buffers_are_shown() {
    expect(
        "double.ptx --entry double --block 32 --arg buffer:f32:32=iota --arg buffer:f32:32=uninit --head 4",
        0,
        "\
kernel `double` ran to its end, seed 0

GPU 0, buffer 0: f32 x 32, unchanged
  0 1 2 3 …

GPU 0, buffer 1: f32 x 32, 32 changed
  0 2 4 6 …

counter                              GPU 0
warp instructions                       10
lane instructions                      320
global bytes read                      128
global bytes written                   128
global sectors written                   4
NVLink bytes in                          0
NVLink bytes out                         0
TMA bytes                                0
tensor multiply-accumulates              0
waits                                    0
CTAs retired                             1
",
        "",
    );
}

#[test]
fn json_is_one_object() {
    let output = run("double.ptx --entry double --block 1 --arg buffer:f32:2=one --arg buffer:f32:2=uninit --json");
    let given: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let counters = serde_json::json!({
        "warp_instructions": 10, "lane_instructions": 10, "global_bytes_read": 4, "global_bytes_written": 4,
        "global_sectors_written": 1, "nvlink_bytes_in": 0, "nvlink_bytes_out": 0, "tma_bytes": 0,
        "tensor_multiply_accumulates": 0, "waits": 0, "ctas_retired": 1
    });
    let wanted = serde_json::json!({
        "kernel": "double", "seed": 0, "outcome": "ran", "fault": null,
        "gpus": [{ "gpu": 0, "counters": counters, "buffers": [
            { "buffer": 0, "type": "f32", "count": 2, "changed": 0, "never_written": 0, "head": [1, 1] },
            { "buffer": 1, "type": "f32", "count": 2, "changed": 1, "never_written": 1, "head": [2, null] },
        ]}],
    });
    assert_eq!(given, wanted);
}

#[test]
fn a_fault_is_shown_with_its_line() {
    expect(
        "double.ptx --entry double --block 32 --arg buffer:f32:31=iota --arg buffer:f32:32 --head 2",
        1,
        "\
kernel `double` faulted, seed 0

GPU 0, buffer 0: f32 x 31, unchanged
  0 1 …

GPU 0, buffer 1: f32 x 32, unchanged
  0 0 …

counter                              GPU 0
warp instructions                        7
lane instructions                      224
global bytes read                      124
global bytes written                     0
global sectors written                   0
NVLink bytes in                          0
NVLink bytes out                         0
TMA bytes                                0
tensor multiply-accumulates              0
waits                                    0
CTAs retired                             0
",
        "\
fault: kernel `double`, PTX line 17: `ld.global.f32 %f1, [%rd4];`
  GPU 0, CTA (0,0,0), warp 0, lane 31: load of 4 bytes at 0x70000020007c: no memory is mapped there: 4 bytes past the \
end of the 124 bytes mapped at 0x700000200000
",
    );
}

#[test]
fn a_deadlock_says_who_waits() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/copy.ptx")).unwrap();
    let path = scratch("too_many_bytes.ptx");
    fs::write(&path, text.replace("_, [%r2], 128;", "_, [%r2], 256;")).unwrap();
    let output =
        run(&format!("{} --entry copy --block 32 --arg buffer:u32:32=iota --arg buffer:u32:32", path.display()));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "\
deadlock: 1 lane groups wait and nothing can go on
  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: waits for the mbarrier at 0x80 of cluster CTA 0: phase 0 has 0 of 1 \
arrivals and 128 bytes pending
    kernel `copy`, PTX line 27: `mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;`
"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_cannot_run_is_refused() {
    let arguments = "--arg buffer:f32:32 --arg buffer:f32:32";
    for (given, message) in [
        ("none.ptx --entry k --block 1", "error: none.ptx: No such file"),
        (
            "double.ptx --entry double --block 2000",
            "given `2000`, wanted one to three numbers from 1 to 1024, 1024 and 64",
        ),
        ("double.ptx --entry double --block 32,x", "given `32,x`, wanted one to three numbers"),
        (
            "double.ptx --entry double --block 32 --grid 0",
            "given `0`, wanted one to three numbers from 1 to 2147483647",
        ),
        ("double.ptx --entry double --block 32 --gpus 0", "0 is not in 1..=64"),
        ("double.ptx --entry double --block 32 --arg u32:5", "error: kernel `double` takes 2 parameters, given 1"),
        (
            "double.ptx --entry double --block 32 --arg u32:5 --arg u32:5",
            "error: parameter 0 (`in`) of kernel `double` has 8 bytes, given 4",
        ),
        ("double.ptx --entry double --block 32 --arg u32:-5", "given `-5`, wanted a value of type u32"),
        (
            "double.ptx --entry double --block 32 --arg pointer:0 --arg pointer:1 --buffer buffer:u8:4",
            "error: given buffer 1, wanted one of the 1 buffers that --buffer and --arg make, counted from 0",
        ),
        (
            "double.ptx --entry double --block 32 --arg buffer:f32:999999999999 --arg u64:0",
            "error: given a buffer of 3999999999996 bytes, wanted 1 to 2147483648, what a simulated GPU has",
        ),
        (
            "double.ptx --entry double --block 32 --arg file:double.ptx:f64 --arg u64:0",
            "error: double.ptx: given 499 bytes, wanted a multiple of 8",
        ),
        (
            "double.ptx --entry double --block 32 --arg peer:3:0 --arg u64:0 --buffer buffer:u8:4",
            "error: given GPU 3, wanted one of the 1 of --gpus, counted from 0",
        ),
        (
            "double.ptx --entry double --block 32 --arg tensormap:0:dims=5x4:box=4x4 --arg u64:0 --buffer buffer:u8:64",
            "error: tensor map of buffer 0: ",
        ),
    ] {
        refused(given, message);
    }
    for (given, message) in [
        ("--entry twice", "error: the module has no kernel `twice`; it has: double"),
        ("--entry double --trace warp=0:0:1", "error: trace: given warp 1, wanted less than 1"),
        (
            "--entry double --trace warp=0:0,1,0:0",
            "error: trace: given CTA [0, 1, 0], wanted less than [1, 1, 1] in each axis",
        ),
        ("--entry double --trace lane=0", "given `lane=0`, wanted warp=GPU:CTA:WARP or barrier=GPU:CTA:ADDRESS"),
        ("--entry double --dump 2=out.bin", "error: given buffer 2, wanted one of the 2 buffers"),
    ] {
        refused(&format!("double.ptx --block 32 {arguments} {given}"), message);
    }
}

#[test]
fn text_that_does_not_load_is_quoted() {
    let path = scratch("unknown.ptx");
    fs::write(&path, ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n    frobnicate;\n}\n")
        .unwrap();
    let output = run(&format!("{} --entry k --block 1", path.display()));
    let message = String::from_utf8_lossy(&output.stderr).replace(path.to_str().unwrap(), "unknown.ptx");
    assert_eq!(
        message,
        "\
error: unknown.ptx: unknown instruction `frobnicate`
 --> 6:5
  |
6 |     frobnicate;
  |     ^^^^^^^^^^
"
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_trace_follows_a_warp() {
    let output = run("double.ptx --entry double --block 2 --arg buffer:f32:2 --arg buffer:f32:2 --trace warp=0:0:0");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "    time  what                  event
       2  warp 0:0:0            pc    0  line   11  lanes 00000003  ld.param.u64 %rd1, [in];
       3  warp 0:0:0            pc    1  line   12  lanes 00000003  ld.param.u64 %rd2, [out];
       4  warp 0:0:0            pc    2  line   13  lanes 00000003  mov.u32 %r1, %tid.x;
       5  warp 0:0:0            pc    3  line   14  lanes 00000003  mul.wide.u32 %rd3, %r1, 4;
       6  warp 0:0:0            pc    4  line   15  lanes 00000003  add.u64 %rd4, %rd1, %rd3;
       7  warp 0:0:0            pc    5  line   16  lanes 00000003  add.u64 %rd5, %rd2, %rd3;
       8  warp 0:0:0            pc    6  line   17  lanes 00000003  ld.global.f32 %f1, [%rd4];
       9  warp 0:0:0            pc    7  line   18  lanes 00000003  add.f32 %f1, %f1, %f1;
      10  warp 0:0:0            pc    8  line   19  lanes 00000003  st.global.f32 [%rd5], %f1;
      11  warp 0:0:0            pc    9  line   20  lanes 00000003  exit;
"
    );
}

#[test]
fn a_trace_follows_an_mbarrier() {
    let path = scratch("barrier.txt");
    let given =
        "copy.ptx --entry copy --block 32 --arg buffer:u32:32=iota --arg buffer:u32:32 --trace barrier=0:0:0x80";
    let output = run(&format!("{given} --trace-file {}", path.display()));
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "    time  what                  event
       9  barrier 0:0:0x80      initialised for 1 arrivals; phase 0: 1 of 1 arrivals and 0 bytes pending; by warp 0:0:0 \
line 20 mbarrier.init.shared.b64
      11  barrier 0:0:0x80      1 arrived, 128 bytes expected; phase 0: 0 of 1 arrivals and 128 bytes pending; by warp \
0:0:0 line 22 mbarrier.arrive.expect_tx.shared.b64
      14  barrier 0:0:0x80      warp 0 lanes ffffffff waits in phase 0
      65  barrier 0:0:0x80      128 bytes came; phase 0: 0 of 1 arrivals and 0 bytes pending; completion of warp 0:0:0 \
line 23 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes
      65  barrier 0:0:0x80      phase 0 (parity 0) is complete, phase 1 begins
      65  barrier 0:0:0x80      warp 0 lanes ffffffff looks again
"
    );
}

#[test]
fn asynchronous_copies_are_traced_and_drawn() {
    let (text, picture) = (scratch("async.txt"), scratch("async.svg"));
    let given = "async_copy.ptx --entry copy --block 32 --arg buffer:u32:32=iota --arg buffer:u32:32 --trace warp=0:0:0 \
                 --trace barrier=0:0:0x80";
    let output = run(&format!("{given} --trace-file {} --timeline {}", text.display(), picture.display()));
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let text = fs::read_to_string(&text).unwrap();
    for line in [
        "operation 0, asynchronous copies of 128 bytes of line 27: issued",
        "operation 0, asynchronous copies of 128 bytes of line 27: complete",
        "1 arrived; phase 0: 31 of 32 arrivals and 0 bytes pending; completion of warp 0:0:0 line 27 cp.async.ca.shared.global",
        "phase 0 (parity 0) is complete, phase 1 begins",
    ] {
        assert!(text.contains(line), "the trace lacks `{line}`:\n{text}");
    }
    assert!(fs::read_to_string(&picture).unwrap().contains("cp.async, issue to wait"));
}

#[test]
fn buffers_are_written_to_files_and_read_from_them() {
    let path = scratch("doubled.bin");
    let given = "double.ptx --entry double --block 4 --arg buffer:f32:4=iota --arg buffer:f32:4";
    assert_eq!(run(&format!("{given} --dump 1={}", path.display())).status.code(), Some(0));
    let doubled: Vec<u8> = [0.0_f32, 2.0, 4.0, 6.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(fs::read(&path).unwrap(), doubled);
    let given = format!("double.ptx --entry double --block 4 --arg file:{}:f32 --arg buffer:f32:4", path.display());
    let output = run(&given);
    assert!(String::from_utf8_lossy(&output.stdout).contains("buffer 1: f32 x 4, 3 changed\n  0 4 8 12\n"));
}

#[test]
fn multicast_and_peer_addresses_reach_every_gpu() {
    let output = run("exchange.ptx --entry exchange --gpus 2 --block 1 --buffer buffer:f32:4=one \
                      --buffer buffer:u32:4 --arg multicast:0 --arg peer:0:1+4 --arg struct:rank,gpus --arg buffer:f32:1");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("GPU 0, buffer 2: f32 x 1, 1 changed\n  2\n"), "{stdout}");
    assert!(stdout.contains("GPU 1, buffer 2: f32 x 1, 1 changed\n  2\n"), "{stdout}");
    // Each GPU has written its rank and the number of GPUs behind its place in GPU 0's buffer.
    assert!(stdout.contains("GPU 0, buffer 1: u32 x 4, 2 changed\n  0 2 3 0\n"), "{stdout}");
}

/// The documentation's commands, with this binary and a folder for their output.
#[test]
fn the_documented_commands_work() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("docs/simulator.md")).unwrap();
    let commands: Vec<&str> = text.split("```sh\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    let mut ran = 0;
    for command in commands.iter().filter(|command| command.contains("gemm-rs-ar-cli")) {
        let command = command
            .replace("target/", &format!("{}/", env!("CARGO_TARGET_TMPDIR")))
            .replace("cargo run --release -p gemm-rs-ar-cli --", BINARY);
        let output = Command::new("sh").current_dir(&root).args(["-ec", &command]).output().expect("a shell");
        assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
        ran += 1;
    }
    assert_eq!(ran, 3);
    let picture = fs::read_to_string(scratch("timeline.svg")).unwrap();
    for text in [
        "says nothing about speed",
        "GPU 1, CTA 1",
        "TMA load",
        "MMA, issue",
        "tcgen05.ld",
        "multimem",
        "communication",
    ] {
        assert!(picture.contains(text), "the picture lacks `{text}`");
    }
}
