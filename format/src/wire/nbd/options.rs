//! The data of options, and of the replies to them.

use super::{Error, STRING_BYTES_MAX, info};
use crate::bytes::{u16_be, u32_be, u64_be};

/// Reads strings and numbers one after another, and says of which message they are.
struct Reader<'a> {
    what: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, bytes, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or(&[])
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let taken = self.rest().get(..length).ok_or(Error::Length {
            what: self.what,
            found: self.bytes.len(),
            expected: self.at.saturating_add(length),
        })?;
        self.at += length;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, Error> {
        self.take(2).map(|bytes| u16_be(bytes, 0))
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.take(4).map(|bytes| u32_be(bytes, 0))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.take(8).map(|bytes| u64_be(bytes, 0))
    }

    /// A length of 32 bits, and so many bytes of text.
    fn string(&mut self, what: &'static str) -> Result<String, Error> {
        let length = self.u32()? as usize;
        if length > STRING_BYTES_MAX {
            let found = length;
            return Err(Error::TooLong { what, found });
        }
        text(what, self.take(length)?)
    }

    /// The text up to the end.
    fn last_string(&mut self, what: &'static str) -> Result<String, Error> {
        let rest = self.rest();
        if rest.len() > STRING_BYTES_MAX {
            let found = rest.len();
            return Err(Error::TooLong { what, found });
        }
        text(what, self.take(rest.len())?)
    }

    fn end(&self) -> Result<(), Error> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        Err(Error::Length {
            what: self.what,
            found: self.bytes.len(),
            expected: self.at,
        })
    }
}

fn text(what: &'static str, bytes: &[u8]) -> Result<String, Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(Error::NotText {
            what,
            at: error.valid_up_to(),
        }),
    }
}

fn put_string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u32).to_be_bytes());
    bytes.extend(text.as_bytes());
}

/// The name that EXPORT_NAME carries as its whole data.
///
/// # Errors
/// It is too long, or no text.
pub fn export_name(bytes: &[u8]) -> Result<String, Error> {
    Reader::new("EXPORT_NAME", bytes).last_string("the name of an export")
}

/// The data of INFO and GO: an export, and the facts that the client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoRequest {
    /// The name; empty for the default export.
    pub name: String,
    /// Numbers of [`super::info`], known or not.
    pub wanted: Vec<u16>,
}

impl InfoRequest {
    /// The payload of the option, as it follows its header.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_string(&mut bytes, &self.name);
        bytes.extend((self.wanted.len() as u16).to_be_bytes());
        for wanted in &self.wanted {
            bytes.extend(wanted.to_be_bytes());
        }
        bytes
    }

    /// Decodes the data behind the header of the option.
    ///
    /// # Errors
    /// Lengths that do not fit, a name that is no text.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new("INFO or GO", bytes);
        let name = reader.string("the name of an export")?;
        let count = reader.u16()?;
        let mut wanted = Vec::new();
        for _ in 0..count {
            wanted.push(reader.u16()?);
        }
        reader.end()?;
        Ok(Self { name, wanted })
    }
}

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaRequest {
    /// Name of the export that is asked about.
    pub name: String,
    /// The contexts; `base:` means all of that kind.
    pub queries: Vec<String>,
}

impl MetaRequest {
    /// The payload of the option, as it follows its header.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_string(&mut bytes, &self.name);
        bytes.extend((self.queries.len() as u32).to_be_bytes());
        for query in &self.queries {
            put_string(&mut bytes, query);
        }
        bytes
    }

    /// Decodes the data behind the header of the option.
    ///
    /// # Errors
    /// Lengths that do not fit, strings that are no text.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new("LIST_ or SET_META_CONTEXT", bytes);
        let name = reader.string("the name of an export")?;
        let count = reader.u32()?;
        // Each query takes four bytes at least, so a wrong count ends with the data.
        let mut queries = Vec::new();
        for _ in 0..count {
            queries.push(reader.string("the name of a context")?);
        }
        reader.end()?;
        Ok(Self { name, queries })
    }
}

/// The data of a reply of kind SERVER: one export of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name of the export; the empty one is the default.
    pub name: String,
    /// A text for people; may be empty.
    pub description: String,
}

impl Listed {
    /// The payload of the reply, as it follows its header.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_string(&mut bytes, &self.name);
        bytes.extend(self.description.as_bytes());
        bytes
    }

    /// Decodes the data of a reply of type SERVER.
    ///
    /// # Errors
    /// Lengths that do not fit, strings that are no text.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new("an export of a list", bytes);
        Ok(Self {
            name: reader.string("the name of an export")?,
            description: reader.last_string("the description of an export")?,
        })
    }
}

/// The data of a reply of kind META_CONTEXT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaContext {
    /// The number that replies to BLOCK_STATUS carry; 0 in a list.
    pub id: u32,
    /// Name of the context, as `base:allocation`.
    pub name: String,
}

impl MetaContext {
    /// The payload of the reply, as it follows its header.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.id.to_be_bytes().to_vec();
        bytes.extend(self.name.as_bytes());
        bytes
    }

    /// Decodes the data of a reply of type META_CONTEXT.
    ///
    /// # Errors
    /// It is too short, or its name no text.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new("a context", bytes);
        Ok(Self {
            id: reader.u32()?,
            name: reader.last_string("the name of a context")?,
        })
    }
}

/// The data of a reply of kind INFO: a fact about an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Info {
    /// Size and transmission flags (`NBD_INFO_EXPORT`).
    Export {
        /// Size of the export in bytes.
        size_bytes: u64,
        /// The features of the export: bits of [`super::export_flag`].
        flags: u16,
    },
    /// The name under which the server knows it.
    Name(String),
    /// A text for people.
    Description(String),
    /// The constraints on requests.
    BlockSize {
        /// Offsets and lengths must be multiples of it, bytes.
        minimum_bytes: u32,
        /// Offsets and lengths should be multiples of it, bytes.
        preferred_bytes: u32,
        /// The longest READ and WRITE, bytes.
        maximum_bytes: u32,
    },
    /// Something else, which may be ignored.
    Other(u16),
}

impl Info {
    /// The payload of the reply, as it follows its header.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Export { size_bytes, flags } => {
                let mut bytes = info::EXPORT.to_be_bytes().to_vec();
                bytes.extend(size_bytes.to_be_bytes());
                bytes.extend(flags.to_be_bytes());
                bytes
            }
            Self::Name(text) => [&info::NAME.to_be_bytes()[..], text.as_bytes()].concat(),
            Self::Description(text) => {
                [&info::DESCRIPTION.to_be_bytes()[..], text.as_bytes()].concat()
            }
            Self::BlockSize {
                minimum_bytes,
                preferred_bytes,
                maximum_bytes,
            } => {
                let mut bytes = info::BLOCK_SIZE.to_be_bytes().to_vec();
                for size in [minimum_bytes, preferred_bytes, maximum_bytes] {
                    bytes.extend(size.to_be_bytes());
                }
                bytes
            }
            Self::Other(number) => number.to_be_bytes().to_vec(),
        }
    }

    /// Reads it. The data of an unknown number is ignored.
    ///
    /// # Errors
    /// Lengths that do not fit, strings that are no text.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new("a fact about an export", bytes);
        let fact = match reader.u16()? {
            info::EXPORT => Self::Export {
                size_bytes: reader.u64()?,
                flags: reader.u16()?,
            },
            info::NAME => Self::Name(reader.last_string("the name of an export")?),
            info::DESCRIPTION => {
                Self::Description(reader.last_string("the description of an export")?)
            }
            info::BLOCK_SIZE => Self::BlockSize {
                minimum_bytes: reader.u32()?,
                preferred_bytes: reader.u32()?,
                maximum_bytes: reader.u32()?,
            },
            other => return Ok(Self::Other(other)),
        };
        reader.end()?;
        Ok(fact)
    }
}
