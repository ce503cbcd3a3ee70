//! What `gemm-rs-ar plan` prints and how it exits.

#![allow(missing_docs)]

use std::process::{Command, Output};

/// Runs with words separated by spaces.
fn run(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gemm-rs-ar"))
        .arg("plan")
        .args(arguments.split_whitespace())
        .output()
        .expect("the binary starts")
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
fn candidates_and_the_choice_are_shown() {
    let output = run("--m 1024 --n 7168 --k 1536 --ranks 8 --mode reduce-scatter --dtype bf16 --sms 148");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "\
modelled for a B200's rates, best total first; times in us

kernel                     tiles  CTAs  waves  full   tensor   memory     GEMM     link    total  bound
  gemm_bf16_pair_128x128     448   148      4   76%     13.2     18.7     18.7     16.3     27.5  L2 to SM
* gemm_bf16_pair_128x224     256   148      2   86%     11.6     11.7     11.7     16.3     29.1  link
  gemm_bf16_pair_128x256     224   148      2   76%     13.2     12.5     13.2     16.3     30.0  link
  gemm_bf16_128x128          448   148      4   76%     13.2     25.0     25.0     16.3     31.1  L2 to SM
  gemm_bf16_128x224          256   148      2   86%     11.6     17.2     17.2     16.3     31.3  L2 to SM
  gemm_bf16_128x256          224   148      2   76%     13.2     18.7     18.7     16.3     32.2  L2 to SM

* gemm_bf16_pair_128x224: 256 tiles on 148 CTAs in 2 waves (86 % full); modelled 29.1 us = GEMM 11.7 and link 16.3 \
overlapped, fill and tails; most of it link
  (of the totals within 10 % of the least, the one with the least time without the link)
"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn json_is_one_object_with_the_times_marked() {
    let output = run("--m 16 --n 7168 --k 768 --mode ar --dtype mxfp8 --sms 132 --sm-margin 4 --json");
    let given: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(given["evidence"], "modelled");
    assert_eq!(given["choice"], "gemm_mxfp8_swapped_32x128");
    let candidates = given["candidates"].as_array().expect("an array");
    assert_eq!(candidates.len(), 8);
    let totals: Vec<f64> =
        candidates.iter().map(|candidate| candidate["modelled_ns"]["total"].as_f64().unwrap()).collect();
    assert!(totals.is_sorted() && totals[0] > 0.0, "{totals:?}");
    for candidate in candidates {
        assert!(candidate["ctas"].as_u64().unwrap() <= 128, "{candidate}");
    }
    assert!(given["reason"].as_str().unwrap().starts_with("gemm_mxfp8_swapped_32x128: 56 tiles on 56 CTAs"));
}

#[test]
fn what_no_kernel_runs_is_refused() {
    refused("--m 0 --n 7168 --k 768", "error: given M = 0, wanted 1 to");
    refused("--m 1 --n 7100 --k 768", "given N = 7100, wanted a multiple of 128");
    refused("--m 1 --n 7168 --k 64 --dtype mxfp8", "given K = 64, wanted a multiple of 128");
    refused("--m 1 --n 7168 --k 768 --ranks 17", "given 17 ranks, wanted 2 to 16");
    refused("--m 1 --n 7168 --k 768 --sms 8 --sm-margin 8", "no SM is left");
    refused("--m 1 --n 7168 --k 768 --dtype fp4", "invalid value 'fp4'");
    refused("--n 7168 --k 768", "--m <ROWS>");
}
