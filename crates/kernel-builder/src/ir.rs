//! Edits to LLVM IR text between rustc and `opt`.

use std::fmt::Write;

use plan::entries::Entry;

/// The IR and the kernel table do not fit together.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum IrError {
    /// The device crate exports a kernel that the table does not have.
    #[error("kernel `{name}` is in the device crate but not in the table of entries: add it to plan::entries")]
    NotInTable {
        /// Its name.
        name: String,
    },
    /// The table has a kernel that the device crate does not export.
    #[error(
        "kernel `{name}` is in the table of entries but the device crate does not export it: add a #[kernel] function"
    )]
    NotExported {
        /// Its name.
        name: String,
    },
    /// The parameter lists differ.
    #[error("kernel `{name}` has {given} parameters, the table of entries gives it {wanted}")]
    ParameterCount {
        /// Kernel.
        name: String,
        /// In the IR.
        given: usize,
        /// In the table.
        wanted: usize,
    },
    /// A by-value parameter is not written as a pointer.
    #[error(
        "parameter {index} of kernel `{name}` is `{given}`: a parameter of the parameter space is a pointer in Rust"
    )]
    NotAPointer {
        /// Kernel.
        name: String,
        /// Parameter number.
        index: usize,
        /// Its IR.
        given: String,
    },
    /// A definition is not in the form rustc writes.
    #[error("line {line} of the IR is a kernel definition in an unknown form: {text}")]
    Form {
        /// 1-based line.
        line: usize,
        /// The line.
        text: String,
    },
}

/// Applies every edit: `convergent` on inline assembly with side effects, and the table's annotations on the kernels.
pub fn edit(ir: &str, kernels: &[Entry]) -> Result<String, IrError> {
    let mut output = String::with_capacity(ir.len() + ir.len() / 64);
    let mut found = vec![false; kernels.len()];
    for (number, line) in ir.lines().enumerate() {
        if line.starts_with("define ") && line.contains(" ptx_kernel ") {
            let form = || IrError::Form { line: number + 1, text: line.to_owned() };
            let definition = KernelDefinition::parse(line).ok_or_else(form)?;
            let index = kernels
                .iter()
                .position(|kernel| kernel.name == definition.name)
                .ok_or_else(|| IrError::NotInTable { name: definition.name.to_owned() })?;
            found[index] = true;
            output.push_str(&definition.annotated(&kernels[index])?);
        } else if line.contains(" asm sideeffect ") {
            output.push_str(&convergent(line));
        } else {
            output.push_str(line);
        }
        output.push('\n');
    }
    match found.iter().position(|found| !found) {
        Some(index) => Err(IrError::NotExported { name: kernels[index].name.to_owned() }),
        None => Ok(output),
    }
}

/// Adds `convergent` to a call, in front of its metadata. Without it LLVM may duplicate a barrier into both arms of a
/// branch, or hoist it out of one.
fn convergent(line: &str) -> String {
    let end = line.find(", !srcloc").unwrap_or(line.len());
    format!("{} convergent{}", &line[..end], &line[end..])
}

/// `define ptx_kernel void @name(parameters) attributes {`
struct KernelDefinition<'a> {
    before_name: &'a str,
    name: &'a str,
    parameters: Vec<&'a str>,
    attributes: &'a str,
}

impl<'a> KernelDefinition<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let at = line.find('@')?;
        let open = at + line[at..].find('(')?;
        let close = matching_parenthesis(line, open)?;
        let attributes = line[close + 1..].strip_suffix('{')?;
        Some(Self {
            before_name: &line[..=at],
            name: &line[at + 1..open],
            parameters: split_parameters(&line[open + 1..close]),
            attributes: attributes.trim(),
        })
    }

    fn annotated(&self, kernel: &Entry) -> Result<String, IrError> {
        let name = self.name.to_owned();
        if self.parameters.len() != kernel.parameters.len() {
            let (given, wanted) = (self.parameters.len(), kernel.parameters.len());
            return Err(IrError::ParameterCount { name, given, wanted });
        }
        let mut text = format!("{}{}(", self.before_name, self.name);
        for (index, (given, layout)) in self.parameters.iter().zip(kernel.parameters).enumerate() {
            let value = given.rsplit(' ').next().filter(|value| given.starts_with("ptr ") && value.starts_with('%'));
            let Some(value) = value else {
                return Err(IrError::NotAPointer { name, index, given: (*given).to_owned() });
            };
            let separator = if index == 0 { "" } else { ", " };
            let (bytes, align) = (layout.bytes, layout.align);
            write!(text, "{separator}ptr byval([{bytes} x i8]) align {align} \"nvvm.grid_constant\" {value}")
                .expect("writing to a string");
        }
        // Without a thread bound ptxas assumes 1024 threads and caps the kernel at 64 registers.
        write!(text, ") {} \"nvvm.reqntid\"=\"{}\"", self.attributes, kernel.threads).expect("writing to a string");
        if kernel.cluster > 1 {
            write!(text, " \"nvvm.cluster_dim\"=\"{}\"", kernel.cluster).expect("writing to a string");
        }
        text.push_str(" {");
        Ok(text)
    }
}

fn matching_parenthesis(line: &str, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (index, byte) in line.bytes().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

fn split_parameters(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (index, byte) in list.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(list[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    let last = list[start..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::kernels::{ARGUMENTS, Architecture, TENSOR_MAP};

    const GEMM: Entry = Entry {
        name: "gemm",
        architecture: Architecture::Sm100,
        threads: 320,
        cluster: 1,
        parameters: &[TENSOR_MAP, TENSOR_MAP, ARGUMENTS],
    };
    const DEFINITION: &str =
        "define ptx_kernel void @gemm(ptr noundef %x, ptr captures(none) %w, ptr %a) unnamed_addr #1 {";

    #[test]
    fn kernel_parameters_move_to_the_parameter_space() {
        let edited = edit(DEFINITION, &[GEMM]).unwrap();
        assert_eq!(
            edited,
            "define ptx_kernel void @gemm(\
             ptr byval([128 x i8]) align 64 \"nvvm.grid_constant\" %x, \
             ptr byval([128 x i8]) align 64 \"nvvm.grid_constant\" %w, \
             ptr byval([184 x i8]) align 8 \"nvvm.grid_constant\" %a) unnamed_addr #1 \"nvvm.reqntid\"=\"320\" {\n"
        );
    }

    #[test]
    fn a_cluster_is_declared() {
        let edited = edit(DEFINITION, &[Entry { cluster: 2, ..GEMM }]).unwrap();
        assert!(edited.contains("\"nvvm.cluster_dim\"=\"2\""), "{edited}");
    }

    #[test]
    fn inline_assembly_with_side_effects_becomes_convergent() {
        let call = "  call void asm sideeffect alignstack \"bar.sync 0, 320;\", \"~{memory}\"(), !srcloc !5\n";
        let edited = edit(call, &[]).unwrap();
        assert!(edited.contains("() convergent, !srcloc !5"), "{edited}");
        let pure = "  %1 = call i32 asm alignstack \"mov.u32 $0, %laneid;\", \"=r\"() #44, !srcloc !5\n";
        assert_eq!(edit(pure, &[]).unwrap(), pure);
    }

    #[test]
    fn table_and_crate_must_agree() {
        let missing = edit("", &[GEMM]).unwrap_err();
        assert_eq!(missing, IrError::NotExported { name: "gemm".into() });
        let extra = edit(DEFINITION, &[]).unwrap_err();
        assert_eq!(extra, IrError::NotInTable { name: "gemm".into() });
        let short = DEFINITION.replace(", ptr %a", "");
        let count = edit(&short, &[GEMM]).unwrap_err();
        assert_eq!(count, IrError::ParameterCount { name: "gemm".into(), given: 2, wanted: 3 });
        let scalar = DEFINITION.replace("ptr noundef %x", "i64 %x");
        assert!(matches!(edit(&scalar, &[GEMM]), Err(IrError::NotAPointer { index: 0, .. })));
        let cut = edit("define ptx_kernel void @broken", &[]).unwrap_err();
        assert!(matches!(cut, IrError::Form { line: 1, .. }));
    }
}
