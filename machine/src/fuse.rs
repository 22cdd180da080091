//! The device of FUSE, as far as it takes more than reading and writing.
//!
//! Source: fuse(4), `include/uapi/linux/fuse.h` of Linux (`FUSE_DEV_IOC_CLONE`).

use crate::call::done;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

/// `FUSE_DEV_IOC_CLONE`, `_IOR(229, 0, uint32_t)`: another descriptor of the same connection.
const CLONE: libc::Ioctl = 0x8004_e500_u32 as libc::Ioctl;

pub(crate) const DEVICE: &str = "/dev/fuse";

/// A descriptor that stands for no mount yet.
///
/// # Errors
/// ENOENT and ENODEV where the kernel has no FUSE, EACCES where it may not be used.
pub fn open(nonblocking: bool) -> io::Result<OwnedFd> {
    let mut flags = OFlags::RDWR | OFlags::CLOEXEC;
    flags.set(OFlags::NONBLOCK, nonblocking);
    Ok(rustix::fs::open(DEVICE, flags, Mode::empty())?)
}

/// Another descriptor of the mount that `session` stands for: with a list of its own of requests
/// that were read from it, so that threads do not meet there, and with a flag of its own for
/// waiting.
///
/// # Errors
/// As [`open`]; EINVAL or EPERM when `session` stands for no mount.
pub fn another(session: impl AsFd, nonblocking: bool) -> io::Result<OwnedFd> {
    let new = open(nonblocking)?;
    let old = session.as_fd().as_raw_fd() as u32;
    // SAFETY: the call reads the number of a descriptor from a place that lives until it returns.
    done(unsafe { libc::ioctl(new.as_raw_fd(), CLONE, &raw const old) })?;
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no devices")]
    fn a_descriptor_without_a_mount_cannot_be_doubled() {
        let Ok(first) = open(true) else {
            eprintln!("SKIP: {DEVICE} cannot be opened here");
            return;
        };
        // EINVAL, or EPERM of newer kernels.
        assert!(another(&first, false).is_err());
    }
}
