//! The table of a device-mapper device, as the ioctl `DM_TABLE_STATUS` returns it: a list of
//! targets, each with its place, its type and its parameters.
//!
//! ```text
//!   byte  0  u64  first sector          byte 16  i32  status
//!         8  u64  length, sectors            20  u32  bytes from the first target to the next
//!        24  16 bytes  type, ends with NUL   40  parameters, end with NUL
//! ```
//!
//! Source: `struct dm_target_spec` in include/uapi/linux/dm-ioctl.h of Linux. For status requests
//! `next` counts from the beginning of the data, not of the target.

use crate::bytes::{u32_le, u64_le};
use std::fmt;

/// Bytes before the parameters of a target.
const HEAD_BYTES: usize = 40;
/// A table with more targets than this is refused.
const TARGETS_MAX: u32 = 65_536;

/// A target of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its first sector in the device, of 512 bytes.
    pub start_sector: u64,
    /// Its length, sectors of 512 bytes.
    pub sectors: u64,
    /// Its type: `linear`, `crypt`, `delay`.
    pub kind: String,
    /// Its parameters. The key of a `crypt` target is replaced by its length.
    pub parameters: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            start_sector,
            sectors,
            kind,
            parameters,
        } = self;
        write!(f, "{start_sector} {sectors} {kind} {parameters}")
    }
}

/// Why a table cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// It has more targets than any device.
    #[error("{0} targets: a table has at most {TARGETS_MAX}")]
    TooMany(u32),
    /// It ends inside a target.
    #[error("target {index} lies at byte {offset}, past the end of the table")]
    Short {
        /// The number of the target, from 0.
        index: u32,
        /// Where it should begin.
        offset: usize,
    },
}

/// Parses `count` targets, as DM_TABLE_STATUS returns them.
///
/// # Errors
/// When the table is too long, or ends too early.
pub fn parse(data: &[u8], count: u32) -> Result<Vec<Target>, TableError> {
    if count > TARGETS_MAX {
        return Err(TableError::TooMany(count));
    }
    let (mut targets, mut offset) = (Vec::new(), 0);
    for index in 0..count {
        let short = TableError::Short { index, offset };
        let head = data.get(offset..).filter(|rest| rest.len() >= HEAD_BYTES);
        let head = head.ok_or(short)?;
        let kind = text(&head[24..HEAD_BYTES]);
        let parameters = text(&head[HEAD_BYTES..]);
        targets.push(Target {
            start_sector: u64_le(head, 0),
            sectors: u64_le(head, 8),
            parameters: without_key(&kind, &parameters),
            kind,
        });
        let next = u32_le(head, 20) as usize;
        // Each target lies behind the one before, so a damaged table ends.
        if index + 1 < count && next <= offset {
            return Err(TableError::Short {
                index: index + 1,
                offset: next,
            });
        }
        offset = next;
    }
    Ok(targets)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

/// `crypt` shows its key as the second parameter to root.
fn without_key(kind: &str, parameters: &str) -> String {
    if kind != "crypt" {
        return parameters.to_owned();
    }
    let hidden = parameters
        .split(' ')
        .enumerate()
        .map(|(at, word)| match at {
            1 if !word.starts_with(':') => format!("(key of {} bits)", word.len() * 4),
            _ => word.to_owned(),
        });
    hidden.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(start: u64, length: u64, next: u32, kind: &str, parameters: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(start.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(0_i32.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        bytes.extend(kind.bytes().chain(std::iter::repeat(0)).take(16));
        bytes.extend(parameters.bytes().chain([0]));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn targets_are_read_in_order_and_a_key_is_not_shown() {
        let first = target(0, 2048, 56, "linear", "254:0 34816");
        assert_eq!(first.len(), 56);
        let key = "00".repeat(32);
        let second = target(
            2048,
            8,
            200,
            "crypt",
            &format!("aes-xts-plain64 {key} 0 7:0 0"),
        );
        let table = parse(&[first, second].concat(), 2).unwrap();
        assert_eq!(table[0].to_string(), "0 2048 linear 254:0 34816");
        assert_eq!(
            table[1].to_string(),
            "2048 8 crypt aes-xts-plain64 (key of 256 bits) 0 7:0 0"
        );
    }

    #[test]
    fn a_table_that_ends_early_or_turns_back_is_an_error() {
        let one = target(0, 8, 0, "zero", "");
        assert_eq!(parse(&one, 1).unwrap().len(), 1);
        assert_eq!(
            parse(&one, 2),
            Err(TableError::Short {
                index: 1,
                offset: 0
            })
        );
        assert_eq!(
            parse(&one[..30], 1),
            Err(TableError::Short {
                index: 0,
                offset: 0
            })
        );
        assert_eq!(parse(&one, u32::MAX), Err(TableError::TooMany(u32::MAX)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_table_or_an_error(data: Vec<u8>, count in 0_u32..100) {
            if let Ok(targets) = parse(&data, count) {
                prop_assert_eq!(targets.len(), count as usize);
            }
        }
    }
}
