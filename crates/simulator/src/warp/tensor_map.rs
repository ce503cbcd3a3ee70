//! `tensormap.*`: a tensor map is written as a whole, through the generic proxy (PTX ISA, "tensormap.replace").

use super::Context;
use super::access::Target;
use super::device_memory::Passed;
use super::step::{Flow, Step};
use crate::fault::{access_failure, at_lane};
use crate::memory::{AccessKind, AccessProblem};
use crate::ordering::AccessSort;
use crate::program::{Address, Operand, StateSpace, TensorMapUpdate};
use crate::tensor_map;

/// Bytes of a tensor map.
const BYTES: u32 = 128;
/// Alignment of a tensor map.
const ALIGNMENT: u64 = 64;

impl Context<'_> {
    pub(super) fn update_tensor_map(&mut self, update: &TensorMapUpdate) -> Step {
        match *update {
            TensorMapUpdate::Replace { address, space, field, value } => {
                self.try_each_lane(|context, lane| {
                    let (at, target) = context.tensor_map_target(address, space, lane)?;
                    let mut bytes = context.load_tensor_map(at, target, lane)?;
                    let value = context.operand(value, lane);
                    tensor_map::replace(&mut bytes, field, value).map_err(|error| at_lane(lane, error))?;
                    context.store_tensor_map(at, target, &bytes, lane)
                })?;
            }
            TensorMapUpdate::CopyFence { destination, source } => {
                if !self.align()? {
                    return Ok(Flow::Suspended);
                }
                // All lanes name the same tensor maps, and the warp copies once.
                self.uniform(destination.base, "dst")?;
                self.uniform(source.base, "src")?;
                let lane = self.lanes.trailing_zeros() as usize;
                let (from, source) = self.tensor_map_target(source, StateSpace::SharedCta, lane)?;
                let (to, destination) = self.tensor_map_target(destination, StateSpace::Global, lane)?;
                let bytes = self.load_tensor_map(from, source, lane)?;
                self.store_tensor_map(to, destination, &bytes, lane)?;
            }
        }
        self.effect();
        Ok(Flow::Next)
    }

    fn tensor_map_target(&self, address: Address, space: StateSpace, lane: usize) -> Step<(u64, Target)> {
        let value = self.address(address, lane);
        let fail = |problem| access_failure(lane, AccessKind::TensorMapRead, value, BYTES, problem);
        if !value.is_multiple_of(ALIGNMENT) {
            return Err(fail(AccessProblem::Misaligned { required: ALIGNMENT as u32 }));
        }
        let immediate = matches!(address.base, Operand::Immediate(_));
        let target = self.target(space, value, immediate).map_err(fail)?;
        match target {
            Target::Global(_) | Target::Shared { .. } => Ok((value, target)),
            _ => Err(fail(AccessProblem::WrongSpace { wanted: "global or shared" })),
        }
    }

    fn load_tensor_map(&mut self, address: u64, target: Target, lane: usize) -> Step<[u8; BYTES as usize]> {
        let mut bytes = [0; BYTES as usize];
        let fail = |first| {
            let problem = AccessProblem::Uninitialised { first };
            access_failure(lane, AccessKind::TensorMapRead, address, BYTES, problem)
        };
        match target {
            Target::Shared { cta, offset } => {
                self.check_shared_access(cta, offset, address, BYTES, AccessKind::Load, false, lane)?;
                let shared = &self.machine.cta(cta).shared.bytes;
                shared.read(offset.into(), &mut bytes).map_err(|hole| fail(address + (hole - u64::from(offset))))?;
            }
            Target::Global(address) => {
                let place = self.locate_global(address, BYTES, AccessKind::TensorMapRead, lane)?;
                let mut passed = Passed::default();
                self.check_global_read(place, BYTES, false, address, lane, &mut passed)?;
                self.stamp_global_read(place, BYTES, &mut passed);
                let physical = self.machine.memory.physical(place.memory);
                physical.bytes.read(place.offset, &mut bytes).map_err(|hole| fail(address + (hole - place.offset)))?;
            }
            Target::Local(_) | Target::Parameter(_) => unreachable!("refused with the address"),
        }
        Ok(bytes)
    }

    fn store_tensor_map(&mut self, address: u64, target: Target, bytes: &[u8], lane: usize) -> Step<()> {
        match target {
            Target::Shared { cta, offset } => {
                self.check_shared_access(cta, offset, address, BYTES, AccessKind::Store, false, lane)?;
                if self.machine.cta_mut(cta).shared.bytes.write(offset.into(), bytes) {
                    self.machine.wake_shared_watchers(cta, offset, BYTES);
                }
            }
            Target::Global(address) => {
                let place = self.locate_global(address, BYTES, AccessKind::Store, lane)?;
                let mut passed = Passed::default();
                self.check_global_write(place, BYTES, address, lane, &mut passed)?;
                let physical = self.machine.memory.physical_mut(place.memory);
                let watched = physical.bytes.write(place.offset, bytes);
                let owner = physical.gpu;
                self.machine.count_write(self.launch.gpu, owner, BYTES.into());
                if watched {
                    self.machine.wake_global_watchers(place, BYTES.into());
                }
                self.stamp_global_write(place, BYTES, AccessSort::Data, &mut passed);
            }
            Target::Local(_) | Target::Parameter(_) => unreachable!("refused with the address"),
        }
        Ok(())
    }
}
