//! Copies from and to memory that other threads, other processes or the kernel may access at the
//! same time: regions, blocks of a slab, mapped files.
//!
//! By the rules of the language an ordinary copy that races with a write is undefined behaviour,
//! whatever becomes of the bytes. These copies access each byte of the shared side once, as a
//! relaxed atomic: a copy that races yields any mixture of old and new bytes, and nothing worse.
//! They order nothing.
//!
//! **Why assembly.** The language has atomics of at most a machine word, and racing accesses of
//! different widths are undefined again, so that copies to any address have to go byte by byte.
//! That is what they do under Miri, under ThreadSanitizer and on other processors. On x86_64 and
//! arm64 they call memcpy(3) and memset(3) of the C library from assembly: of that the compiler
//! knows only that memory changes, and the processor's loads and stores of any width are whole for
//! each byte.

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, tsan))
))]
use called as way;
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, tsan))
)))]
use one_by_one as way;

/// Copies shared bytes from `from` on into `into`.
///
/// # Safety
/// The `into.len()` bytes from `from` on can be read, are initialised, and do not overlap `into`.
/// `from` comes from a pointer that may write (atomics know no other), not from a shared slice.
/// Writes to them meanwhile are atomic, or come from another program.
#[inline]
pub unsafe fn load(from: *const u8, into: &mut [u8]) {
    // SAFETY: the caller's promise; `into` is an exclusive borrow.
    unsafe { way::load(from, into.as_mut_ptr(), into.len()) };
}

/// Copies `from` to shared bytes, from `to` on.
///
/// # Safety
/// The `from.len()` bytes from `to` on can be written and do not overlap `from`. Any other access
/// them meanwhile does so atomically, or is not this program.
#[inline]
pub unsafe fn store(from: &[u8], to: *mut u8) {
    // SAFETY: the caller's promise; nothing writes to `from` while it is borrowed.
    unsafe { way::store(from.as_ptr(), to, from.len()) };
}

/// Copies shared bytes to shared bytes.
///
/// # Safety
/// As [`load`] and [`store`] together.
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { way::copy(from, to, len) };
}

/// Sets `len` shared bytes from `to` on.
///
/// # Safety
/// As [`store`].
#[inline]
pub unsafe fn fill(to: *mut u8, byte: u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { way::fill(to, byte, len) };
}

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, tsan))
))]
mod called {
    use std::arch::asm;

    pub use copy as load;
    pub use copy as store;

    /// Calls memcpy(3) or memset(3): both take three integers or pointers, each in a whole register
    /// (memset(3) reads the low half of its second).
    macro_rules! call {
        ($function:ident, $to:expr, $second:expr, $len:expr) => {{
            #[cfg(target_arch = "x86_64")]
            asm!(
                "call {function}",
                function = sym libc::$function,
                inout("rdi") $to => _,
                inout("rsi") $second => _,
                inout("rdx") $len => _,
                clobber_abi("C"),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                "bl {function}",
                function = sym libc::$function,
                inout("x0") $to => _,
                inout("x1") $second => _,
                inout("x2") $len => _,
                clobber_abi("C"),
            );
        }};
    }

    /// # Safety
    /// The ranges can be read and written, and do not overlap.
    #[inline(always)]
    pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: memcpy(3) with its arguments where the C calling convention has them; what that
        // lets it change is told to the compiler.
        unsafe { call!(memcpy, to, from, len) }
    }

    /// # Safety
    /// The range can be written.
    #[inline(always)]
    pub unsafe fn fill(to: *mut u8, byte: u8, len: usize) {
        // SAFETY: as in `copy`, for memset(3).
        unsafe { call!(memset, to, usize::from(byte), len) }
    }
}

#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, tsan))
)))]
mod one_by_one {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// # Safety
    /// The ranges can be read and written, and do not overlap; the first is only written to
    /// atomically meanwhile.
    pub unsafe fn load(from: *const u8, to: *mut u8, len: usize) {
        for at in 0..len {
            // SAFETY: inside the ranges; an atomic byte is laid out as a byte.
            unsafe {
                let byte = AtomicU8::from_ptr(from.add(at).cast_mut()).load(Ordering::Relaxed);
                to.add(at).write(byte);
            }
        }
    }

    /// # Safety
    /// As `load`, the other way round.
    pub unsafe fn store(from: *const u8, to: *mut u8, len: usize) {
        for at in 0..len {
            // SAFETY: as in `load`.
            unsafe { AtomicU8::from_ptr(to.add(at)).store(*from.add(at), Ordering::Relaxed) };
        }
    }

    /// # Safety
    /// As `load` and `store` together.
    pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
        for at in 0..len {
            // SAFETY: as in both.
            unsafe {
                let byte = AtomicU8::from_ptr(from.add(at).cast_mut()).load(Ordering::Relaxed);
                AtomicU8::from_ptr(to.add(at)).store(byte, Ordering::Relaxed);
            }
        }
    }

    /// # Safety
    /// The range can be written, and is only accessed atomically meanwhile.
    pub unsafe fn fill(to: *mut u8, byte: u8, len: usize) {
        for at in 0..len {
            // SAFETY: inside the range.
            unsafe { AtomicU8::from_ptr(to.add(at)).store(byte, Ordering::Relaxed) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{copy, fill, load, store};

    #[test]
    fn all_bytes_of_any_length_arrive_and_no_others() {
        let from = Vec::from_iter(0..=250_u8).repeat(36);
        // Atomic loads need a pointer that may write.
        let mut source = from.clone();
        let source = source.as_mut_ptr().cast_const();
        for len in [0, 1, 7, 8, 63, 64, 511, 4096, 8_000] {
            if cfg!(miri) && len > 511 {
                continue;
            }
            for start in [0, 1, 5, 77] {
                let mut to = vec![255; len + 2];
                // SAFETY: both ranges are inside their vectors, which are not the same.
                unsafe { load(source.add(start), &mut to[1..=len]) };
                assert_eq!(to[1..=len], from[start..start + len]);
                assert_eq!((to[0], to[len + 1]), (255, 255));
                let mut to = vec![255; len + 2];
                // SAFETY: as above.
                unsafe { store(&from[start..start + len], to[1..].as_mut_ptr()) };
                assert_eq!(to[1..=len], from[start..start + len]);
                assert_eq!((to[0], to[len + 1]), (255, 255));
                let mut to = vec![255; len + 2];
                // SAFETY: as above.
                unsafe { copy(source.add(start), to[1..].as_mut_ptr(), len) };
                assert_eq!(to[1..=len], from[start..start + len]);
                assert_eq!((to[0], to[len + 1]), (255, 255));
                // SAFETY: as above.
                unsafe { fill(to[1..].as_mut_ptr(), 9, len) };
                assert_eq!(to[1..=len], vec![9; len]);
                assert_eq!((to[0], to[len + 1]), (255, 255));
            }
        }
    }
}
