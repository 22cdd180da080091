//! Labels and UUIDs in the notations of their own tools.

use crate::text::hex;

/// A label: up to the first NUL, trailing white space removed. Listings escape it.
pub fn label(bytes: &[u8]) -> Option<String> {
    let text = crate::bytes::c_string(bytes);
    let text = text.trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A label in UTF-16, of either byte order.
pub fn utf16(bytes: &[u8], order: fn([u8; 2]) -> u16) -> Option<String> {
    let units = bytes.chunks_exact(2).map(|pair| order([pair[0], pair[1]]));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    label(String::from_utf16_lossy(&units).as_bytes())
}

/// A UUID of sixteen bytes; `None` for zeroes, which stand for none.
pub fn uuid(bytes: &[u8]) -> Option<String> {
    if bytes.len() < 16 || bytes.iter().all(|byte| *byte == 0) {
        return None;
    }
    let mut text = hex(&bytes[..16]);
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    Some(text)
}

/// The serial number of a FAT volume: `1234-ABCD`.
pub fn dos_serial(bytes: [u8; 4]) -> String {
    let number = u32::from_le_bytes(bytes);
    format!("{:04X}-{:04X}", number >> 16, number & 0xffff)
}

/// `text` with a dash before each of the places in `at` (counted in the text without dashes).
pub fn dashed(text: &str, at: &[usize]) -> String {
    let mut out = String::with_capacity(text.len() + at.len());
    for (place, character) in text.chars().enumerate() {
        if at.contains(&place) {
            out.push('-');
        }
        out.push(character);
    }
    out
}

/// `40 GiB`, `1.5 TiB`.
pub fn binary_size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let rounded = (value * 10.0).round() / 10.0;
    format!("{rounded} {}", UNITS[unit])
}
