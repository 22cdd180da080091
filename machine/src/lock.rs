//! Locks on images, so that programs that open one image know of each other: qemu's scheme.
//!
//! An open file takes read locks on single bytes: byte `100 + n` says that it uses permission `n`,
//! byte `200 + n` that it lets no other program have permission `n`. Then it asks whether another
//! holds the opposite byte. All locks are shared ones, so a reader without write permission to
//! the file can take them. Source: qemu, `block/file-posix.c` (`RAW_LOCK_PERM_BASE`,
//! `raw_check_lock_bytes`) and `include/block/block-common.h` (`BLK_PERM_*`).
//!
//! They are open file description locks (`fcntl(2)`, `F_OFD_SETLK`): they belong to the open file
//! and not to the process, and end when the file is closed.

use crate::call::done;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Where the bytes of permissions that are used begin.
const USED: i64 = 100;
/// Where the bytes of permissions that others may not have begin.
const DENIED: i64 = 200;
/// How many permissions qemu knows.
const COUNT: i64 = 5;

/// Permissions of an open image, one bit each; the numbers are qemu's.
pub mod permission {
    /// To read data that no other process is changing.
    pub const READ: u8 = 1;
    /// Data may be written.
    pub const WRITE: u8 = 2;
    /// To change the size or the metadata: a partition table, a container's map.
    pub const RESIZE: u8 = 8;
}

/// The permissions that an open image needs, and those that it denies to other programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The permissions in use: bits of [`permission`].
    pub needs: u8,
    /// The permissions denied to others: bits of [`permission`].
    pub denies: u8,
}

/// Why a claim cannot be had.
#[derive(Debug)]
pub enum ClaimError {
    /// Another open file already uses these permissions, which the claim denies.
    Used(u8),
    /// Another open file denies these permissions, which the claim needs.
    Denied(u8),
    /// The system refused the lock; EAGAIN and EACCES mean that another program has locked the
    /// byte for itself.
    System(io::Error),
}

impl ClaimError {
    /// Another program is in the way, and may end.
    pub fn is_held(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, WouldBlock};
        match self {
            Self::Used(_) | Self::Denied(_) => true,
            Self::System(error) => matches!(error.kind(), WouldBlock | PermissionDenied),
        }
    }
}

/// Takes the locks of a claim, or none. The file must be open for reading.
///
/// # Errors
/// See [`ClaimError`].
pub fn claim(file: &File, claim: Claim) -> Result<(), ClaimError> {
    let taken = take(file, claim);
    if taken.is_err() {
        for base in [USED, DENIED] {
            // Without a lock there is nothing to take back.
            let _ = set(file, libc::F_UNLCK, base, COUNT);
        }
    }
    taken
}

fn take(file: &File, claim: Claim) -> Result<(), ClaimError> {
    for (base, bits) in [(USED, claim.needs), (DENIED, claim.denies)] {
        for bit in bits_of(bits) {
            set(file, libc::F_RDLCK, base + bit, 1).map_err(ClaimError::System)?;
        }
    }
    // Both sides lock before they look, so of two that come together one at least sees the other.
    let used = held(file, USED, claim.denies)?;
    if used != 0 {
        return Err(ClaimError::Used(used));
    }
    match held(file, DENIED, claim.needs)? {
        0 => Ok(()),
        denied => Err(ClaimError::Denied(denied)),
    }
}

fn bits_of(bits: u8) -> impl Iterator<Item = i64> {
    (0..COUNT).filter(move |bit| bits & (1 << bit) != 0)
}

/// The permissions whose bytes another open file has locked.
fn held(file: &File, base: i64, bits: u8) -> Result<u8, ClaimError> {
    let mut found = 0;
    for bit in bits_of(bits) {
        let mut asked = lock(libc::F_WRLCK, base + bit, 1);
        fcntl(file, libc::F_OFD_GETLK, &mut asked).map_err(ClaimError::System)?;
        if asked.l_type != libc::F_UNLCK as libc::c_short {
            found |= 1 << bit;
        }
    }
    Ok(found)
}

fn set(file: &File, kind: libc::c_int, start: i64, length: i64) -> io::Result<()> {
    fcntl(file, libc::F_OFD_SETLK, &mut lock(kind, start, length))
}

fn lock(kind: libc::c_int, start: i64, length: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: length,
        l_pid: 0,
    }
}

fn fcntl(file: &File, operation: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open for the duration of the call, and the pointer is to a live
    // `flock`, which is what F_OFD_SETLK and F_OFD_GETLK take.
    done(unsafe { libc::fcntl(file.as_raw_fd(), operation, &raw mut *lock) })
}

#[cfg(test)]
mod tests {
    use super::permission::{READ, RESIZE, WRITE};
    use super::*;

    const READER: Claim = Claim {
        needs: READ,
        denies: RESIZE,
    };
    const WRITER: Claim = Claim {
        needs: READ | WRITE,
        denies: WRITE | RESIZE,
    };
    const CHANGE: Claim = Claim {
        needs: READ | WRITE | RESIZE,
        denies: WRITE | RESIZE,
    };

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no file locks")]
    fn a_claim_is_refused_until_the_file_in_its_way_is_closed() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("ugeom-lock-{}", std::process::id()));
        File::create(&path)?;
        let open = || File::open(&path);
        let (first, second) = (open()?, open()?);
        claim(&first, WRITER).expect("the first writer");
        let refused = claim(&second, WRITER).expect_err("a second writer");
        assert!(matches!(refused, ClaimError::Used(WRITE)), "{refused:?}");
        assert!(refused.is_held());
        claim(&second, READER).expect("a reader beside the writer");
        drop(first);
        let third = open()?;
        let refused = claim(&third, CHANGE).expect_err("a reader is there");
        assert!(matches!(refused, ClaimError::Denied(RESIZE)), "{refused:?}");
        claim(&third, WRITER).expect("a writer beside the reader");
        drop((second, third));
        let fourth = open()?;
        claim(&fourth, CHANGE).expect("it is free");
        let refused = claim(&open()?, READER).expect_err("the map may change");
        assert!(matches!(refused, ClaimError::Used(RESIZE)), "{refused:?}");
        std::fs::remove_file(&path)
    }
}
