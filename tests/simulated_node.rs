//! When the ranks of a simulated node run, and what they are told when they cannot.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::operands::{Problem, shard};
use common::rank::{Gaps, MODES, node, on_each_rank};
use gemm_rs_ar::driver::simulated::Counters;
use gemm_rs_ar::driver::{Device, DeviceBuffer, DriverError, RowCopy, Stream};
use gemm_rs_ar::symmetric::Rendezvous;
use gemm_rs_ar::{DeviceMatrix, Input, Mode, Output, Projection};
use half::bf16;

const CAPACITY: [u64; 2] = [64, 128];

#[test]
fn a_seed_determines_a_run() {
    let problem = Problem::random([64, 128, 64], 3, 5);
    let run = |seed| {
        let node = node(3, seed);
        let results = on_each_rank(&node, CAPACITY, |rank| MODES.map(|mode| rank.run(&problem, mode)));
        let counters: Vec<Counters> = (0..3).map(|rank| node.counters(rank)).collect();
        (results, counters)
    };
    assert_eq!(run(1), run(1));
    let (_, counters) = run(1);
    assert!(counters.iter().all(|counters| counters.warp_instructions > 0 && counters.tensor_macs > 0));
}

#[test]
fn ranks_that_all_wait_in_vain_are_told_of_the_deadlock() {
    let problem = Problem::random([64, 128, 64], 2, 5);
    let started = Instant::now();
    let results = on_each_rank(&node(2, 0), CAPACITY, |rank| {
        // Rank 1 makes no call and then waits for nothing, so that rank 0 waits for its part in vain.
        if rank.rank == 1 {
            return rank.device.synchronize(Stream::DEFAULT);
        }
        let _pending = rank.enqueue(&problem, Mode::AllReduce, Gaps::default()).unwrap();
        rank.device.synchronize(Stream::DEFAULT)
    });
    assert_eq!(results[1], Ok(()));
    assert!(matches!(results[0], Err(DriverError::Deadlock { device: 0, .. })), "{:?}", results[0]);
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_rank_that_panics_does_not_strand_the_others() {
    let problem = Problem::random([64, 128, 64], 3, 5);
    let results = Mutex::new(vec![]);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        on_each_rank(&node(3, 0), CAPACITY, |rank| {
            assert_ne!(rank.rank, 1, "scripted panic");
            let _pending = rank.enqueue(&problem, Mode::AllReduce, Gaps::default()).unwrap();
            let result = rank.device.synchronize(Stream::DEFAULT);
            results.lock().unwrap().push(result);
        });
    }));
    assert!(panicked.is_err());
    let results = results.into_inner().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        assert!(matches!(result, Err(DriverError::Deadlock { .. })), "{result:?}");
    }
}

#[test]
fn a_fault_is_told_to_every_rank_and_stops_the_node() {
    const NOWHERE: u64 = 0x1000;
    let problem = Problem::random([64, 128, 64], 2, 5);
    let results = on_each_rank(&node(2, 0), CAPACITY, |rank| {
        let buffer = |elements: Vec<bf16>| {
            DeviceBuffer::from_bytes(Arc::clone(&rank.device), bytemuck::cast_slice(&elements)).unwrap()
        };
        let x = buffer(shard(&problem.x, problem.k(), 64, rank.rank, 64));
        let weight = buffer(shard(&problem.weight, problem.k(), 64, rank.rank, 64));
        let projection = Projection::new(DeviceMatrix::bf16(weight.address(), 128, 64));
        let input = Input::new(DeviceMatrix::bf16(x.address(), 64, 64));
        let output = Output { y: DeviceMatrix::bf16(NOWHERE, 32, 128) };
        // SAFETY: the simulator checks every access, which is what is tested.
        unsafe { rank.gemm.apply(Mode::ReduceScatter, &projection, &input, &output, Stream::DEFAULT).unwrap() };
        let first = rank.device.synchronize(Stream::DEFAULT);
        (first, rank.device.create_stream().map(drop))
    });
    for (first, later) in results {
        assert!(matches!(first, Err(DriverError::Fault { .. })), "{first:?}");
        assert!(matches!(later, Err(DriverError::Fault { .. })), "{later:?}");
    }
}

#[test]
fn a_rank_that_is_gone_is_not_waited_for() {
    let results = node(3, 0).run_ranks(|device, rendezvous| {
        if rendezvous.rank() == 2 {
            return Ok(());
        }
        let stream = device.create_stream()?;
        copy_something(&device, stream)?;
        device.synchronize(stream)
    });
    assert_eq!(results, [Ok(()), Ok(()), Ok(())]);
}

#[test]
fn a_rank_that_works_elsewhere_is_not_waited_for_without_end() {
    let node = node(2, 0);
    let device: Arc<dyn Device> = Arc::new(node.device(0).unwrap());
    let _idle = node.device(1).unwrap();
    copy_something(&device, Stream::DEFAULT).unwrap();
    assert_eq!(device.synchronize(Stream::DEFAULT), Ok(()));
}

#[test]
fn all_ranks_run_together_when_the_last_one_arrives() {
    let problem = Problem::random([20, 128, 64], 2, 5);
    let reference = problem.reference();
    on_each_rank(&node(2, 0), CAPACITY, |rank| {
        for _ in 0..2 {
            let pending = rank.enqueue(&problem, Mode::ReduceScatter, Gaps::default()).unwrap();
            if rank.rank == 1 {
                sleep(Duration::from_millis(20));
            }
            rank.synchronize();
            rank.check_rows(&problem, &reference, Mode::ReduceScatter, &pending.rows());
        }
    });
}

#[test]
fn a_device_that_does_not_exist_is_refused() {
    let error = node(2, 0).device(2).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "device failed on device 2: the node has 2 devices, 0 to 1");
}

/// Enqueues a copy of 64 bytes.
fn copy_something(device: &Arc<dyn Device>, stream: Stream) -> Result<(), DriverError> {
    let source = DeviceBuffer::from_bytes(Arc::clone(device), &[7; 64])?;
    let target = DeviceBuffer::new(Arc::clone(device), 64)?;
    let copy = RowCopy {
        destination: target.address(),
        destination_stride_bytes: 64,
        source: source.address(),
        source_stride_bytes: 64,
        row_bytes: 64,
        rows: 1,
    };
    // SAFETY: both buffers are kept until the copy is done.
    unsafe { device.enqueue_row_copy(stream, copy)? };
    device.synchronize(stream)?;
    // SAFETY: the copy is done.
    assert_eq!(unsafe { target.to_bytes() }?, [7; 64]);
    Ok(())
}
