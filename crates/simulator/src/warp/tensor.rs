//! `tcgen05.*` as the issuing warp sees it; the computing itself is `engines::tensor_core`.

use std::ops::Range;

use super::step::{Flow, Step};
use super::{Context, Resume, Wait};
use crate::engines::{TensorOperation, TensorWork};
use crate::fault::{Tcgen05Error, access_failure, at_lane};
use crate::machine::SmTensor;
use crate::memory::{AccessKind, AccessProblem};
use crate::ordering::{AsyncReader, Knowledge, OrderingError, TensorIssuer, TensorShadow, WarpOrder};
use crate::program::{
    Address, Operand, Register, StateSpace, Tcgen05, Tcgen05Mma, Tcgen05Operand, Tcgen05Shape, WARP_LANES,
};
use crate::tcgen05::{Footprint, Mma, MmaOperandA, MmaRequest, RegisterTransfer, SharedCopy};
use crate::tensor_memory::TensorMemory;

/// Bytes of the address that `alloc` writes.
const ADDRESS_BYTES: u32 = 4;

impl Context<'_> {
    pub(super) fn tcgen05(&mut self, operation: &Tcgen05) -> Step {
        match operation {
            Tcgen05::Allocate { cta_group, destination, destination_space, columns } => {
                self.tensor_allocate(*cta_group, *destination, *destination_space, *columns)
            }
            Tcgen05::Deallocate { cta_group, address, columns } => {
                self.tensor_deallocate(*cta_group, *address, *columns)
            }
            Tcgen05::RelinquishPermit { cta_group } => {
                if !self.align()? {
                    return Ok(Flow::Suspended);
                }
                self.check_group(*cta_group)?;
                self.machine.cta_mut(self.warp.cta).permit_relinquished = true;
                Ok(Flow::Next)
            }
            Tcgen05::Mma(mma) => self.tensor_mma(mma),
            Tcgen05::Copy { cta_group, shape, destination, source } => {
                let group = self.tensor_group(*cta_group)?;
                self.try_each_lane(|context, lane| {
                    let destination = context.address(*destination, lane) as u32;
                    let source = context.operand(*source, lane);
                    let copy = SharedCopy::new(*shape, destination, source).map_err(|error| at_lane(lane, error))?;
                    let footprint = copy.footprint();
                    context.begin_operation(&footprint, &group, lane)?;
                    let columns = columns_of(&footprint);
                    context.push_operation(TensorWork::Copy(Box::new(copy)), group.clone(), columns, lane);
                    Ok(())
                })?;
                self.effect();
                Ok(Flow::Next)
            }
            Tcgen05::Commit { cta_group, barrier, barrier_space, multicast } => {
                self.tensor_commit(*cta_group, *barrier, *barrier_space, *multicast)
            }
            Tcgen05::Load { shape, repeat, half_offset, pack, destinations, address } => {
                self.tensor_load((*shape, *repeat, *pack), *half_offset, destinations, *address)
            }
            Tcgen05::Store { shape, repeat, half_offset, unpack, sources, address } => {
                self.tensor_store((*shape, *repeat, *unpack), *half_offset, sources, *address)
            }
            Tcgen05::WaitLoad => {
                if !self.align()? {
                    return Ok(Flow::Suspended);
                }
                let order = self.order_mut();
                order.loads_waited = order.loads_issued;
                Ok(Flow::Next)
            }
            Tcgen05::WaitStore => {
                if !self.align()? {
                    return Ok(Flow::Suspended);
                }
                let order = self.order_mut();
                order.stores_waited = order.stores_issued;
                Ok(Flow::Next)
            }
            Tcgen05::FenceBeforeThreadSync => {
                self.order_mut().before_thread_sync();
                Ok(Flow::Next)
            }
            Tcgen05::FenceAfterThreadSync => {
                self.order_mut().after_thread_sync();
                Ok(Flow::Next)
            }
        }
    }

    fn order_mut(&mut self) -> &mut WarpOrder {
        &mut self.machine.ctas.get_mut(self.warp.cta).orders[self.warp.index as usize]
    }

    /// All tcgen05 instructions of a kernel must name the same group (PTX ISA, tcgen05 CTA pair).
    fn check_group(&mut self, cta_group: u8) -> Step<()> {
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        if cta.cta_group != 0 && cta.cta_group != cta_group {
            return Err(Tcgen05Error::GroupsMixed { earlier: cta.cta_group, given: cta_group }.into());
        }
        cta.cta_group = cta_group;
        let ctas = self.machine.clusters.get(cta.cluster).ctas.len() as u32;
        if cta_group == 2 && !ctas.is_multiple_of(2) {
            return Err(Tcgen05Error::NoPair { ctas }.into());
        }
        Ok(())
    }

    /// The CTAs of a `cta_group`: the executing one, or the pair's even and odd one.
    fn tensor_group(&mut self, cta_group: u8) -> Step<Vec<u32>> {
        self.check_group(cta_group)?;
        if cta_group == 1 {
            return Ok(vec![self.warp.cta]);
        }
        let cta = self.machine.cta(self.warp.cta);
        let even = cta.rank & !1;
        let cluster = self.machine.clusters.get(cta.cluster);
        let pair = vec![cluster.ctas[even as usize], cluster.ctas[even as usize + 1]];
        if let Some(&peer) = pair.iter().find(|&&cta| self.machine.cta(cta).exited) {
            return Err(Tcgen05Error::PeerExited { peer: self.machine.cta(peer).rank }.into());
        }
        Ok(pair)
    }

    fn sm_tensor(&mut self, cta: u32) -> &mut SmTensor {
        let (gpu, sm) = {
            let cta = self.machine.cta(cta);
            (cta.gpu, cta.sm)
        };
        self.machine.sms[gpu as usize][sm as usize]
            .tensor
            .get_or_insert_with(|| Box::new(SmTensor { memory: TensorMemory::new(), shadow: TensorShadow::new() }))
    }

    fn tensor_allocate(&mut self, cta_group: u8, destination: Address, space: StateSpace, columns: Operand) -> Step {
        if !self.align()? {
            return Ok(Flow::Suspended);
        }
        // Who has been granted its columns goes on, even if the other CTA of the pair is done with its own by now.
        let group = if self.machine.cta(self.warp.cta).pair_grant.is_some() {
            self.check_group(cta_group)?;
            Vec::new()
        } else {
            self.tensor_group(cta_group)?
        };
        if self.machine.cta(self.warp.cta).permit_relinquished {
            return Err(Tcgen05Error::PermitRelinquished.into());
        }
        let columns = self.uniform(columns, "columns")? as u32;
        let lane = self.lanes.trailing_zeros() as usize;
        let own = self.warp.cta;
        let base = if cta_group == 1 {
            let owner = self.machine.cta(own).owner();
            let tensor = self.sm_tensor(own);
            let base = tensor.memory.allocate(owner, columns)?;
            if let Some(base) = base {
                tensor.shadow.clear(base, columns);
            }
            base
        } else {
            self.allocate_pair(&group, columns)?
        };
        let Some(base) = base else {
            let token = self.warp.suspend(self.fragment, Wait::TensorAllocation { columns }, self.machine);
            for cta in group {
                let (gpu, sm) = (self.machine.cta(cta).gpu, self.machine.cta(cta).sm);
                self.machine.sms[gpu as usize][sm as usize].allocation_waiters.push_back(token);
            }
            self.count_wait();
            return Ok(Flow::Suspended);
        };
        let fail = |value, problem| access_failure(lane, AccessKind::AllocationResult, value, ADDRESS_BYTES, problem);
        let (value, cta, offset) =
            self.shared(destination, space, lane).map_err(|(value, problem)| fail(value, problem))?;
        if offset % ADDRESS_BYTES != 0 {
            return Err(fail(value, AccessProblem::Misaligned { required: ADDRESS_BYTES }));
        }
        self.machine.check_shared(cta, offset, ADDRESS_BYTES).map_err(|problem| fail(value, problem))?;
        self.machine.cta(cta).shared.check_plain(offset, ADDRESS_BYTES).map_err(|problem| fail(value, problem))?;
        self.with_shadow(cta, |shared, order| shared.shadow.allocation(offset, ADDRESS_BYTES, order))
            .map_err(|error| at_lane(lane, error))?;
        self.machine.cta_mut(cta).shared.bytes.store(offset.into(), ADDRESS_BYTES, base.into());
        self.effect();
        Ok(Flow::Next)
    }

    /// Both CTAs of the pair must ask; they get the same columns.
    fn allocate_pair(&mut self, pair: &[u32], columns: u32) -> Step<Option<u32>> {
        let own = self.warp.cta;
        if let Some(base) = self.machine.cta_mut(own).pair_grant.take() {
            return Ok(Some(base));
        }
        self.machine.cta_mut(own).pair_request = Some(columns);
        let peer = if pair[0] == own { pair[1] } else { pair[0] };
        if self.machine.cta(peer).pair_request != Some(columns) {
            return Ok(None);
        }
        // Refuses sizes that cannot be allocated.
        self.sm_tensor(own).memory.find_free(columns)?;
        let candidates = (0..=crate::tensor_memory::COLUMNS - columns).step_by(32);
        for base in candidates {
            if pair.iter().all(|&cta| self.sm_tensor(cta).memory.is_free(base, columns)) {
                for &cta in pair {
                    let owner = self.machine.cta(cta).owner();
                    let tensor = self.sm_tensor(cta);
                    tensor.memory.allocate_at(owner, base, columns)?;
                    tensor.shadow.clear(base, columns);
                    self.machine.cta_mut(cta).pair_request = None;
                }
                self.machine.cta_mut(peer).pair_grant = Some(base);
                let peer = self.machine.cta(peer);
                let (gpu, sm) = (peer.gpu, peer.sm);
                self.wake_allocation_waiters(gpu, sm);
                return Ok(Some(base));
            }
        }
        Ok(None)
    }

    fn wake_allocation_waiters(&mut self, gpu: u32, sm: u32) {
        let waiters = std::mem::take(&mut self.machine.sms[gpu as usize][sm as usize].allocation_waiters);
        for token in waiters {
            self.machine.wake(token, Resume::Retry);
        }
    }

    fn tensor_deallocate(&mut self, cta_group: u8, address: Operand, columns: Operand) -> Step {
        if !self.align()? {
            return Ok(Flow::Suspended);
        }
        // The other CTA of a pair frees its own columns, and may have done so and left.
        self.check_group(cta_group)?;
        let address = self.uniform(address, "address")? as u32;
        let columns = self.uniform(columns, "columns")? as u32;
        let own = self.warp.cta;
        let base = address & 0xffff;
        let range = base..base + columns;
        let cluster = self.machine.clusters.get(self.machine.cta(own).cluster);
        let in_use = cluster.ctas.iter().any(|&cta| {
            self.machine.cta(cta).pipes.iter().flat_map(|pipe| &pipe.queue).any(|operation| {
                let used = &operation.columns;
                operation.ctas.contains(&own) && used.start < range.end && range.start < used.end
            })
        });
        if in_use {
            return Err(Tcgen05Error::DeallocateInUse { columns: range }.into());
        }
        self.with_tensor(own, |tensor, issuer, owner| {
            tensor.memory.deallocate(owner, address, columns)?;
            Ok(tensor.shadow.free(range, issuer)?)
        })?;
        let cta = self.machine.cta(own);
        let (gpu, sm) = (cta.gpu, cta.sm);
        self.wake_allocation_waiters(gpu, sm);
        self.effect();
        Ok(Flow::Next)
    }

    fn tensor_mma(&mut self, mma: &Tcgen05Mma) -> Step {
        let group = self.tensor_group(mma.cta_group)?;
        self.try_each_lane(|context, lane| {
            let mut disable_output_lane = [0; 8];
            for (word, &operand) in disable_output_lane.iter_mut().zip(&mma.disable_output_lane) {
                *word = context.operand(operand, lane) as u32;
            }
            let request = MmaRequest {
                kind: mma.kind,
                cta_group: mma.cta_group,
                accumulator: context.address(mma.accumulator, lane) as u32,
                a: match mma.a {
                    Tcgen05Operand::Descriptor(operand) => MmaOperandA::Shared(context.operand(operand, lane)),
                    Tcgen05Operand::TensorMemory(address) => {
                        MmaOperandA::TensorMemory(context.address(address, lane) as u32)
                    }
                },
                b: context.operand(mma.b, lane),
                instruction_descriptor: context.operand(mma.instruction_descriptor, lane) as u32,
                scales: mma.scales.map(|(a, b)| (context.address(a, lane) as u32, context.address(b, lane) as u32)),
                scale_block: mma.scale_block,
                disable_output_lane,
                enable_input_d: context.warp.registers.lanes_where(mma.enable_input_d) >> lane & 1 != 0,
            };
            let mma = Mma::new(&request).map_err(|error| at_lane(lane, error))?;
            let mut footprint = std::mem::take(&mut context.machine.footprint);
            mma.footprint_into(&mut footprint);
            let begun = context.begin_operation(&footprint, &group, lane);
            let columns = columns_of(&footprint);
            context.machine.footprint = footprint;
            begun?;
            context.push_operation(TensorWork::Mma(Box::new(mma)), group.clone(), columns, lane);
            Ok(())
        })?;
        self.effect();
        Ok(Flow::Next)
    }

    /// Checks what an asynchronous operation touches in each CTA, and stamps it.
    fn begin_operation(&mut self, footprint: &Footprint, group: &[u32], lane: usize) -> Step<()> {
        let order = self.order_mut();
        order.operations_issued += 1;
        let number = order.operations_issued;
        let failed = |error: OrderingError| at_lane(lane, error);
        for &cta in group {
            for range in &footprint.shared_reads {
                self.machine.check_shared(cta, range.start, range.end - range.start).map_err(|problem| {
                    let bytes = range.end - range.start;
                    access_failure(lane, AccessKind::TensorCoreRead, range.start.into(), bytes, problem)
                })?;
            }
            self.with_shadow(cta, |shared, order| {
                footprint
                    .shared_reads
                    .iter()
                    .try_for_each(|range| shared.shadow.async_read(range, AsyncReader::Operation(number), order))
            })
            .map_err(failed)?;
            self.with_tensor(cta, |tensor, issuer, owner| {
                for range in footprint.tensor_reads.iter().chain(&footprint.tensor_writes) {
                    tensor.memory.check(owner, range)?;
                }
                for range in &footprint.tensor_reads {
                    tensor.shadow.operation_reads(range, issuer)?;
                }
                for range in &footprint.tensor_writes {
                    tensor.shadow.operation_writes(range, issuer)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Gives the tensor memory of a CTA, with this warp as the one who accesses it.
    fn with_tensor<T>(
        &mut self,
        cta: u32,
        use_it: impl FnOnce(&mut SmTensor, &TensorIssuer<'_>, crate::tensor_memory::TensorMemoryOwner) -> Step<T>,
    ) -> Step<T> {
        self.sm_tensor(cta);
        let target = self.machine.cta(cta);
        let (gpu, sm, owner) = (target.gpu as usize, target.sm as usize, target.owner());
        let mut tensor = self.machine.sms[gpu][sm].tensor.take().expect("allocated above");
        let own = self.machine.cta(self.warp.cta);
        let cluster = self.machine.clusters.get(own.cluster);
        let warps_per_cta = own.warps();
        let ctas = &self.machine.ctas;
        let other = |actor: u32| {
            let cta = *cluster.ctas.get((actor / warps_per_cta) as usize)?;
            ctas.get(cta).orders.get((actor % warps_per_cta) as usize)
        };
        let issuer = TensorIssuer { order: &own.orders[self.warp.index as usize], other: &other, warps_per_cta };
        let result = use_it(&mut tensor, &issuer, owner);
        self.machine.sms[gpu][sm].tensor = Some(tensor);
        result
    }

    /// Queues an operation behind the earlier ones of this warp.
    fn push_operation(&mut self, work: TensorWork, ctas: Vec<u32>, columns: Range<u32>, lane: usize) {
        for &cta in &ctas {
            self.machine.cta_mut(cta).operations += 1;
        }
        let operation = TensorOperation { site: self.site(lane), work, ctas, columns };
        self.machine.push_tensor_operation(self.warp.cta, self.warp.index, operation);
    }

    fn tensor_commit(
        &mut self,
        cta_group: u8,
        barrier: Address,
        space: StateSpace,
        multicast: Option<Operand>,
    ) -> Step {
        self.tensor_group(cta_group)?;
        self.try_each_lane(|context, lane| {
            let (cta, offset) = context.mbarrier_location(barrier, space, lane)?;
            let targets = match multicast {
                None => vec![cta],
                Some(mask) => {
                    let mask = context.operand(mask, lane) & 0xffff;
                    let cluster = context.machine.clusters.get(context.machine.cta(context.warp.cta).cluster);
                    let ctas = cluster.ctas.len() as u32;
                    if mask == 0 || mask >> ctas != 0 {
                        return Err(at_lane(lane, crate::fault::BulkError::Mask { mask, ctas }));
                    }
                    (0..ctas).filter(|rank| mask >> rank & 1 != 0).map(|rank| cluster.ctas[rank as usize]).collect()
                }
            };
            for &target in &targets {
                let state = context.machine.cta(target);
                if state.exited {
                    let problem = AccessProblem::CtaExited { rank: state.rank };
                    return Err(access_failure(lane, AccessKind::Mbarrier, offset.into(), 8, problem));
                }
                context.check_async_mbarrier(target, offset, lane)?;
            }
            let order = context.order_mut();
            // The arrival tells that the operations are complete; what this warp knows of others' execution goes with
            // it, but no generic access: commit is no release (PTX ISA, tcgen05.commit).
            let mut knowledge = Box::new(Knowledge::default());
            knowledge.join_execution(&order.known);
            knowledge.commits.raise(order.actor, order.operations_issued);
            context.push_operation(TensorWork::Commit { offset, knowledge }, targets, 0..0, lane);
            Ok(())
        })?;
        self.effect();
        Ok(Flow::Next)
    }

    fn transfer(&self, (shape, repeat, packed): (Tcgen05Shape, u8, bool), address: Address) -> Step<RegisterTransfer> {
        let lane = self.lanes.trailing_zeros() as usize;
        let mut base = address;
        base.offset = 0;
        // The address must be the same in all lanes (PTX ISA, tcgen05.ld).
        self.uniform(base.base, "taddr")?;
        Ok(RegisterTransfer {
            shape,
            repeat,
            packed,
            address: self.address(address, lane) as u32,
            warp_in_warpgroup: self.warp.index % 4,
        })
    }

    fn tensor_load(
        &mut self,
        form: (Tcgen05Shape, u8, bool),
        half_offset: Option<u32>,
        destinations: &[Register],
        address: Address,
    ) -> Step {
        if !self.align()? {
            return Ok(Flow::Suspended);
        }
        let transfers = halves(self.transfer(form, address)?, half_offset);
        self.order_mut().loads_issued += 1;
        let mut values = std::mem::take(&mut self.warp.loaded);
        values.clear();
        values.resize(destinations.len(), [0; WARP_LANES]);
        self.with_tensor(self.warp.cta, |tensor, issuer, owner| {
            for transfer in transfers.into_iter().flatten() {
                tensor.shadow.load(&transfer.footprint()?, issuer)?;
                transfer.load(&tensor.memory, owner, &mut values)?;
            }
            Ok(())
        })?;
        // Whoever reads a register sees the loaded value, waited for or not (PTX ISA, tcgen05 register dependencies, same
        // thread). What `wait::ld` is for, reuse of the memory, is followed by the shadow.
        for (register, values) in destinations.iter().zip(&values) {
            self.warp.registers.values[register.0 as usize] = values.map(u64::from);
        }
        self.warp.loaded = values;
        Ok(Flow::Next)
    }

    fn tensor_store(
        &mut self,
        form: (Tcgen05Shape, u8, bool),
        half_offset: Option<u32>,
        sources: &[Operand],
        address: Address,
    ) -> Step {
        if !self.align()? {
            return Ok(Flow::Suspended);
        }
        let transfers = halves(self.transfer(form, address)?, half_offset);
        self.order_mut().stores_issued += 1;
        let values: Vec<[u32; WARP_LANES]> =
            sources.iter().map(|&source| std::array::from_fn(|lane| self.operand(source, lane) as u32)).collect();
        self.with_tensor(self.warp.cta, |tensor, issuer, owner| {
            for transfer in transfers.into_iter().flatten() {
                tensor.shadow.store(&transfer.footprint()?, issuer)?;
                transfer.store(&mut tensor.memory, owner, &values)?;
            }
            Ok(())
        })?;
        self.effect();
        Ok(Flow::Next)
    }
}

/// The accesses of an instruction: two for `.16x32bx2`, the second some columns further.
fn halves(first: RegisterTransfer, half_offset: Option<u32>) -> [Option<RegisterTransfer>; 2] {
    let second = half_offset.map(|columns| RegisterTransfer {
        shape: Tcgen05Shape::Lanes16x32b { upper: true },
        address: first.address + columns,
        ..first
    });
    [Some(first), second]
}

/// The columns between the first and the last that an operation touches.
fn columns_of(footprint: &Footprint) -> Range<u32> {
    let ranges = || footprint.tensor_reads.iter().chain(&footprint.tensor_writes).map(|range| &range.columns);
    let first = ranges().map(|columns| columns.start).min().unwrap_or(0);
    first..ranges().map(|columns| columns.end).max().unwrap_or(0)
}
