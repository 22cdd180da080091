//! Metadata of FreeBSD's GEOM classes, in the last sector of a provider: `GEOM::MIRROR` and its
//! relatives. Source: FreeBSD `sys/geom/*/g_*.h`.

use super::view::View;
use super::{Content, ContentUse, text};
use crate::text::visible;

/// Sector sizes whose last sector is looked at.
const SECTOR_SIZES: [u64; 5] = [512, 1024, 2048, 4096, 8192];
const MAGIC_BYTES: usize = 16;

pub fn probe(view: &mut View<'_>) -> Option<Content> {
    let size = view.size_bytes();
    for sector in SECTOR_SIZES {
        let Some(base) = (size / sector * sector).checked_sub(sector) else { continue };
        let magic = view.bytes(base, MAGIC_BYTES);
        if !magic.starts_with(b"GEOM::") {
            continue;
        }
        let class = visible(&text::label(&magic)?);
        let title = format!("metadata of {class}");
        let usage = match class.as_str() {
            "GEOM::ELI" => ContentUse::Encrypted,
            _ => ContentUse::Volume,
        };
        let short = class.trim_start_matches("GEOM::").to_ascii_lowercase();
        let mut content =
            Content::new("geom", &title, &format!("GEOM {short}"), usage).at(base, 16);
        content.label = name(view, base, &short);
        return Some(content);
    }
    None
}

/// The device's name stands behind magic and version in most classes.
fn name(view: &mut View<'_>, base: u64, class: &str) -> Option<String> {
    let at = match class {
        "mirror" | "stripe" | "concat" | "shsec" | "raid3" | "label" | "cache" | "virstor" => 20,
        "multipath" => 56,
        _ => return None,
    };
    text::label(&view.bytes(base + at, 16))
}
