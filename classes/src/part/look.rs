//! Common parts of tasting: the media, a reader of sectors, and the provider below.

use super::rules::Below;
use crate::entry::Miss;
use ugeom_format::Media;
use ugeom_stack::{AttributeValue, Taster};

/// A table with more partitions than this is not looked into any further. Real disks have 128 at
/// the most; the limit bounds what a hostile image can make of 4,096 entries that all lead to one
/// label.
const MOST_SIBLINGS: i64 = 256;

/// The provider's media, when tables can stand on it at all.
fn media(taster: &Taster<'_>) -> Option<Media> {
    Media::new(taster.mediasize_bytes(), taster.sectorsize_bytes()).filter(|m| m.sectors > 0)
}

/// Reads sectors for a decoder of `format`.
pub(super) fn reader<'t>(
    taster: &'t mut Taster<'_>,
) -> impl FnMut(u64, u64) -> Result<Vec<u8>, String> + 't {
    let unit = u64::from(taster.sectorsize_bytes());
    move |lba, count| {
        let place = lba.checked_mul(unit).zip(count.checked_mul(unit));
        let (offset, length) = place.ok_or("the sector number is too large")?;
        taster
            .read(offset, length)
            .map_err(|error| error.to_string())
    }
}

/// The provider's media, where the class looks for its table. A class that the user named looks
/// wherever a table can stand at all.
pub(super) fn ground(class: &str, taster: &mut Taster<'_>) -> Result<Media, Miss> {
    let Some(media) = media(taster) else {
        let (size, sector) = (taster.mediasize_bytes(), taster.sectorsize_bytes());
        return Err(Miss::Absent(format!(
            "no table can stand on a media of {size} bytes with sectors of {sector}: it takes a \
             whole sector of a power of two from 512 to 65536 bytes"
        )));
    };
    match taster.insists() || may_stand(taster, class) {
        true => Ok(media),
        false => Err(Miss::Elsewhere),
    }
}

/// The same, for a table that counts in sectors of 512 bytes whatever the provider's are.
pub(super) fn ground_of_512(class: &str, taster: &mut Taster<'_>) -> Result<Media, Miss> {
    let media = ground(class, taster)?;
    match media.sector_size_bytes {
        512 => Ok(media),
        other => Err(Miss::Absent(format!(
            "its table counts in sectors of 512 bytes, those here have {other}"
        ))),
    }
}

/// Whether a table of that scheme is looked for on the provider.
fn may_stand(taster: &mut Taster<'_>, scheme: &str) -> bool {
    let below = Below::ask(|name| taster.attribute(name));
    let few = |taster: &mut Taster<'_>| {
        number(taster, "PART::count").is_none_or(|count| count <= MOST_SIBLINGS)
    };
    below.refuses(scheme).is_none() && (scheme == super::names::EBR || few(taster))
}

/// A table of a disk with other sectors, in words.
pub(super) fn made_for(part: &str, offset_bytes: u64, size: u32, media: Media) -> String {
    let own = media.sector_size_bytes;
    format!(
        "the {part} at byte {offset_bytes} was made for sectors of {size} bytes, not of {own} as \
         here: ?sectorsize={size} opens it"
    )
}

/// Sector 0, where a table that counts in sectors of 512 bytes may stand.
pub(super) fn sector0_of_512(class: &str, taster: &mut Taster<'_>) -> Result<Vec<u8>, Miss> {
    ground_of_512(class, taster)?;
    taster.sector(0).map_err(Miss::absent)
}

/// Sectors 0 and 1, or the one that there is.
pub(super) fn two_sectors(taster: &mut Taster<'_>) -> Result<Vec<u8>, Miss> {
    let mut head = taster.sector(0).map_err(Miss::absent)?;
    head.extend(taster.sector(1).map_err(Miss::absent)?);
    Ok(head)
}

/// The provider is a partition: what looks like a table there may be part of a file system.
pub(super) fn is_nested(taster: &mut Taster<'_>) -> bool {
    text(taster, "PART::scheme").is_some()
}

/// Where the provider begins on its disk, as far as tables below it know; 0 on the disk itself.
pub(super) fn disk_offset_bytes(taster: &mut Taster<'_>) -> u64 {
    number(taster, "PART::disk_offset").map_or(0, |offset| offset.max(0) as u64)
}

/// A text that a layer below knows.
pub(super) fn text(taster: &mut Taster<'_>, name: &str) -> Option<String> {
    match taster.attribute(name)? {
        AttributeValue::Text(text) => Some(text),
        AttributeValue::Number(_) => None,
    }
}

/// A number that a layer below knows.
pub(super) fn number(taster: &mut Taster<'_>, name: &str) -> Option<i64> {
    match taster.attribute(name)? {
        AttributeValue::Number(number) => Some(number),
        AttributeValue::Text(_) => None,
    }
}
