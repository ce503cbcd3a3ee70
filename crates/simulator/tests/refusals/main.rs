//! Every refusal of the simulator: the smallest program that it stops, its diagnostic to the letter, and the nearest
//! program that runs.

mod bulk;
mod cluster;
mod convergence;
mod coverage;
mod exits;
#[path = "../fixture/mod.rs"]
mod fixture;
mod host_calls;
mod launch;
mod mbarriers;
mod memory;
mod multimem;
mod named_barriers;
mod ordering_device;
mod ordering_shared;
mod ordering_tensor;
mod support;
mod tcgen05_operands;
mod tcgen05_requests;
#[path = "../tensor_core/mod.rs"]
mod tensor_core;
mod tensor_maps;
mod tensor_memory;
mod wgmma;
