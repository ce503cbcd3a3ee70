//! Bytes that know whether they were written, allocated page by page on first write.

use super::stamps::PageStamps;

/// A byte store of fixed size. Every byte starts uninitialised.
#[derive(Debug, Clone)]
pub(crate) struct PagedBytes {
    bytes: u64,
    pub(super) shift: u32,
    pub(super) pages: Vec<Option<Box<Page>>>,
}

#[derive(Debug, Clone)]
pub(super) struct Page {
    data: Box<[u8]>,
    /// One bit per byte of `data`.
    written: Box<[u64]>,
    /// True while somebody waits for a write to this page.
    watched: bool,
    /// Who accessed each byte last.
    pub(super) stamps: PageStamps,
}

/// Bytes on their way from one store to another.
#[derive(Debug)]
pub(crate) struct CopiedPiece {
    data: Vec<u8>,
    written: Vec<bool>,
}

impl PagedBytes {
    /// `shift` is the binary logarithm of the page size, at least 6.
    pub(crate) fn new(bytes: u64, shift: u32) -> Self {
        let pages = bytes.div_ceil(1 << shift) as usize;
        Self { bytes, shift, pages: vec![None; pages] }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    pub(super) fn page_mut(&mut self, index: usize) -> &mut Page {
        let shift = self.shift;
        self.pages[index].get_or_insert_with(|| {
            let size = 1usize << shift;
            Box::new(Page {
                data: vec![0; size].into_boxed_slice(),
                written: vec![0; size / 64].into_boxed_slice(),
                watched: false,
                stamps: PageStamps::default(),
            })
        })
    }

    /// Loads 1, 2, 4 or 8 bytes, aligned to their size; `None` when some were never written.
    #[inline]
    pub(crate) fn load(&self, offset: u64, width: u32) -> Option<u64> {
        let page = self.pages[(offset >> self.shift) as usize].as_deref()?;
        let at = (offset & ((1 << self.shift) - 1)) as usize;
        let wanted = ((1u64 << width) - 1) << (at % 64);
        if page.written[at / 64] & wanted != wanted {
            return None;
        }
        let mut word = [0; 8];
        word[..width as usize].copy_from_slice(&page.data[at..at + width as usize]);
        Some(u64::from_le_bytes(word))
    }

    /// Stores 1, 2, 4 or 8 bytes, aligned to their size; true when the page is watched.
    #[inline]
    pub(crate) fn store(&mut self, offset: u64, width: u32, value: u64) -> bool {
        let at = (offset & ((1 << self.shift) - 1)) as usize;
        let page = self.page_mut((offset >> self.shift) as usize);
        page.written[at / 64] |= ((1u64 << width) - 1) << (at % 64);
        page.data[at..at + width as usize].copy_from_slice(&value.to_le_bytes()[..width as usize]);
        page.watched
    }

    /// Copies out; the error is the offset of the first byte that was never written.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), u64> {
        let mut offset = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = (offset & ((1 << self.shift) - 1)) as usize;
            let length = rest.len().min((1 << self.shift) - at);
            let (piece, tail) = rest.split_at_mut(length);
            let page = self.pages[(offset >> self.shift) as usize].as_deref().ok_or(offset)?;
            if let Some(hole) = first_clear_bit(&page.written, at, length) {
                return Err(offset + (hole - at) as u64);
            }
            piece.copy_from_slice(&page.data[at..at + length]);
            offset += length as u64;
            rest = tail;
        }
        Ok(())
    }

    /// Copies in; true when a touched page is watched.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let mut watched = false;
        let mut offset = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = (offset & ((1 << self.shift) - 1)) as usize;
            let length = rest.len().min((1 << self.shift) - at);
            let (piece, tail) = rest.split_at(length);
            let page = self.page_mut((offset >> self.shift) as usize);
            page.data[at..at + length].copy_from_slice(piece);
            set_bits(&mut page.written, at, length, true);
            watched |= page.watched;
            offset += length as u64;
            rest = tail;
        }
        watched
    }

    /// Copies from another store, or another place of this one, uninitialised bytes included. Returns true when a
    /// touched page is watched.
    pub(crate) fn copy_piece(&mut self, offset: u64, piece: &CopiedPiece) -> bool {
        let mut watched = false;
        let mut at = 0;
        while at < piece.data.len() {
            let known = piece.written[at];
            let end = piece.written[at..].iter().position(|&w| w != known).map_or(piece.data.len(), |n| at + n);
            if known {
                watched |= self.write(offset + at as u64, &piece.data[at..end]);
            } else {
                self.forget(offset + at as u64, (end - at) as u64);
            }
            at = end;
        }
        watched
    }

    /// Takes bytes out together with whether each was written.
    pub(crate) fn take_piece(&self, offset: u64, length: usize) -> CopiedPiece {
        let mut piece = CopiedPiece { data: vec![0; length], written: vec![true; length] };
        if self.read(offset, &mut piece.data).is_err() {
            for at in 0..length {
                let byte = self.load(offset + at as u64, 1);
                piece.data[at] = byte.unwrap_or(0) as u8;
                piece.written[at] = byte.is_some();
            }
        }
        piece
    }

    /// Makes bytes uninitialised again.
    pub(crate) fn forget(&mut self, offset: u64, length: u64) {
        for byte in offset..offset + length {
            let at = (byte & ((1 << self.shift) - 1)) as usize;
            if let Some(page) = self.pages[(byte >> self.shift) as usize].as_deref_mut() {
                page.written[at / 64] &= !(1 << (at % 64));
            }
        }
    }

    /// Marks the page that holds `offset`, so that stores to it report themselves.
    pub(crate) fn watch(&mut self, offset: u64) {
        self.page_mut((offset >> self.shift) as usize).watched = true;
    }
}

fn bit_mask(bit: usize, count: usize) -> u64 {
    (if count == 64 { u64::MAX } else { (1 << count) - 1 }) << bit
}

fn set_bits(words: &mut [u64], start: usize, length: usize, value: bool) {
    let (mut at, end) = (start, start + length);
    while at < end {
        let count = (end - at).min(64 - at % 64);
        let mask = bit_mask(at % 64, count);
        if value {
            words[at / 64] |= mask;
        } else {
            words[at / 64] &= !mask;
        }
        at += count;
    }
}

fn first_clear_bit(words: &[u64], start: usize, length: usize) -> Option<usize> {
    let (mut at, end) = (start, start + length);
    while at < end {
        let count = (end - at).min(64 - at % 64);
        let missing = !words[at / 64] & bit_mask(at % 64, count);
        if missing != 0 {
            return Some(at / 64 * 64 + missing.trailing_zeros() as usize);
        }
        at += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_written_across_pages_and_names_the_first_hole() {
        let mut store = PagedBytes::new(1000, 8);
        let bytes: Vec<u8> = (0..=255).chain(0..=255).collect();
        store.write(100, &bytes[..500]);
        let mut back = vec![0; 500];
        assert_eq!(store.read(100, &mut back), Ok(()));
        assert_eq!(back, bytes[..500]);
        assert_eq!(store.read(99, &mut back), Err(99));
        assert_eq!(store.read(101, &mut back), Err(600));
        store.forget(300, 1);
        assert_eq!(store.read(100, &mut back), Err(300));
    }

    #[test]
    fn small_accesses_check_every_byte() {
        let mut store = PagedBytes::new(512, 8);
        assert_eq!(store.load(64, 8), None);
        store.store(64, 4, 0x1234_5678);
        assert_eq!(store.load(64, 4), Some(0x1234_5678));
        assert_eq!(store.load(64, 8), None);
        assert_eq!(store.load(66, 2), Some(0x1234));
        assert!(!store.store(68, 4, 1));
        store.watch(0);
        assert!(store.store(68, 4, 1));
    }
}
