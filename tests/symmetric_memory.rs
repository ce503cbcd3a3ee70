//! Setting up a workspace: what every rank ends up with, and what is left when any call of any rank fails.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::device::ScriptedDevice;
use common::rank::node;
use gemm_rs_ar::driver::simulated::Outstanding;
use gemm_rs_ar::driver::{Device, DriverError};
use gemm_rs_ar::symmetric::{Rendezvous, RendezvousError, Step, SymmetricError, SymmetricMemory, ThreadRendezvous};
use gemm_rs_ar::{GemmRsAr, GemmRsArConfig, GemmRsArError};

const RANKS: u32 = 3;

/// More calls than a rank makes to set up a workspace.
const CALLS: u32 = 64;

#[test]
fn every_rank_reaches_every_other_and_the_part_asked_for_is_zero() {
    let node = node(RANKS, 0);
    let results = node.run_ranks(|device, rendezvous| {
        let memory = SymmetricMemory::allocate(&device, &rendezvous, 4096, 1024..4096).unwrap();
        let rank = rendezvous.rank();
        let mut zero = vec![0xffu8; 3072];
        // SAFETY: mapped memory, with nothing running.
        unsafe {
            device.copy_to_host(&mut zero, memory.own() + 1024).unwrap();
            for peer in 0..RANKS {
                let word = [rank as u8, peer as u8, 0xab, 0xcd];
                device.copy_to_device(memory.of_rank(peer).unwrap() + u64::from(rank) * 4, &word).unwrap();
            }
        }
        rendezvous.barrier().unwrap();
        let mut words = vec![0; 4 * RANKS as usize];
        // SAFETY: as above; the barrier is after all writes.
        unsafe { device.copy_to_host(&mut words, memory.own()).unwrap() };
        rendezvous.barrier().unwrap();
        assert_eq!(memory.of_rank(RANKS), None);
        assert_eq!(memory.of_rank(rank), Some(memory.own()));
        assert_ne!(memory.multicast(), memory.own());
        (zero, words)
    });
    for (rank, (zero, words)) in (0..).zip(results) {
        assert!(zero.iter().all(|&byte| byte == 0));
        let wanted: Vec<u8> = (0..RANKS as u8).flat_map(|source| [source, rank, 0xab, 0xcd]).collect();
        assert_eq!(words, wanted);
    }
    assert_eq!(node.outstanding(), Outstanding::default());
}

/// Sets up a workspace with one rank's device failing at one call.
fn set_up(failing_rank: u32, call: u32) -> (Vec<Result<(), GemmRsArError>>, Outstanding) {
    let node = node(RANKS, 0);
    let results = node.run_ranks(|device, rendezvous| {
        let device: Arc<dyn Device> = match rendezvous.rank() == failing_rank {
            true => Arc::new(ScriptedDevice::failing_at(device, call)),
            false => device,
        };
        GemmRsAr::new(device, &rendezvous, GemmRsArConfig::new(64, 128)).map(drop)
    });
    (results, node.outstanding())
}

#[test]
fn a_failure_of_any_call_fails_every_rank_and_leaves_nothing() {
    for failing_rank in 0..RANKS {
        let mut steps = vec![];
        for call in 0..CALLS {
            let (results, outstanding) = set_up(failing_rank, call);
            assert_eq!(outstanding, Outstanding::default(), "rank {failing_rank}, call {call}");
            if results.iter().all(Result::is_ok) {
                break;
            }
            let mut failed_step = None;
            for (rank, result) in (0..).zip(results) {
                match result {
                    Err(GemmRsArError::Symmetric(SymmetricError::Failed { step, source })) => {
                        assert_eq!(rank, failing_rank, "call {call}: {source}");
                        assert!(matches!(&source, DriverError::Call { reason, .. } if reason == "scripted failure"));
                        failed_step = Some(step);
                    }
                    Err(GemmRsArError::Symmetric(SymmetricError::PeerFailed { rank: named, reason, .. })) => {
                        assert_eq!(named, failing_rank);
                        assert!(reason.contains("scripted failure"), "{reason}");
                    }
                    other => panic!("rank {rank}, failing rank {failing_rank}, call {call}: {other:?}"),
                }
            }
            steps.extend(failed_step);
        }
        assert!(steps.len() < CALLS as usize, "some call count leads to success");
        let mut wanted = vec![
            Step::LoadKernels,
            Step::CreateMemory,
            Step::MapPeers,
            Step::CreateMulticast,
            Step::JoinMulticast,
            Step::BindMulticast,
            Step::MapMulticast,
            Step::Initialise,
        ];
        wanted.retain(|&step| failing_rank == 0 || step != Step::CreateMulticast);
        steps.dedup();
        assert_eq!(steps, wanted, "rank {failing_rank}");
    }
}

#[test]
fn the_others_are_told_which_rank_failed_where_and_why() {
    // Behind the module and its kernels.
    let (results, _) = set_up(1, 2 + plan::kernels::KERNELS.len() as u32);
    let texts: Vec<String> = results.into_iter().map(|result| result.unwrap_err().to_string()).collect();
    assert_eq!(texts[1], "this rank failed in creating its memory: create_memory failed on device 1: scripted failure");
    assert_eq!(
        texts[0],
        "rank 1 failed in creating its memory: this rank failed in creating its memory: create_memory failed on device \
         1: scripted failure; this rank released what it had, fix that rank and start again"
    );
    assert_eq!(texts[0], texts[2]);
}

#[test]
fn ranks_that_ask_for_different_capacities_are_told() {
    let node = node(2, 0);
    let results = node.run_ranks(|device, rendezvous| {
        let max_m = 100 + u64::from(rendezvous.rank());
        GemmRsAr::new(device, &rendezvous, GemmRsArConfig::new(max_m, 128)).map(drop)
    });
    let texts: Vec<String> = results.into_iter().map(|result| result.unwrap_err().to_string()).collect();
    assert_eq!(
        texts[0],
        "rank 1 asks for max_m = 101, max_n = 128, min_rows = 128, sm_margin = 0, kernel = chosen for each call and this \
         rank for max_m = 100, max_n = 128, min_rows = 128, sm_margin = 0, kernel = chosen for each call; give every rank the same configuration"
    );
    assert!(texts[1].starts_with("rank 0 asks for max_m = 100"), "{}", texts[1]);
    assert_eq!(node.outstanding(), Outstanding::default());
}

#[test]
fn a_rank_that_leaves_fails_the_others_at_once() {
    let node = node(RANKS, 0);
    let results = node.run_ranks(|device, rendezvous| {
        if rendezvous.rank() == 2 {
            return None;
        }
        Some(GemmRsAr::new(device, &rendezvous, GemmRsArConfig::new(64, 128)).map(drop).unwrap_err())
    });
    for error in results.into_iter().flatten() {
        let GemmRsArError::Symmetric(SymmetricError::Rendezvous { source, .. }) = &error else {
            panic!("{error}");
        };
        match source {
            RendezvousError::PeerLost { lost, .. } => assert_eq!(lost, &[2]),
            RendezvousError::Broken { reason, .. } => assert!(reason.contains("ranks [2] have left"), "{reason}"),
            other => panic!("{other}"),
        }
    }
    assert_eq!(node.outstanding(), Outstanding::default());
}

#[test]
fn a_rank_that_never_comes_is_named_after_the_deadline() {
    let node = node(2, 0);
    let device: Arc<dyn Device> = Arc::new(node.device(0).unwrap());
    let ends = ThreadRendezvous::group_with_deadline(2, Duration::from_millis(20));
    let error = GemmRsAr::new(device, &ends[0], GemmRsArConfig::new(64, 128)).map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the ranks did not meet in comparing the configuration: rank 0 waited 20ms in all-gather and ranks [1] did not \
         arrive; check that they run and make the same calls"
    );
}
