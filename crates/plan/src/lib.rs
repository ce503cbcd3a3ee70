//! Tile schedule, memory maps and kernel table shared by host, kernels and tests.
#![no_std]
