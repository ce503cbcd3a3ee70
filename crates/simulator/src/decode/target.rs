//! `.target`: which instructions the module may use.

use crate::ptx::{PtxError, ast::Name};

/// A parsed `.target` architecture.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) name: Box<str>,
    architecture: u32,
    /// `a` or `f`: has the features that are not carried forward.
    specific: bool,
}

/// What an instruction asks of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// This architecture or a later one.
    AtLeast(u32, &'static str),
    /// An architecture- or family-specific target of this architecture or a later one.
    Specific(u32, &'static str),
    /// Exactly this architecture, with its specific features.
    Only(u32, &'static str),
    /// Tensor memory.
    TensorMemory,
}

impl Needs {
    pub(super) const SM80: Self = Self::AtLeast(80, "sm_80 or later");
    pub(super) const SM89: Self = Self::AtLeast(89, "sm_89 or later");
    pub(super) const SM90: Self = Self::AtLeast(90, "sm_90 or later");
    pub(super) const SM100: Self = Self::AtLeast(100, "sm_100 or later");
    pub(super) const SM90A: Self = Self::Specific(90, "sm_90a, or an `a` or `f` target of a later architecture");
    pub(super) const WGMMA: Self = Self::Only(90, "sm_90a");
    pub(super) const SM100A: Self = Self::Specific(100, "sm_100a, sm_100f or a later `a` or `f` target");

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::AtLeast(_, text) | Self::Specific(_, text) | Self::Only(_, text) => text,
            Self::TensorMemory => "a target with tensor memory, such as sm_100a or sm_100f",
        }
    }
}

impl Target {
    pub(super) fn parse(name: Name<'_>) -> Result<Self, PtxError> {
        let body = name.text.strip_prefix("sm_").unwrap_or("");
        let digits = body.trim_end_matches(['a', 'f']);
        match digits.parse::<u32>() {
            Ok(architecture) if body.len() - digits.len() <= 1 => {
                Ok(Self { name: name.text.into(), architecture, specific: body.len() > digits.len() })
            }
            _ => Err(PtxError::Unexpected {
                expected: "a target such as `sm_100a`".into(),
                found: format!("`{}`", name.text).into(),
                at: name.span.into(),
            }),
        }
    }

    pub(super) fn has(&self, needs: Needs) -> bool {
        match needs {
            Needs::AtLeast(architecture, _) => self.architecture >= architecture,
            Needs::Specific(architecture, _) => self.specific && self.architecture >= architecture,
            Needs::Only(architecture, _) => self.specific && self.architecture == architecture,
            Needs::TensorMemory => self.specific && matches!(self.architecture, 100 | 101 | 103 | 110),
        }
    }
}
