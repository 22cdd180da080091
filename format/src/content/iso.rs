//! ISO 9660 and High Sierra. Sources: ECMA-119; the Joliet specification.

use super::view::View;
use super::{Content, ContentUse, text};

const FIRST_DESCRIPTOR: u64 = 32 << 10;
const DESCRIPTOR_BYTES: u64 = 2048;
/// Volume descriptors that are looked at.
const DESCRIPTORS_MAX: u64 = 16;

pub fn probe(view: &mut View<'_>) -> Option<Content> {
    let (usage, title) = (ContentUse::FileSystem, "an ISO 9660 file system");
    let content = Content::new("iso9660", title, "ISO 9660", usage);
    if view.has(FIRST_DESCRIPTOR + 9, b"CDROM") {
        let mut content = content.at(FIRST_DESCRIPTOR + 9, 5);
        content.label = text::label(&view.bytes(FIRST_DESCRIPTOR + 48, 32));
        return Some(content);
    }
    if !view.has(FIRST_DESCRIPTOR + 1, b"CD001") {
        return None;
    }
    let mut content = content.at(FIRST_DESCRIPTOR + 1, 5);
    let mut primary = None;
    let mut joliet = None;
    for number in 0..DESCRIPTORS_MAX {
        let at = FIRST_DESCRIPTOR + number * DESCRIPTOR_BYTES;
        let escape: [u8; 3] = view.array(at + 88);
        match view.byte(at) {
            1 if primary.is_none() => primary = Some(at),
            2 if joliet.is_none() && matches!(&escape, b"%/@" | b"%/C" | b"%/E") => {
                joliet = Some(at);
            }
            0xff => break,
            _ => {}
        }
    }
    let Some(primary) = primary else {
        return Some(content);
    };
    let plain = view.bytes(primary + 40, 32);
    content.label = match joliet {
        Some(at) => joined(&view.bytes(at + 40, 32), &plain),
        None => text::label(&plain),
    };
    content.uuid = date(view, primary + 830).or_else(|| date(view, primary + 813));
    Some(content)
}

/// Joliet's label has 16 characters of any script, the primary one 32 with `_` for what ASCII
/// lacks: the longer of both, with the characters of Joliet, as long as they agree.
fn joined(joliet: &[u8], plain: &[u8]) -> Option<String> {
    let wide = text::utf16(joliet, u16::from_be_bytes);
    let wide = wide.map(|wide| wide.trim_end().to_owned())?;
    let plain = String::from_utf8_lossy(plain).into_owned();
    let mut letters = plain.chars();
    let mut out = String::new();
    for character in wide.chars() {
        let letter = letters.next()?;
        match () {
            () if letter == '_' => out.push(character),
            () if character == '_' => out.push(letter),
            () if letter.eq_ignore_ascii_case(&character) => {
                out.push(if letter.is_ascii_uppercase() {
                    character
                } else {
                    letter
                });
            }
            () => return Some(wide),
        }
    }
    // Joliet was cut: the rest is the primary one's.
    if wide.chars().count() == 16 {
        out.extend(letters);
    }
    text::label(out.as_bytes())
}

/// The sixteen digits of a date as a UUID: `2007-11-27-23-10-35-00`.
fn date(view: &mut View<'_>, at: u64) -> Option<String> {
    let digits = view.bytes(at, 16);
    let zone = view.byte(at + 16);
    let empty = zone == 0 && digits.iter().all(|digit| *digit == b'0');
    if empty || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let text = String::from_utf8(digits).ok()?;
    Some(text::dashed(&text, &[4, 6, 8, 10, 12, 14]))
}
