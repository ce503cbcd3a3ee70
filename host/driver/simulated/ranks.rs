//! One thread for each rank of a node.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use super::SimulatedNode;
use crate::driver::Device;
use crate::symmetric::ThreadRendezvous;

impl SimulatedNode {
    /// Runs `body` on a thread for each rank, with the rank's device and its end of a rendezvous, and returns the
    /// results by rank. All devices are made before the first thread starts, so that the node runs only when all wait.
    ///
    /// A panic of `body` takes its rank out of the node and of the rendezvous, so that the others end with an error; it
    /// goes on in the caller when all have ended.
    pub fn run_ranks<T: Send>(&self, body: impl Fn(Arc<dyn Device>, ThreadRendezvous) -> T + Sync) -> Vec<T> {
        let devices = self.devices();
        let ends = ThreadRendezvous::group(devices.len() as u32);
        let body = &body;
        let results: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = devices
                .into_iter()
                .zip(ends)
                .map(|(device, end)| scope.spawn(move || body(Arc::new(device), end)))
                .collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }
}
