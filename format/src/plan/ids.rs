//! Identities of tables and partitions: GUIDs, the number of an MBR, and the attributes that have
//! no name in gpart. The system finds partitions by them (`PARTUUID=`).

use crate::gpt::Guid;
use std::collections::BTreeMap;
use std::fmt;

/// The identity of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskId {
    /// GUID of the disk.
    Uuid(Guid),
    /// The number at byte 440 of an MBR.
    Number(u32),
}

/// The identity of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartId {
    /// GUID of the partition.
    pub uuid: Guid,
    /// All attributes of an entry of a GPT (UEFI 2.10, table 5.8); 0 elsewhere.
    pub attributes: u64,
}

/// Identifiers of a table and of its partitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ids {
    /// GUID of a GPT, or the disk's serial number in an MBR.
    pub disk: Option<DiskId>,
    /// Of partitions, by index.
    pub parts: BTreeMap<u32, PartId>,
}

impl Ids {
    /// True without any of them.
    pub fn is_empty(&self) -> bool {
        self.disk.is_none() && self.parts.is_empty()
    }

    /// Reads the text after the `#` of a comment; other comments change nothing.
    pub(super) fn read_comment(&mut self, comment: &str) -> Result<(), String> {
        let words: Vec<&str> = comment.split_whitespace().collect();
        match words.as_slice() {
            ["disk", word] => match word.split_once('=') {
                Some(("uuid", text)) => self.disk = Some(DiskId::Uuid(guid(text)?)),
                Some(("id", text)) => {
                    let number = u32::try_from(hexadecimal(text)?);
                    let number = number.map_err(|_| format!("{text} has more than 32 bits"))?;
                    self.disk = Some(DiskId::Number(number));
                }
                _ => {}
            },
            [index, word, rest @ ..] if rest.len() <= 1 => {
                let text = word.strip_prefix("uuid=");
                let (Ok(index), Some(text)) = (index.parse(), text) else { return Ok(()) };
                let attributes = rest
                    .first()
                    .and_then(|rest| rest.strip_prefix("attributes="));
                let id = PartId {
                    uuid: guid(text)?,
                    attributes: attributes.map_or(Ok(0), hexadecimal)?,
                };
                self.parts.insert(index, id);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Comments of gpart's text, which gpart skips.
impl fmt::Display for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.disk {
            Some(DiskId::Uuid(uuid)) => writeln!(f, "# disk uuid={uuid}")?,
            Some(DiskId::Number(number)) => writeln!(f, "# disk id={number:#010x}")?,
            None => {}
        }
        for (index, id) in &self.parts {
            write!(f, "# {index} uuid={}", id.uuid)?;
            match id.attributes {
                0 => writeln!(f)?,
                attributes => writeln!(f, " attributes={attributes:#x}")?,
            }
        }
        Ok(())
    }
}

fn guid(text: &str) -> Result<Guid, String> {
    text.parse()
        .map_err(|error: crate::gpt::GuidError| error.to_string())
}

fn hexadecimal(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x");
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| format!("{text:?} is no number like 0x1f"))
}
