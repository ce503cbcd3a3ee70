//! Who accessed each byte of a byte store last: numbers of the caller's, 0 for nobody of interest.
//!
//! A word of 4 bytes has one stamp, as nearly every access covers whole words; one whose bytes differ has four.

use std::ops::Range;

use super::PagedBytes;

/// Bytes per word.
const WORD: usize = 4;
/// Marks a stamp that is the place of four.
const SPLIT: u32 = 1 << 31;

/// Stamps of one page.
#[derive(Debug, Clone, Default)]
pub(super) struct PageStamps {
    writes: StampList,
    reads: StampList,
}

/// Stamps of one sort.
#[derive(Debug, Clone, Default)]
struct StampList {
    /// One per word; empty until one is set.
    words: Vec<u32>,
    /// Those of words whose bytes differ.
    splits: Vec<[u32; WORD]>,
    /// Places of `splits` that no word uses.
    free: Vec<u32>,
}

impl StampList {
    /// Stamps bytes, given by their offsets in a page of `page_bytes`.
    #[inline]
    fn set(&mut self, bytes: Range<usize>, page_bytes: usize, stamp: u32) {
        if self.words.is_empty() {
            self.words = vec![0; page_bytes / WORD];
        }
        self.fill(bytes, stamp);
    }

    /// The same for one word where stamps were set before.
    #[inline]
    fn set_word(&mut self, word: usize, stamp: u32) {
        let old = std::mem::replace(&mut self.words[word], stamp);
        if old & SPLIT != 0 {
            self.free.push(old & !SPLIT);
        }
    }

    #[inline]
    fn fill(&mut self, bytes: Range<usize>, stamp: u32) {
        if (bytes.start | bytes.end).is_multiple_of(WORD) && self.splits.is_empty() {
            self.words[bytes.start / WORD..bytes.end / WORD].fill(stamp);
        } else {
            self.fill_bytes(bytes, stamp);
        }
    }

    #[inline(never)]
    fn fill_bytes(&mut self, bytes: Range<usize>, stamp: u32) {
        let (first, last) = (bytes.start.div_ceil(WORD), bytes.end / WORD);
        if first > last {
            return self.fill_part(bytes, stamp);
        }
        if !bytes.start.is_multiple_of(WORD) {
            self.fill_part(bytes.start..first * WORD, stamp);
        }
        if self.free.len() < self.splits.len() {
            let words = &self.words[first..last];
            self.free.extend(words.iter().filter(|&word| word & SPLIT != 0).map(|word| word & !SPLIT));
        }
        self.words[first..last].fill(stamp);
        if !bytes.end.is_multiple_of(WORD) {
            self.fill_part(last * WORD..bytes.end, stamp);
        }
    }

    /// Stamps a part of one word.
    fn fill_part(&mut self, bytes: Range<usize>, stamp: u32) {
        let word = &mut self.words[bytes.start / WORD];
        let split = (*word & SPLIT != 0).then_some(*word & !SPLIT);
        let mut stamps = split.map_or([*word; WORD], |split| self.splits[split as usize]);
        let first = bytes.start % WORD;
        stamps[first..first + bytes.len()].fill(stamp);
        if stamps == [stamp; WORD] {
            *word = stamp;
            self.free.extend(split);
            return;
        }
        let split = split.or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.splits.push(stamps);
            self.splits.len() as u32 - 1
        });
        self.splits[split as usize] = stamps;
        *word = SPLIT | split;
    }
}

/// Which stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StampKind {
    /// Of the last write.
    Write,
    /// Of the last read since.
    Read,
}

impl PageStamps {
    #[inline]
    fn list(&self, kind: StampKind) -> &StampList {
        match kind {
            StampKind::Write => &self.writes,
            StampKind::Read => &self.reads,
        }
    }
}

impl PagedBytes {
    /// Calls `visit` with each page of a range and the range of its bytes in it.
    #[inline]
    fn each_stamped_page(&mut self, offset: u64, bytes: u64, mut visit: impl FnMut(&mut Self, usize, Range<usize>)) {
        let (mut at, end) = (offset, offset + bytes);
        let size = 1 << self.shift;
        while at < end {
            let page = at >> self.shift;
            let stop = end.min((page + 1) << self.shift);
            let first = (at & (size - 1)) as usize;
            visit(self, page as usize, first..first + (stop - at) as usize);
            at = stop;
        }
    }

    /// Page and word, if the bytes are those of a word: what most lanes access.
    #[inline]
    fn as_word(&self, offset: u64, bytes: u64) -> Option<(usize, usize)> {
        let within = offset & ((1 << self.shift) - 1);
        (bytes == WORD as u64 && offset.is_multiple_of(bytes))
            .then_some(((offset >> self.shift) as usize, within as usize / WORD))
    }

    /// Stamps bytes that were just written. What read them before is forgotten.
    #[inline]
    pub(crate) fn stamp_write(&mut self, offset: u64, bytes: u64, stamp: u32) {
        let page_bytes = 1 << self.shift;
        if let Some((page, word)) = self.as_word(offset, bytes) {
            let stamps = &mut self.page_mut(page).stamps;
            if !stamps.writes.words.is_empty() {
                stamps.writes.set_word(word, stamp);
                if !stamps.reads.words.is_empty() {
                    stamps.reads.set_word(word, 0);
                }
                return;
            }
        }
        self.each_stamped_page(offset, bytes, |store, page, range| {
            let stamps = &mut store.page_mut(page).stamps;
            stamps.writes.set(range.clone(), page_bytes, stamp);
            if !stamps.reads.words.is_empty() {
                stamps.reads.fill(range, 0);
            }
        });
    }

    /// Stamps bytes that were just read, where a kernel has written in the same page: inputs that only the host writes
    /// need no stamps.
    #[inline]
    pub(crate) fn stamp_read(&mut self, offset: u64, bytes: u64, stamp: u32) {
        let page_bytes = 1 << self.shift;
        if let Some((page, word)) = self.as_word(offset, bytes) {
            match self.pages[page].as_deref_mut().map(|page| &mut page.stamps) {
                Some(stamps) if !stamps.reads.words.is_empty() => return stamps.reads.set_word(word, stamp),
                Some(stamps) if !stamps.writes.words.is_empty() => {}
                _ => return,
            }
        }
        self.each_stamped_page(offset, bytes, |store, page, range| {
            if let Some(page) = store.pages[page].as_deref_mut()
                && !page.stamps.writes.words.is_empty()
            {
                page.stamps.reads.set(range, page_bytes, stamp);
            }
        });
    }

    /// Visits the distinct stamps, other than 0, of a range, each with the offset of the first bytes that have it.
    #[inline]
    pub(crate) fn each_stamp<E>(
        &self,
        kind: StampKind,
        offset: u64,
        bytes: u64,
        mut visit: impl FnMut(u32, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut last = 0;
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let stop = end.min((at | (WORD as u64 - 1)) + 1);
            let page = self.pages[(at >> self.shift) as usize].as_deref();
            let word = (at & ((1 << self.shift) - 1)) as usize / WORD;
            if let Some(list) = page.map(|page| page.stamps.list(kind))
                && let Some(&stamp) = list.words.get(word)
                && stamp != 0
                && stamp != last
            {
                if stamp & SPLIT == 0 {
                    visit(stamp, at)?;
                    last = stamp;
                } else {
                    let stamps = &list.splits[(stamp & !SPLIT) as usize];
                    for at in at..stop {
                        let stamp = stamps[at as usize % WORD];
                        if stamp != 0 && stamp != last {
                            visit(stamp, at)?;
                            last = stamp;
                        }
                    }
                }
            }
            at = stop;
        }
        Ok(())
    }

    /// Forgets who accessed a range.
    pub(crate) fn clear_stamps(&mut self, offset: u64, bytes: u64) {
        self.each_stamped_page(offset, bytes, |store, page, range| {
            if let Some(page) = store.pages[page].as_deref_mut() {
                for list in [&mut page.stamps.writes, &mut page.stamps.reads] {
                    if !list.words.is_empty() {
                        list.fill(range.clone(), 0);
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stamps of each byte of a range, 0 for none.
    fn stamps(store: &PagedBytes, kind: StampKind, offset: u64, bytes: u64) -> Vec<u32> {
        let byte = |at| {
            let mut found = 0;
            store.each_stamp(kind, at, 1, |stamp, place| {
                assert_eq!(place, at);
                found = stamp;
                Ok::<(), ()>(())
            })?;
            Ok(found)
        };
        (offset..offset + bytes).map(byte).collect::<Result<_, ()>>().unwrap()
    }

    #[test]
    fn bytes_of_a_word_have_stamps_of_their_own() {
        let mut store = PagedBytes::new(256, 6);
        store.stamp_write(61, 7, 1);
        store.stamp_write(66, 3, 2);
        store.stamp_read(62, 1, 3);
        assert_eq!(stamps(&store, StampKind::Write, 60, 10), [0, 1, 1, 1, 1, 1, 2, 2, 2, 0]);
        assert_eq!(stamps(&store, StampKind::Read, 60, 4), [0, 0, 3, 0]);
        store.stamp_write(60, 4, 4);
        assert_eq!(stamps(&store, StampKind::Write, 60, 5), [4, 4, 4, 4, 1]);
        assert_eq!(stamps(&store, StampKind::Read, 60, 4), [0; 4]);
        store.clear_stamps(65, 1);
        assert_eq!(stamps(&store, StampKind::Write, 64, 5), [1, 0, 2, 2, 2]);
        let mut seen = Vec::new();
        let note = |stamp, at| {
            seen.push((stamp, at));
            Ok::<(), ()>(())
        };
        store.each_stamp(StampKind::Write, 62, 6, note).unwrap();
        assert_eq!(seen, [(4, 62), (1, 64), (2, 66)]);
    }

    #[test]
    fn words_that_are_whole_again_leave_their_place() {
        let mut store = PagedBytes::new(64, 6);
        for stamp in 1..100 {
            store.stamp_write(0, 2, stamp);
            if stamp % 2 == 0 {
                store.stamp_write(2, 2, stamp);
            } else {
                store.stamp_write(0, 8, stamp);
            }
        }
        assert_eq!(store.pages[0].as_ref().unwrap().stamps.writes.splits.len(), 1);
    }
}
