//! fio's verify header, and the digest behind it.
//!
//! ```text
//!  0  u16  magic 0xacca            24  u32  time, s (0 here)
//!  2  u16  kind (see `kind`)       28  u32  time, ns (0 here)
//!  4  u32  length of the part      32  u16  thread
//!  8  u64  seed of the content     34  u16  number of the write, modulo 2^16
//! 16  u64  offset in the file      36  u32  CRC-32C of bytes 0 to 35
//! 40  digest of what follows it, then the content
//! ```
//!
//! All numbers are little-endian. The layout is `struct verify_header` of fio's verify.h (3.33), as
//! its files show it: see the tests, which read blocks that fio wrote. With `verify_offset` header
//! and digest have changed places with as many bytes from there on.

use super::digest::{self, checksum};
use super::{Label, Mismatch, mismatch};
use ugeom_format::text;
use ugeom_job::settings::{VERIFY_HEADER_BYTES, Verify, Verifying};

const MAGIC: u16 = 0xacca;
/// The bytes of the header that its own checksum covers.
const CHECKED_BYTES: usize = 36;

/// The number of a kind of block (the enum of fio's verify.h).
fn kind(verify: Verify) -> u16 {
    match verify {
        Verify::No => 0,
        Verify::Header => 1,
        Verify::Md5 => 2,
        Verify::Crc64 => 3,
        Verify::Crc32 => 4,
        Verify::Crc32c => 5,
        Verify::Crc16 => 7,
        Verify::Crc7 => 8,
        Verify::Sha256 => 9,
        Verify::Sha512 => 10,
        Verify::Sha3(224) => 11,
        Verify::Sha3(256) => 12,
        Verify::Sha3(384) => 13,
        Verify::Sha3(_) => 14,
        Verify::Xxhash => 15,
        Verify::Sha1 => 16,
        Verify::PatternHeader => 17,
        Verify::Pattern => 18,
        Verify::Null => 19,
    }
}

/// The length of the parts of a block that have a header each, bytes.
pub fn step(verifying: &Verifying, block_bytes: usize) -> usize {
    match verifying.interval_bytes as usize {
        0 => block_bytes.max(1),
        interval => interval.min(block_bytes.max(1)),
    }
}

/// Puts header and digest into a part.
pub fn write(
    part: &mut [u8],
    verify: Verify,
    verifying: &Verifying,
    label: Label,
    seed: u64,
    thread: u16,
) {
    let Some(head) = verify.header_bytes() else {
        return;
    };
    if part.len() < head {
        return;
    }
    let digest = digest::of(verify, &part[head..]);
    put(part, VERIFY_HEADER_BYTES, digest.bytes());
    let length = part.len() as u32;
    put(part, 0, &MAGIC.to_le_bytes());
    put(part, 2, &kind(verify).to_le_bytes());
    put(part, 4, &length.to_le_bytes());
    put(part, 8, &seed.to_le_bytes());
    put(part, 16, &label.offset.to_le_bytes());
    put(part, 24, &[0; 8]);
    put(part, 32, &thread.to_le_bytes());
    put(part, 34, &label.number.unwrap_or(0).to_le_bytes());
    let sum = checksum(&part[..CHECKED_BYTES]);
    put(part, CHECKED_BYTES, &sum.to_le_bytes());
    move_away(part, verify, verifying);
}

/// Moves a header from the beginning of a part to where `verify_offset` puts it, or back.
pub fn move_away(part: &mut [u8], verify: Verify, verifying: &Verifying) {
    let (at, head) = (verifying.offset_bytes as usize, verify.header_bytes());
    let head = head.unwrap_or(0);
    if at >= head && at > 0 && at + head <= part.len() {
        let (before, behind) = part.split_at_mut(at);
        before[..head].swap_with_slice(&mut behind[..head]);
    }
}

/// A part with its header at the beginning, wherever it is on the medium.
pub fn moved_back<'a>(
    part: &'a [u8],
    verify: Verify,
    verifying: &Verifying,
    scratch: &'a mut Vec<u8>,
) -> &'a [u8] {
    if verifying.offset_bytes == 0 {
        return part;
    }
    scratch.clear();
    scratch.extend_from_slice(part);
    move_away(scratch, verify, verifying);
    scratch
}

/// The seed in the header of a part; 0 when the part is too short for one.
pub fn seed(part: &[u8]) -> u64 {
    match part.len() {
        0..16 => 0,
        _ => number(part, 8, 8),
    }
}

/// Checks the header of a part, and its digest.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn check(part: &[u8], verify: Verify, label: Label) -> Result<(), Box<Mismatch>> {
    let head = verify.header_bytes().unwrap_or(0);
    if part.len() < head {
        let (expected, found) = (format!("{head} bytes"), format!("{} bytes", part.len()));
        return Err(mismatch(0, "room for the header", expected, found));
    }
    check_header(part, label)?;
    let digest = digest::of(verify, &part[head..]);
    let found = &part[VERIFY_HEADER_BYTES..head];
    if digest.bytes() == found {
        return Ok(());
    }
    let name = digest::name(verify);
    Err(mismatch(
        VERIFY_HEADER_BYTES,
        name,
        hex(digest.bytes()),
        hex(found),
    ))
}

/// Numbers of up to eight bytes as numbers, longer digests as they stand.
fn hex(bytes: &[u8]) -> String {
    match bytes.len() {
        0..=8 => format!("{:#x}", number(bytes, 0, bytes.len())),
        _ => text::hex(bytes),
    }
}

fn put(buffer: &mut [u8], at: usize, bytes: &[u8]) {
    buffer[at..at + bytes.len()].copy_from_slice(bytes);
}

fn number(block: &[u8], at: usize, bytes: usize) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes].copy_from_slice(&block[at..at + bytes]);
    u64::from_le_bytes(wide)
}

fn same(at: usize, what: &'static str, expected: u64, found: u64) -> Result<(), Box<Mismatch>> {
    if expected == found {
        return Ok(());
    }
    let mut wrong = mismatch(at, what, format!("{expected:#x}"), format!("{found:#x}"));
    wrong.in_header = true;
    Err(wrong)
}

fn check_header(part: &[u8], label: Label) -> Result<(), Box<Mismatch>> {
    let magic = u64::from(MAGIC);
    same(0, "magic number of the header", magic, number(part, 0, 2))?;
    let length = part.len() as u64;
    same(4, "length in the header", length, number(part, 4, 4))?;
    let sum = u64::from(checksum(&part[..CHECKED_BYTES]));
    same(
        CHECKED_BYTES,
        "CRC-32C of the header",
        sum,
        number(part, CHECKED_BYTES, 4),
    )?;
    same(
        16,
        "offset in the header",
        label.offset,
        number(part, 16, 8),
    )?;
    match label.number {
        Some(expected) => same(
            34,
            "number of the write",
            u64::from(expected),
            number(part, 34, 2),
        ),
        None => Ok(()),
    }
}
