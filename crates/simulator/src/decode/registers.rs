//! Which value registers an instruction reads and writes.

use crate::program::{
    Address, AsyncCopy, BarrierKind, BarrierReduction, Bulk, Fence, LaunchControl, MbarrierKind, MbarrierPhase,
    MultimemKind, Operand, Operation, Register, ScalarInstruction, Tcgen05, Tcgen05Operand, TensorMapUpdate, VoteKind,
    Wgmma, WgmmaOperand,
};

/// Calls `visit(register, written)` for each value register of an operation.
pub(super) fn visit(operation: &mut Operation, visit: &mut dyn FnMut(&mut Register, bool)) {
    Visitor { visit }.operation(operation);
}

struct Visitor<'v> {
    visit: &'v mut dyn FnMut(&mut Register, bool),
}

impl Visitor<'_> {
    fn write(&mut self, register: &mut Register) {
        (self.visit)(register, true);
    }

    fn read(&mut self, operand: &mut Operand) {
        match operand {
            Operand::Register(register) => (self.visit)(register, false),
            Operand::Immediate(_) | Operand::VariableAddress { .. } | Operand::SharedAddress { .. } => {}
        }
    }

    fn read_all<'o>(&mut self, operands: impl IntoIterator<Item = &'o mut Operand>) {
        operands.into_iter().for_each(|operand| self.read(operand));
    }

    fn write_all<'o>(&mut self, registers: impl IntoIterator<Item = &'o mut Register>) {
        registers.into_iter().for_each(|register| self.write(register));
    }

    fn address(&mut self, address: &mut Address) {
        self.read(&mut address.base);
    }

    fn operation(&mut self, operation: &mut Operation) {
        use Operation as O;
        match operation {
            O::Scalar(scalar) => self.scalar(scalar),
            O::ReadSpecial { destination, source: _ } | O::ActiveMask(destination) => self.write(destination),
            O::ConvertAddress { destination, source, .. } => {
                self.read(source);
                self.write(destination);
            }
            O::IsSpace { source, .. } => self.read(source),
            O::MapShared { destination, address, cta, .. } => {
                self.read_all([address, cta]);
                self.write(destination);
            }
            O::GetCtaRank { destination, address, .. } => {
                self.read(address);
                self.write(destination);
            }
            O::Branch { .. } | O::Exit | O::Trap | O::ClusterArrive { .. } | O::ClusterWait { .. } | O::NoEffect(_) => {
            }
            O::BranchIndexed { index: operand, .. } | O::NanoSleep(operand) | O::WarpSync { members: operand } => {
                self.read(operand);
            }
            O::Load(load) => {
                self.address(&mut load.address);
                self.write_all(load.destinations.iter_mut().flatten());
            }
            O::Store(store) => {
                self.address(&mut store.address);
                self.read_all(&mut store.sources);
            }
            O::Atomic(atomic) => {
                self.address(&mut atomic.address);
                self.read_all(&mut atomic.sources);
                self.write_all(atomic.destinations.iter_mut().flatten());
            }
            O::Prefetch { address, .. } => self.address(address),
            O::Fence(fence) => {
                if let Fence::ProxyTensorMap { address: Some(address), .. } = fence {
                    self.address(address);
                }
            }
            O::Barrier(barrier) => {
                self.read(&mut barrier.barrier);
                self.read_all(&mut barrier.threads);
                if let BarrierKind::Reduce { destination: BarrierReduction::Count(register), .. } = &mut barrier.kind {
                    self.write(register);
                }
            }
            O::Elect { lane, members, .. } => {
                self.read(members);
                self.write_all(lane);
            }
            O::Shuffle(shuffle) => {
                self.read_all([&mut shuffle.source, &mut shuffle.lane, &mut shuffle.clamp, &mut shuffle.members]);
                self.write(&mut shuffle.destination);
            }
            O::Vote(vote) => {
                self.read(&mut vote.members);
                if let VoteKind::Ballot(register) = &mut vote.kind {
                    self.write(register);
                }
            }
            O::Match { destination, source, members, .. } | O::Redux { destination, source, members, .. } => {
                self.read_all([source, members]);
                self.write(destination);
            }
            O::Mbarrier(mbarrier) => {
                self.address(&mut mbarrier.address);
                self.mbarrier(&mut mbarrier.kind);
            }
            O::Bulk(bulk) => self.bulk(bulk),
            O::AsyncCopy(copy) => match copy {
                AsyncCopy::Copy { destination, source, source_bytes, .. } => {
                    self.address(destination);
                    self.address(source);
                    self.read_all(source_bytes);
                }
                AsyncCopy::MbarrierArrive { barrier, .. } => self.address(barrier),
                AsyncCopy::CommitGroup | AsyncCopy::WaitGroup { .. } | AsyncCopy::WaitAll => {}
            },
            O::LoadMatrix(load) => {
                self.address(&mut load.address);
                self.write_all(&mut load.destinations);
            }
            O::StoreMatrix(store) => {
                self.address(&mut store.address);
                self.read_all(&mut store.sources);
            }
            O::WarpMma(mma) => {
                self.read_all(mma.a.iter_mut().chain(&mut mma.b).chain(&mut mma.c));
                self.write_all(&mut mma.destinations);
            }
            O::RemoteStore(store) => {
                self.address(&mut store.address);
                self.read_all(&mut store.sources);
                self.address(&mut store.barrier);
            }
            O::LaunchControl(control) => match control {
                LaunchControl::TryCancel { response, barrier, .. } => {
                    self.address(response);
                    self.address(barrier);
                }
                LaunchControl::IsCanceled { response, .. } => self.read_all(response),
                LaunchControl::FirstCta { destinations, response } => {
                    self.read_all(response);
                    self.write_all(destinations.iter_mut().flatten());
                }
            },
            O::TensorMap(TensorMapUpdate::Replace { address, value, .. }) => {
                self.address(address);
                self.read(value);
            }
            O::TensorMap(TensorMapUpdate::CopyFence { destination, source }) => {
                self.address(destination);
                self.address(source);
            }
            O::Wgmma(wgmma) => match wgmma {
                Wgmma::Fence | Wgmma::CommitGroup => {}
                Wgmma::WaitGroup { accumulators, .. } => self.read_all(accumulators),
                Wgmma::Mma(mma) => {
                    self.read(&mut mma.b);
                    match &mut mma.a {
                        WgmmaOperand::Descriptor(operand) => self.read(operand),
                        WgmmaOperand::Registers(operands) => self.read_all(operands),
                    }
                    self.read_all(&mut mma.previous);
                    self.write_all(&mut mma.destinations);
                }
            },
            O::Tcgen05(tcgen05) => self.tcgen05(tcgen05),
            O::Multimem(multimem) => {
                self.address(&mut multimem.address);
                match &mut multimem.kind {
                    MultimemKind::LoadReduce { destinations, .. } => self.write_all(destinations),
                    MultimemKind::Store { sources } | MultimemKind::Reduce { sources, .. } => self.read_all(sources),
                }
            }
        }
    }

    fn mbarrier(&mut self, kind: &mut MbarrierKind) {
        use MbarrierKind as K;
        match kind {
            K::Invalidate => {}
            K::Init(operand)
            | K::ExpectTransactions { bytes: operand }
            | K::CompleteTransactions { bytes: operand } => {
                self.read(operand);
            }
            K::Arrive { state, count, expect_bytes, .. } => {
                self.read_all(count);
                self.read_all(expect_bytes);
                self.write_all(state);
            }
            K::Wait { phase, hint_ns, .. } => {
                let (MbarrierPhase::Token(operand) | MbarrierPhase::Parity(operand)) = phase;
                self.read(operand);
                self.read_all(hint_ns);
            }
            K::PendingCount { destination, state } => {
                self.read(state);
                self.write(destination);
            }
        }
    }

    fn bulk(&mut self, bulk: &mut Bulk) {
        match bulk {
            Bulk::TensorLoad { destination, tensor_map, coordinates, barrier, multicast, .. } => {
                self.address(destination);
                self.address(tensor_map);
                self.read_all(coordinates);
                self.address(barrier);
                self.read_all(multicast);
            }
            Bulk::TensorStore { tensor_map, coordinates, source, .. } => {
                self.address(tensor_map);
                self.read_all(coordinates);
                self.address(source);
            }
            Bulk::Load { destination, source, bytes, barrier, multicast, .. } => {
                self.address(destination);
                self.address(source);
                self.read(bytes);
                self.address(barrier);
                self.read_all(multicast);
            }
            Bulk::ClusterCopy { destination, source, bytes, barrier, .. } => {
                self.address(destination);
                self.address(source);
                self.read(bytes);
                self.address(barrier);
            }
            Bulk::Store { destination, source, bytes, .. } => {
                self.address(destination);
                self.address(source);
                self.read(bytes);
            }
            Bulk::CommitGroup | Bulk::WaitGroup { .. } => {}
        }
    }

    fn tcgen05(&mut self, tcgen05: &mut Tcgen05) {
        use Tcgen05 as T;
        match tcgen05 {
            T::Allocate { destination, columns, .. } => {
                self.address(destination);
                self.read(columns);
            }
            T::Deallocate { address, columns, .. } => self.read_all([address, columns]),
            T::Mma(mma) => {
                self.address(&mut mma.accumulator);
                match &mut mma.a {
                    Tcgen05Operand::Descriptor(operand) => self.read(operand),
                    Tcgen05Operand::TensorMemory(address) => self.address(address),
                }
                self.read_all([&mut mma.b, &mut mma.instruction_descriptor]);
                if let Some((a, b)) = &mut mma.scales {
                    self.address(a);
                    self.address(b);
                }
                self.read_all(&mut mma.disable_output_lane);
            }
            T::Commit { barrier, multicast, .. } => {
                self.address(barrier);
                self.read_all(multicast);
            }
            T::Load { destinations, address, .. } => {
                self.address(address);
                self.write_all(destinations);
            }
            T::Store { sources, address, .. } => {
                self.address(address);
                self.read_all(sources);
            }
            T::Copy { destination, source, .. } => {
                self.address(destination);
                self.read(source);
            }
            T::RelinquishPermit { .. }
            | T::WaitLoad
            | T::WaitStore
            | T::FenceBeforeThreadSync
            | T::FenceAfterThreadSync => {}
        }
    }

    fn scalar(&mut self, scalar: &mut ScalarInstruction) {
        use ScalarInstruction as I;
        match scalar {
            I::PredicateLogic { .. } | I::PredicateMove { .. } => {}
            I::Move { destination, source }
            | I::IntegerUnary { destination, source, .. }
            | I::BitUnary { destination, source, .. }
            | I::FindLeading { destination, source, .. }
            | I::FloatUnary { destination, source, .. }
            | I::Approximate { destination, source, .. }
            | I::HalfUnary { destination, source, .. }
            | I::ConvertPacked { destination, source, .. } => {
                self.read(source);
                self.write(destination);
            }
            I::Convert(convert) => {
                self.read(&mut convert.source);
                self.write(&mut convert.destination);
            }
            I::Pack { destination, sources, .. } => {
                self.read_all(&mut **sources);
                self.write(destination);
            }
            I::MoveWide { destinations, sources, .. } => {
                self.read_all(&mut **sources);
                self.write_all(destinations.iter_mut().flatten());
            }
            I::Unpack { destinations, source, .. } => {
                self.read(source);
                self.write_all(destinations.iter_mut().flatten());
            }
            I::Integer { destination, left, right, .. }
            | I::Carry { destination, left, right, .. }
            | I::Bitwise { destination, left, right, .. }
            | I::Set { destination, left, right, .. }
            | I::Float { destination, left, right, .. }
            | I::Half { destination, left, right, .. }
            | I::FloatPair { destination, left, right, .. }
            | I::Select { destination, if_true: left, if_false: right, .. }
            | I::Shift { destination, source: left, amount: right, .. }
            | I::BitMask { destination, position: left, width: right, .. }
            | I::Extend { destination, source: left, width: right, .. }
            | I::CopySign { destination, sign: left, magnitude: right, .. }
            | I::ConvertPack { destination, high: left, low: right, .. } => {
                self.read_all([left, right]);
                self.write(destination);
            }
            I::MultiplyAdd { destination, left, right, addend, .. }
            | I::MultiplyAddCarry { destination, left, right, addend, .. }
            | I::DotProduct { destination, left, right, addend, .. }
            | I::FusedMultiplyAdd { destination, left, right, addend, .. }
            | I::HalfFusedMultiplyAdd { destination, left, right, addend, .. }
            | I::FloatPairFusedMultiplyAdd { destination, left, right, addend, .. }
            | I::FunnelShift { destination, low: left, high: right, amount: addend, .. }
            | I::ExtractField { destination, source: left, position: right, length: addend, .. }
            | I::FindNth { destination, mask: left, base: right, offset: addend }
            | I::Permute { destination, low: left, high: right, selector: addend, .. }
            | I::SelectBySign { destination, if_positive: left, if_negative: right, sign: addend, .. } => {
                self.read_all([left, right, addend]);
                self.write(destination);
            }
            I::InsertField { destination, field, base, position, length, .. } => {
                self.read_all([field, base, position, length]);
                self.write(destination);
            }
            I::Lop3 { destination, sources, .. } | I::FloatMinMax3 { destination, sources, .. } => {
                self.read_all(sources);
                self.write(destination);
            }
            I::SetPredicate { left, right, .. } | I::SetPredicatePair { left, right, .. } => {
                self.read_all([left, right]);
            }
            I::TestProperty { source, .. } => self.read(source),
        }
    }
}
