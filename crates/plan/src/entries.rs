//! Every entry of the device code: what the builder has to know of a kernel, whatever it computes.

use crate::kernels::{Architecture, ByValue, KERNELS, KernelSpec};
use crate::quantize::QUANTIZE_MXFP8;

/// One exported kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Entry name.
    pub name: &'static str,
    /// Architecture.
    pub architecture: Architecture,
    /// Threads per CTA.
    pub threads: u32,
    /// CTAs per cluster, along x.
    pub cluster: u32,
    /// Parameters in order.
    pub parameters: &'static [ByValue],
}

impl Entry {
    /// What the builder has to know of a GEMM.
    pub const fn of(kernel: &KernelSpec) -> Self {
        let KernelSpec { name, architecture, threads, cluster, parameters, .. } = *kernel;
        Self { name, architecture, threads, cluster, parameters }
    }
}

/// Every entry, in the order of the device crate's source: the GEMMs, then the quantiser.
pub fn entries() -> impl Iterator<Item = Entry> {
    KERNELS.iter().map(Entry::of).chain([QUANTIZE_MXFP8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let mut names: Vec<&str> = entries().map(|entry| entry.name).collect();
        assert_eq!(names.len(), KERNELS.len() + 1);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KERNELS.len() + 1);
    }
}
