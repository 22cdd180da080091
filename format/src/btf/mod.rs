//! BTF, the kernel's description of its types: the offset of a member in a struct, the number of a
//! type, the types of a tracepoint's arguments.
//!
//! ```text
//!   header 24 bytes:  u16 magic eb9f, u8 version 1, u8 flags, u32 header length,
//!                     u32 offset and length of types, u32 offset and length of strings
//!   type   12 bytes:  u32 name, u32 (length 0..15, kind 24..28, flag 31), u32 size or type,
//!                     then data of the kind; numbers count from 1
//!   member 12 bytes:  u32 name, u32 type, u32 bit offset (low 24 bits when the flag is set)
//! ```
//!
//! Source: Documentation/bpf/btf.rst of Linux. `docs/formats/btf.md` has the layout.

#[cfg(test)]
mod tests;

use crate::bytes::{u16_le, u32_le};

const MAGIC: u16 = 0xeb9f;
const TYPE_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;
const PARAMETER_BYTES: usize = 8;
/// Types beyond this number are refused; Linux 6.18 has 150,000.
const TYPES_MAX: usize = 1 << 22;
/// Anonymous members, typedefs and qualifiers are followed so deep.
const DEPTH_MAX: u32 = 16;

const POINTER: u8 = 2;
const STRUCT: u8 = 4;
const UNION: u8 = 5;
const TYPEDEF: u8 = 8;
const NAMED_FUNCTION: u8 = 12;
const FUNCTION: u8 = 13;

/// Why a BTF cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum BtfError {
    #[error("no BTF: it begins with {0:#06x}")]
    Magic(u16),
    #[error("the section of {0} lies outside the {1} bytes")]
    Section(&'static str, usize),
    #[error("type {number}: kind {kind} at byte {offset} of the types is not known")]
    Kind {
        number: usize,
        kind: u8,
        offset: usize,
    },
    #[error("more than {TYPES_MAX} types")]
    Long,
}

/// The types of a kernel.
#[derive(Debug)]
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Where each type begins; number 1 is the first.
    places: Vec<u32>,
}

/// The fields that begin every type (`struct btf_type`).
#[derive(Clone, Copy)]
struct Head {
    name: u32,
    length: usize,
    kind: u8,
    flag: bool,
    /// Its size in bytes, or the type that it refers to.
    refers: u32,
    /// Where its data begins.
    data: usize,
}

impl<'a> Btf<'a> {
    /// Reads the headers of all types.
    ///
    /// # Errors
    /// [`BtfError`] with the place.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BtfError> {
        if u16_le(bytes, 0) != MAGIC {
            return Err(BtfError::Magic(u16_le(bytes, 0)));
        }
        let head = u32_le(bytes, 4) as usize;
        let section = |name, at: usize| {
            let (start, length) = (u32_le(bytes, at) as usize, u32_le(bytes, at + 4) as usize);
            let rest = head.checked_add(start).and_then(|start| bytes.get(start..));
            let section = rest.and_then(|rest| rest.get(..length));
            section.ok_or(BtfError::Section(name, bytes.len()))
        };
        let (types, strings) = (section("types", 8)?, section("strings", 16)?);
        let mut btf = Self {
            types,
            strings,
            places: Vec::new(),
        };
        let mut at = 0;
        while at + TYPE_BYTES <= types.len() {
            if btf.places.len() >= TYPES_MAX {
                return Err(BtfError::Long);
            }
            let head = btf.head_at(at);
            let number = btf.places.len() + 1;
            let kind = BtfError::Kind {
                number,
                kind: head.kind,
                offset: at,
            };
            let data = data_bytes(head.kind, head.length).ok_or(kind)?;
            btf.places.push(at as u32);
            at += TYPE_BYTES + data;
        }
        Ok(btf)
    }

    /// The number of the typedef of that name.
    pub fn typedef(&self, name: &str) -> Option<u32> {
        self.find(name, &[TYPEDEF])
    }

    /// The number of the struct of that name.
    pub fn structure(&self, name: &str) -> Option<u32> {
        self.find(name, &[STRUCT])
    }

    /// The number of the function of that name.
    pub fn function(&self, name: &str) -> Option<u32> {
        self.find(name, &[NAMED_FUNCTION])
    }

    /// Where a member lies in a struct, bytes from its beginning. Dots lead into structs that are
    /// members (`bi_iter.bi_sector`); members of anonymous ones are found by their names.
    pub fn member(&self, of: &str, path: &str) -> Option<u32> {
        let mut number = self.find(of, &[STRUCT, UNION])?;
        let mut offset = 0;
        for name in path.split('.') {
            let (inside, of) = self.member_of(number, name, DEPTH_MAX)?;
            offset += inside;
            number = of;
        }
        Some(offset)
    }

    /// The argument of the tracepoint with that typedef (`btf_trace_block_getrq`) that is a pointer
    /// to the struct, from 0. The function's own first argument does not count.
    pub fn argument(&self, typedef: &str, of: &str) -> Option<u32> {
        let pointer = self.head(self.typedef(typedef)?)?.refers;
        let function = self.head(self.head(pointer)?.refers)?;
        if function.kind != FUNCTION {
            return None;
        }
        let wanted = self.find(of, &[STRUCT])?;
        let points = |at: &usize| {
            let number = u32_le(self.types, function.data + at * PARAMETER_BYTES + 4);
            let pointer = self.resolved(number);
            let head = pointer.and_then(|pointer| self.head(pointer));
            let to = head.filter(|head| head.kind == POINTER);
            to.and_then(|head| self.resolved(head.refers)) == Some(wanted)
        };
        let found = (1..function.length).find(points)?;
        u32::try_from(found - 1).ok()
    }

    fn find(&self, name: &str, kinds: &[u8]) -> Option<u32> {
        let is_it = |place: &u32| {
            let head = self.head_at(*place as usize);
            kinds.contains(&head.kind) && self.text(head.name) == name.as_bytes()
        };
        let found = self.places.iter().position(is_it)?;
        u32::try_from(found + 1).ok()
    }

    fn head(&self, number: u32) -> Option<Head> {
        let place = self.places.get((number as usize).checked_sub(1)?)?;
        Some(self.head_at(*place as usize))
    }

    fn head_at(&self, at: usize) -> Head {
        let info = u32_le(self.types, at + 4);
        Head {
            name: u32_le(self.types, at),
            length: (info & 0xffff) as usize,
            kind: (info >> 24) as u8 & 0x1f,
            flag: info >> 31 != 0,
            refers: u32_le(self.types, at + 8),
            data: at + TYPE_BYTES,
        }
    }

    fn text(&self, at: u32) -> &[u8] {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0);
        &rest[..end.unwrap_or(rest.len())]
    }

    /// A type without typedefs and qualifiers around it.
    fn resolved(&self, number: u32) -> Option<u32> {
        let mut number = number;
        for _ in 0..DEPTH_MAX {
            let head = self.head(number)?;
            match head.kind {
                TYPEDEF | 9..=11 | 18 => number = head.refers,
                _ => return Some(number),
            }
        }
        None
    }

    fn member_of(&self, number: u32, name: &str, depth: u32) -> Option<(u32, u32)> {
        let head = self.head(self.resolved(number)?)?;
        if !matches!(head.kind, STRUCT | UNION) || depth == 0 {
            return None;
        }
        for at in 0..head.length {
            let at = head.data + at * MEMBER_BYTES;
            let bits = u32_le(self.types, at + 8);
            let offset = if head.flag { bits & 0x00ff_ffff } else { bits } / 8;
            let of = u32_le(self.types, at + 4);
            let text = self.text(u32_le(self.types, at));
            if text == name.as_bytes() {
                return Some((offset, of));
            }
            if text.is_empty()
                && let Some((inside, of)) = self.member_of(of, name, depth - 1)
            {
                return Some((offset.checked_add(inside)?, of));
            }
        }
        None
    }

    /// How many types there are.
    pub fn types(&self) -> usize {
        self.places.len()
    }
}

/// Bytes behind the head of a type; none for a kind that is not known.
fn data_bytes(kind: u8, length: usize) -> Option<usize> {
    Some(match kind {
        1 | 14 | 17 => 4,
        3 => 12,
        4 | 5 | 15 | 19 => length * MEMBER_BYTES,
        6 | 13 => length * PARAMETER_BYTES,
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}
