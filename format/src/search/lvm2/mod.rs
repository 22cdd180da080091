//! The logical volumes of a physical volume of LVM2, by the text in its metadata areas.
//!
//! A label in one of the first four sectors names the areas. Each has a header of 512 bytes, with
//! the place, the length and the CRC of the text that is in use; behind the header the area is a
//! ring. Sources: LVM2's `format_text/layout.h`, `label.c` and the text that vgcfgbackup(8) writes.

mod text;

#[cfg(test)]
mod tests;

use super::SearchRead;
use crate::bytes::{u32_le, u64_le};
use crate::content::lvm_crc;
use text::Section;

/// The longest text that is read; LVM2's own areas have 1 MiB.
const MOST_TEXT_BYTES: u64 = 4 << 20;
/// The most pieces of a logical volume that are listed.
const MOST_PIECES: usize = 1024;
const SECTOR_BYTES: u64 = 512;

/// The volume group of a physical volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Name of the volume group, as LVM2 shows it.
    pub name: String,
    /// Its logical volumes, in the order of the text.
    pub volumes: Vec<LogicalVolume>,
}

/// A logical volume of the group, and where its bytes are on the medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalVolume {
    /// Its name within the group.
    pub name: String,
    /// Its length, where the text states it.
    pub length_bytes: Option<u64>,
    /// Where it is on the medium: offset and length of its pieces, in their order; else the reason
    /// why they are not listed.
    pub pieces: Result<Vec<(u64, u64)>, String>,
}

/// The group of the physical volume that begins at `start` of the medium, or why its text cannot be
/// read. `None` for a volume that is in no group.
pub(super) fn group(start: u64, read: &mut SearchRead<'_>) -> Result<Option<Group>, String> {
    let mut bytes = |offset: u64, length: usize| {
        let at = start.checked_add(offset).ok_or("an offset past 2^64")?;
        let bytes = read(at, length)?;
        match bytes.len() == length {
            true => Ok(bytes),
            false => Err(format!(
                "the medium ends before byte {}",
                at.saturating_add(length as u64)
            )),
        }
    };
    let label = (0..4).find_map(|number| {
        let sector = bytes(number * SECTOR_BYTES, 512).ok()?;
        let is_label = sector.starts_with(b"LABELONE") && sector[24..32] == *b"LVM2 001";
        is_label.then_some(sector)
    });
    let label = label.ok_or("it has no label")?;
    let mut failed = None;
    for (area, size) in areas(&label) {
        match text_of(area, size, &mut bytes) {
            Ok(None) => {}
            Ok(Some(text)) => return described(&text, &label, start).map(Some),
            Err(reason) => {
                failed.get_or_insert_with(|| format!("the area at byte {area}: {reason}"));
            }
        }
    }
    failed.map_or(Ok(None), Err)
}

/// Offset and size of the metadata areas: behind the identifier and the size are areas of data up
/// to an empty one, then those.
fn areas(label: &[u8]) -> Vec<(u64, u64)> {
    let places = label.get((u32_le(label, 20) as usize).saturating_add(40)..);
    let places = places.unwrap_or_default().chunks_exact(16);
    places
        .map(|place| (u64_le(place, 0), u64_le(place, 8)))
        .skip_while(|place| place.0 > 0)
        .skip(1)
        .take_while(|place| place.0 > 0)
        .collect()
}

/// The text in use in an area; `None` in one that is empty or ignored.
fn text_of(
    area: u64,
    size: u64,
    bytes: &mut impl FnMut(u64, usize) -> Result<Vec<u8>, String>,
) -> Result<Option<String>, String> {
    const IGNORED: u32 = 1;
    let header = bytes(area, 512)?;
    if header[4..20] != *b" LVM2 x[5A%r0N*>" {
        return Err("it has no header".to_owned());
    }
    if lvm_crc(&header[4..]) != u32_le(&header, 0) {
        return Err("the CRC of its header is wrong".to_owned());
    }
    let (at, length) = (u64_le(&header, 40), u64_le(&header, 48));
    if at == 0 || length == 0 || u32_le(&header, 60) & IGNORED != 0 {
        return Ok(None);
    }
    if !(512..size).contains(&at) || length > (size - 512).min(MOST_TEXT_BYTES) {
        return Err(format!("it states {length} bytes of text at {at}"));
    }
    let first = length.min(size - at);
    let place = area.checked_add(at).ok_or("an offset past 2^64")?;
    let mut text = bytes(place, first as usize)?;
    text.extend(bytes(area + 512, (length - first) as usize)?);
    match lvm_crc(&text) == u32_le(&header, 56) {
        true => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
        false => Err("the CRC of its text is wrong".to_owned()),
    }
}

/// The physical volume itself, in the text.
struct Physical<'a> {
    /// Name in the text of the volume group: `pv0`.
    name: &'a str,
    /// Where its first extent begins on the medium.
    extents_at: u64,
    /// How many it has.
    count: u64,
    extent_bytes: u64,
}

fn described(text: &str, label: &[u8], start: u64) -> Result<Group, String> {
    let root = text::parse(text)?;
    let (name, group) = root.sections().next().ok_or("the text names no group")?;
    let bytes = |sectors: Option<u64>| sectors?.checked_mul(SECTOR_BYTES);
    let extent_bytes = bytes(group.number("extent_size")).filter(|bytes| *bytes > 0);
    let extent_bytes = extent_bytes.ok_or("the text states no size of extents")?;
    let is_this = |volume: &Section<'_>| {
        let id = volume.text("id").unwrap_or_default();
        id.bytes()
            .filter(|byte| *byte != b'-')
            .eq(label[32..64].iter().copied())
    };
    let volumes = group.section("physical_volumes");
    let this = volumes.and_then(|all| all.sections().find(|(_, volume)| is_this(volume)));
    let this = this.and_then(|(name, volume)| {
        Some(Physical {
            name,
            extents_at: start.checked_add(bytes(volume.number("pe_start"))?)?,
            count: volume.number("pe_count")?,
            extent_bytes,
        })
    });
    let this = this.ok_or("the text does not describe this physical volume")?;
    let logical = group.section("logical_volumes");
    let logical = logical.into_iter().flat_map(Section::sections);
    Ok(Group {
        name: name.to_owned(),
        volumes: logical
            .map(|(name, volume)| LogicalVolume {
                name: name.to_owned(),
                length_bytes: segments(volume)
                    .try_fold(0_u64, |sum, one| {
                        sum.checked_add(one.number("extent_count")?)
                    })
                    .and_then(|extents| extents.checked_mul(extent_bytes)),
                pieces: pieces(volume, &this),
            })
            .collect(),
    })
}

fn segments<'a>(volume: &'a Section<'a>) -> impl Iterator<Item = &'a Section<'a>> {
    let segments = volume.sections();
    segments.filter_map(|(name, one)| name.starts_with("segment").then_some(one))
}

/// The pieces of a linear volume, those that follow each other as one.
fn pieces(volume: &Section<'_>, this: &Physical<'_>) -> Result<Vec<(u64, u64)>, String> {
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    let mut extents = 0;
    let (mut here, mut elsewhere) = (false, false);
    for segment in segments(volume) {
        let kind = segment.text("type").unwrap_or("no type");
        if kind != "striped" {
            return Err(format!("of type {kind}"));
        }
        let stripes = segment.list("stripes").unwrap_or_default();
        let [on, first] = stripes else {
            return Err(format!("striped over {} places", stripes.len() / 2));
        };
        let count = segment.number("extent_count");
        let (Some(on), Some(first), Some(count)) = (on.text(), first.number(), count) else {
            return Err("its segments are not readable".to_owned());
        };
        if segment.number("start_extent") != Some(extents) {
            return Err("its segments do not follow each other".to_owned());
        }
        let end = first.checked_add(count).filter(|_| count > 0);
        extents = extents
            .checked_add(count)
            .ok_or("it is longer than 2^64 extents")?;
        if on != this.name {
            elsewhere = true;
            continue;
        }
        here = true;
        let inside = end.is_some_and(|end| end <= this.count);
        let place = first.checked_mul(this.extent_bytes);
        let place = place.and_then(|bytes| bytes.checked_add(this.extents_at));
        let length = count.checked_mul(this.extent_bytes).filter(|_| inside);
        let whole = place
            .zip(length)
            .filter(|(at, length)| at.checked_add(*length).is_some());
        let (at, length) = whole.ok_or("it lies past the end of the physical volume")?;
        let full = pieces.len() == MOST_PIECES;
        match pieces.last_mut() {
            Some(last) if last.0 + last.1 == at => last.1 += length,
            _ if full => return Err(format!("it has more than {MOST_PIECES} pieces")),
            _ => pieces.push((at, length)),
        }
    }
    match (here, elsewhere) {
        (true, false) => Ok(pieces),
        (true, true) => Err("in part on another physical volume".to_owned()),
        (false, true) => Err("on another physical volume".to_owned()),
        (false, false) => Err("it has no segments".to_owned()),
    }
}
