//! Every refusal of the simulator: the smallest program that it stops, its diagnostic to the letter, and the nearest
//! program that runs.

mod bulk;
mod convergence;
mod coverage;
#[path = "../fixture/mod.rs"]
mod fixture;
mod host_calls;
mod launch;
mod mbarriers;
mod memory;
mod named_barriers;
mod tensor_maps;
mod support;
