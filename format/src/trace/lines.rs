//! Lines of a trace as events.

use std::collections::BTreeMap;

use super::blkparse::{Columns, is_device, nanoseconds};
use super::fields::Fields;
use super::{Dialect, FILES_MAX, Kind, Record};

/// Bytes of the sectors that blktrace and vscsiStats count in.
pub(super) const SECTOR_BYTES: u64 = 512;

/// The state from earlier lines.
#[derive(Default)]
pub(super) struct Parser {
    files: Vec<String>,
    indexes: BTreeMap<Vec<u8>, u32>,
    /// The name that was looked up last: most records have it again.
    last: (Vec<u8>, u32),
    /// The time of the first record, in ns of the trace's clock; the pauses so far in version 2.
    begin_ns: Option<u64>,
    waited_ns: u64,
    columns: Columns,
}

impl Parser {
    pub(super) fn files(&self) -> &[String] {
        &self.files
    }

    /// The request of a line; nothing for other lines.
    #[inline]
    pub(super) fn record(
        &mut self,
        dialect: Dialect,
        line: &[u8],
    ) -> Result<Option<Record>, &'static str> {
        // The columns of blkparse begin with blanks.
        let line = match dialect {
            Dialect::Blkparse => line,
            _ => line.trim_ascii_start(),
        };
        if line.is_empty() {
            return Ok(None);
        }
        match dialect {
            Dialect::FioVersion2 => self.of_fio(Fields::spaced(line), None),
            Dialect::FioVersion3 => {
                let mut fields = Fields::spaced(line);
                let us = fields.number("a time in us is missing")?;
                self.of_fio(fields, Some(us))
            }
            Dialect::Msr => self.of_msr(Fields::commas(line)).map(Some),
            Dialect::Alibaba => self.of_alibaba(Fields::commas(line)).map(Some),
            Dialect::Vscsi if line.starts_with(b"#") => Ok(None),
            Dialect::Vscsi => self.of_vscsi(Fields::commas(line)).map(Some),
            Dialect::Blkparse => self.of_blkparse(line),
            // Those are no lines.
            Dialect::Blktrace { .. } => Ok(None),
        }
    }

    fn of_fio(
        &mut self,
        mut fields: Fields<'_>,
        us: Option<u64>,
    ) -> Result<Option<Record>, &'static str> {
        let name = fields.text("the name of a file is missing")?;
        let kind = match fields.text("what to do with the file is missing")? {
            b"read" => Kind::Read,
            b"write" => Kind::Write,
            b"trim" => Kind::Trim,
            b"sync" => Kind::Sync,
            b"datasync" => Kind::DataSync,
            b"add" | b"open" | b"close" => {
                self.file(name)?;
                return Ok(None);
            }
            b"wait" if us.is_none() => {
                let us = fields.number("the length of the pause is missing")?;
                self.waited_ns = self.waited_ns.saturating_add(us.saturating_mul(1000));
                return Ok(None);
            }
            b"wait" => return Err("`wait` is of version 2: version 3 has times"),
            _ => return Err("expected one of read, write, trim, sync, datasync, add, open, close"),
        };
        let at_ns = match us {
            Some(us) => self.since_begin(us.saturating_mul(1000)),
            None => self.waited_ns,
        };
        let (offset, length) = match (kind, fields.is_empty()) {
            (Kind::DataSync | Kind::Sync, true) => (0, 0),
            _ => (
                fields.number("the offset is missing")?,
                fields.number("the length is missing")?,
            ),
        };
        self.complete(at_ns, kind, name, offset, length).map(Some)
    }

    fn of_msr(&mut self, mut fields: Fields<'_>) -> Result<Record, &'static str> {
        let ticks = fields.number("the time is missing")?;
        let (rest, host) = (fields.rest(), fields.text("the host is missing")?);
        let disk = fields.text("the disk is missing")?;
        // Host and disk, and the comma between them.
        let name = &rest[..(host.len() + 1 + disk.len()).min(rest.len())];
        let kind = match fields.text("the type is missing")? {
            b"Read" => Kind::Read,
            b"Write" => Kind::Write,
            _ => return Err("the type is neither Read nor Write"),
        };
        let offset = fields.number("the offset is missing")?;
        let length = fields.number("the size is missing")?;
        let at_ns = self.since_begin(ticks.saturating_mul(100));
        self.complete(at_ns, kind, name, offset, length)
    }

    fn of_alibaba(&mut self, mut fields: Fields<'_>) -> Result<Record, &'static str> {
        let name = fields.text("the device is missing")?;
        let kind = match fields.text("the operation is missing")? {
            b"R" => Kind::Read,
            b"W" => Kind::Write,
            _ => return Err("the operation is neither R nor W"),
        };
        let offset = fields.number("the offset is missing")?;
        let length = fields.number("the length is missing")?;
        let us = fields.number("the time is missing")?;
        let at_ns = self.since_begin(us.saturating_mul(1000));
        self.complete(at_ns, kind, name, offset, length)
    }

    fn of_vscsi(&mut self, mut fields: Fields<'_>) -> Result<Record, &'static str> {
        fields.text("the serial number is missing")?;
        let length = fields.number("the length is missing")?;
        fields.text("the number of pieces is missing")?;
        let kind = match fields.text("the command is missing")? {
            b"read" | b"Read" | b"READ" => Kind::Read,
            b"write" | b"Write" | b"WRITE" => Kind::Write,
            _ => return Err("the command is neither read nor write"),
        };
        let sector = fields.number("the block is missing")?;
        let us = fields.number("the time is missing")?;
        let at_ns = self.since_begin(us.saturating_mul(1000));
        self.complete(at_ns, kind, b"vscsi", bytes(sector)?, length)
    }

    fn of_blkparse(&mut self, line: &[u8]) -> Result<Option<Record>, &'static str> {
        let Some(queued) = self.columns.queued(line)? else {
            return Ok(None);
        };
        let file = match queued.device {
            Some(device) => self.file(device)?,
            None => self.last.1,
        };
        let at_ns = self.since_begin(queued.at_ns);
        let (offset, length) = (bytes(queued.sector)?, bytes(queued.sectors)?);
        record(at_ns, queued.kind, file, offset, length).map(Some)
    }

    /// The time since the first record; one that lies before it counts as the same.
    pub(super) fn since_begin(&mut self, ns: u64) -> u64 {
        ns.saturating_sub(*self.begin_ns.get_or_insert(ns))
    }

    #[inline]
    pub(super) fn complete(
        &mut self,
        at_ns: u64,
        kind: Kind,
        name: &[u8],
        offset_bytes: u64,
        length: u64,
    ) -> Result<Record, &'static str> {
        let file = self.file(name)?;
        record(at_ns, kind, file, offset_bytes, length)
    }

    /// The index of a file.
    fn file(&mut self, name: &[u8]) -> Result<u32, &'static str> {
        if self.last.0 == name && !self.files.is_empty() {
            return Ok(self.last.1);
        }
        let index = match self.indexes.get(name) {
            Some(index) => *index,
            None => {
                if self.files.len() >= FILES_MAX {
                    return Err("the trace names more than 65536 files");
                }
                let index = self.files.len() as u32;
                self.files.push(String::from_utf8_lossy(name).into_owned());
                self.indexes.insert(name.to_vec(), index);
                index
            }
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(name);
        self.last.1 = index;
        Ok(index)
    }
}

/// A request whose length and end can be counted.
#[inline]
fn record(
    at_ns: u64,
    kind: Kind,
    file: u32,
    offset_bytes: u64,
    length: u64,
) -> Result<Record, &'static str> {
    let length_bytes = u32::try_from(length).map_err(|_| "the length is 4 GiB or more")?;
    if offset_bytes.checked_add(length).is_none() {
        return Err("the request ends behind 2^64 bytes");
    }
    Ok(Record {
        at_ns,
        kind,
        file,
        offset_bytes,
        length_bytes,
    })
}

/// The bytes of so many sectors of 512.
fn bytes(sectors: u64) -> Result<u64, &'static str> {
    let bytes = sectors.checked_mul(SECTOR_BYTES);
    bytes.ok_or("the request ends behind 2^64 bytes")
}

/// The form of a trace without a header, from its first line.
pub(super) fn dialect(line: &[u8]) -> Option<Dialect> {
    if line.starts_with(b"#") {
        let header = line.to_ascii_lowercase();
        let named = |name: &[u8]| header.windows(name.len()).any(|part| part == name);
        return (named(b"vscsi") || named(b"serial number")).then_some(Dialect::Vscsi);
    }
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
    match fields.as_slice() {
        [_, _, _, b"Read" | b"Write", _, _, _] => return Some(Dialect::Msr),
        [_, b"R" | b"W", _, _, _] => return Some(Dialect::Alibaba),
        [_, _, _, b"read" | b"write" | b"Read" | b"Write", _, _] => return Some(Dialect::Vscsi),
        _ => {}
    }
    let mut fields = Fields::spaced(line);
    let device = fields.text("").is_ok_and(is_device);
    let processor = fields.number("").is_ok() && fields.number("").is_ok();
    let time = fields.text("").is_ok_and(|time| nanoseconds(time).is_ok());
    (device && processor && time).then_some(Dialect::Blkparse)
}
