//! Huge pages for dense writes: before the first write to a block of 2 MiB it is decided whether
//! the block gets one.
//!
//! A random read of 1 GiB of small pages misses the processor's translations nearly every time; of
//! huge pages it does not. A huge page takes 2 MiB for one sector, though, so a block gets one only
//! if the write covers half of it, or if three quarters of the block before it are written: as an
//! image is copied, and as no file system spreads its metadata. The memory taken stays below three
//! times what was written. Rejected: MADV_COLLAPSE of full blocks (it waits for every CPU and
//! copies 2 MiB: milliseconds for the write that fills the block); huge pages for the whole region
//! (sparse images do not stay sparse).

use super::{GRANULE_BYTES, Region, pages};

/// Granules of a block.
const BLOCK_GRANULES: u64 = pages::HUGE_BYTES / GRANULE_BYTES;

impl Region {
    /// Prepares the memory for a write to a range, which is not empty.
    #[inline]
    pub(super) fn prepare(&self, offset: u64, len: u64) {
        let (first, last) = (offset / GRANULE_BYTES, (offset + len - 1) / GRANULE_BYTES);
        if !self.written.get(first) || !self.written.get(last) {
            self.populate_dense(offset, len);
        }
    }

    #[cold]
    fn populate_dense(&self, offset: u64, len: u64) {
        let end = offset + len;
        let blocks = offset / pages::HUGE_BYTES..=(end - 1) / pages::HUGE_BYTES;
        for block in blocks {
            let start = block * pages::HUGE_BYTES;
            let Some(block_end) = start.checked_add(pages::HUGE_BYTES) else {
                return;
            };
            if block_end > self.len {
                return;
            }
            let covered = end.min(block_end) - offset.max(start);
            let dense = covered >= pages::HUGE_BYTES / 2 || self.is_dense_before(block);
            if dense && self.is_untouched(block) {
                // SAFETY: the block lies inside the mapping, as its end does, and the mapping
                // begins at a huge page since it is not shorter than one.
                unsafe { pages::populate_huge(self.at(start)) };
            }
        }
    }

    /// Whether no granule of a block was written.
    fn is_untouched(&self, block: u64) -> bool {
        let (from, to) = (block * BLOCK_GRANULES, (block + 1) * BLOCK_GRANULES);
        self.written.next(from, to, true) == to
    }

    /// Whether three quarters of the block before this one are written. Writes in flight may end
    /// out of order, so the rest of it need not be there yet.
    fn is_dense_before(&self, block: u64) -> bool {
        let Some(before) = block.checked_sub(1) else {
            return false;
        };
        let words = before * BLOCK_GRANULES..block * BLOCK_GRANULES;
        let ones = words.step_by(64).map(|bit| self.written.ones(bit));
        ones.sum::<u64>() >= BLOCK_GRANULES / 4 * 3
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Bytes on huge pages between two addresses, as the system counts them.
    fn huge_bytes(start: usize, len: u64) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("maps");
        let end = start + len as usize;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let (mut inside, mut kib) = (false, 0);
        for line in maps.lines() {
            let first = line.split(' ').next().unwrap_or_default();
            if let Some((from, to)) = first.split_once('-')
                && let (Some(from), Some(to)) = (address(from), address(to))
            {
                inside = start < to && from < end;
            } else if let Some(rest) = line.strip_prefix("AnonHugePages:")
                && inside
            {
                let number = rest.trim().trim_end_matches(" kB");
                kib += number.parse::<u64>().expect("a number");
            }
        }
        kib << 10
    }

    fn huge_pages(region: &Region) -> u64 {
        huge_bytes(region.base.addr().get(), region.len) / pages::HUGE_BYTES
    }

    /// Whether memory that asks for huge pages by other means gets any.
    fn system_has_some(test: &str) -> bool {
        let slab = crate::slab::Slab::new(16 << 20, 1).expect("memory");
        assert!(slab.copy_in(0, 0, &[1]), "no lease holds it");
        let base = slab.base.addr().get();
        let any = huge_bytes(base, 16 << 20) > 0;
        if !any {
            eprintln!("SKIP {test}: the system has no huge pages to give");
        }
        any
    }

    #[test]
    fn a_copied_image_lies_on_huge_pages_and_a_sparse_one_does_not() {
        let copied = Region::new(16 * MIB).expect("memory");
        for offset in (0..16 * MIB).step_by(MIB as usize / 4) {
            copied.write(offset, &[1; MIB as usize / 4]);
        }
        let sparse = Region::new(16 * MIB).expect("memory");
        for offset in (0..16 * MIB).step_by(MIB as usize) {
            sparse.write(offset, &[1; 4096]);
        }
        assert_eq!(huge_pages(&sparse), 0);
        if system_has_some("a_copied_image") {
            // The first block is written in small pieces, with no block before it.
            let pages = huge_pages(&copied);
            assert!((1..=7).contains(&pages), "{pages}");
        }
    }

    #[test]
    fn only_a_block_that_is_written_densely_is_huge() {
        let region = Region::new(8 * MIB).expect("memory");
        region.write(0, &vec![1; (MIB + MIB / 2 - 4096) as usize]);
        region.write(2 * MIB, &[1; 4096]);
        region.write(5 * MIB + 4096, &vec![1; MIB as usize - 4096]);
        // More than half of the first one was written by one request.
        assert!(huge_pages(&region) <= 1);
        region.write(0, &vec![1; MIB as usize * 2]);
        region.write(2 * MIB, &vec![1; MIB as usize * 2]);
        // Its pages are there already.
        assert!(huge_pages(&region) <= 1);
    }

    #[test]
    fn contents_are_the_same_on_huge_pages() {
        let region = Region::new(7 * MIB + 512).expect("memory");
        let mut random = 1_u64;
        let data: Vec<u8> = (0..7 * MIB + 512)
            .map(|_| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (random >> 56) as u8
            })
            .collect();
        region.write(0, &data);
        let mut back = vec![0; data.len()];
        region.read(0, &mut back);
        assert!(back == data);
        // A part of a huge page is given back; the rest of it stays.
        region.discard(3 * MIB, 2 * MIB).expect("given back");
        region.read(0, &mut back);
        let (from, to) = (3 * MIB as usize, 5 * MIB as usize);
        assert!(back[..from] == data[..from] && back[to..] == data[to..]);
        assert!(back[from..to].iter().all(|&byte| byte == 0));
        region.write(4 * MIB, &data[..100]);
        region.read(4 * MIB, &mut back[..200]);
        assert!(back[..100] == data[..100] && back[100..200].iter().all(|&byte| byte == 0));
    }
}
