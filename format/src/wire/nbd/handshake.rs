//! The handshake: greeting, headers of options and of their replies, the answer to EXPORT_NAME.

use super::{Error, expect, handshake_flag, hint, magic};
use crate::bytes::{put, put_u32_be, u16_be, u32_be, u64_be};

/// The text `NBDMAGIC`, with which a server begins.
const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`: newstyle, and before each option.
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Oldstyle, the handshake of before 2011.
const OLD_MAGIC: u64 = 0x4202_8186_1253;
/// Before each reply to an option.
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// The size of a [`Greeting`], bytes.
pub const GREETING_BYTES: usize = 18;
/// The size of an [`OldGreeting`], bytes: with 124 zeroes at its end.
pub const OLD_GREETING_BYTES: usize = 152;
/// The size of the client's flags, a 32-bit number, bytes.
pub const CLIENT_FLAGS_BYTES: usize = 4;
/// The size of an [`OptionHeader`], bytes.
pub const OPTION_HEADER_BYTES: usize = 16;
/// The size of an [`OptionReplyHeader`], bytes.
pub const OPTION_REPLY_HEADER_BYTES: usize = 20;
/// Zeroes behind an [`ExportReply`] unless both sides can do without, bytes.
const PADDING_BYTES: usize = 124;

/// Size and flags in an [`ExportReply`], bytes.
const EXPORT_REPLY_BYTES: usize = 10;

/// The server's first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The features of the server: bits of [`super::handshake_flag`].
    pub flags: u16,
}

impl Greeting {
    /// The bytes on the wire, big-endian.
    pub fn encode(self) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        put(&mut bytes, 0, &INIT_MAGIC.to_be_bytes());
        put(&mut bytes, 8, &OPTION_MAGIC.to_be_bytes());
        put(&mut bytes, 16, &self.flags.to_be_bytes());
        bytes
    }

    /// Decodes the first 18 bytes of a server.
    ///
    /// # Errors
    /// The peer is no NBD server, or one with the oldstyle handshake ([`OldGreeting`]).
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let what = "a server's greeting";
        expect(what, bytes, GREETING_BYTES)?;
        magic(what, u64_be(bytes, 0), INIT_MAGIC, "")?;
        magic(what, u64_be(bytes, 8), OPTION_MAGIC, "")?;
        let flags = u16_be(bytes, 16);
        Ok(Self { flags })
    }

    /// Whether options may follow each other.
    pub fn is_fixed(self) -> bool {
        self.flags & handshake_flag::FIXED_NEWSTYLE != 0
    }
}

/// The whole handshake of an oldstyle server, which has one export without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldGreeting {
    /// The size of the export, bytes.
    pub size_bytes: u64,
    /// The features of the export: bits of [`super::export_flag`].
    pub flags: u16,
}

impl OldGreeting {
    /// Whether a server that begins with these bytes is an oldstyle one.
    pub fn is_begun(bytes: &[u8]) -> bool {
        bytes.starts_with(&INIT_MAGIC.to_be_bytes())
            && bytes.get(8..16) == Some(&OLD_MAGIC.to_be_bytes())
    }

    /// Decodes the first 152 bytes of an oldstyle server.
    ///
    /// # Errors
    /// There are fewer bytes, or it is another server.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let what = "an oldstyle greeting";
        expect(what, bytes, OLD_GREETING_BYTES)?;
        magic(what, u64_be(bytes, 0), INIT_MAGIC, "")?;
        magic(what, u64_be(bytes, 8), OLD_MAGIC, "")?;
        // A 32-bit number, of which the protocol uses the lower half.
        let (size_bytes, flags) = (u64_be(bytes, 16), u16_be(bytes, 26));
        Ok(Self { size_bytes, flags })
    }
}

/// The header of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHeader {
    /// The option: one of [`super::option`].
    pub option: u32,
    /// The length of the data that follows, bytes. Any 32-bit number.
    pub length: u32,
}

impl OptionHeader {
    /// The 16 bytes of the header, big-endian.
    pub fn encode(self) -> [u8; OPTION_HEADER_BYTES] {
        let mut bytes = [0; OPTION_HEADER_BYTES];
        put(&mut bytes, 0, &OPTION_MAGIC.to_be_bytes());
        put_u32_be(&mut bytes, 8, self.option);
        put_u32_be(&mut bytes, 12, self.length);
        bytes
    }

    /// Decodes the header before the data of an option.
    ///
    /// # Errors
    /// The magic number is another, as of a client that speaks TLS or HTTP.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let what = "an option";
        expect(what, bytes, OPTION_HEADER_BYTES)?;
        magic(what, u64_be(bytes, 0), OPTION_MAGIC, hint(bytes))?;
        Ok(Self {
            option: u32_be(bytes, 8),
            length: u32_be(bytes, 12),
        })
    }
}

/// The header of a reply to an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionReplyHeader {
    /// The option that is answered.
    pub option: u32,
    /// Success, data or error: one of [`super::option_reply`].
    pub reply: u32,
    /// The length of the data that follows, bytes.
    pub length: u32,
}

impl OptionReplyHeader {
    /// The 20 bytes of the header, big-endian.
    pub fn encode(self) -> [u8; OPTION_REPLY_HEADER_BYTES] {
        let mut bytes = [0; OPTION_REPLY_HEADER_BYTES];
        put(&mut bytes, 0, &REPLY_MAGIC.to_be_bytes());
        put_u32_be(&mut bytes, 8, self.option);
        put_u32_be(&mut bytes, 12, self.reply);
        put_u32_be(&mut bytes, 16, self.length);
        bytes
    }

    /// Decodes the header before the data of a reply.
    ///
    /// # Errors
    /// The magic number is another.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let what = "a reply to an option";
        expect(what, bytes, OPTION_REPLY_HEADER_BYTES)?;
        magic(what, u64_be(bytes, 0), REPLY_MAGIC, "")?;
        Ok(Self {
            option: u32_be(bytes, 8),
            reply: u32_be(bytes, 12),
            length: u32_be(bytes, 16),
        })
    }

    /// Whether the option was refused.
    pub fn is_error(self) -> bool {
        self.reply & super::option_reply::ERROR != 0
    }
}

/// The answer to EXPORT_NAME, which ends the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportReply {
    /// The size of the export, bytes.
    pub size_bytes: u64,
    /// The features of the export: bits of [`super::export_flag`].
    pub flags: u16,
}

impl ExportReply {
    /// The message; `no_zeroes` when both sides have that flag.
    pub fn encode(self, no_zeroes: bool) -> Vec<u8> {
        let mut bytes = self.size_bytes.to_be_bytes().to_vec();
        bytes.extend(self.flags.to_be_bytes());
        if !no_zeroes {
            bytes.extend([0; PADDING_BYTES]);
        }
        bytes
    }

    /// How long the message is, bytes; `no_zeroes` when both sides have that flag.
    pub const fn length_bytes(no_zeroes: bool) -> usize {
        if no_zeroes {
            EXPORT_REPLY_BYTES
        } else {
            EXPORT_REPLY_BYTES + PADDING_BYTES
        }
    }

    /// Reads the message; bytes behind size and flags are ignored.
    ///
    /// # Errors
    /// It is too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let bytes = bytes.get(..EXPORT_REPLY_BYTES).unwrap_or(bytes);
        expect("the answer to EXPORT_NAME", bytes, EXPORT_REPLY_BYTES)?;
        Ok(Self {
            size_bytes: u64_be(bytes, 0),
            flags: u16_be(bytes, 8),
        })
    }
}
