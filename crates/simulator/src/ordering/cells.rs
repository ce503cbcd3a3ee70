//! Stamps of every byte of a CTA's shared memory, kept once per cell of some bytes where those bytes agree.
//!
//! Nearly every access covers whole cells, and a cell costs one stamp then. A cell of which an access covers a part is
//! split into one per byte, and made whole again once its bytes agree.

use std::ops::Range;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    None,
    /// A warp's access at an epoch.
    Epoch,
    /// The same by a strong (atomic, volatile, relaxed...) access, which races with nothing.
    Strong,
    /// A write by `tcgen05.alloc`, which keeps the order of accesses to one address without a proxy fence (PTX ISA,
    /// tcgen05 asynchronous operations).
    Allocation,
    /// A `cp.async` of a warp that nobody has waited for.
    Copying,
    /// Several unordered readers: `value` indexes the read sets.
    Set,
    /// A bulk write that has not landed.
    InFlight,
    /// A bulk write that completed in a phase of an mbarrier: `actor` is the mbarrier, `value` the phase.
    Phase,
    /// Reductions that have not landed: `value` of them.
    Reducing,
    /// Like `Phase`, of the reduction that landed last.
    Reduced,
    /// Reads by bulk copies within the cluster that have not happened: `value` of them.
    Reading,
    /// Such reads whose copies completed in a phase: `actor` is the mbarrier, `value` the phase.
    ReadPhase,
    /// A read by a tcgen05 operation: `value` is its number.
    Operation,
    /// A read by a warpgroup product: `actor` is the first warp of the warpgroup, `value` the product's number.
    Warpgroup,
    /// A read by a bulk store that nobody has waited for: `lane` is the thread's, `value` the number of its bulk group.
    BulkPending,
    /// In place of the write: the bytes differ, and `value` says where their cells are.
    Split,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) kind: Kind,
    pub(super) lane: u8,
    pub(super) actor: u16,
    pub(super) value: u32,
}

impl Stamp {
    pub(super) fn new(kind: Kind, actor: u16, value: u32) -> Self {
        Self { kind, lane: 0, actor, value }
    }

    /// True if both are by the same thread and engine, or of the same mbarrier: whoever is ordered after the later one is
    /// after the earlier one.
    pub(super) fn is_of_same_reader(self, other: Self) -> bool {
        (self.kind, self.actor, self.lane) == (other.kind, other.actor, other.lane)
    }

    /// The stamp of reads that have not happened, with those of another such stamp.
    pub(super) fn with_pending(self, other: Self) -> Self {
        let pending = if (self.kind, other.kind) == (Kind::Reading, Kind::Reading) { other.value } else { 0 };
        Self { value: self.value + pending, ..self }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) write: Stamp,
    pub(super) read: Stamp,
}

/// Values by number, with those given back used again.
#[derive(Debug)]
pub(super) struct Pool<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T> Pool<T> {
    fn new() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }

    /// A number whose value is as it was when it was given back, or new.
    pub(super) fn take(&mut self, new: impl FnOnce() -> T) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.values.push(new());
            self.values.len() as u32 - 1
        })
    }

    pub(super) fn give_back(&mut self, number: u32) {
        self.free.push(number);
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &T {
        &self.values[number as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.values[number as usize]
    }
}

/// The cells, allocated by page: `BYTES` of memory for each of the `CELLS` of a page. `S` is a set of readers.
#[derive(Debug)]
pub(super) struct CellMap<S, const CELLS: usize, const BYTES: usize> {
    pages: Vec<Option<Box<[Cell; CELLS]>>>,
    pub(super) sets: Pool<S>,
    splits: Pool<[Cell; BYTES]>,
}

impl<S: Clone, const CELLS: usize, const BYTES: usize> CellMap<S, CELLS, BYTES> {
    const PAGE_BYTES: u32 = (CELLS * BYTES) as u32;

    pub(super) fn new(bytes: u32) -> Self {
        let pages = (bytes / Self::PAGE_BYTES) as usize + 1;
        Self { pages: vec![None; pages], sets: Pool::new(), splits: Pool::new() }
    }

    /// Where the part of a range ends that is in the first byte's cell.
    #[inline]
    fn end_of_part(at: u32, end: u32) -> u32 {
        end.min((at | (BYTES as u32 - 1)) + 1)
    }

    #[inline]
    fn place(at: u32) -> (usize, usize) {
        ((at / Self::PAGE_BYTES) as usize, at as usize / BYTES % CELLS)
    }

    /// Shows each cell that was touched in a range, or each byte's of a cell that is split, with the first byte it is
    /// shown for.
    #[inline]
    pub(super) fn visit<E>(
        &self,
        range: &Range<u32>,
        mut check: impl FnMut(u32, &Cell, &Pool<S>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = range.start;
        while at < range.end {
            let (page, index) = Self::place(at);
            let Some(cells) = &self.pages[page] else {
                at = (page as u32 + 1) * Self::PAGE_BYTES;
                continue;
            };
            let end = Self::end_of_part(at, range.end);
            let cell = &cells[index];
            if cell.write.kind == Kind::Split {
                let bytes = self.splits.get(cell.write.value);
                (at..end).try_for_each(|at| check(at, &bytes[at as usize % BYTES], &self.sets))?;
            } else {
                check(at, cell, &self.sets)?;
            }
            at = end;
        }
        Ok(())
    }

    /// Changes each cell of a range, or each byte's where the range or an earlier one has a part of the cell.
    #[inline]
    pub(super) fn update<E>(
        &mut self,
        range: &Range<u32>,
        mut change: impl FnMut(u32, &mut Cell, &mut Pool<S>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = range.start;
        while at < range.end {
            let (page, index) = Self::place(at);
            let end = Self::end_of_part(at, range.end);
            let cell = &mut self.pages[page].get_or_insert_with(|| Box::new([Cell::default(); CELLS]))[index];
            if cell.write.kind != Kind::Split && end - at == BYTES as u32 {
                change(at, cell, &mut self.sets)?;
            } else {
                self.update_bytes(at..end, &mut change)?;
            }
            at = end;
        }
        Ok(())
    }

    /// The same without checks, and only where something was touched before.
    pub(super) fn update_touched(&mut self, range: &Range<u32>, mut change: impl FnMut(&mut Cell, &mut Pool<S>)) {
        let mut at = range.start;
        while at < range.end {
            let (page, _) = Self::place(at);
            let end = range.end.min((page as u32 + 1) * Self::PAGE_BYTES);
            if self.pages[page].is_some() {
                self.set(&(at..end), &mut change);
            }
            at = end;
        }
    }

    /// The same without checks.
    pub(super) fn set(&mut self, range: &Range<u32>, mut change: impl FnMut(&mut Cell, &mut Pool<S>)) {
        let changed = self.update(range, |_, cell, sets| {
            change(cell, sets);
            Ok::<(), std::convert::Infallible>(())
        });
        match changed {
            Ok(()) => {}
        }
    }

    /// Changes some bytes of a cell of a page that is there.
    #[inline(never)]
    fn update_bytes<E>(
        &mut self,
        range: Range<u32>,
        change: &mut impl FnMut(u32, &mut Cell, &mut Pool<S>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (page, index) = Self::place(range.start);
        let cell = &mut self.pages[page].as_mut().expect("the caller has seen it")[index];
        if cell.write.kind != Kind::Split {
            let mut bytes = [*cell; BYTES];
            if cell.read.kind == Kind::Set {
                // Each byte may get readers of its own.
                for byte in &mut bytes[1..] {
                    let readers = self.sets.get(cell.read.value).clone();
                    byte.read.value = self.sets.take(|| readers.clone());
                    *self.sets.get_mut(byte.read.value) = readers;
                }
            }
            let split = self.splits.take(|| bytes);
            *self.splits.get_mut(split) = bytes;
            *cell = Cell { write: Stamp::new(Kind::Split, 0, split), read: Stamp::default() };
        }
        let split = cell.write.value;
        let bytes = self.splits.get_mut(split);
        for at in range {
            change(at, &mut bytes[at as usize % BYTES], &mut self.sets)?;
        }
        // Each set has one owner, so that bytes with sets never agree.
        if bytes.windows(2).all(|pair| pair[0] == pair[1]) {
            *cell = bytes[0];
            self.splits.give_back(split);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Map = CellMap<Vec<u32>, 4, 16>;

    fn write(map: &mut Map, range: Range<u32>, value: u32) {
        map.set(&range, |cell, _| cell.write = Stamp::new(Kind::Epoch, 0, value));
    }

    /// The values of a range of writes, each with the first byte that it was shown for.
    fn writes(map: &Map, range: Range<u32>) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let note = |at, cell: &Cell, _: &Pool<Vec<u32>>| {
            found.push((at, cell.write.value));
            Ok::<(), ()>(())
        };
        map.visit(&range, note).unwrap();
        found
    }

    #[test]
    fn a_cell_is_split_while_its_bytes_differ() {
        let mut map = Map::new(256);
        write(&mut map, 0..48, 1);
        write(&mut map, 20..22, 2);
        assert_eq!(writes(&map, 4..16), [(4, 1)]);
        assert_eq!(writes(&map, 19..23), [(19, 1), (20, 2), (21, 2), (22, 1)]);
        assert_eq!(writes(&map, 30..40), [(30, 1), (31, 1), (32, 1)]);
        write(&mut map, 16..32, 3);
        assert_eq!(writes(&map, 16..64), [(16, 3), (32, 1), (48, 0)]);
        // Across pages, of which the second is not there, with the place of the split cell used again.
        write(&mut map, 60..72, 4);
        assert_eq!(writes(&map, 59..73).len(), 5 + 9);
        write(&mut map, 48..60, 4);
        assert_eq!(writes(&map, 48..64), [(48, 4)]);
        assert_eq!(map.splits.values.len(), 2);
        assert_eq!(writes(&map, 128..256), []);
    }

    #[test]
    fn bytes_of_a_split_cell_have_readers_of_their_own() {
        let mut map = Map::new(64);
        map.set(&(0..16), |cell, sets| cell.read = Stamp::new(Kind::Set, 0, sets.take(|| vec![7])));
        map.set(&(3..4), |cell, sets| sets.get_mut(cell.read.value).push(8));
        let mut readers = Vec::new();
        let note = |_, cell: &Cell, sets: &Pool<Vec<u32>>| {
            readers.push(sets.get(cell.read.value).clone());
            Ok::<(), ()>(())
        };
        map.visit(&(2..5), note).unwrap();
        assert_eq!(readers, [vec![7], vec![7, 8], vec![7]]);
    }

    #[test]
    fn only_touched_pages_are_updated() {
        let mut map = Map::new(256);
        write(&mut map, 64..80, 1);
        let mut seen = 0;
        map.update_touched(&(0..256), |_, _| seen += 1);
        assert_eq!(seen, 4);
        assert!(map.pages[0].is_none());
    }
}
