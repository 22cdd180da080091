//! Asking the processor for memory that will be needed soon.

/// Asks for the cache line in which a value begins. It changes nothing that a program can see.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing that the program could see, and never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = value;
}

/// Asks for the cache line of any address into the second level of the
/// processor's caches, in which more requests can wait at the same time than in the first.
#[inline(always)]
pub(crate) fn prefetch_far(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing that the program could see, and never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Loads a byte and drops it. Later prefetches in the same page arrive sooner: the page is looked
/// up for a load at once, and for requests when there is time.
///
/// # Safety
/// The address can be read.
#[inline(always)]
pub unsafe fn touch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a load from an address that can be read, by the caller's promise, changes nothing,
    // and what it loads is seen by no code.
    unsafe {
        std::arch::asm!(
            "movzx {byte:e}, byte ptr [{address}]",
            address = in(reg) address,
            byte = out(reg) _,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
