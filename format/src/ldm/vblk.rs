//! The records of the database: volumes, components, partitions and disks.
//!
//! ```text
//! byte  0  VBLK   4 sequence u32   8 group u32   12 index in the group u16, 14 records of it u16
//!      16  update state u16, 18 flags u8, 19 type u8, 20 length u32
//!      24  object's number, name, then the fields of the type: numbers and texts with their
//!          length in a byte before them
//! ```

use super::{Component, Error, Extent, Header, Layout, Volume};
use crate::bytes;
use crate::gpt::Guid;
use std::collections::BTreeMap;

const MAGIC: &[u8] = b"VBLK";
const HEAD_BYTES: usize = 16;
/// Most records that one object is divided among.
const MOST_PIECES: u16 = 4;
/// Flag of a striped component, with two more fields.
const COMPONENT: u8 = 0x32;
const PARTITION: u8 = 0x33;
const DISK: u8 = 0x34;
const DISK_4: u8 = 0x44;
const VOLUME: u8 = 0x51;

/// One object of the database.
struct Object {
    number: usize,
    id: u64,
    fields: Fields,
}

enum Fields {
    Volume {
        name: String,
        order: u8,
        kind: u8,
        sectors: u64,
    },
    Component {
        volume: u64,
        layout: Layout,
    },
    Partition {
        component: u64,
        disk: u64,
        start: u64,
        volume_offset: u64,
        sectors: u64,
    },
    Disk {
        guid: Guid,
    },
    Other,
}

pub(super) struct Records(Vec<Object>);

impl Records {
    /// Puts the records together, and decodes the objects. `data` begins with the record after
    /// those that VMDB takes the place of.
    pub(super) fn parse(data: &[u8], size: usize) -> Result<Records, Error> {
        let mut whole: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut pieces: BTreeMap<u32, Vec<Option<&[u8]>>> = BTreeMap::new();
        for (number, record) in data.chunks_exact(size).enumerate() {
            let wrong = |what| Err(Error::Record { number, what });
            if !record.starts_with(MAGIC) {
                return wrong("it does not begin with \"VBLK\"");
            }
            let (sequence, group) = (bytes::u32_be(record, 4), bytes::u32_be(record, 8));
            if sequence == 0 || group == 0 {
                continue;
            }
            let (index, count) = (bytes::u16_be(record, 12), bytes::u16_be(record, 14));
            if !(1..=MOST_PIECES).contains(&count) || index >= count {
                return wrong("it is part of an object of no or more than four records");
            }
            let body = &record[HEAD_BYTES..];
            if count == 1 {
                whole.push((number, body.to_vec()));
                continue;
            }
            let parts = pieces
                .entry(group)
                .or_insert_with(|| vec![None; count.into()]);
            match parts.get_mut(usize::from(index)) {
                Some(place @ None) => *place = Some(body),
                _ => return wrong("its index in its group is used twice or out of range"),
            }
            if let Some(parts) = parts.iter().copied().collect::<Option<Vec<&[u8]>>>() {
                whole.push((number, parts.concat()));
                pieces.remove(&group);
            }
        }
        if !pieces.is_empty() {
            let (number, what) = (0, "an object of several records is not complete");
            return Err(Error::Record { number, what });
        }
        let objects = whole.iter().map(|(number, body)| object(*number, body));
        Ok(Records(objects.collect::<Result<_, _>>()?))
    }

    /// The volumes of the group, with places on the disk of `header`.
    pub(super) fn volumes(&self, header: &Header) -> Result<Vec<Volume>, Error> {
        let own = self.0.iter().find(
            |object| matches!(object.fields, Fields::Disk { guid } if guid == header.disk_guid),
        );
        let own = own.ok_or(Error::NoDisk)?.id;
        let mut volumes: Vec<Volume> = Vec::new();
        for object in &self.0 {
            let Fields::Volume {
                name,
                order,
                kind,
                sectors,
            } = &object.fields
            else {
                continue;
            };
            volumes.push(Volume {
                name: name.clone(),
                number: *order,
                kind: *kind,
                sectors: *sectors,
                components: self.components(object.id, own, header)?,
            });
        }
        volumes.sort_by_key(|volume| volume.number);
        Ok(volumes)
    }

    fn components(&self, of: u64, own: u64, header: &Header) -> Result<Vec<Component>, Error> {
        let mut components = Vec::new();
        for object in &self.0 {
            match object.fields {
                Fields::Component { volume, layout } if volume == of => {
                    let extents = self.extents(object.id, own, header)?;
                    components.push(Component { layout, extents });
                }
                _ => {}
            }
        }
        Ok(components)
    }

    fn extents(&self, of: u64, own: u64, header: &Header) -> Result<Vec<Extent>, Error> {
        let mut extents = Vec::new();
        for object in &self.0 {
            let Fields::Partition {
                component,
                disk,
                start,
                volume_offset,
                sectors,
            } = object.fields
            else {
                continue;
            };
            if component != of {
                continue;
            }
            let is_here = disk == own;
            let place = match is_here {
                true => start.checked_add(header.start),
                false => Some(start),
            };
            let end = |start: &u64| start.checked_add(sectors).is_some();
            let Some(start) = place.filter(end) else {
                return Err(Error::Record {
                    number: object.number,
                    what: "its partition ends past all sectors",
                });
            };
            extents.push(Extent {
                start,
                sectors,
                volume_offset,
                is_here,
            });
        }
        extents.sort_by_key(|extent| extent.volume_offset);
        Ok(extents)
    }
}

fn object(number: usize, body: &[u8]) -> Result<Object, Error> {
    let mut cursor = Cursor {
        body,
        at: 8,
        number,
    };
    let id = cursor.number()?;
    let name = cursor.text()?;
    let fields = match bytes::byte(body, 3) {
        COMPONENT => component(&mut cursor)?,
        PARTITION => partition(&mut cursor)?,
        VOLUME => volume(&mut cursor, name)?,
        DISK => Fields::Disk {
            guid: guid_text(&cursor.text()?),
        },
        DISK_4 => Fields::Disk {
            guid: cursor.guid()?,
        },
        _ => Fields::Other,
    };
    Ok(Object { number, id, fields })
}

fn component(cursor: &mut Cursor<'_>) -> Result<Fields, Error> {
    cursor.text()?;
    let layout = match cursor.byte()? {
        1 => Layout::Striped,
        2 => Layout::Spanned,
        3 => Layout::Raid,
        other => Layout::Unknown(other),
    };
    cursor.skip(4)?;
    cursor.number()?;
    cursor.skip(16)?;
    let volume = cursor.number()?;
    Ok(Fields::Component { volume, layout })
}

fn partition(cursor: &mut Cursor<'_>) -> Result<Fields, Error> {
    cursor.skip(12)?;
    let (start, volume_offset) = (cursor.u64()?, cursor.u64()?);
    let sectors = cursor.number()?;
    let component = cursor.number()?;
    let disk = cursor.number()?;
    Ok(Fields::Partition {
        component,
        disk,
        start,
        volume_offset,
        sectors,
    })
}

fn volume(cursor: &mut Cursor<'_>, name: String) -> Result<Fields, Error> {
    cursor.text()?;
    cursor.text()?;
    cursor.skip(16)?;
    let order = cursor.byte()?;
    cursor.skip(4)?;
    cursor.number()?;
    cursor.skip(16)?;
    let sectors = cursor.number()?;
    cursor.skip(4)?;
    let kind = cursor.byte()?;
    Ok(Fields::Volume {
        name,
        order,
        kind,
        sectors,
    })
}

/// A disk whose GUID is none is no disk that is asked for.
fn guid_text(text: &str) -> Guid {
    text.parse().unwrap_or(Guid::UNUSED)
}

/// A place in an object, which every read checks.
struct Cursor<'a> {
    body: &'a [u8],
    at: usize,
    number: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let taken = self.body.get(self.at..).and_then(|rest| rest.get(..length));
        self.at = self.at.saturating_add(length);
        taken.ok_or(Error::Record {
            number: self.number,
            what: "its fields reach past its end",
        })
    }

    fn skip(&mut self, length: usize) -> Result<(), Error> {
        self.take(length).map(|_| ())
    }

    fn byte(&mut self) -> Result<u8, Error> {
        Ok(bytes::byte(self.take(1)?, 0))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        Ok(bytes::u64_be(self.take(8)?, 0))
    }

    /// A number of up to eight bytes.
    fn number(&mut self) -> Result<u64, Error> {
        let length = usize::from(self.byte()?);
        let (number, what) = (self.number, "one of its numbers has more than 8 bytes");
        if length > 8 {
            return Err(Error::Record { number, what });
        }
        let digits = self.take(length)?;
        Ok(digits
            .iter()
            .fold(0, |value, digit| value << 8 | u64::from(*digit)))
    }

    fn text(&mut self) -> Result<String, Error> {
        let length = usize::from(self.byte()?);
        Ok(bytes::c_string(self.take(length)?))
    }

    /// A GUID as Windows keeps it in newer records: in the order of its digits.
    fn guid(&mut self) -> Result<Guid, Error> {
        let written: [u8; 16] = bytes::take(self.take(16)?, 0);
        Ok(Guid::from_u128(u128::from_be_bytes(written)))
    }
}
