//! The fuzz target of the signatures.

use ugeom_format::content::identify;

/// Three bytes for the size in units of 32 bytes, then pieces of an otherwise empty disk: two bytes
/// for the sector (the highest bit counts it from the end), one for the length in units of 8 bytes,
/// the bytes. So a small input has signatures at any place.
pub fn content(data: &[u8]) {
    let Some(([a, b, c], mut rest)) = data.split_first_chunk::<3>() else { return };
    let size = u64::from(u32::from_le_bytes([*a, *b, *c, 0])) * 32;
    let mut pieces = Vec::new();
    while let Some(([low, high, length], after)) = rest.split_first_chunk::<3>() {
        let sector = u64::from(u16::from_le_bytes([*low, high & 0x7f]));
        let place = match high & 0x80 {
            0 => sector * 512,
            _ => (size / 512).saturating_sub(sector) * 512,
        };
        let (piece, after) = after.split_at(after.len().min(usize::from(*length) * 8));
        pieces.push((place, piece));
        rest = after;
    }
    let found = identify(size, &mut |offset, length| {
        let end = (offset + length as u64).min(size);
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        for (place, piece) in &pieces {
            let first = offset.max(*place);
            let last = end.min(place + piece.len() as u64);
            if first < last {
                let there = &piece[(first - place) as usize..(last - place) as usize];
                bytes[(first - offset) as usize..][..there.len()].copy_from_slice(there);
            }
        }
        Ok(bytes)
    });
    for content in found.contents {
        assert!(!content.places.is_empty());
        assert!(!content.summary().chars().any(char::is_control));
    }
}

/// The input that stands for a disk: its size, and its sectors that are not empty.
pub fn input(disk: &[u8]) -> Vec<u8> {
    let mut out = (disk.len() as u32 / 32).to_le_bytes()[..3].to_vec();
    for (sector, bytes) in (0_u16..0x8000).zip(disk.chunks_exact(512)) {
        if bytes.iter().any(|&byte| byte != 0) {
            out.extend(sector.to_le_bytes());
            out.push(64);
            out.extend(bytes);
        }
    }
    out
}
