//! Copies into and out of shared memory: by warps as matrices, by threads asynchronously, in bulk, and by tensor map.

use simulator::node::{TensorMapDescription, TensorMapElement as Element, TensorMapSwizzle as Swizzle};

use super::{Case, Class, Parameter, WAIT, output, random_bytes, words};
use crate::inputs::Random;

const BLOCK: u32 = 128;

/// Copies `bytes` of global memory at `%rd1` to the tile, 4 at a time.
fn fill(label: &str, bytes: usize) -> String {
    format!(
        "mov.u32 %r40, tile; shl.b32 %r41, %thread, 2; add.u32 %r40, %r40, %r41; cvt.u64.u32 %rd30, %r41; add.u64 %rd31, %rd1, %rd30;
{label}: setp.ge.u32 %p7, %r41, {bytes}; @%p7 bra {label}_END;
ld.global.b32 %r42, [%rd31]; st.shared.b32 [%r40], %r42; add.u32 %r40, %r40, {step}; add.u32 %r41, %r41, {step}; add.u64 %rd31, %rd31, {step};
bra {label};
{label}_END:\n",
        step = 4 * BLOCK
    )
}

/// Copies the tile to global memory at `%rd2`.
fn dump(label: &str, bytes: usize) -> String {
    format!(
        "mov.u32 %r40, tile; shl.b32 %r41, %thread, 2; add.u32 %r40, %r40, %r41; cvt.u64.u32 %rd30, %r41; add.u64 %rd31, %rd2, %rd30;
{label}: setp.ge.u32 %p7, %r41, {bytes}; @%p7 bra {label}_END;
ld.shared.b32 %r42, [%r40]; st.global.b32 [%rd31], %r42; add.u32 %r40, %r40, {step}; add.u32 %r41, %r41, {step}; add.u64 %rd31, %rd31, {step};
bra {label};
{label}_END:\n",
        step = 4 * BLOCK
    )
}

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    matrices(&mut cases);
    asynchronous(&mut cases);
    barriers(&mut cases);
    bulk(&mut cases);
    tensors(&mut cases);
    cases
}

/// `ldmatrix` and `stmatrix`, each lane with a row of its own.
fn matrices(cases: &mut Vec<Case>) {
    const TILE: usize = 2048;
    for count in [1, 2, 4] {
        for trans in ["", ".trans"] {
            let list: Vec<String> = (0..count).map(|i| format!("%r{}", 10 + i)).collect();
            let list = list.join(", ");
            let mut random = Random::new(count as u64);
            let rows: Vec<u32> = (0..BLOCK).map(|_| 16 * random.below(TILE as u64 / 16) as u32).collect();
            let head = format!(
                ".shared .align 128 .b8 tile[{TILE}]; ld.param.u64 %rd1, [p0]; ld.param.u64 %rd3, [p1]; ld.param.u64 %rd2, [p2];
mul.wide.u32 %rd4, %thread, 4; add.u64 %rd3, %rd3, %rd4; ld.global.b32 %r1, [%rd3]; mov.u32 %r2, tile; add.u32 %r1, %r1, %r2;\n{}bar.sync 0;\n",
                fill("FILL", TILE)
            );
            let stores: String =
                (0..count).map(|i| format!("st.global.b32 [%rd2+{}], %r{};\n", 4 * i, 10 + i)).collect();
            let body = format!(
                "{head}ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{list}}}, [%r1];
mul.wide.u32 %rd4, %thread, {}; add.u64 %rd2, %rd2, %rd4;\n{stores}",
                4 * count
            );
            cases.push(Case::exact(
                format!("ldmatrix.m8n8.x{count}{trans}"),
                body,
                BLOCK,
                vec![Parameter::Input(random_bytes(TILE, 5)), words(rows), output(4 * count * BLOCK as usize)],
            ));
            // All rows of all lanes are different.
            let mut rows: Vec<u32> = (0..BLOCK).map(|row| 16 * row).collect();
            for i in (1..rows.len()).rev() {
                rows.swap(i, random.below(i as u64 + 1) as usize);
            }
            let sources: String = (0..count)
                .map(|i| {
                    format!(
                        "mul.lo.u32 %r{}, %thread, {}; xor.b32 %r{0}, %r{0}, 0x9e3779b9;\n",
                        10 + i,
                        0x0123_4567 + 2 * i
                    )
                })
                .collect();
            let body = format!(
                "{head}{sources}stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r1], {{{list}}};\nbar.sync 0;\n{}",
                dump("DUMP", TILE)
            );
            cases.push(Case::exact(
                format!("stmatrix.m8n8.x{count}{trans}"),
                body,
                BLOCK,
                vec![Parameter::Input(random_bytes(TILE, 5)), words(rows), output(TILE)],
            ));
        }
    }
}

/// `cp.async` of one unit per thread.
fn asynchronous(cases: &mut Vec<Case>) {
    let mut add = |name: String, bytes: usize, prepare: &str, copy: &str, wait: &str| {
        let tile = bytes * BLOCK as usize;
        let body = format!(
            ".shared .align 128 .b8 tile[{tile}]; .shared .align 8 .b64 full; ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
mov.u32 %bar, full; setp.ne.u32 %p1, %thread, 0; @%p1 bra READY; mbarrier.init.shared::cta.b64 [%bar], {BLOCK}; READY: bar.sync 0;
mov.u32 %r1, tile; mul.lo.u32 %r2, %thread, {bytes}; add.u32 %r1, %r1, %r2; cvt.u64.u32 %rd3, %r2; add.u64 %rd3, %rd1, %rd3;
{prepare}\n{copy}\n{wait}\nbar.sync 0;\n{}",
            dump("DUMP", tile)
        );
        cases.push(Case::exact(name, body, BLOCK, vec![Parameter::Input(random_bytes(tile, 9)), output(tile)]));
    };
    let group = "cp.async.commit_group; cp.async.wait_group 0;";
    for (cache, bytes) in [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)] {
        let copy = format!("cp.async.{cache}.shared.global");
        add(format!("{copy} {bytes}"), bytes, "", &format!("{copy} [%r1], [%rd3], {bytes};"), group);
        let size = format!("rem.u32 %r3, %thread, {};", bytes + 1);
        add(
            format!("{copy} {bytes}, source size"),
            bytes,
            &size,
            &format!("{copy} [%r1], [%rd3], {bytes}, %r3;"),
            group,
        );
        let odd = "and.b32 %r3, %thread, 1; setp.eq.u32 %p2, %r3, 1;";
        add(
            format!("{copy} {bytes}, ignore source"),
            bytes,
            odd,
            &format!("{copy} [%r1], [%rd3], {bytes}, %p2;"),
            "cp.async.wait_all;",
        );
        let arrive = format!("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%bar];\n{WAIT}");
        add(format!("{copy} {bytes}, mbarrier"), bytes, "", &format!("{copy} [%r1], [%rd3], {bytes};"), &arrive);
    }
}

/// One thread and an mbarrier: what each step leaves pending, and which phases are over.
fn barriers(cases: &mut Vec<Case>) {
    let mut text = ".shared .align 8 .b64 full; ld.param.u64 %rd2, [p0]; mov.u32 %bar, full;\n".to_owned();
    let mut results = 0;
    let mut store = |text: &mut String, register: &str| {
        *text += &format!("st.global.b32 [%rd2+{}], {register};\n", 4 * results);
        results += 1;
    };
    // The state of the last arrival says how many were pending before it.
    let arrive = |text: &mut String, form: &str, store: &mut dyn FnMut(&mut String, &str)| {
        *text += &format!("{form} mbarrier.pending_count.b64 %r2, %rd1;\n");
        store(text, "%r2");
        for (test, phase) in [
            ("test_wait.shared::cta.b64", "%rd1"),
            ("test_wait.parity.shared::cta.b64", "0"),
            ("test_wait.parity.shared::cta.b64", "1"),
        ] {
            *text += &format!("mbarrier.{test} %p1, [%bar], {phase}; selp.b32 %r3, 1, 0, %p1;\n");
            store(text, "%r3");
        }
    };
    text += "mbarrier.init.shared::cta.b64 [%bar], 5;\n";
    for form in [
        "mbarrier.arrive.shared::cta.b64 %rd1, [%bar];",
        "mbarrier.arrive.noComplete.shared::cta.b64 %rd1, [%bar], 2;",
        "mbarrier.arrive.release.cta.shared::cta.b64 %rd1, [%bar], 2;",
        // The second phase: transactions hold it up.
        "mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%bar], 64;",
        "mbarrier.arrive.shared::cta.b64 %rd1, [%bar], 4;",
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar], 64;",
        // The third: one arrival fewer is expected from the next on.
        "mbarrier.arrive_drop.shared::cta.b64 %rd1, [%bar];",
        "mbarrier.arrive.shared::cta.b64 %rd1, [%bar], 4;",
        "mbarrier.arrive.shared::cta.b64 %rd1, [%bar];",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], 32;",
        "mbarrier.arrive.shared::cta.b64 %rd1, [%bar], 3;",
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar], 32;",
    ] {
        arrive(&mut text, form, &mut store);
    }
    text += "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%bar], 1; selp.b32 %r3, 1, 0, %p1;\n";
    store(&mut text, "%r3");
    cases.push(Case::exact("mbarrier: arrivals, transactions and phases", text, 1, vec![output(4 * results)]));
}

/// Linear bulk copies there and back.
fn bulk(cases: &mut Vec<Case>) {
    for (bytes, from, to) in [(16, 0, 0), (48, 16, 32), (1024, 0, 0), (4096, 48, 16), (16384, 16, 0)] {
        let tile = bytes + to;
        let body = format!(
            ".shared .align 128 .b8 tile[{tile}]; .shared .align 8 .b64 full; ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u64 %rd4, [p2];
mov.u32 %bar, full; mov.u32 %r1, tile; {}bar.sync 0; fence.proxy.async.shared::cta; setp.ne.u32 %p1, %thread, 0; @%p1 bra READY;
mbarrier.init.shared::cta.b64 [%bar], 1; fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {bytes};
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+{to}], [%rd1+{from}], {bytes}, [%bar];
READY: bar.sync 0;\n{WAIT}\n{}
fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%rd4+{from}], [%r1+{to}], {bytes}; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
DONE:",
            fill("FILL", tile),
            dump("DUMP", tile)
        );
        cases.push(Case::exact(
            format!("cp.async.bulk of {bytes} bytes from {from} to {to} and back"),
            body,
            BLOCK,
            vec![Parameter::Input(random_bytes(bytes + 64, 3)), output(tile), output(bytes + 64)],
        ));
    }
}

/// A tensor and a box of it.
#[derive(Clone)]
struct Tile {
    map: TensorMapDescription,
    coordinates: Vec<i32>,
}

impl Tile {
    fn new(element: Element, dimensions: &[u64], extents: &[u32], coordinates: &[i32]) -> Self {
        let mut stride = 0;
        let mut strides_bytes = Vec::new();
        for &extent in &dimensions[..dimensions.len() - 1] {
            // 16 bytes between rows belong to no element.
            stride = if stride == 0 { extent * u64::from(element.bytes()) } else { stride * extent };
            stride = stride.next_multiple_of(16) + 16;
            strides_bytes.push(stride);
        }
        let map = TensorMapDescription {
            element,
            base: 0,
            dimensions: dimensions.to_vec(),
            strides_bytes,
            box_dimensions: extents.to_vec(),
            element_strides: vec![1; dimensions.len()],
            swizzle: Swizzle::None,
            nan_fill: false,
        };
        Self { map, coordinates: coordinates.to_vec() }
    }

    fn swizzled(mut self, swizzle: Swizzle) -> Self {
        self.map.swizzle = swizzle;
        self
    }

    fn filled_with_nan(mut self) -> Self {
        self.map.nan_fill = true;
        self
    }

    fn strided(mut self, strides: &[u32]) -> Self {
        self.map.element_strides = strides.to_vec();
        self
    }

    fn box_bytes(&self) -> usize {
        let map = &self.map;
        let extents = map.box_dimensions.iter().zip(&map.element_strides).enumerate();
        // The innermost stride does not count.
        let elements: u32 =
            extents.map(|(d, (&extent, &stride))| if d == 0 { extent } else { extent.div_ceil(stride) }).product();
        (elements * map.element.bytes()) as usize
    }

    fn tensor_bytes(&self) -> usize {
        let map = &self.map;
        let outer: u64 =
            map.dimensions[1..].iter().zip(&map.strides_bytes).map(|(extent, stride)| (extent - 1) * stride).sum();
        // What lies behind the end shows a store out of bounds.
        (outer + map.dimensions[0] * u64::from(map.element.bytes())).next_multiple_of(16) as usize + 256
    }

    fn name(&self) -> String {
        let map = &self.map;
        let strides = if map.element_strides.iter().any(|&stride| stride != 1) {
            format!(", strides {:?}", map.element_strides)
        } else {
            String::new()
        };
        let fill = if map.nan_fill { ", NaN" } else { "" };
        format!(
            "{}d {:?} {:?} box {:?} at {:?}, swizzle {:?}{strides}{fill}",
            map.dimensions.len(),
            map.element,
            map.dimensions,
            map.box_dimensions,
            self.coordinates,
            map.swizzle
        )
    }

    /// Moves for the coordinates, and their list.
    fn place(&self) -> (String, String) {
        let moves =
            self.coordinates.iter().enumerate().map(|(i, at)| format!("mov.s32 %r{}, {at}; ", 20 + i)).collect();
        let names: Vec<String> = (0..self.coordinates.len()).map(|i| format!("%r{}", 20 + i)).collect();
        (moves, format!("{{{}}}", names.join(", ")))
    }

    fn load(&self) -> Case {
        let bytes = self.box_bytes();
        let (moves, list) = self.place();
        let body = format!(
            ".shared .align 1024 .b8 tile[{bytes}]; .shared .align 8 .b64 full; mov.u64 %rd1, p1; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [p2];
mov.u32 %bar, full; mov.u32 %r1, tile; {moves}setp.ne.u32 %p1, %thread, 0; @%p1 bra READY;
mbarrier.init.shared::cta.b64 [%bar], 1; fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {bytes};
cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {list}], [%bar];
READY: bar.sync 0;\n{WAIT}\n{}",
            self.coordinates.len(),
            dump("DUMP", bytes)
        );
        let source = Parameter::Input(random_bytes(self.tensor_bytes(), 21));
        let map = Parameter::Map { buffer: 0, description: self.map.clone() };
        Case::exact(format!("TMA load {}", self.name()), body, BLOCK, vec![source, map, output(bytes)])
    }

    /// A store, or a reduction; `draw` makes the elements of the box and of the tensor.
    fn store(&self, reduction: Option<&str>, draw: &dyn Fn(usize, u64) -> Vec<u8>) -> Case {
        let bytes = self.box_bytes();
        let (moves, list) = self.place();
        let (copy, operation) = match reduction {
            Some(operation) => ("cp.reduce", format!(".{operation}")),
            None => ("cp", String::new()),
        };
        let body = format!(
            ".shared .align 1024 .b8 tile[{bytes}]; ld.param.u64 %rd1, [p0]; mov.u64 %rd2, p2; cvta.param.u64 %rd2, %rd2;
{moves}{}fence.proxy.async.shared::cta; bar.sync 0; mov.u32 %r1, tile; setp.ne.u32 %p1, %thread, 0; @%p1 bra DONE;
{copy}.async.bulk.tensor.{}d.global.shared::cta{operation}.tile.bulk_group [%rd2, {list}], [%r1];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
DONE:",
            fill("FILL", bytes),
            self.coordinates.len(),
        );
        let name = match reduction {
            Some(operation) => format!("TMA reduce {operation} {}", self.name()),
            None => format!("TMA store {}", self.name()),
        };
        let tensor = Parameter::Output(draw(self.tensor_bytes(), 31));
        let map = Parameter::Map { buffer: 1, description: self.map.clone() };
        Case::exact(name, body, BLOCK, vec![Parameter::Input(draw(bytes, 32)), tensor, map])
    }
}

/// Finite numbers of moderate size in a format.
fn finite(element: Element) -> impl Fn(usize, u64) -> Vec<u8> {
    move |bytes, seed| {
        let mut random = Random::new(seed);
        let mut out = Vec::new();
        while out.len() < bytes {
            let fraction = random.below(1 << 23) as f32 / (1 << 23) as f32 + 1.0;
            let value =
                fraction * (random.below(16) as f32 - 8.0).exp2() * if random.below(2) == 0 { 1.0 } else { -1.0 };
            match element {
                Element::F16 => out.extend_from_slice(&half::f16::from_f32(value).to_bits().to_le_bytes()),
                Element::Bf16 => out.extend_from_slice(&half::bf16::from_f32(value).to_bits().to_le_bytes()),
                _ => out.extend_from_slice(&value.to_bits().to_le_bytes()),
            }
        }
        out.truncate(bytes);
        out
    }
}

/// Elements in so many units of 16 bytes.
fn units(element: Element, count: i32) -> i32 {
    count * 16 / element.bytes() as i32
}

/// The last unit of 16 bytes of a row that begins in the tensor, from where on a box of several crosses the end.
fn last_unit(element: Element, extent: u32) -> i32 {
    units(element, ((extent * element.bytes() - 1) / 16) as i32)
}

fn tensors(cases: &mut Vec<Case>) {
    use Swizzle::{B32, B64, B128, None};
    // Loads may begin before the tensor, stores may not; both in units of 16 bytes along the innermost dimension.
    let (mut tiles, mut loads) = (Vec::new(), Vec::new());
    for element in [Element::U8, Element::F32] {
        let extent = if element == Element::U8 { 256 } else { 128 };
        for at in [0, 912, last_unit(element, 1000), 2000] {
            tiles.push(Tile::new(element, &[1000], &[extent], &[at]));
        }
        loads.push(Tile::new(element, &[1000], &[extent], &[-16]));
    }
    for element in [Element::Bf16, Element::F32, Element::U8] {
        for (swizzle, span) in [(None, 64), (B32, 32), (B64, 64), (B128, 128)] {
            let tile = |inner, outer| {
                Tile::new(element, &[100, 50], &[span / element.bytes(), 24], &[inner, outer]).swizzled(swizzle)
            };
            let last = last_unit(element, 100);
            for at in [[0, 0], [last, 37], [units(element, 1), 5], [2 * last, 0], [0, 90]] {
                tiles.push(tile(at[0], at[1]));
            }
            for at in [[units(element, -1), 5], [units(element, 1), -4], [last, -23], [units(element, -15), 0]] {
                loads.push(tile(at[0], at[1]));
            }
        }
    }
    for (swizzle, span) in [(None, 16), (B32, 16), (B64, 32), (B128, 64)] {
        for rank in 3..=5 {
            let (dimensions, extents) = ([70, 9, 6, 4, 3], [span, 4, 3, 2, 2]);
            let tile = |at: [i32; 5]| {
                Tile::new(Element::F16, &dimensions[..rank], &extents[..rank], &at[..rank]).swizzled(swizzle)
            };
            tiles.extend([[0, 0, 0, 0, 0], [64, 6, 3, 1, 1], [32, 3, 1, 3, 2]].map(tile));
            loads.push(tile([-8, 3, 1, -1, 2]));
        }
    }
    let strided = |strides: &[u32], at: &[i32]| {
        Tile::new(Element::Bf16, &[100, 50], &[64, 24], at).swizzled(B128).strided(strides)
    };
    tiles.extend([strided(&[1, 2], &[0, 0]), strided(&[1, 8], &[64, 10])]);
    loads.extend([strided(&[1, 3], &[-8, -4]), strided(&[2, 1], &[0, 0])]);
    let cube = |at: &[i32]| Tile::new(Element::U16, &[70, 9, 6], &[32, 5, 5], at).strided(&[1, 2, 3]);
    tiles.push(cube(&[48, 1, 2]));
    loads.push(cube(&[8, 1, -1]));
    tiles.push(Tile::new(Element::U64, &[40, 20], &[16, 8], &[30, 15]).swizzled(B128));
    for element in [Element::F32, Element::Bf16, Element::F16] {
        let inner = 128 / element.bytes();
        for at in [[units(element, -1), 45], [last_unit(element, 100), -3]] {
            loads.push(Tile::new(element, &[100, 50], &[inner, 16], &at).swizzled(B128).filled_with_nan());
        }
    }
    cases.extend(tiles.iter().chain(&loads).map(Tile::load));
    cases.extend(tiles.iter().map(|tile| tile.store(Option::None, &random_bytes)));
    for (swizzle, span) in [(None, 64), (B128, 128)] {
        reductions(swizzle, span, &[[0, 0], [1, 40]], &mut |case| cases.push(case));
    }
}

/// Every reduction of every element type at places given in units of 16 bytes and rows.
fn reductions(swizzle: Swizzle, span: u32, places: &[[i32; 2]], put: &mut dyn FnMut(Case)) {
    let random = |bytes: usize, seed: u64| random_bytes(bytes, seed);
    for at in places {
        let mut reduce = |element: Element, operations: &[&str], draw: &dyn Fn(usize, u64) -> Vec<u8>| {
            let at = [units(element, at[0]), at[1]];
            let tile = Tile::new(element, &[100, 50], &[span / element.bytes(), 16], &at).swizzled(swizzle);
            operations.iter().for_each(|operation| put(tile.store(Some(operation), draw)));
        };
        reduce(Element::F32, &["add"], &finite(Element::F32));
        reduce(Element::Bf16, &["add", "min", "max"], &finite(Element::Bf16));
        reduce(Element::F16, &["add", "min", "max"], &finite(Element::F16));
        reduce(Element::U32, &["add", "min", "max", "inc", "dec", "and", "or", "xor"], &random);
        reduce(Element::U64, &["add", "min", "max", "and", "or", "xor"], &random);
    }
}

/// Coordinates that must stop the kernel, and those of which it is not known what they do. Each of the former costs the
/// process that runs it, so that there are few.
pub fn limits() -> Vec<Case> {
    let tile = |element: Element, at: &[i32]| Tile::new(element, &[100, 50], &[64 / element.bytes(), 8], at);
    let mut cases = Vec::new();
    let mut illegal = |case: Case| cases.push(Case { class: Class::Illegal, ..case });
    for (element, inner) in [(Element::U8, 8), (Element::Bf16, -4), (Element::F32, 2), (Element::U64, 1)] {
        illegal(tile(element, &[inner, 0]).load());
    }
    illegal(tile(Element::Bf16, &[12, 0]).store(None, &random_bytes));
    illegal(tile(Element::F32, &[-4, 0]).store(None, &random_bytes));
    illegal(tile(Element::F32, &[2, 0]).store(Some("add"), &finite(Element::F32)));
    illegal(tile(Element::F32, &[-4, 0]).store(Some("add"), &finite(Element::F32)));
    illegal(tile(Element::U64, &[2, -1]).store(Some("or"), &random_bytes));
    let mut open = |case: Case| cases.push(Case { class: Class::Open, ..case });
    // Before the tensor in an outer dimension, partly and wholly; seen to be illegal for reductions only.
    open(tile(Element::F32, &[0, -1]).store(None, &random_bytes));
    open(tile(Element::Bf16, &[0, -100]).store(None, &random_bytes));
    open(Tile::new(Element::F16, &[70, 9, 6], &[16, 4, 3], &[0, 0, -1]).store(None, &random_bytes));
    // Not aligned, though nothing of the box is in the tensor.
    open(tile(Element::F32, &[1, 60]).load());
    open(tile(Element::F32, &[1, 60]).store(None, &random_bytes));
    // Where a reduction ends that crosses the end of a row: like a store, after 16 bytes, or after the last element?
    for (element, operation) in [(Element::Bf16, "add"), (Element::F16, "max"), (Element::U64, "add")] {
        let at = [last_unit(element, 101), 3];
        let tile = Tile::new(element, &[101, 50], &[64 / element.bytes(), 8], &at);
        open(match element {
            Element::U64 => tile.store(Some(operation), &random_bytes),
            _ => tile.store(Some(operation), &finite(element)),
        });
    }
    cases
}
