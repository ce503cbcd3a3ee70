//! Texts: statements of the corpus in a kernel, then edits of tokens and bytes.

use super::corpus::{Corpus, DECLARATIONS, module, tokens};
use super::inputs::Random;

/// Numbers at which something changes.
const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "31",
    "32",
    "33",
    "64",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "0xffffffffffffffffffff",
    "0f7FC00000",
    "0dFFF0000000000000",
    "1e400",
    "(1 << 63) / -1",
];

/// Registers that hold addresses and small numbers, an initialised mbarrier, and tensor memory.
const PRELUDES: [&str; 5] = [
    "",
    "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mov.b64 %rd3, %rd1; add.u64 %rd4, %rd1, 64; mov.u32 %r1, buffer; mov.u32 %r2, %tid.x; mov.u32 %r4, bar; mov.u32 %r3, 16;\n",
    "ld.param.u64 %rd1, [p1]; mov.b64 %rd2, %rd1; mov.u32 %r1, bar; mov.u32 %r4, bar; setp.eq.u32 %p, %r2, 0; mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;\n",
    "mov.u64 %rd1, map; cvta.param.u64 %rd1, %rd1; mov.u32 %r1, buffer; mov.u32 %r4, bar; mbarrier.init.shared.b64 [bar], 1; fence.proxy.async; bar.sync 0;\n",
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [buffer], 32; bar.sync 0; ld.shared.u32 %r1, [buffer]; mov.u32 %r2, 0x8200490; mov.u64 %rd1, 0x4000404000010000; mov.u64 %rd2, %rd1; mov.u32 %r4, bar; setp.eq.u32 %p, %r3, 0;\n",
];

/// A text to load.
pub fn text(corpus: &Corpus, random: &mut Random) -> String {
    let text = if random.below(16) == 0 {
        // A part of a whole module.
        pick(&corpus.modules, random).clone()
    } else {
        let mut body = PRELUDES[random.below(5) as usize].to_owned();
        for _ in 0..1 + random.below(4) {
            body += pick(&corpus.statements, random);
            body.push('\n');
        }
        for label in ["L0:", "L1:", "L2:", "L3:"] {
            if !body.contains(label) && body.contains(&label[..2]) {
                body += label;
            }
        }
        module(&body)
    };
    // The head is left alone mostly: without it, nothing loads.
    let declared = text.find(DECLARATIONS).map_or(0, |at| at + DECLARATIONS.len());
    let first = if random.below(8) == 0 { 0 } else { declared };
    let mut tokens: Vec<String> = tokens(&text[first..]).into_iter().map(str::to_owned).collect();
    for _ in 0..random.below(5) {
        edit_tokens(&mut tokens, corpus, random);
    }
    let text = text[..first].to_owned() + &tokens.concat();
    if random.below(8) == 0 { edit_bytes(text, random) } else { text }
}

fn pick<'c>(list: &'c [String], random: &mut Random) -> &'c String {
    &list[random.below(list.len() as u64) as usize]
}

fn edit_tokens(tokens: &mut Vec<String>, corpus: &Corpus, random: &mut Random) {
    if tokens.is_empty() {
        return;
    }
    let place = |random: &mut Random, tokens: &[String]| random.below(tokens.len() as u64) as usize;
    let at = place(random, tokens);
    match random.below(10) {
        0 | 1 => tokens[at] = pick(&corpus.tokens, random).clone(),
        2 => tokens.insert(at, pick(&corpus.tokens, random).clone()),
        3 => drop(tokens.remove(at)),
        4 => {
            let other = place(random, tokens);
            tokens.swap(at, other);
        }
        5 | 6 => {
            // A number, where there is one.
            let numbers: Vec<usize> =
                (0..tokens.len()).filter(|&i| tokens[i].starts_with(|c: char| c.is_ascii_digit())).collect();
            let at = if numbers.is_empty() { at } else { numbers[random.below(numbers.len() as u64) as usize] };
            tokens[at] = match random.below(3) {
                0 => random.next().to_string(),
                _ => NUMBERS[random.below(NUMBERS.len() as u64) as usize].to_owned(),
            };
        }
        7 => {
            // A piece of the text, elsewhere.
            let end = (at + 1 + random.below(20) as usize).min(tokens.len());
            let piece = tokens[at..end].to_vec();
            let to = place(random, tokens);
            tokens.splice(to..to, piece);
        }
        8 => {
            // Much of the same.
            let times = 1usize << random.below(9);
            let token = ["{", "(", "-", "[", "~", "!", ".x", "%r1,", "L9:", "@%p "][random.below(10) as usize];
            tokens.insert(at, token.repeat(times));
        }
        _ => {
            // A register or modifier instead of one of the same sort.
            let sort = tokens[at].chars().next();
            let other = pick(&corpus.tokens, random);
            if other.chars().next() == sort {
                tokens[at] = other.clone();
            }
        }
    }
}

fn edit_bytes(text: String, random: &mut Random) -> String {
    let mut bytes = text.into_bytes();
    for _ in 0..1 + random.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(5) {
            0 => bytes[at] = random.next() as u8,
            1 => bytes[at] ^= 1 << random.below(7),
            2 => bytes.insert(at, b" \"/*\n.:0x#%\\"[random.below(12) as usize]),
            3 => drop(bytes.remove(at)),
            _ => bytes.truncate(at),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
