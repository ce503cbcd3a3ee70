//! Short statements of every kind, from the texts that the repository has.

use super::forms;
use std::fmt::Write as _;
use std::path::Path;

/// Declarations around every statement: registers by the names that the corpus uses, and what addresses may point to.
pub const DECLARATIONS: &str =
    ".reg .pred %p, %q, %p<8>; .reg .b16 %h<8>, %rs<8>; .reg .b32 %r<140>, %t<4>; .reg .b64 %rd<40>;
.reg .f32 %f<16>; .reg .f64 %fd<4>;
.shared .align 128 .b8 buffer[2048]; .shared .align 8 .b64 bar[4]; .local .align 8 .b8 stack[64];
";

/// What texts are made of.
pub struct Corpus {
    /// Statements that load on their own between [`DECLARATIONS`] and the labels `L0` to `L3`.
    pub statements: Vec<String>,
    /// Whole modules.
    pub modules: Vec<String>,
    /// Every token of them.
    pub tokens: Vec<String>,
}

/// A module around a body.
pub fn module(body: &str) -> String {
    format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.global .align 16 .b8 variable[64];\n.visible .entry k(.param .u64 p0, .param .u64 p1, .param .align 64 .b8 map[128])\n{{\n{DECLARATIONS}{body}\n}}\n"
    )
}

impl Corpus {
    /// Reads the texts of the repository.
    pub fn new() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let mut candidates: Vec<String> = forms::all().iter().map(form).collect();
        for test in
            ["instruction_forms.rs", "integer_semantics.rs", "bulk_copies.rs", "mbarriers.rs", "tcgen05_operands.rs"]
        {
            candidates.extend(literals(&read(&format!("tests/{test}"))));
        }
        candidates.extend(read("../../gpu-kernels/prebuilt/sm_100f.ptx").lines().filter_map(renamed));
        for (i, register) in [40, 41, 42, 43].iter().enumerate() {
            candidates.push(format!("L{i}: mov.u32 %r{register}, {i};"));
        }
        candidates.sort();
        candidates.dedup();
        let statements: Vec<String> = candidates
            .into_iter()
            .filter(|statement| {
                let labels: String =
                    (0..4).map(|i| format!("L{i}:")).filter(|label| !statement.contains(label.as_str())).collect();
                simulator::ptx::load(&module(&format!("{labels}{statement}"))).is_ok()
            })
            .collect();
        let modules = vec![read("tests/data/syntax.ptx")];
        let mut tokens: Vec<String> =
            statements.iter().chain(&modules).flat_map(|text| tokens(text)).map(str::to_owned).collect();
        tokens.sort();
        tokens.dedup();
        Self { statements, modules, tokens }
    }
}

/// A form in a scope of its own, with operands.
fn form(form: &forms::Form) -> String {
    let mut text = "{ ".to_owned();
    for (i, kind) in form.inputs.iter().enumerate() {
        let bits = kind.bits();
        let _ = write!(text, ".reg .b{bits} %in{i}; mov.b{bits} %in{i}, {}; ", [0x7fff, 3, 0xffff][i]);
    }
    let _ = write!(text, ".reg .b{} %out; {} }}", form.output.bits, form.text);
    text
}

/// String literals that look like statements.
fn literals(source: &str) -> Vec<String> {
    source
        .split('"')
        .filter(|literal| literal.trim_end().ends_with(';') && literal.contains(' ') && literal.len() < 300)
        .map(|literal| literal.replace("{{", "{").replace("}}", "}").replace('\\', " "))
        .collect()
}

/// A line of compiled code with the registers and labels of [`DECLARATIONS`].
fn renamed(line: &str) -> Option<String> {
    let line = line.trim();
    if !line.ends_with(';') || line.starts_with(['.', '/']) {
        return None;
    }
    let mut text = String::new();
    for token in tokens(line) {
        let digits = token.trim_start_matches(|c: char| !c.is_ascii_digit());
        let name = &token[..token.len() - digits.len()];
        match (name, digits.parse::<u32>()) {
            ("%r", Ok(n)) => drop(write!(text, "%r{}", n % 140)),
            ("%rd", Ok(n)) => drop(write!(text, "%rd{}", n % 40)),
            ("%p" | "%rs", Ok(n)) => drop(write!(text, "{name}{}", n % 8)),
            _ if token.starts_with("$L") => drop(write!(text, "L{}", token.len() % 4)),
            _ => text += token,
        }
    }
    Some(text)
}

/// Words, numbers with what belongs to them, spaces, and single other characters.
pub fn tokens(text: &str) -> Vec<&str> {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let tail = &rest[first.len_utf8()..];
        let more = |same: &dyn Fn(char) -> bool| tail.find(|c| !same(c)).unwrap_or(tail.len());
        let length = first.len_utf8()
            + match first {
                '.' => more(&|c| word(c) || c == ':'),
                _ if word(first) => more(&word),
                _ if first.is_whitespace() => more(&char::is_whitespace),
                _ => 0,
            };
        tokens.push(&rest[..length]);
        rest = &rest[length..];
    }
    tokens
}
