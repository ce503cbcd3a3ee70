//! Who accessed each 4 bytes of a byte store last: numbers of the caller's, 0 for nobody of interest.

use super::PagedBytes;

/// Bytes per stamp, as a binary logarithm.
const STAMP_SHIFT: u32 = 2;

/// Stamps of one page, each list allocated on first use.
#[derive(Debug, Clone, Default)]
pub(super) struct PageStamps {
    writes: Option<Box<[u32]>>,
    reads: Option<Box<[u32]>>,
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
    fn list(&self, kind: StampKind) -> Option<&[u32]> {
        match kind {
            StampKind::Write => self.writes.as_deref(),
            StampKind::Read => self.reads.as_deref(),
        }
    }
}

impl PagedBytes {
    /// Calls `visit` with each page of a range and the range of its stamps.
    #[inline]
    fn each_stamped_page(&mut self, offset: u64, bytes: u64, mut visit: impl FnMut(&mut Self, usize, usize, usize)) {
        let mut at = offset >> STAMP_SHIFT;
        let end = (offset + bytes - 1) >> STAMP_SHIFT;
        let shift = self.shift - STAMP_SHIFT;
        while at <= end {
            let last = end.min(at | ((1 << shift) - 1));
            let first = (at & ((1 << shift) - 1)) as usize;
            visit(self, (at >> shift) as usize, first, first + (last - at) as usize);
            at = last + 1;
        }
    }

    /// Stamps bytes that were just written. What read them before is forgotten.
    #[inline]
    pub(crate) fn stamp_write(&mut self, offset: u64, bytes: u64, stamp: u32) {
        let count = 1usize << (self.shift - STAMP_SHIFT);
        self.each_stamped_page(offset, bytes, |store, page, first, last| {
            let stamps = &mut store.page_mut(page).stamps;
            stamps.writes.get_or_insert_with(|| vec![0; count].into_boxed_slice())[first..=last].fill(stamp);
            if let Some(reads) = &mut stamps.reads {
                reads[first..=last].fill(0);
            }
        });
    }

    /// Stamps bytes that were just read, where a kernel has written in the same page: inputs that only the host writes
    /// need no stamps.
    #[inline]
    pub(crate) fn stamp_read(&mut self, offset: u64, bytes: u64, stamp: u32) {
        let count = 1usize << (self.shift - STAMP_SHIFT);
        self.each_stamped_page(offset, bytes, |store, page, first, last| {
            if let Some(page) = store.pages[page].as_deref_mut()
                && page.stamps.writes.is_some()
            {
                let reads = page.stamps.reads.get_or_insert_with(|| vec![0; count].into_boxed_slice());
                reads[first..=last].fill(stamp);
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
        let shift = self.shift - STAMP_SHIFT;
        let mut last = 0;
        for at in offset >> STAMP_SHIFT..=(offset + bytes - 1) >> STAMP_SHIFT {
            let page = self.pages[(at >> shift) as usize].as_deref();
            let Some(stamps) = page.and_then(|page| page.stamps.list(kind)) else { continue };
            let stamp = stamps[(at & ((1 << shift) - 1)) as usize];
            if stamp != 0 && stamp != last {
                visit(stamp, offset.max(at << STAMP_SHIFT))?;
                last = stamp;
            }
        }
        Ok(())
    }

    /// Forgets who accessed a range.
    pub(crate) fn clear_stamps(&mut self, offset: u64, bytes: u64) {
        self.each_stamped_page(offset, bytes, |store, page, first, last| {
            if let Some(page) = store.pages[page].as_deref_mut() {
                for list in [&mut page.stamps.writes, &mut page.stamps.reads].into_iter().flatten() {
                    list[first..=last].fill(0);
                }
            }
        });
    }
}
