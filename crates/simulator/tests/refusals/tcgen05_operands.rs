//! Descriptors and addresses of `tcgen05` instructions.

use crate::support::refuses_tensor;

/// An MMA of kind f16 whose descriptor of A differs in these bits.
#[track_caller]
fn refuses_matrix(flipped: u64, text: &str) {
    let body = format!(
        "xor.b64 %rd11, %rd10, {flipped:#018x};
        @%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd11, %rd10, %r11, %p3;
        COMMIT WAIT"
    );
    refuses_tensor(32, &body, text, (&format!("{flipped:#018x}"), "0"));
}

#[test]
fn matrix_descriptors() {
    refuses_matrix(
        1 << 53,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd11, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: A: matrix descriptor 0x0020400800800000: bits 53..61 are reserved and must be 0, they are 0x1",
    );
    refuses_matrix(
        1 << 47,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd11, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: A: matrix descriptor 0x0000c00800800000: bits 46..49 must be 0b001, they are 0b011",
    );
    refuses_matrix(
        3 << 61,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd11, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: A: matrix descriptor 0x6000400800800000: layout type 3; legal are 0 (none), 1 (128 bytes in 32-byte units), 2 (128 bytes), 4 (64 bytes) and 6 (32 bytes)",
    );
    // Where a pattern repeats: with a swizzle of 128 bytes.
    refuses_matrix(
        2 << 61 | 1 << 49,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd11, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: A: matrix descriptor 0x4002400800800000: base offset 1; the simulator supports patterns that start at their natural boundary, base offset 0",
    );
    refuses_matrix(
        1 << 52,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd11, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: A: matrix descriptor 0x0010400800800000: the leading dimension is an absolute address (bit 52); supported is a relative offset",
    );
}

/// An MMA whose instruction descriptor is wrong, and right.
#[track_caller]
fn refuses_instruction(kind: &str, wrong: u32, text: &str, right: u32) {
    let body = format!(
        "mov.u32 %r11, {wrong:#010x};
        @%p0 tcgen05.mma.cta_group::1.kind::{kind} [%r10], %rd10, %rd10, %r11, %p3;
        COMMIT WAIT"
    );
    refuses_tensor(32, &body, text, (&format!("{wrong:#010x}"), &format!("{right:#010x}")));
}

#[test]
fn instruction_descriptors() {
    let right = 0x0808_0490;
    refuses_instruction(
        "f16",
        right | 1 << 6,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd10, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: instruction descriptor 0x080804d0 for F16: reserved bit 6 is 1; legal: 0",
        right,
    );
    refuses_instruction(
        "f16",
        right | 1 << 2,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd10, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: instruction descriptor 0x08080494 for F16: sparsity (bit 2) is not simulated",
        right,
    );
    refuses_instruction(
        "f16",
        right ^ 0x0a00_0000,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd10, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: instruction descriptor 0x02080490 for F16, cta_group::1: the shape 32 x 32 is illegal; legal: M 64 or 128",
        right,
    );
    // 32-bit elements along M are transposed in units of 32 bytes only.
    refuses_instruction(
        "tf32",
        0x0808_0910 | 1 << 15,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::tf32 [%r10], %rd10, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: A: Tf32 elements, Mn-major, cannot have swizzle None; legal: 128 bytes in units of 32",
        0x0808_0910,
    );
}

/// An MMA with A in tensor memory at `%r12`, over zeros.
fn tensor_a(kind: &str, instruction: u32, address: u32) -> String {
    let zeros = ["%r21"; 8].join(", ");
    format!(
        "mov.u32 %r11, {instruction:#010x}; add.u32 %r13, %r10, 32; add.u32 %r12, %r10, {address:#x};
        tcgen05.st.sync.aligned.32x32b.x8.b32 [%r13], {{{zeros}}}; tcgen05.wait::st.sync.aligned;
        tcgen05.fence::before_thread_sync; bar.sync 1; tcgen05.fence::after_thread_sync;
        @%p0 tcgen05.mma.cta_group::1.kind::{kind} [%r10], [%r12], %rd10, %r11, %p3;
        COMMIT WAIT"
    )
}

#[test]
fn a_in_tensor_memory() {
    let right = 0x0808_0490;
    let f16 = |instruction| tensor_a("f16", instruction, 32);
    let edit = |wrong: u32| format!("{wrong:#010x}");
    refuses_tensor(
        128,
        &f16(right | 1 << 15),
        "kernel `k`, PTX line 12: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], [%r12], %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: A in tensor memory cannot be transposed (instruction descriptor bit 15)",
        (&edit(right | 1 << 15), &edit(right)),
    );
    let odd = 0x0802_0490;
    refuses_tensor(
        128,
        &f16(odd),
        "kernel `k`, PTX line 12: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], [%r12], %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: A in tensor memory, cta_group::1, M = 128: N = 8; N must be a multiple of 16",
        (&edit(odd), &edit(right)),
    );
    let packed = 0x0808_0010 | 5 << 7;
    refuses_tensor(
        128,
        &tensor_a("f8f6f4", packed, 32),
        "kernel `k`, PTX line 12: `@%p0 tcgen05.mma.cta_group::1.kind::f8f6f4 [%r10], [%r12], %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: A in tensor memory with Narrow(E2m1) elements is not simulated; 8-, 16- and 32-bit elements are",
        (&edit(packed), "0x08080010"),
    );
    refuses_tensor(
        128,
        &tensor_a("f16", right, 0x10_0020),
        "kernel `k`, PTX line 12: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], [%r12], %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: A starts at lane 16 of tensor memory and the accumulator at lane 0; they must be the same",
        ("0x100020", "0x20"),
    );
}

#[test]
fn the_accumulator() {
    let body = "add.u32 %r12, %r10, 0x100000;
        @%p0 tcgen05.mma.cta_group::1.kind::f16 [%r12], %rd10, %rd10, %r11, %p3;
        COMMIT WAIT";
    refuses_tensor(
        32,
        body,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r12], %rd10, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the accumulator starts at lane 16; data-path layout D allows [0]",
        ("0x100000", "0"),
    );
    let body = "setp.eq.u32 %p5, %r1, %r1;
        @%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd10, %rd10, %r11, %p5;
        COMMIT WAIT";
    refuses_tensor(
        32,
        body,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd10, %rd10, %r11, %p5;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: D of CTA 0 of the group: tensor memory lane 0, column 0 is read before it was written",
        ("setp.eq", "setp.ne"),
    );
}

#[test]
fn operands_that_were_not_written() {
    let body = "add.u64 %rd11, %rd10, 256;
        @%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd10, %rd11, %r11, %p3;
        COMMIT WAIT";
    refuses_tensor(
        32,
        body,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd10, %rd11, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: B of CTA 0 of the group: shared memory at 0x1000 is read before it was written",
        ("256;", "0;"),
    );
    let body = "add.u64 %rd11, %rd10, 256;
        @%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r10], %rd11;
        COMMIT WAIT";
    refuses_tensor(
        32,
        body,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r10], %rd11;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: shared memory at 0x1000 is read before it was written",
        ("256;", "0;"),
    );
}

/// A block-scaled MMA over zeros; every warp writes this value to the cells with the scales, 32 and more columns on.
fn scaled(store: &str, address: u32) -> String {
    let scales = ["%r22"; 8].join(", ");
    format!(
        "mov.u32 %r11, 0x08880000; add.u32 %r12, %r10, {address:#x}; add.u32 %r14, %r10, 32; mov.u32 %r22, 0x7f7f7f7f;
        {store} tcgen05.st.sync.aligned.32x32b.x8.b32 [%r14], {{{scales}}}; tcgen05.wait::st.sync.aligned;
        tcgen05.fence::before_thread_sync; bar.sync 1; tcgen05.fence::after_thread_sync;
        @%p0 tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r10], %rd10, %rd10, %r11, [%r12], [%r14], %p3;
        COMMIT WAIT"
    )
}

#[test]
fn scales() {
    refuses_tensor(
        128,
        &scaled("", 0x1_0020),
        "kernel `k`, PTX line 12: `@%p0 tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r10], %rd10, %rd10, %r11, [%r12], [%r14], %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the scales of A have address 0x00010020: the lane must be 0 (bits 30..32 may repeat the scale id, which is 0)",
        ("0x10020", "0x20"),
    );
    let differing = "setp.lt.u32 %p5, %r1, 64; selp.u32 %r22, 0x7f7f7f7f, 0x7e7e7e7e, %p5;";
    refuses_tensor(
        128,
        &scaled(differing, 32),
        "kernel `k`, PTX line 12: `@%p0 tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r10], %rd10, %rd10, %r11, [%r12], [%r14], %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: scales of A of CTA 0 of the group: the scale of row 0 is 0x7f in lane 0 but 0x7e in lane 64 (column 32, byte 0); scales must be duplicated to all 32-lane partitions",
        (differing, ""),
    );
    refuses_tensor(
        128,
        &scaled("", 40),
        "kernel `k`, PTX line 12: `@%p0 tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r10], %rd10, %rd10, %r11, [%r12], [%r14], %p3;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: scales of A of CTA 0 of the group: tensor memory lane 0, column 40 is read before it was written",
        ("0x28", "0x20"),
    );
}

#[test]
fn lanes() {
    let body = "add.u32 %r12, %r10, 0x10000;
        @%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12], %rd10;
        COMMIT WAIT";
    refuses_tensor(
        32,
        body,
        "kernel `k`, PTX line 10: `@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12], %rd10;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: Lanes32x128bWarpx4 to lane 1; legal: 0",
        ("0x10000", "0"),
    );
    let body = "add.u32 %r12, %r10, 0x200000;
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r12], {%r21}; tcgen05.wait::st.sync.aligned;";
    refuses_tensor(
        32,
        body,
        "kernel `k`, PTX line 10: `tcgen05.st.sync.aligned.32x32b.x1.b32 [%r12], {%r21}; tcgen05.wait::st.sync.aligned;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: Lanes32x32b at lane 32, column 0 by warp 0 of its warpgroup: the warp owns lanes 0..32; the address names them absolutely or from 0, and a rectangle starts at a multiple of its height",
        ("0x200000", "0"),
    );
}
