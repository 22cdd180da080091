//! Tests of [`Slab`]: contents, and who keeps whom away from a block.

use super::*;

#[test]
fn blocks_keep_what_was_copied_into_them() {
    let slab = Slab::new(3, 4096).unwrap();
    for block in 0..3 {
        assert!(slab.copy_in(block, 0, &[block as u8 + 1; 4096]));
    }
    assert!(slab.copy_in(1, 4000, &[9; 96]));
    let mut bytes = [0; 4096];
    slab.copy_out(1, 0, &mut bytes);
    assert_eq!(bytes[..4000], [2; 4000]);
    assert_eq!(bytes[4000..], [9; 96]);
    slab.copy_out(2, 0, &mut bytes);
    assert_eq!(bytes, [3; 4096]);
}

#[test]
fn a_filled_block_can_be_neither_leased_nor_filled() {
    let slab = Slab::new(4, 4096).unwrap();
    let fill = slab.fill(&[1, 3], 512).unwrap();
    let lengths: Vec<_> = fill.segments().iter().map(|segment| segment.len).collect();
    assert_eq!(lengths, [4096, 512]);
    assert!(slab.fill(&[3], 4096).is_none() && slab.lease(1, 0, 8).is_none());
    assert!(slab.fill(&[0, 1], 4096).is_none() && !slab.is_held(0));
    drop(fill);
    assert!((0..4).all(|block| !slab.is_held(block)));
    drop(slab.fill(&[3], 4096).unwrap());
}

#[test]
fn a_leased_block_keeps_its_bytes_until_the_last_lease_is_gone() {
    let slab = Slab::new(2, 4096).unwrap();
    assert!(slab.copy_in(1, 100, b"kept"));
    let (first, second) = (slab.lease(1, 100, 4), slab.lease(1, 100, 2));
    assert_eq!(first.as_ref().unwrap().bytes(), b"kept");
    drop(first);
    assert!(slab.fill(&[1], 4096).is_none() && !slab.copy_in(1, 0, b"other"));
    let second = second.unwrap();
    drop(slab.fill(&[0], 1).unwrap());
    let weak = Arc::downgrade(&slab);
    drop(slab);
    assert_eq!(second.bytes(), b"ke", "a lease keeps the memory alive");
    drop(second);
    assert!(weak.upgrade().is_none());
}

#[test]
#[should_panic(expected = "are not in the slab")]
fn a_copy_beyond_the_block_panics() {
    Slab::new(2, 4096).unwrap().copy_out(0, 4095, &mut [0; 2]);
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    assert!(Slab::new(0, 4096).is_err() && Slab::new(1, 0).is_err());
    assert!(Slab::new(u32::MAX, usize::MAX / 2).is_err());
}

#[test]
fn words_begin_as_zeroes_on_a_page() {
    let words = Words::new(1000).unwrap();
    assert_eq!(words.as_ptr().addr() % 4096, 0);
    assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    words[999].store(7, Ordering::Relaxed);
    assert_eq!(words[999].load(Ordering::Relaxed), 7);
    assert!(Words::new(0).is_err() && Words::new(usize::MAX / 8).is_err());
}
