//! A driver on the simulator: a node of GPUs in this process, one [`SimulatedDevice`] for each rank.
//!
//! The ranks' threads share the node. A launch or a stream-ordered copy only queues work; it runs when ranks
//! synchronise. See [`SimulatedNode`] for when that is.

mod device;
mod gate;
mod objects;
mod ranks;

pub use device::SimulatedDevice;
pub use simulator::node::{Counters, NodeConfig};
pub use simulator::timeline::Timeline;
pub use simulator::trace::Event;

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use simulator::node::{GpuId, ModuleId, Node};

use super::DriverError;
use gate::Gate;
use objects::Objects;
pub use objects::Outstanding;

/// Time without any call after which a waiting rank no longer waits for the others before it has the node run.
const PATIENCE: Duration = Duration::from_millis(200);

/// A simulated node, shared by the threads of its ranks.
///
/// **When the node runs.** A rank that synchronises a stream waits until every live rank waits in a synchronisation
/// too; the last to arrive has the node run. What runs together is then the same in every repetition, so that a run is
/// determined by the seed of the configuration. A rank is live from [`Self::device`] until its device is dropped, also
/// by a panic; so make all devices before the threads start. If no rank makes any call for 200 ms, the node runs with
/// what is queued.
///
/// If the node can go no further, every live rank waits and none of them got what it waits for, each gets
/// [`DriverError::Deadlock`]. If a kernel faults, every waiting rank and every later call gets [`DriverError::Fault`].
#[derive(Clone)]
pub struct SimulatedNode {
    shared: Arc<Shared>,
}

struct Shared {
    config: NodeConfig,
    state: Mutex<State>,
    /// Signalled when a waiter got its verdict and when a device went away.
    changed: Condvar,
}

struct State {
    node: Node,
    gate: Gate,
    objects: Objects,
    /// Modules by their text: every rank loads the same.
    modules: HashMap<String, ModuleId>,
    /// Kernels handed out; a kernel handle is an index.
    kernels: Vec<(ModuleId, String)>,
    /// Streams handed out on each GPU, the default stream included.
    streams: Vec<u32>,
    /// The fault that stopped the node.
    fault: Option<String>,
    last_call: Instant,
    /// Whether work was queued since the node last ran.
    queued: bool,
}

impl SimulatedNode {
    /// A node that nothing has run on.
    pub fn new(config: NodeConfig) -> Self {
        let state = State {
            gate: Gate::default(),
            objects: Objects::default(),
            modules: HashMap::new(),
            kernels: vec![],
            streams: vec![1; config.gpus as usize],
            fault: None,
            last_call: Instant::now(),
            queued: false,
            node: Node::new(config.clone()),
        };
        Self { shared: Arc::new(Shared { config, state: Mutex::new(state), changed: Condvar::new() }) }
    }

    /// The device of a rank, which is live from now on.
    pub fn device(&self, rank: u32) -> Result<SimulatedDevice, DriverError> {
        let gpus = self.shared.config.gpus;
        if rank >= gpus {
            return Err(DriverError::call("device", rank, format!("the node has {gpus} devices, 0 to {}", gpus - 1)));
        }
        Ok(SimulatedDevice::new(Arc::clone(&self.shared), rank))
    }

    /// One device for each rank.
    pub fn devices(&self) -> Vec<SimulatedDevice> {
        (0..self.shared.config.gpus).map(|rank| SimulatedDevice::new(Arc::clone(&self.shared), rank)).collect()
    }

    /// What a rank's GPU did since the node was made or the counters were last reset.
    pub fn counters(&self, rank: u32) -> Counters {
        self.shared.lock().node.counters(GpuId(rank))
    }

    /// Sets the counters of every GPU to zero.
    pub fn reset_counters(&self) {
        self.shared.lock().node.reset_counters();
    }

    /// Tells `observer` of everything that the node does from now on, in place of an earlier observer. It must not call
    /// the node or its devices, which wait for it.
    pub fn observe(&self, observer: impl FnMut(&Event<'_>) + Send + 'static) {
        self.shared.lock().node.observe(observer);
    }

    /// What the devices handed out and did not get back.
    pub fn outstanding(&self) -> Outstanding {
        self.shared.lock().objects.outstanding()
    }
}

impl Shared {
    /// A thread that panicked with the lock held did so inside the simulator; nothing can be relied on after that.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            let mut state = poisoned.into_inner();
            state.fault.get_or_insert_with(|| "the simulator panicked".to_owned());
            state
        })
    }
}
