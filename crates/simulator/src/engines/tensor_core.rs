//! The tensor core: operations of one issuing warp execute in order of issue, at seeded later times.

use std::collections::VecDeque;
use std::ops::Range;

use super::{Event, Site};
use crate::fault::{Fault, FaultCause};
use crate::machine::Machine;
use crate::ordering::Knowledge;
use crate::tcgen05::{Mma, MmaCta, SharedCopy};
use crate::trace::{AsyncOperation, Stage};
use crate::wgmma::WarpProduct;

/// Most operations that a pipe executes in one go.
const MOST_AT_ONCE: usize = 8;

/// What an operation does.
#[derive(Debug)]
pub(crate) enum TensorWork {
    /// `mma`
    Mma(Box<Mma>),
    /// `cp`
    Copy(Box<SharedCopy>),
    /// A warp's share of a `wgmma.mma_async`, with the buffer of its accumulators.
    Wgmma { product: Box<WarpProduct>, slot: u32 },
    /// `commit`: arrive on the mbarrier at an offset in each CTA.
    Commit { offset: u32, knowledge: Box<Knowledge> },
}

impl TensorWork {
    /// What an observer is told of it.
    fn describe(&self) -> AsyncOperation {
        match self {
            Self::Mma(mma) => AsyncOperation::Mma { macs: mma.macs() },
            Self::Wgmma { product, .. } => AsyncOperation::Mma { macs: product.macs() },
            Self::Copy(_) => AsyncOperation::TensorCopy,
            Self::Commit { .. } => AsyncOperation::Commit,
        }
    }
}

/// A queued operation.
#[derive(Debug)]
pub(crate) struct TensorOperation {
    pub(crate) site: Site,
    pub(crate) work: TensorWork,
    /// CTAs concerned.
    pub(crate) ctas: Vec<u32>,
    /// Tensor memory columns concerned.
    pub(crate) columns: Range<u32>,
}

/// Operations of one warp.
#[derive(Debug)]
pub(crate) struct TensorPipe {
    warp: u32,
    pub(crate) queue: VecDeque<TensorOperation>,
    /// An event for it is under way.
    armed: bool,
}

impl Machine {
    /// Queues an operation of a warp.
    pub(crate) fn push_tensor_operation(&mut self, cta: u32, warp: u32, operation: TensorOperation) {
        self.operation_at(&operation.site, Stage::Issued, || operation.work.describe());
        let due = self.now + self.random.latency();
        let pipes = &mut self.ctas.get_mut(cta).pipes;
        let pipe = pipes.iter().position(|pipe| pipe.warp == warp).unwrap_or_else(|| {
            pipes.push(TensorPipe { warp, queue: VecDeque::new(), armed: false });
            pipes.len() - 1
        });
        pipes[pipe].queue.push_back(operation);
        if !pipes[pipe].armed {
            pipes[pipe].armed = true;
            self.events.push(due, Event::Pipe { cta, pipe });
        }
    }

    pub(super) fn step_pipe(&mut self, cta: u32, pipe: usize) -> Result<(), Fault> {
        let count = 1 + self.random.below(MOST_AT_ONCE);
        for _ in 0..count {
            let Some(operation) = self.cta_mut(cta).pipes[pipe].queue.pop_front() else { break };
            self.execute_operation(&operation).map_err(|cause| operation.site.fault(cause))?;
            for &target in &operation.ctas {
                self.cta_mut(target).operations -= 1;
            }
        }
        let pipes = &mut self.ctas.get_mut(cta).pipes;
        if pipes[pipe].queue.is_empty() {
            pipes[pipe].armed = false;
        } else {
            let due = self.now + self.random.latency();
            self.events.push(due, Event::Pipe { cta, pipe });
        }
        Ok(())
    }

    fn execute_operation(&mut self, operation: &TensorOperation) -> Result<(), FaultCause> {
        match &operation.work {
            TensorWork::Commit { offset, knowledge } => {
                self.operation_at(&operation.site, Stage::Completed, || AsyncOperation::Commit);
                for &cta in &operation.ctas {
                    self.asynchronous_arrive(cta, *offset, knowledge)?;
                }
            }
            TensorWork::Wgmma { product, slot } => {
                let site = &operation.site;
                self.step_wgmma(site.launch.gpu, operation.ctas[0], site.warp, product, *slot)?;
                self.operation_at(site, Stage::Completed, || AsyncOperation::Mma { macs: product.macs() });
            }
            TensorWork::Copy(copy) => {
                for &cta in &operation.ctas {
                    let cta = self.ctas.get(cta);
                    let tensor = self.sms[cta.gpu as usize][cta.sm as usize].tensor.as_mut();
                    let tensor = tensor.expect("checked when it was issued");
                    copy.execute(&cta.shared, &mut tensor.memory, cta.owner())?;
                }
                self.operation_at(&operation.site, Stage::Completed, || AsyncOperation::TensorCopy);
            }
            TensorWork::Mma(mma) => {
                let sm_of = |cta: u32| {
                    let cta = self.ctas.get(cta);
                    (cta.gpu as usize, cta.sm as usize)
                };
                let places: Vec<_> = operation.ctas.iter().map(|&cta| sm_of(cta)).collect();
                let mut tensors: Vec<_> = places
                    .iter()
                    .map(|&(gpu, sm)| self.sms[gpu][sm].tensor.take().expect("the CTAs of a pair are on two SMs"))
                    .collect();
                let mut ctas: Vec<_> = operation
                    .ctas
                    .iter()
                    .zip(&mut tensors)
                    .map(|(&cta, tensor)| {
                        let cta = self.ctas.get(cta);
                        MmaCta { shared: &cta.shared, tensor_memory: &mut tensor.memory, owner: cta.owner() }
                    })
                    .collect();
                let result = mma.execute(&mut ctas, &mut self.mma_scratch);
                drop(ctas);
                for (&(gpu, sm), tensor) in places.iter().zip(tensors) {
                    self.sms[gpu][sm].tensor = Some(tensor);
                }
                result?;
                self.counters[operation.site.launch.gpu as usize].tensor_macs += mma.macs();
                self.operation_at(&operation.site, Stage::Completed, || AsyncOperation::Mma { macs: mma.macs() });
            }
        }
        Ok(())
    }
}
