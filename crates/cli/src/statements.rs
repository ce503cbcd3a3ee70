//! The PTX text of each instruction, for traces.

use simulator::program::Kernel;

/// Longest text that is shown whole.
const WIDEST: usize = 120;

/// Line and text of every instruction of a kernel.
pub struct Statements {
    texts: Vec<(u32, String)>,
}

impl Statements {
    pub fn new(kernel: &Kernel) -> Self {
        let lines: Vec<&str> = kernel.source.lines().collect();
        let mut texts = Vec::with_capacity(kernel.instructions.len());
        let mut from = 0;
        while let Some(first) = kernel.instructions.get(from) {
            let line = first.line;
            let count = kernel.instructions[from..].iter().take_while(|next| next.line == line).count();
            let statements = statements_of(&lines, line as usize);
            for index in 0..count {
                // With several statements on a line, and as many instructions, each has its own.
                let text = if statements.len() == count { statements[index].clone() } else { statements.join(" ") };
                texts.push((line, shortened(text)));
            }
            from += count;
        }
        Self { texts }
    }

    /// Line and text of an instruction; none behind the last.
    pub fn get(&self, pc: u32) -> (u32, &str) {
        self.texts.get(pc as usize).map_or((0, "(end of the kernel)"), |(line, text)| (*line, text))
    }
}

/// The statements that begin on a line, without comments, labels, braces and directives.
fn statements_of(lines: &[&str], line: usize) -> Vec<String> {
    let mut text = String::new();
    for piece in lines.iter().skip(line.saturating_sub(1)) {
        let piece = piece.split("//").next().unwrap_or("").trim();
        text.push_str(piece);
        text.push(' ');
        if piece.ends_with(';') {
            break;
        }
    }
    text.split(';')
        .map(|statement| without_label(statement.trim()))
        .filter(|statement| !statement.is_empty() && !statement.starts_with('.'))
        .map(|statement| format!("{};", statement.split_whitespace().collect::<Vec<_>>().join(" ")))
        .collect()
}

/// `LABEL: statement` without the label; `::` belongs to an instruction's name.
fn without_label(statement: &str) -> &str {
    let statement = statement.trim_start_matches(['{', '}', ' ']);
    match statement.split_once(':') {
        Some((label, rest)) if !rest.starts_with(':') && !label.contains([' ', '.']) => without_label(rest.trim()),
        _ => statement,
    }
}

fn shortened(text: String) -> String {
    if text.chars().count() <= WIDEST {
        return text;
    }
    text.chars().take(WIDEST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_of_a_line_is_found() {
        let lines =
            ["LOOP: add.u32 %r1, %r1, 1; @%p1 bra LOOP; // again", "ld.shared::cta.v2.u32", "{%r1, %r2}, [%r3];"];
        assert_eq!(statements_of(&lines, 1), ["add.u32 %r1, %r1, 1;", "@%p1 bra LOOP;"]);
        assert_eq!(statements_of(&lines, 2), ["ld.shared::cta.v2.u32 {%r1, %r2}, [%r3];"]);
    }
}
