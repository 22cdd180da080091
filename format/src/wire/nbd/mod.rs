//! NBD, the network block device protocol: fixed newstyle handshake, options and their replies,
//! requests, simple and structured replies, block status.
//!
//! ```text
//!   server                                     client
//!     | Greeting, 18 bytes                        |
//!     |------------------------------------------>|
//!     |                  4 bytes of client flags  |
//!     |<------------------------------------------|
//!     |    OptionHeader, 16 bytes, and its data   |
//!     |<------------------------------------------|   again and again, until GO or EXPORT_NAME
//!     | OptionReplyHeader, 20 bytes, and data     |
//!     |------------------------------------------>|
//!     |              Request, 28 bytes (and data) |
//!     |<------------------------------------------|   many at a time, in any order
//!     | SimpleReply, 16 bytes, or chunks of 20    |
//!     |------------------------------------------>|
//! ```
//!
//! All integers are big-endian, all strings UTF-8 of at most 4096 bytes. With extended headers
//! requests and chunks have 64-bit lengths.
//!
//! Source: "The NBD protocol", `doc/proto.md` of <https://github.com/NetworkBlockDevice/nbd>;
//! `docs/formats/nbd.md`.

/// A message of fixed size in big-endian numbers: a magic number of 32 bits, then fields at these
/// byte offsets.
macro_rules! message {
    (
        $(#[$about:meta])*
        $name:ident, $what:literal, $size:ident, $magic:ident:
        $($(#[$meaning:meta])* $at:literal $field:ident: $number:ident,)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$meaning])* pub $field: $number,)*
        }

        impl $name {
            /// The bytes on the wire; a payload follows them.
            #[inline]
            pub fn encode(self) -> [u8; $size] {
                let mut bytes = [0; $size];
                crate::bytes::put_u32_be(&mut bytes, 0, $magic);
                $(crate::bytes::put(&mut bytes, $at, &self.$field.to_be_bytes());)*
                bytes
            }

            /// Decodes the bytes, big-endian, magic number first.
            ///
            /// # Errors
            /// The magic number is another: where the next message begins cannot be known any more.
            #[inline]
            pub fn decode(bytes: &[u8; $size]) -> Result<Self, Error> {
                super::magic($what, crate::bytes::u32_be(bytes, 0), $magic, "")?;
                Ok(Self { $($field: $number::from_be_bytes(crate::bytes::take(bytes, $at)),)* })
            }
        }
    };
}

mod extended;
mod handshake;
mod options;
#[cfg(test)]
mod tests;
mod transmission;
pub mod uri;

pub use extended::{
    EXTENDED_CHUNK_HEADER_BYTES, EXTENDED_REQUEST_BYTES, ExtendedChunkHeader, ExtendedRequest,
    ExtendedStatus, decode_extended_status, encode_extended_status,
};
pub use handshake::{
    CLIENT_FLAGS_BYTES, ExportReply, GREETING_BYTES, Greeting, OLD_GREETING_BYTES,
    OPTION_HEADER_BYTES, OPTION_REPLY_HEADER_BYTES, OldGreeting, OptionHeader, OptionReplyHeader,
};
pub use options::{Info, InfoRequest, Listed, MetaContext, MetaRequest, export_name};
pub use transmission::{
    CHUNK_HEADER_BYTES, ChunkHeader, ErrorChunk, HOLE_BYTES, Hole, REQUEST_BYTES, Request,
    SIMPLE_REPLY_BYTES, SimpleReply, Status, decode_block_status, encode_block_status,
};

/// The longest string that the protocol allows, bytes.
pub const STRING_BYTES_MAX: usize = 4096;
/// The longest data of an option that is accepted, bytes: some strings of the longest kind.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;
/// The longest request that every server and client must be prepared for when nothing else was
/// agreed, bytes.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// The context of BLOCK_STATUS that tells holes from data.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// The context of BLOCK_STATUS that tells which layer of images has a range: 0 none, 1 the top one
/// (QEMU's `docs/interop/nbd.txt`).
pub const ALLOCATION_DEPTH: &str = "qemu:allocation-depth";

/// Flags of the server's greeting; the client answers with those that it has, too.
pub mod handshake_flag {
    /// Options may follow each other, and errors have replies.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// The 124 zeroes behind the answer to EXPORT_NAME are left out.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// The server's flags of an export.
pub mod export_flag {
    /// The other flags mean something.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// It cannot be written.
    pub const READ_ONLY: u16 = 1 << 1;
    /// The server understands FLUSH.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The server understands the flag FUA of a command.
    pub const SEND_FUA: u16 = 1 << 3;
    /// The device is rotational: clients had better read in order.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// The server understands TRIM.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// The server understands WRITE_ZEROES.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The server understands the flag DF: a read in one chunk.
    pub const SEND_DF: u16 = 1 << 7;
    /// A FLUSH covers writes over other connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// The server understands CACHE.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// The server understands the flag FAST_ZERO of WRITE_ZEROES.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Options of the handshake.
pub mod option {
    /// Chooses an export and ends the handshake; has no answer for errors.
    pub const EXPORT_NAME: u32 = 1;
    /// The client ends the handshake without choosing an export.
    pub const ABORT: u32 = 2;
    /// Asks for the names of all exports.
    pub const LIST: u32 = 3;
    /// From the answer on, both sides speak TLS.
    pub const STARTTLS: u32 = 5;
    /// Asks about an export.
    pub const INFO: u32 = 6;
    /// Chooses an export and ends the handshake.
    pub const GO: u32 = 7;
    /// Asks for structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Asks which contexts BLOCK_STATUS could tell about.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Chooses the metadata contexts that BLOCK_STATUS reports.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Asks for headers with 64-bit lengths.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Kinds of replies to options.
pub mod option_reply {
    /// The option has succeeded; the last reply to it.
    pub const ACK: u32 = 1;
    /// An export, see [`super::Listed`].
    pub const SERVER: u32 = 2;
    /// A fact about an export, see [`super::Info`].
    pub const INFO: u32 = 3;
    /// A context, see [`super::MetaContext`].
    pub const META_CONTEXT: u32 = 4;
    /// The bit of all errors.
    pub const ERROR: u32 = 1 << 31;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = ERROR | 1;
    /// Forbidden by the server's rules.
    pub const ERR_POLICY: u32 = ERROR | 2;
    /// The option's data makes no sense.
    pub const ERR_INVALID: u32 = ERROR | 3;
    /// Not possible on this server's system.
    pub const ERR_PLATFORM: u32 = ERROR | 4;
    /// It is served over TLS only (`NBD_REP_ERR_TLS_REQD`).
    pub const ERR_TLS_REQD: u32 = ERROR | 5;
    /// No export has the name.
    pub const ERR_UNKNOWN: u32 = ERROR | 6;
    /// The server is about to end.
    pub const ERR_SHUTDOWN: u32 = ERROR | 7;
    /// The request is too long to look at.
    pub const ERR_TOO_BIG: u32 = ERROR | 9;
    /// Not together with extended headers.
    pub const ERR_EXT_HEADER_REQD: u32 = ERROR | 10;
}

/// The subjects of [`Info`].
pub mod info {
    /// Size and transmission flags of the export.
    pub const EXPORT: u16 = 0;
    /// The export's canonical name.
    pub const NAME: u16 = 1;
    /// A text for people.
    pub const DESCRIPTION: u16 = 2;
    /// Smallest, preferred and greatest length of requests.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Commands of the transmission phase.
pub mod command {
    /// The data of a range comes back.
    pub const READ: u16 = 0;
    /// Data follows the request.
    pub const WRITE: u16 = 1;
    /// The client leaves; there is no reply.
    pub const DISC: u16 = 2;
    /// All writes that were answered become durable.
    pub const FLUSH: u16 = 3;
    /// The range is not needed.
    pub const TRIM: u16 = 4;
    /// The range will be needed soon.
    pub const CACHE: u16 = 5;
    /// The range is to read as zeroes.
    pub const WRITE_ZEROES: u16 = 6;
    /// Queries the state of a range.
    pub const BLOCK_STATUS: u16 = 7;

    /// The name that the protocol has for a command, if it is known.
    pub const fn name(command: u16) -> Option<&'static str> {
        Some(match command {
            READ => "READ",
            WRITE => "WRITE",
            DISC => "DISC",
            FLUSH => "FLUSH",
            TRIM => "TRIM",
            CACHE => "CACHE",
            WRITE_ZEROES => "WRITE_ZEROES",
            BLOCK_STATUS => "BLOCK_STATUS",
            _ => return None,
        })
    }
}

/// Flags of a request.
pub mod command_flag {
    /// Durable before it is answered.
    pub const FUA: u16 = 1 << 0;
    /// WRITE_ZEROES: the range stays allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// READ: one chunk of data, holes included.
    pub const DF: u16 = 1 << 2;
    /// BLOCK_STATUS: one extent is enough.
    pub const REQ_ONE: u16 = 1 << 3;
    /// WRITE_ZEROES: fail rather than be as slow as a write.
    pub const FAST_ZERO: u16 = 1 << 4;
    /// With extended headers: the length is that of a payload.
    pub const PAYLOAD_LEN: u16 = 1 << 5;
}

/// Kinds of chunks of a structured reply.
pub mod chunk {
    /// Flag: the last chunk of this reply.
    pub const DONE: u16 = 1 << 0;
    /// Nothing but the header.
    pub const NONE: u16 = 0;
    /// Eight bytes of offset, then data.
    pub const OFFSET_DATA: u16 = 1;
    /// A stretch of zeroes, see [`super::Hole`].
    pub const OFFSET_HOLE: u16 = 2;
    /// The state of a range, see [`super::Status`].
    pub const BLOCK_STATUS: u16 = 5;
    /// The same with 64-bit numbers, see [`super::ExtendedStatus`].
    pub const BLOCK_STATUS_EXT: u16 = 6;
    /// The request failed, see [`super::ErrorChunk`].
    pub const ERROR: u16 = (1 << 15) | 1;
    /// The same, with the offset at which.
    pub const ERROR_OFFSET: u16 = (1 << 15) | 2;
}

/// Bits of [`Status::flags`] in the context `base:allocation`.
pub mod state {
    /// The range is not allocated (`NBD_STATE_HOLE`).
    pub const HOLE: u32 = 1 << 0;
    /// The range reads as zeroes (`NBD_STATE_ZERO`).
    pub const ZERO: u32 = 1 << 1;
}

/// Errors of the transmission phase: the numbers are fixed, and may differ from a system's own.
pub mod error {
    /// Not permitted: the export is read-only.
    pub const EPERM: u32 = 1;
    /// Input or output error.
    pub const EIO: u32 = 5;
    /// The server has no memory for the request.
    pub const ENOMEM: u32 = 12;
    /// The request makes no sense.
    pub const EINVAL: u32 = 22;
    /// There is no space left for the write.
    pub const ENOSPC: u32 = 28;
    /// The reply would be too long for the request (DF).
    pub const EOVERFLOW: u32 = 75;
    /// The server does not support the command or one of its flags.
    pub const ENOTSUP: u32 = 95;
    /// The server is about to end.
    pub const ESHUTDOWN: u32 = 108;
}

/// A message that the protocol does not have at its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error("{what} begins with {found:#x}; {expected:#x} was expected{hint}")]
    Magic {
        what: &'static str,
        found: u64,
        expected: u64,
        /// The accepted values, in plain words; may be empty.
        hint: &'static str,
    },
    /// There are fewer bytes than the message needs, or more.
    #[error("{what} has {found} bytes; {expected} were expected")]
    Length {
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there should be, at least or exactly.
        expected: usize,
    },
    #[error("{what} has {found} bytes; at most {STRING_BYTES_MAX} are allowed")]
    TooLong { what: &'static str, found: usize },
    #[error("{what} is not UTF-8: byte {at} of it")]
    NotText {
        what: &'static str,
        /// The first byte that does not fit.
        at: usize,
    },
}

/// Hints at what a peer speaks whose first bytes are no option: TLS, most of all.
pub(crate) fn hint(bytes: &[u8]) -> &'static str {
    match bytes {
        // A record of the handshake, of TLS 1.0 to 1.3 (RFC 8446, 5.1).
        [0x16, 3, 0..=4, ..] => " (a TLS hello: this port speaks plain NBD)",
        [b'G', b'E', b'T', b' ', ..] | [b'P', b'O', b'S', b'T', ..] => " (this is HTTP)",
        _ => "",
    }
}

/// Compares a magic number of 32 or 64 bits.
fn magic<T: Into<u64>>(
    what: &'static str,
    found: T,
    expected: T,
    hint: &'static str,
) -> Result<(), Error> {
    let (found, expected) = (found.into(), expected.into());
    if found == expected {
        return Ok(());
    }
    Err(Error::Magic {
        what,
        found,
        expected,
        hint,
    })
}

fn expect(what: &'static str, bytes: &[u8], expected: usize) -> Result<(), Error> {
    let found = bytes.len();
    if found == expected {
        return Ok(());
    }
    Err(Error::Length {
        what,
        found,
        expected,
    })
}
