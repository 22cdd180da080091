//! The text of `gpart backup`, which `gpart restore` reads.
//!
//! ```text
//! GPT 128
//! 1   freebsd-boot    34   1024 loader  [bootme]
//! ```
//! The first line names the scheme and may give the number of entries. Each
//! further one is a partition: index, type, first sector, sectors, then a label
//! and attributes in brackets, where there are any. Empty lines, and lines that
//! begin with `#`, do not count for gpart; [`Ids`] follow in such lines, for which
//! its text has no place:
//!
//! ```text
//! # disk uuid=3f3e8f3c-2f4e-4a8e-9d1c-0a6f2f8f6f10
//! # 1 uuid=5a1c7f0e-6c0b-4a52-8f8e-2f6d0a7c9b11 attributes=0x800000000000000
//! ```
//! Spaces and the like in a label or type are
//! written as `\040`, because gpart ends the word there. Source: FreeBSD
//! `sbin/geom/class/part/geom_part.c` (`gpart_backup`, `gpart_restore`).

use super::{Change, Create, Error, Ids, NewPart, Part, Scheme, Table};
use crate::mbr::PartType;
use crate::media::Media;
use crate::text::{from_bytes, is_hidden, to_bytes};

/// Longest text that is read: more than 4096 partitions of a GPT have.
pub const MAX_TEXT_BYTES: usize = 4 << 20;
/// Most partitions: the entries of the largest GPT.
const MAX_PARTS: usize = 4096;

/// Why a text is no backup.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the backup: {reason}")]
pub struct BackupError {
    /// The line, from 1.
    pub line: usize,
    /// The defect.
    pub reason: String,
}

/// A partition of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupPart {
    /// Place in the table.
    pub index: u32,
    /// gpart's name of the type, or `!` and the number or GUID.
    pub kind: String,
    /// First sector of the partition on the provider.
    pub start: u64,
    /// Length of the partition in sectors.
    pub sectors: u64,
    /// Label of the partition, where the scheme has labels.
    pub label: Option<String>,
    /// gpart's names of its attributes.
    pub attributes: Vec<String>,
}

/// The parts of a table that a restore keeps besides its partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Labels, as with gpart's `-l`.
    pub labels: bool,
    /// GUIDs and the like; a table without them gets new ones.
    pub ids: bool,
}

/// A table as a text describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Scheme of the saved table.
    pub scheme: Scheme,
    /// Number of entries of the table, used or not.
    pub entries: Option<u32>,
    /// The partitions in the order of the text.
    pub parts: Vec<BackupPart>,
    /// GUIDs and the like, from comments.
    pub ids: Ids,
}

impl Table {
    /// The table as `gpart backup` prints it.
    pub fn backup(&self) -> String {
        let mut parts = self.parts();
        for part in &mut parts {
            // gpart prints an Apple type without a name as it is, and refuses
            // to read that.
            if self.scheme() == Scheme::Apm && part.kind == part.raw_kind {
                part.kind.insert(0, '!');
            }
            // Three numbers have the name `ebr`, of which it is read as one.
            let read = PartType::parse(&part.kind).map(|kind| kind.0.to_string());
            if self.scheme() == Scheme::Mbr && read.as_ref() != Some(&part.raw_kind) {
                part.kind = format!("!{}", part.raw_kind);
            }
        }
        let saved = |part: Part| BackupPart {
            index: part.index,
            kind: part.kind,
            start: part.start,
            sectors: part.sectors,
            label: part.label,
            attributes: part.attributes.into_iter().map(str::to_owned).collect(),
        };
        let backup = Backup {
            scheme: self.scheme(),
            entries: Some(self.entries()),
            parts: parts.into_iter().map(saved).collect(),
            ids: self.ids(),
        };
        backup.text(self.usable().1)
    }
}

impl Backup {
    /// The text, with columns for sectors up to `last`.
    pub fn text(&self, last: u64) -> String {
        let entries = self
            .entries
            .map_or_else(String::new, |count| count.to_string());
        let digits = last.to_string().len();
        let kinds: Vec<String> = self.parts.iter().map(|part| escape(&part.kind)).collect();
        let widest = kinds.iter().map(|kind| kind.chars().count()).max();
        let (places, widest) = (entries.len(), widest.unwrap_or(0));
        let mut text = format!("{} {entries}\n", self.scheme);
        for (part, kind) in self.parts.iter().zip(&kinds) {
            let label = escape(part.label.as_deref().unwrap_or(""));
            let attributes = match part.attributes.join(",") {
                none if none.is_empty() => none,
                some => format!(" [{some}] "),
            };
            text.push_str(&format!(
                "{:<places$} {kind:>widest$} {:>digits$} {:>digits$} {label} {attributes}\n",
                part.index, part.start, part.sectors
            ));
        }
        text + &self.ids.to_string()
    }

    /// Parses the output of `gpart backup`.
    ///
    /// # Errors
    /// The line that is not one of a backup, and why.
    pub fn parse(text: &str) -> Result<Backup, BackupError> {
        let mut backup: Option<Backup> = None;
        let mut ids = Ids::default();
        let mut last = 1;
        for (line, text) in (1..).zip(text.lines()) {
            last = line;
            let failed = |reason: String| BackupError { line, reason };
            let words: Vec<&str> = text
                .split([' ', '\t'])
                .filter(|it| !it.is_empty())
                .collect();
            let is_comment = words.first().is_none_or(|word| word.starts_with('#'));
            match (&mut backup, words.as_slice()) {
                _ if is_comment => {
                    let comment = text.trim_start().trim_start_matches('#');
                    ids.read_comment(comment).map_err(failed)?;
                }
                (None, [scheme, rest @ ..]) if rest.len() <= 1 => {
                    let unknown = |error: Error| failed(error.to_string());
                    backup = Some(Backup {
                        scheme: scheme.parse().map_err(unknown)?,
                        entries: rest
                            .first()
                            .map(|text| number(text))
                            .transpose()
                            .map_err(failed)?,
                        parts: Vec::new(),
                        ids: Ids::default(),
                    });
                }
                (None, _) => return Err(failed("the scheme has to come first".to_owned())),
                (Some(backup), words) if backup.parts.len() < MAX_PARTS => {
                    backup.parts.push(part(words).map_err(failed)?);
                }
                _ => return Err(failed(format!("more than {MAX_PARTS} partitions"))),
            }
        }
        let backup = backup.ok_or_else(|| BackupError {
            line: last,
            reason: "it ends without a scheme".to_owned(),
        })?;
        Ok(Backup { ids, ..backup })
    }

    /// The table on a media: with the same sectors, or not at all; with what `keep`
    /// names of the text.
    ///
    /// # Errors
    /// What [`Table::create`], [`Table::add`] and [`Table::change`] refuse: a
    /// partition past the end of a smaller media, for example.
    pub fn table(
        &self,
        media: Media,
        create: &Create,
        keep: Keep,
        random: &mut dyn FnMut() -> [u8; 16],
    ) -> Result<Table, Error> {
        let entries = self.entries.filter(|_| self.scheme != Scheme::Ebr);
        let create = Create {
            entries,
            ..create.clone()
        };
        let mut table = Table::create(self.scheme, media, &create)?;
        // The others have labels that gpart does not set, or none.
        let labels = keep.labels && matches!(self.scheme, Scheme::Gpt | Scheme::Apm);
        for part in &self.parts {
            let index = table.add(&NewPart {
                start: Some(part.start),
                sectors: Some(part.sectors),
                index: (self.scheme != Scheme::Ebr).then_some(part.index),
                kind: part.kind.clone(),
                label: part.label.clone().filter(|_| labels),
                random: random(),
                ..NewPart::default()
            })?;
            for name in &part.attributes {
                let (name, on) = (name.clone(), true);
                table.change(index, &Change::Attribute { name, on })?;
            }
        }
        if keep.ids {
            table.edit_mut().set_ids(&self.ids);
        }
        Ok(table)
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no number that is possible here"))
}

fn part(words: &[&str]) -> Result<BackupPart, String> {
    let [index, kind, start, sectors, rest @ ..] = words else {
        let found = words.len();
        return Err(format!(
            "{found} words, not index, type, start, sectors, and perhaps label and [attributes]"
        ));
    };
    let (label, attributes) = match rest {
        [] => (None, None),
        [one] if one.contains('[') => (None, Some(one)),
        [one] => (Some(one), None),
        [label, attributes] => (Some(label), Some(attributes)),
        [_, _, more, ..] => return Err(format!("{more:?} is behind label and attributes")),
    };
    let attributes = match attributes {
        None => Vec::new(),
        Some(text) => {
            let inner = text
                .strip_prefix('[')
                .and_then(|text| text.strip_suffix(']'));
            let inner = inner.ok_or_else(|| format!("{text:?} is no list [of,attributes]"))?;
            let names = inner.split(',').filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        }
    };
    Ok(BackupPart {
        index: number(index)?,
        kind: unescape(kind),
        start: number(start)?,
        sectors: number(sectors)?,
        label: label.map(|label| unescape(label)),
        attributes,
    })
}

/// A label without white space, brackets, backslashes, and what is not shown as itself.
fn escape(label: &str) -> String {
    let mut text = String::new();
    for c in label.chars() {
        if c.is_whitespace() || is_hidden(c) || matches!(c, '[' | '\\') {
            for byte in to_bytes(c.encode_utf8(&mut [0; 4])) {
                text.push_str(&format!("\\{byte:03o}"));
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// A backslash without three octal digits is itself: gpart escapes nothing.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|_| first == b'\\')
            .and_then(|digits| {
                let digits = std::str::from_utf8(digits).ok()?;
                let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
                u8::from_str_radix(digits, 8).ok().filter(|_| plain)
            });
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    from_bytes(&bytes)
}
