//! No refusal without its text in a test: every `#[error("…")]` of the simulator is looked for among the string literals
//! of its tests.

use std::fs;
use std::path::{Path, PathBuf};

/// Refusals that no test can bring about, each with the reason.
const NOT_TESTED: &[(&str, &str)] = &[];

/// Rust files under a folder of this crate, with the path relative to it.
fn sources(folder: &str) -> Vec<(String, String)> {
    fn visit(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("a directory entry").path();
            if path.is_dir() {
                visit(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    visit(&root.join(folder), &mut files);
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root).expect("found below it").display().to_string();
            (name, fs::read_to_string(&path).expect("a readable source file"))
        })
        .collect()
}

/// The value of the string literal whose opening quote has just been read, and what stands behind it.
fn string_literal(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '"' => break,
            '\\' => match rest.next() {
                Some('n') => value.push('\n'),
                // A continued line: its indentation is no part of the string.
                Some('\n') => rest = rest.as_str().trim_start().chars(),
                Some(escaped) => value.push(escaped),
                None => break,
            },
            _ => value.push(character),
        }
    }
    (value, rest.as_str())
}

/// Every string literal of a Rust file, outside comments.
fn string_literals(mut text: &str) -> Vec<String> {
    let mut literals = Vec::new();
    while let Some(at) = text.find(['"', '/', '\'']) {
        let found = &text[at..];
        if let Some(comment) = found.strip_prefix("//") {
            text = comment.split_once('\n').map_or("", |(_, behind)| behind);
        } else if let Some(behind) = found.strip_prefix("'\"'").or_else(|| found.strip_prefix("'\\\"'")) {
            text = behind;
        } else if let Some(inside) = found.strip_prefix('"') {
            let (value, behind) = string_literal(inside);
            literals.push(value);
            text = behind;
        } else {
            text = &found[1..];
        }
    }
    literals
}

/// The parts of a format string between its fields.
fn constant_parts(template: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = template.chars().peekable();
    while let Some(character) = characters.next() {
        if matches!(character, '{' | '}') && characters.next_if_eq(&character).is_some() {
            parts.last_mut().expect("never empty").push(character);
        } else if character == '{' {
            characters.by_ref().find(|&character| character == '}');
            parts.push(String::new());
        } else {
            parts.last_mut().expect("never empty").push(character);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether the parts stand in the text in their order.
fn holds(mut text: &str, parts: &[String]) -> bool {
    parts.iter().all(|part| match text.find(part.as_str()) {
        Some(at) => {
            text = &text[at + part.len()..];
            true
        }
        None => false,
    })
}

/// `#[error("…")]` of every source file, with the file's name.
fn templates() -> Vec<(String, String)> {
    let mut templates = Vec::new();
    for (name, text) in sources("src") {
        for attribute in text.split("#[error(").skip(1) {
            if let Some(inside) = attribute.trim_start().strip_prefix('"') {
                templates.push((name.clone(), string_literal(inside).0));
            }
        }
    }
    templates
}

#[test]
fn every_refusal_has_its_text_in_a_test() {
    let literals: Vec<String> = sources("tests")
        .iter()
        .filter(|(name, _)| !name.ends_with("refusals/coverage.rs"))
        .flat_map(|(_, text)| string_literals(text))
        .collect();
    let templates = templates();
    assert!(templates.len() > 100, "the simulator's refusals are no longer found: {}", templates.len());
    let untested = |template: &str| {
        let parts = constant_parts(template);
        !literals.iter().any(|literal| holds(literal, &parts))
    };
    let missing: Vec<String> = templates
        .iter()
        .filter(|(_, template)| untested(template) && !NOT_TESTED.iter().any(|(listed, _)| listed == template))
        .map(|(name, template)| format!("{name}: {template}"))
        .collect();
    assert!(missing.is_empty(), "{} refusals appear in no test:\n{}", missing.len(), missing.join("\n"));
    for (listed, reason) in NOT_TESTED {
        assert!(!reason.is_empty());
        assert!(templates.iter().any(|(_, template)| template == listed), "no longer a refusal: {listed}");
        assert!(untested(listed), "tested by now: {listed}");
    }
}

#[test]
fn templates_are_compared_by_their_constant_parts() {
    assert_eq!(constant_parts("{a:?} of {b}: {{1}} {}"), [" of ", ": {1} "]);
    assert!(holds("lanes 3 of 4: {1} x", &constant_parts("{a:?} of {b}: {{1}} {}")));
    assert!(!holds("x: {1} of ", &constant_parts("{a:?} of {b}: {{1}}")));
    assert_eq!(string_literals("f(\"a\\\n   b\\\"c\", '\"', \"d\") // \"e\"\n"), ["ab\"c", "d"]);
}
