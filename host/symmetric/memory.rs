//! Symmetric memory: an allocation of the same size on every rank, which every rank can reach directly and, through a
//! multicast address, all at once.
//!
//! The set-up is a sequence of steps that the ranks take together (see [`Step`]). After each, all ranks learn whether
//! all succeeded; if one did not, every rank returns an error and what it had made is released.
//!
//! ```text
//! create memory -> exchange handles -> map all -> rank 0 creates multicast -> exchange -> all join -> all bind
//!   -> map multicast -> zero -> use
//! ```
//! The agreement after zeroing is also the barrier between mapping and first use: a multicast operation that reaches a
//! rank before its mapping is complete would be lost.

use std::ops::Range;
use std::sync::Arc;

use super::agreement::{agree, agree_on_parameters};
use super::owned::{Mapping, OwnedMemory, OwnedMulticast};
use super::{Rendezvous, Step, SymmetricError};
use crate::driver::{Device, DevicePtr, DriverError, ShareableHandle};

/// Rank that creates the multicast object.
const MULTICAST_CREATOR: usize = 0;

/// Memory of the same size on every rank, mapped on this one.
///
/// Dropping it is a local act. Peers that still use this rank's memory keep it alive through their own mappings and
/// through the multicast object, which goes away with the last rank's handle.
pub struct SymmetricMemory {
    bytes: u64,
    // Mappings go before the handles of what they map: fields drop in order.
    multicast_mapping: Mapping,
    own_address: DevicePtr,
    mappings: Vec<Mapping>,
    _multicast: OwnedMulticast,
    _own: OwnedMemory,
    _peers: Vec<OwnedMemory>,
}

impl SymmetricMemory {
    /// Creates the memory. Collective: every rank calls it with the same `bytes`, which is rounded up to the devices'
    /// granularity. The part `zeroed`, in bytes from the start, is zero on every rank on return; the rest is undefined,
    /// and left so, because a simulator can then tell a read of something that was never written.
    pub fn allocate(
        device: &Arc<dyn Device>,
        rendezvous: &dyn Rendezvous,
        bytes: u64,
        zeroed: Range<u64>,
    ) -> Result<Self, SymmetricError> {
        let (rank, ranks) = (rendezvous.rank(), rendezvous.world_size());
        let granularity = device.properties().memory_granularity_bytes.max(1);
        let rounded = bytes.max(1).checked_next_multiple_of(granularity);
        agree_on_parameters(rendezvous, &format!("{bytes} bytes of symmetric memory in units of {granularity}"))?;
        let bytes = agree(
            rendezvous,
            Step::CreateMemory,
            rounded.ok_or_else(|| {
                let reason = format!("{bytes} bytes are more than a size can say; make the workspace smaller");
                failed(Step::CreateMemory, DriverError::call("create_memory", device.properties().ordinal, reason))
            }),
        )?;

        let (own, handle) = agree(rendezvous, Step::CreateMemory, create_memory(device, bytes))?;
        let handles = exchange(rendezvous, Step::CreateMemory, Some(handle))?;
        let (mappings, peers) =
            agree(rendezvous, Step::MapPeers, map_all(device, [rank, ranks], &own, &handles, bytes))?;
        // Everything is imported; a descriptor that stays open would only keep the peers' memory alive for longer.
        drop(handles);

        let creates = rank as usize == MULTICAST_CREATOR;
        let created = creates.then(|| create_multicast(device, ranks, bytes)).transpose();
        let created = agree(rendezvous, Step::CreateMulticast, created)?;
        let (created, handle) = created.unzip();
        let handles = exchange(rendezvous, Step::CreateMulticast, handle)?;
        let imported = agree(rendezvous, Step::JoinMulticast, join_multicast(device, created.as_ref(), &handles))?;
        let multicast = created
            .or(imported)
            .ok_or(SymmetricError::MissingHandle { rank: MULTICAST_CREATOR as u32, step: Step::JoinMulticast })?;

        let bound = device.bind_multicast(multicast.handle, own.handle, bytes);
        agree(rendezvous, Step::BindMulticast, bound.map_err(|source| failed(Step::BindMulticast, source)))?;
        let mapped = device
            .map_multicast(multicast.handle, bytes)
            .map(|address| Mapping::new(device, address, bytes))
            .map_err(|source| failed(Step::MapMulticast, source));
        let multicast_mapping = agree(rendezvous, Step::MapMulticast, mapped)?;

        let own_address = mappings.get(rank as usize).map(|mapping| mapping.address);
        let zeroed = match own_address {
            Some(address) => zero(device, address, bytes, zeroed).map(|()| address),
            None => Err(SymmetricError::MissingHandle { rank, step: Step::Initialise }),
        };
        let own_address = agree(rendezvous, Step::Initialise, zeroed)?;
        tracing::debug!(rank, bytes, "symmetric memory is mapped");
        Ok(Self { bytes, multicast_mapping, own_address, mappings, _multicast: multicast, _own: own, _peers: peers })
    }

    /// Size on each rank.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where this rank's own memory is mapped.
    pub fn own(&self) -> DevicePtr {
        self.own_address
    }

    /// Where the memory of `rank` is mapped on this rank; `None` for a rank that does not exist.
    pub fn of_rank(&self, rank: u32) -> Option<DevicePtr> {
        self.mappings.get(rank as usize).map(|mapping| mapping.address)
    }

    /// The address that reaches the memory of every rank at once. Only `multimem` instructions may use it.
    pub fn multicast(&self) -> DevicePtr {
        self.multicast_mapping.address
    }
}

fn failed(step: Step, source: DriverError) -> SymmetricError {
    SymmetricError::Failed { step, source }
}

fn create_memory(device: &Arc<dyn Device>, bytes: u64) -> Result<(OwnedMemory, ShareableHandle), SymmetricError> {
    let step = |source| failed(Step::CreateMemory, source);
    let memory = OwnedMemory::new(device, device.create_memory(bytes).map_err(step)?);
    let handle = device.export_memory(memory.handle).map_err(step)?;
    Ok((memory, handle))
}

/// Imports the peers' memory and maps everybody's, in rank order. Borrows this rank's own, because a rank that fails
/// has to keep it until the others have imported it, or they would fail for that reason.
fn map_all(
    device: &Arc<dyn Device>,
    [rank, ranks]: [u32; 2],
    own: &OwnedMemory,
    handles: &[Option<ShareableHandle>],
    bytes: u64,
) -> Result<(Vec<Mapping>, Vec<OwnedMemory>), SymmetricError> {
    let step = |source| failed(Step::MapPeers, source);
    let mut peers = vec![];
    let mut mappings = vec![];
    for source in 0..ranks {
        let memory = if source == rank {
            own.handle
        } else {
            let missing = SymmetricError::MissingHandle { rank: source, step: Step::MapPeers };
            let handle = handles.get(source as usize).and_then(Option::as_ref).ok_or(missing)?;
            let handle = device.import_memory(handle).map_err(step)?;
            peers.push(OwnedMemory::new(device, handle));
            handle
        };
        mappings.push(Mapping::new(device, device.map_memory(memory, bytes).map_err(step)?, bytes));
    }
    Ok((mappings, peers))
}

fn create_multicast(
    device: &Arc<dyn Device>,
    ranks: u32,
    bytes: u64,
) -> Result<(OwnedMulticast, ShareableHandle), SymmetricError> {
    let step = |source| failed(Step::CreateMulticast, source);
    let multicast = OwnedMulticast::new(device, device.create_multicast(ranks, bytes).map_err(step)?);
    let handle = device.export_multicast(multicast.handle).map_err(step)?;
    Ok((multicast, handle))
}

/// Adds the device to the multicast object, which all but its creator import first. The creator's handle is borrowed
/// for the reason given at [`map_all`].
fn join_multicast(
    device: &Arc<dyn Device>,
    created: Option<&OwnedMulticast>,
    handles: &[Option<ShareableHandle>],
) -> Result<Option<OwnedMulticast>, SymmetricError> {
    let step = |source| failed(Step::JoinMulticast, source);
    if let Some(created) = created {
        device.join_multicast(created.handle).map_err(step)?;
        return Ok(None);
    }
    let creator = MULTICAST_CREATOR as u32;
    let missing = SymmetricError::MissingHandle { rank: creator, step: Step::JoinMulticast };
    let handle = handles.get(MULTICAST_CREATOR).and_then(Option::as_ref).ok_or(missing)?;
    let imported = OwnedMulticast::new(device, device.import_multicast(handle).map_err(step)?);
    device.join_multicast(imported.handle).map_err(step)?;
    Ok(Some(imported))
}

/// Zeroes a part of this rank's own memory.
fn zero(device: &Arc<dyn Device>, own: DevicePtr, bytes: u64, part: Range<u64>) -> Result<(), SymmetricError> {
    let part = part.start.min(bytes)..part.end.min(bytes);
    if part.is_empty() {
        return Ok(());
    }
    // SAFETY: the range lies in this rank's own mapping, and no rank launches anything before all have agreed on this.
    let zeroed = unsafe { device.fill(own + part.start, 0, part.end - part.start) };
    zeroed.map_err(|source| failed(Step::Initialise, source))
}

fn exchange(
    rendezvous: &dyn Rendezvous,
    step: Step,
    handle: Option<ShareableHandle>,
) -> Result<Vec<Option<ShareableHandle>>, SymmetricError> {
    rendezvous.exchange_handles(handle).map_err(|source| SymmetricError::Rendezvous { step, source })
}
