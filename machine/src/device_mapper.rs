//! The table of a device-mapper device: an ioctl of `/dev/mapper/control`, for root.
//!
//! Source: include/uapi/linux/dm-ioctl.h of Linux, interface version 4.

use crate::call::done;
use std::io;
use std::os::fd::AsRawFd;

/// `struct dm_ioctl`: the head of each request and answer.
const HEAD_BYTES: usize = 312;
/// Answers longer than this are refused: a table of some ten thousand targets.
const ANSWER_BYTES_MAX: usize = 1 << 22;
/// `_IOWR(0xfd, 12, struct dm_ioctl)`.
const TABLE_STATUS: libc::Ioctl = 0xc138_fd0c_u32 as libc::Ioctl;
/// `DM_STATUS_TABLE_FLAG`: the parameters that the table was made with, and not its state.
const WANTS_TABLE: u32 = 1 << 4;
/// `DM_BUFFER_FULL_FLAG`: the answer did not fit.
const BUFFER_FULL: u32 = 1 << 8;

/// The answer of `DM_TABLE_STATUS`, as `ugeom_format::dm_table` reads it: how many targets, and
/// their bytes.
///
/// # Errors
/// EACCES without root, ENOENT and ENODEV where the kernel has no device mapper, ENXIO when there
/// is no such device.
pub fn table((major, minor): (u32, u32)) -> io::Result<(u32, Vec<u8>)> {
    let control = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/mapper/control")?;
    let mut length = 16 << 10;
    loop {
        let mut bytes = request(major, minor, length);
        // SAFETY: the kernel reads and writes at most `data_size` bytes, which is the length of the
        // buffer, and keeps no pointer.
        done(unsafe { libc::ioctl(control.as_raw_fd(), TABLE_STATUS, bytes.as_mut_ptr()) })?;
        let word = |at: usize| {
            let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
            word.map_or(0, u32::from_ne_bytes)
        };
        let (size, start, count, flags) = (word(12), word(16), word(20), word(28));
        if flags & BUFFER_FULL != 0 && length < ANSWER_BYTES_MAX {
            length *= 4;
            continue;
        }
        let answer = bytes.get(start as usize..(size as usize).min(bytes.len()));
        let answer = answer.ok_or_else(|| io::Error::other("an answer outside its buffer"))?;
        return Ok((count, answer.to_vec()));
    }
}

fn request(major: u32, minor: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length.max(HEAD_BYTES)];
    // huge_encode_dev() of include/linux/kdev_t.h.
    let device = u64::from(minor & 0xff) | u64::from(major) << 8 | u64::from(minor & !0xff) << 12;
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &4_u32.to_ne_bytes());
    put(12, &(length as u32).to_ne_bytes());
    put(16, &(HEAD_BYTES as u32).to_ne_bytes());
    put(28, &WANTS_TABLE.to_ne_bytes());
    put(40, &device.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_the_device_as_the_kernel_encodes_it() {
        let bytes = request(254, 0x1234, 4096);
        assert_eq!(bytes.len(), 4096);
        assert_eq!(bytes[0], 4);
        assert_eq!(
            u64::from_ne_bytes(bytes[40..48].try_into().unwrap()),
            0x0120_fe34
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no devices")]
    fn a_device_that_is_none_is_an_error() {
        assert!(table((0, 0)).is_err());
    }
}
