//! Scopes: what names mean inside `{ }`.

use super::layout::Symbol;
use crate::program::{Predicate, Register};
use crate::ptx::ast::{Name, RegisterNames, Type};
use crate::ptx::{Limits, PtxError};
use std::collections::HashMap;

/// A register's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Value(Register),
    Predicate(Predicate),
}

/// One `{ }`.
#[derive(Default)]
struct Scope<'a> {
    parent: Option<usize>,
    /// By name.
    singles: HashMap<&'a str, Type>,
    /// By prefix; with the number of registers.
    ranges: HashMap<&'a str, (Type, u32)>,
    variables: HashMap<&'a str, Symbol>,
    labels: HashMap<&'a str, u32>,
    branch_targets: HashMap<&'a str, &'a [Name<'a>]>,
}

/// All scopes of a function. Scope 0 is the body.
pub(super) struct Scopes<'a> {
    scopes: Vec<Scope<'a>>,
    /// Slots are given out on first use, so a range's size costs nothing.
    slots: HashMap<(usize, &'a str), Slot>,
    pub(super) registers: u32,
    pub(super) predicates: u32,
}

impl<'a> Scopes<'a> {
    pub(super) fn new() -> Self {
        Self { scopes: vec![Scope::default()], slots: HashMap::new(), registers: 0, predicates: 0 }
    }

    pub(super) fn open(&mut self, parent: usize) -> usize {
        self.scopes.push(Scope { parent: Some(parent), ..Scope::default() });
        self.scopes.len() - 1
    }

    pub(super) fn declare_register(
        &mut self,
        scope: usize,
        names: RegisterNames<'a>,
        ty: Type,
    ) -> Result<(), PtxError> {
        let at = names.name.span;
        let scope = &mut self.scopes[scope];
        let repeated = match names.count {
            None => scope.singles.insert(names.name.text, ty).is_some(),
            Some(count) => scope.ranges.insert(names.name.text, (ty, count)).is_some(),
        };
        if repeated { Err(PtxError::Redeclared { name: names.name.text.into(), at: at.into() }) } else { Ok(()) }
    }

    pub(super) fn declare_variable(&mut self, scope: usize, name: Name<'a>, symbol: Symbol) -> Result<(), PtxError> {
        insert(&mut self.scopes[scope].variables, name, symbol)
    }

    pub(super) fn declare_label(&mut self, scope: usize, name: Name<'a>, index: u32) -> Result<(), PtxError> {
        insert(&mut self.scopes[scope].labels, name, index)
    }

    pub(super) fn declare_targets(
        &mut self,
        scope: usize,
        name: Name<'a>,
        targets: &'a [Name<'a>],
    ) -> Result<(), PtxError> {
        insert(&mut self.scopes[scope].branch_targets, name, targets)
    }

    fn chain(&self, scope: usize) -> impl Iterator<Item = (usize, &Scope<'a>)> {
        std::iter::successors(Some(scope), |&scope| self.scopes[scope].parent).map(|i| (i, &self.scopes[i]))
    }

    pub(super) fn variable(&self, scope: usize, name: &str) -> Option<Symbol> {
        self.chain(scope).find_map(|(_, scope)| scope.variables.get(name).copied())
    }

    pub(super) fn label(&self, scope: usize, name: &str) -> Option<u32> {
        self.chain(scope).find_map(|(_, scope)| scope.labels.get(name).copied())
    }

    pub(super) fn targets(&self, scope: usize, name: &str) -> Option<&'a [Name<'a>]> {
        self.chain(scope).find_map(|(_, scope)| scope.branch_targets.get(name).copied())
    }

    /// The register of a name, and its declared type; `None` if the name is not a register.
    pub(super) fn register(&mut self, scope: usize, name: Name<'a>) -> Result<Option<(Slot, Type)>, PtxError> {
        let Some((owner, ty)) = self.chain(scope).find_map(|(i, scope)| Some((i, scope.declared(name.text)?))) else {
            return Ok(None);
        };
        if let Some(&slot) = self.slots.get(&(owner, name.text)) {
            return Ok(Some((slot, ty)));
        }
        if self.registers + self.predicates >= Limits::KERNEL_REGISTERS {
            let limit = Limits::KERNEL_REGISTERS.into();
            return Err(PtxError::TooLarge { what: "registers of a kernel", limit, at: name.span.into() });
        }
        let slot = if ty == Type::Pred {
            self.predicates += 1;
            Slot::Predicate(Predicate(self.predicates - 1))
        } else {
            let first = self.registers;
            // A 128-bit register is two values, the lower half first.
            self.registers += if ty == Type::B128 { 2 } else { 1 };
            Slot::Value(Register(first))
        };
        self.slots.insert((owner, name.text), slot);
        Ok(Some((slot, ty)))
    }
}

impl Scope<'_> {
    fn declared(&self, name: &str) -> Option<Type> {
        if let Some(&ty) = self.singles.get(name) {
            return Some(ty);
        }
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        // `%a1<10>` declares `%a10` to `%a19`: the prefix itself may end in digits.
        (prefix.len()..name.len()).find_map(|split| {
            let digits = &name[split..];
            let &(ty, count) = self.ranges.get(&name[..split])?;
            let canonical = digits == "0" || !digits.starts_with('0');
            (canonical && digits.parse::<u32>().is_ok_and(|index| index < count)).then_some(ty)
        })
    }
}

fn insert<'a, T>(map: &mut HashMap<&'a str, T>, name: Name<'a>, value: T) -> Result<(), PtxError> {
    match map.insert(name.text, value) {
        None => Ok(()),
        Some(_) => Err(PtxError::Redeclared { name: name.text.into(), at: name.span.into() }),
    }
}
