//! What the tables have in common when they taste: the media, a reader of sectors, and what stands
//! below.

use super::rules::Below;
use ugeom_format::Media;
use ugeom_stack::{AttributeValue, TasteError, Taster};

/// A table with more partitions than this is not looked into any further. Real disks have 128 at
/// the most; the limit bounds what a hostile image can make of 4,096 entries that all lead to one
/// label.
const MOST_SIBLINGS: i64 = 256;

/// The provider's media, when tables can stand on it at all.
pub(super) fn media(taster: &Taster<'_>) -> Option<Media> {
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

/// True when a table of that scheme may stand on the provider.
pub(super) fn may_stand(taster: &mut Taster<'_>, scheme: &str) -> bool {
    Below::ask(|name| taster.attribute(name))
        .refuses(scheme)
        .is_none()
}

/// True when the provider is one of so many that nobody looks into them.
pub(super) fn is_one_of_too_many(taster: &mut Taster<'_>) -> bool {
    number(taster, "PART::count").is_some_and(|count| count > MOST_SIBLINGS)
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

/// Something of the class's own that it cannot use.
pub(super) fn unusable(
    class: &'static str,
    taster: &Taster<'_>,
    problem: impl ToString,
) -> TasteError {
    TasteError {
        class,
        provider: taster.name().to_owned(),
        problem: problem.to_string(),
    }
}
