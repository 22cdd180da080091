//! Random bytes of the system, for keys, salts and overwriting.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Fills `bytes` from getrandom(2), which waits until the system's generator is seeded.
///
/// # Errors
/// The system's answer.
pub fn fill(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(length) => bytes = &mut bytes[length..],
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
