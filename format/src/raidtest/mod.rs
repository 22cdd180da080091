//! Request files of raidtest(8), Pawel Jakub Dawidek's benchmark of storage devices: a list of
//! requests, 16 bytes each, without a header.
//!
//! ```text
//! byte 0   offset, bytes         u64 little-endian
//! byte 8   length, bytes         u32 little-endian
//! byte 12  type: 0 read, 1 write
//! byte 13  three bytes that mean nothing
//! ```
//! Source: `raidtest.c` of the FreeBSD port `benchmarks/raidtest`; `docs/formats/raidtest.md`.

#[cfg(test)]
mod tests;

use crate::bytes::{byte, put, put_u32_le, u32_le, u64_le};

/// The size of a request in the file, bytes.
pub const RECORD_BYTES: usize = 16;
/// The longest request that is generated, bytes.
pub const LENGTH_BYTES_MAX: u32 = 128 << 10;
/// The longest request that is accepted, bytes: each process holds a buffer of that size.
pub(crate) const ACCEPTED_BYTES_MAX: u32 = 64 << 20;
/// The most requests that are read or generated: a file of 1 GiB.
pub const REQUESTS_MAX: u64 = 1 << 26;

/// The direction of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaidtestKind {
    /// Type 0 of the file: a read.
    Read,
    /// Type 1 of the file: a write.
    Write,
}

/// One request of a request file: place, length and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Byte offset on the device.
    pub offset_bytes: u64,
    /// Bytes to transfer: whole sectors of the device, or the test refuses it.
    pub length_bytes: u32,
    /// Whether it reads or writes.
    pub kind: RaidtestKind,
}

/// The defects of a file, or of its requests to a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum Error {
    #[error(
        "request {index} (byte {at}) is cut off: {found} of {RECORD_BYTES} bytes are there; \
         the file is truncated, or is none of raidtest's"
    )]
    Truncated {
        /// The number of the request, from 0.
        index: u64,
        /// Where it begins in the file.
        at: u64,
        /// The bytes that are there.
        found: usize,
    },
    #[error("request {index} (byte {at}) has type {kind}: 0 is a read, 1 a write")]
    RaidtestKind {
        /// The number of the request, from 0.
        index: u64,
        /// Where it begins in the file.
        at: u64,
        kind: u8,
    },
    #[error("there are {requests} requests; at most {REQUESTS_MAX} are read")]
    TooMany {
        /// How many there are.
        requests: u64,
    },
    #[error("there are no requests in it")]
    Empty,
    /// A length that no buffer is made for.
    #[error("request {index} has {length_bytes} bytes: 1 to {ACCEPTED_BYTES_MAX} are supported")]
    Length {
        /// The number of the request, from 0.
        index: u64,
        length_bytes: u32,
    },
    #[error(
        "request {index}, {length_bytes} bytes at {offset_bytes}, is not made of whole sectors \
         of {sector_bytes} bytes: generate it with -S {sector_bytes}"
    )]
    Sectors {
        /// The number of the request, from 0.
        index: u64,
        offset_bytes: u64,
        length_bytes: u32,
        /// The sector size of the device.
        sector_bytes: u32,
    },
    #[error(
        "request {index}, {length_bytes} bytes at {offset_bytes}, reaches past the end of the \
         device, which has {media_bytes} bytes: generate it with -s {media_bytes}"
    )]
    PastTheEnd {
        /// The number of the request, from 0.
        index: u64,
        offset_bytes: u64,
        length_bytes: u32,
        /// The size of the device.
        media_bytes: u64,
    },
    #[error("a sector of {0} bytes: it must be 1 to {LENGTH_BYTES_MAX}")]
    SectorSize(u32),
    #[error("a device of {media_bytes} bytes has no sector of {sector_bytes} bytes")]
    NoSector { media_bytes: u64, sector_bytes: u32 },
}

/// Decodes the requests of a file of raidtest.
///
/// # Errors
/// It is empty, ends inside a request, has too many, or one of an unknown type.
pub fn decode(bytes: &[u8]) -> Result<Vec<Request>, Error> {
    let requests = (bytes.len() / RECORD_BYTES) as u64;
    if requests > REQUESTS_MAX {
        return Err(Error::TooMany { requests });
    }
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let records = bytes.chunks(RECORD_BYTES).enumerate();
    records
        .map(|(index, record)| decode_one(index as u64, record))
        .collect()
}

fn decode_one(index: u64, record: &[u8]) -> Result<Request, Error> {
    let at = index * RECORD_BYTES as u64;
    if record.len() < RECORD_BYTES {
        let found = record.len();
        return Err(Error::Truncated { index, at, found });
    }
    let kind = match byte(record, 12) {
        0 => RaidtestKind::Read,
        1 => RaidtestKind::Write,
        kind => return Err(Error::RaidtestKind { index, at, kind }),
    };
    Ok(Request {
        offset_bytes: u64_le(record, 0),
        length_bytes: u32_le(record, 8),
        kind,
    })
}

impl Request {
    /// The request as it stands in a file; the last three bytes are 0.
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        put(&mut record, 0, &self.offset_bytes.to_le_bytes());
        put_u32_le(&mut record, 8, self.length_bytes);
        put(
            &mut record,
            12,
            &[u8::from(self.kind == RaidtestKind::Write)],
        );
        record
    }
}

/// Checks that a device can do all requests.
///
/// # Errors
/// The first request that it cannot do, and why.
pub fn check(requests: &[Request], media_bytes: u64, sector_bytes: u32) -> Result<(), Error> {
    let sector = u64::from(sector_bytes.max(1));
    for (index, request) in requests.iter().enumerate() {
        let index = index as u64;
        let Request {
            offset_bytes,
            length_bytes,
            ..
        } = *request;
        if length_bytes == 0 || length_bytes > ACCEPTED_BYTES_MAX {
            return Err(Error::Length {
                index,
                length_bytes,
            });
        }
        let length = u64::from(length_bytes);
        if !offset_bytes.is_multiple_of(sector) || !length.is_multiple_of(sector) {
            return Err(Error::Sectors {
                index,
                offset_bytes,
                length_bytes,
                sector_bytes,
            });
        }
        let end = offset_bytes.checked_add(length);
        if end.is_none_or(|end| end > media_bytes) {
            return Err(Error::PastTheEnd {
                index,
                offset_bytes,
                length_bytes,
                media_bytes,
            });
        }
    }
    Ok(())
}

/// How requests are made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The size of the device, bytes.
    pub media_bytes: u64,
    /// Its sector size, bytes.
    pub sector_bytes: u32,
    /// The kind of all requests; none for a coin flip each.
    pub kind: Option<RaidtestKind>,
}

impl Shape {
    /// Makes up requests: a length of 1 sector to 128 KiB (or what the device has), then an offset
    /// at which that fits, then the kind, each uniform. `below(n)` draws a number from 0 to n - 1.
    ///
    /// raidtest.c draws offsets that leave the last place out, and divides by zero on a device of
    /// fewer than 128 KiB; this does not.
    ///
    /// # Errors
    /// The sector size cannot be, or the device has no sector.
    pub fn requests<'a>(
        self,
        mut below: impl FnMut(u64) -> u64 + 'a,
    ) -> Result<impl Iterator<Item = Request> + 'a, Error> {
        let Self {
            media_bytes,
            sector_bytes,
            kind,
        } = self;
        if sector_bytes == 0 || sector_bytes > LENGTH_BYTES_MAX {
            return Err(Error::SectorSize(sector_bytes));
        }
        let sector = u64::from(sector_bytes);
        let sectors = media_bytes / sector;
        if sectors == 0 {
            return Err(Error::NoSector {
                media_bytes,
                sector_bytes,
            });
        }
        let longest = (u64::from(LENGTH_BYTES_MAX) / sector).min(sectors);
        Ok(std::iter::repeat_with(move || {
            let length = 1 + below(longest);
            let place = below(sectors - length + 1);
            let coin = |below: &mut dyn FnMut(u64) -> u64| match below(2) {
                0 => RaidtestKind::Read,
                _ => RaidtestKind::Write,
            };
            Request {
                offset_bytes: place * sector,
                length_bytes: (length * sector) as u32,
                kind: kind.unwrap_or_else(|| coin(&mut below)),
            }
        }))
    }
}

/// The totals of a list of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of requests that read.
    pub reads: u64,
    /// Number of requests that write.
    pub writes: u64,
    /// The bytes of all.
    pub bytes: u64,
}

impl Totals {
    /// Adds a request to the sums of its direction.
    pub fn add(&mut self, request: &Request) {
        match request.kind {
            RaidtestKind::Read => self.reads += 1,
            RaidtestKind::Write => self.writes += 1,
        }
        self.bytes += u64::from(request.length_bytes);
    }

    /// The totals of a list.
    pub fn of(requests: &[Request]) -> Self {
        let mut totals = Self::default();
        for request in requests {
            totals.add(request);
        }
        totals
    }
}

/// The share of one of `processes`: consecutive, and the shares differ by one request at most.
/// raidtest.c leaves out the remainder; here all requests belong to a process.
pub fn share(requests: &[Request], processes: usize, index: usize) -> &[Request] {
    let border = |index: usize| {
        let index = index.min(processes) as u128;
        (requests.len() as u128 * index / processes.max(1) as u128) as usize
    };
    requests
        .get(border(index)..border(index + 1))
        .unwrap_or(&[])
}
