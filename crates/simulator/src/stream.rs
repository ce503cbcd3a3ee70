//! Streams: in-order queues of launches, copies and fills, and the placing of CTAs on SMs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::cta::{Cluster, ClusterBarrier, Cta};
use crate::fault::Fault;
use crate::launch::{Launch, RESERVED_SHARED_BYTES, SM_CTAS, SM_SHARED_BYTES, SM_THREADS};
use crate::memory::AccessProblem;
use crate::node::{GpuId, LaunchConfig};
use crate::ordering::Foreign;
use crate::program::Kernel;
use crate::scheduler::Node;
use crate::warp::Warp;

/// Bytes that a copy moves at once.
const COPY_PIECE: u64 = 1 << 16;

/// Something that a stream does in its turn.
#[derive(Debug)]
pub(crate) enum Command {
    Launch(Box<PendingKernel>),
    Copy { destination: u64, source: u64, bytes: u64 },
    Fill { destination: u64, byte: u8, bytes: u64 },
}

/// A checked launch that waits for its turn.
#[derive(Debug)]
pub(crate) struct PendingKernel {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) variables: Arc<[u64]>,
    pub(crate) parameters: Vec<u8>,
    pub(crate) config: LaunchConfig,
    pub(crate) shared_bytes: u32,
}

/// One stream of one GPU.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) commands: VecDeque<Command>,
    pub(crate) running: Option<Running>,
}

/// The launch at the head of a stream.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) launch: Arc<Launch>,
    /// CTAs that have not retired.
    pub(crate) live: u32,
    /// What its retired CTAs knew.
    knowledge: Foreign,
}

impl Running {
    pub(crate) fn ctas(&self) -> (u64, u64) {
        let per_cluster: u64 = self.launch.config.cluster.iter().map(|&n| u64::from(n)).product();
        (self.launch.clusters_taken() * per_cluster, self.launch.clusters * per_cluster)
    }
}

impl Node {
    /// Starts whatever can start. True when anything moved.
    pub(crate) fn dispatch(&mut self) -> Result<bool, Fault> {
        let mut moved = false;
        let keys: Vec<_> = self.streams.keys().copied().collect();
        for key in keys {
            moved |= self.dispatch_stream(key)?;
        }
        Ok(moved)
    }

    fn dispatch_stream(&mut self, key: (u32, u32)) -> Result<bool, Fault> {
        let mut moved = false;
        loop {
            let stream = self.streams.get_mut(&key).expect("keys come from the map");
            if let Some(running) = &stream.running {
                if running.launch.clusters_taken() < running.launch.clusters {
                    if !self.start_cluster(key) {
                        return Ok(moved);
                    }
                } else if running.live == 0 && running.launch.operations.load(Ordering::Relaxed) == 0 {
                    // The end of a kernel orders all that it did and knew before the launches behind it.
                    let known = &mut self.machine.launch_knowledge[key.0 as usize];
                    known.join(&running.knowledge);
                    known.forget_before(self.machine.recent.horizon());
                    stream.running = None;
                } else {
                    return Ok(moved);
                }
                moved = true;
                continue;
            }
            let Some(command) = stream.commands.pop_front() else { return Ok(moved) };
            moved = true;
            self.machine.effects += 1;
            match command {
                Command::Launch(pending) => self.begin_launch(key, *pending),
                Command::Copy { destination, source, bytes } => self.copy(key, destination, source, bytes)?,
                Command::Fill { destination, byte, bytes } => self.fill(key, destination, byte, bytes)?,
            }
        }
    }

    fn begin_launch(&mut self, (gpu, stream): (u32, u32), pending: PendingKernel) {
        let PendingKernel { kernel, variables, parameters, config, shared_bytes } = pending;
        let axis = |index: usize| u64::from(config.grid[index] / config.cluster[index]);
        let clusters = axis(0) * axis(1) * axis(2);
        self.launches += 1;
        let launch = Arc::new(Launch {
            id: self.launches,
            gpu,
            stream,
            kernel,
            variables,
            parameters,
            config,
            shared_bytes,
            started: self.machine.now,
            operations: AtomicU32::new(0),
            clusters,
            taken: AtomicU64::new(0),
        });
        let running = Running { launch, live: 0, knowledge: Foreign::default() };
        let oldest = self.streams.values().filter_map(|stream| Some(stream.running.as_ref()?.launch.started)).min();
        self.machine.recent.forget_before(oldest.unwrap_or(self.machine.now));
        self.streams.get_mut(&(gpu, stream)).expect("it has a command").running = Some(running);
    }

    /// Starts the next cluster of a stream's launch; false when no SMs have room for it.
    fn start_cluster(&mut self, key: (u32, u32)) -> bool {
        let running = self.streams[&key].running.as_ref().expect("the caller saw it");
        let launch = running.launch.clone();
        let config = &launch.config;
        let size = config.cluster.iter().product::<u32>() as usize;
        let threads = launch.threads();
        let shared = launch.shared_bytes + RESERVED_SHARED_BYTES;
        let machine = &mut self.machine;
        let sms = &mut machine.sms[key.0 as usize];
        // CTAs of a cluster go to different SMs, the emptiest first.
        let mut chosen: Vec<usize> = (0..sms.len())
            .filter(|&sm| {
                let sm = &sms[sm];
                sm.ctas < SM_CTAS && sm.threads + threads <= SM_THREADS && sm.shared_bytes + shared <= SM_SHARED_BYTES
            })
            .collect();
        if chosen.len() < size {
            return false;
        }
        chosen.sort_by_key(|&sm| (sms[sm].ctas, sms[sm].shared_bytes));
        chosen.truncate(size);
        let Some(number) = launch.take_cluster() else { return false };
        let index = launch.cluster_index(number);
        let cluster = machine.clusters.insert(Box::new(Cluster {
            ctas: Vec::with_capacity(size),
            live: size as u32,
            uid: machine.next_cta + 1,
            index,
            mbarriers: 0,
            barrier: ClusterBarrier::default(),
            released: Default::default(),
        }));
        machine.recent.started(machine.next_cta + 1);
        let known = machine.launch_knowledge[key.0 as usize].clone();
        for (rank, sm) in chosen.into_iter().enumerate() {
            let rank = rank as u32;
            let [width, height, _] = config.cluster;
            let within = [rank % width, rank / width % height, rank / width / height];
            let cta_index = std::array::from_fn(|axis| index[axis] * config.cluster[axis] + within[axis]);
            let state = &mut machine.sms[key.0 as usize][sm];
            state.ctas += 1;
            state.threads += threads;
            state.shared_bytes += shared;
            machine.next_cta += 1;
            let (uid, now) = (machine.next_cta, machine.now);
            let rules = machine.config.rules;
            let mut cta = Cta::new(launch.clone(), uid, key.0, sm as u32, cta_index, cluster, rank, now, rules);
            cta.orders.iter_mut().for_each(|order| order.known.foreign = known.clone());
            let lives = cta.warp_live.clone();
            let slot = machine.ctas.insert(Box::new(cta));
            for (warp, live) in lives.into_iter().enumerate() {
                let warp = self.warps.insert(Box::new(Warp::new(slot, rank, warp as u32, live, launch.clone())));
                self.warps.get_mut(warp).slot = warp;
                machine.cta_mut(slot).warp_slots.push(warp);
                self.runnable.push((warp, 0));
            }
            machine.clusters.get_mut(cluster).ctas.push(slot);
        }
        machine.effects += 1;
        let running = self.streams.get_mut(&key).and_then(|stream| stream.running.as_mut()).expect("seen above");
        running.live += size as u32;
        true
    }

    /// Gives back what retired CTAs held.
    pub(crate) fn retire_ctas(&mut self) {
        while let Some(slot) = self.machine.retired.pop() {
            let machine = &mut self.machine;
            let cta = machine.ctas.get_mut(slot);
            let (gpu, sm, uid, cluster) = (cta.gpu as usize, cta.sm as usize, cta.uid, cta.cluster);
            let launch = cta.launch.clone();
            let orders = std::mem::take(&mut cta.orders);
            let cluster_uid = machine.clusters.get(cluster).uid;
            // Exited CTAs of a cluster stay as tombstones until the last has gone; their memory is not needed.
            cta.pipes.clear();
            let state = &mut machine.sms[gpu][sm];
            state.ctas -= 1;
            state.threads -= launch.threads();
            state.shared_bytes -= launch.shared_bytes + RESERVED_SHARED_BYTES;
            if state.ctas == 0 {
                state.tensor = None;
            }
            machine.counters[gpu].ctas_retired += 1;
            machine.tracker.retire(uid, machine.now);
            let group = machine.clusters.get_mut(cluster);
            group.live -= 1;
            if group.live == 0 {
                let group = machine.clusters.remove(cluster);
                machine.recent.retired(group.uid, machine.now);
                for &member in &group.ctas {
                    machine.ctas.remove(member);
                }
            }
            let stream = self.streams.get_mut(&(launch.gpu, launch.stream)).expect("it launched the CTA");
            if let Some(running) = &mut stream.running {
                running.live -= 1;
                for order in &orders {
                    running.knowledge.join(&order.known.foreign);
                    running.knowledge.join_cluster(cluster_uid, &order.known.generic);
                }
            }
        }
    }

    fn copy(&mut self, key: (u32, u32), destination: u64, source: u64, bytes: u64) -> Result<(), Fault> {
        let (gpu, stream) = key;
        let fail = |address, problem: AccessProblem| Fault::Copy { gpu: GpuId(gpu), stream, address, bytes, problem };
        if bytes == 0 {
            return Ok(());
        }
        let machine = &mut self.machine;
        let from = machine.memory.locate(gpu, source, bytes).map_err(|problem| fail(source, problem))?;
        let to = machine.memory.locate(gpu, destination, bytes).map_err(|problem| fail(destination, problem))?;
        let mut done = 0;
        while done < bytes {
            let length = COPY_PIECE.min(bytes - done);
            let piece = machine.memory.physical(from.memory).bytes.take_piece(from.offset + done, length as usize);
            let watched = machine.memory.physical_mut(to.memory).bytes.copy_piece(to.offset + done, &piece);
            if watched {
                let place = crate::memory::Place { offset: to.offset + done, ..to };
                machine.wake_global_watchers(place, length);
            }
            done += length;
        }
        machine.memory.physical_mut(to.memory).bytes.clear_stamps(to.offset, bytes);
        Ok(())
    }

    fn fill(&mut self, key: (u32, u32), destination: u64, byte: u8, bytes: u64) -> Result<(), Fault> {
        let (gpu, stream) = key;
        if bytes == 0 {
            return Ok(());
        }
        let machine = &mut self.machine;
        let place = machine.memory.locate(gpu, destination, bytes).map_err(|problem| Fault::Copy {
            gpu: GpuId(gpu),
            stream,
            address: destination,
            bytes,
            problem,
        })?;
        let piece = vec![byte; COPY_PIECE.min(bytes) as usize];
        let mut done = 0;
        while done < bytes {
            let length = COPY_PIECE.min(bytes - done);
            let at = crate::memory::Place { offset: place.offset + done, ..place };
            if machine.memory.physical_mut(at.memory).bytes.write(at.offset, &piece[..length as usize]) {
                machine.wake_global_watchers(at, length);
            }
            done += length;
        }
        machine.memory.physical_mut(place.memory).bytes.clear_stamps(place.offset, bytes);
        Ok(())
    }
}
