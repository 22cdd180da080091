//! FUSE over io_uring: each request of a ring has a place of its own for header and argument, and
//! another one for what follows them and for the data of the reply.
//!
//! ```text
//!   first place, 288 bytes          second place
//!     0  InHeader, then OutHeader     name, or data of WRITE; then the reply
//!   128  argument
//!   256  word of flags
//!   264  number for COMMIT_AND_FETCH
//!   272  length of the second place's content, bytes
//! ```
//!
//! Source: `struct fuse_uring_req_header`, `struct fuse_uring_ent_in_out` and
//! `struct fuse_uring_cmd_req` of `include/uapi/linux/fuse.h`, protocol 7.42.

use super::{
    Error, IN_HEADER_BYTES, InHeader, OutHeader, Request, argument_bytes, put32, word32, word64,
};
use crate::bytes::put;

/// The size of the first place, bytes.
pub const PLACE_BYTES: usize = 288;
/// The command that offers an entry to the kernel for the first time.
pub const REGISTER: u32 = 1;
/// The command that replies and offers the entry again.
pub const COMMIT_AND_FETCH: u32 = 2;
/// The size of a command's own part, bytes.
pub const COMMAND_BYTES: usize = 80;

/// Where the argument begins.
const ARGUMENT: usize = 128;
/// Where the number of a commit lies.
const COMMIT: usize = 264;
/// Where the length of the second place's content lies.
const PAYLOAD: usize = 272;

/// The number by which the reply to the request in a place is committed.
#[inline]
pub fn commit_number(place: &[u8; PLACE_BYTES]) -> u64 {
    word64(place, COMMIT)
}

/// How much of the second place holds a name or data, bytes.
#[inline]
pub fn payload_bytes(place: &[u8; PLACE_BYTES]) -> u32 {
    word32(place, PAYLOAD)
}

/// Reads the request of a place; `rest` is what lies in the second place, of which only LOOKUP
/// needs anything.
///
/// # Errors
/// A name has no end.
#[inline]
pub fn request<'a>(
    place: &[u8; PLACE_BYTES],
    rest: &'a [u8],
) -> Result<(InHeader, Request<'a>), Error> {
    let header = InHeader::decode(&place[..IN_HEADER_BYTES])?;
    let argument = &place[ARGUMENT..ARGUMENT + argument_bytes(header.opcode)];
    Ok((header, Request::decode(header.opcode, argument, rest)?))
}

/// Puts a reply into a place; the data of `length_bytes` is in the second place.
#[inline]
pub fn put_reply(place: &mut [u8; PLACE_BYTES], unique: u64, error: i32, length_bytes: u32) {
    let header = OutHeader {
        length_bytes: super::OUT_HEADER_BYTES as u32 + length_bytes,
        error,
        unique,
    };
    put(place, 0, &header.encode());
    put32(place, PAYLOAD, length_bytes);
}

/// A command's own part: which queue, and which request is replied to (0 for [`REGISTER`]).
#[inline]
pub fn command(queue: u16, commit: u64) -> [u8; COMMAND_BYTES] {
    let mut bytes = [0; COMMAND_BYTES];
    put(&mut bytes, 8, &commit.to_ne_bytes());
    put(&mut bytes, 16, &queue.to_ne_bytes());
    bytes
}
