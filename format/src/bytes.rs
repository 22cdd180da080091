//! Integers and strings in byte slices.
//!
//! Decoders check the length of their input once, at the top. The readers here
//! answer 0 outside the slice and the writers do nothing there, so that no
//! offset, right or wrong, can panic.

/// Copies `N` bytes from offset `at`.
pub(crate) fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    if let Some(found) = bytes.get(at..).and_then(|rest| rest.get(..N)) {
        out.copy_from_slice(found);
    }
    out
}

pub(crate) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

pub(crate) fn u16_le(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(take(bytes, at))
}

pub(crate) fn u32_le(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(take(bytes, at))
}

pub(crate) fn u64_le(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(take(bytes, at))
}

pub(crate) fn u16_be(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(take(bytes, at))
}

pub(crate) fn u32_be(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(take(bytes, at))
}

pub(crate) fn u64_be(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(take(bytes, at))
}

/// Writes `value` at offset `at`.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.get_mut(..value.len()))
    {
        place.copy_from_slice(value);
    }
}

pub(crate) fn put_u16_le(bytes: &mut [u8], at: usize, value: u16) {
    put(bytes, at, &value.to_le_bytes());
}

pub(crate) fn put_u32_le(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, &value.to_le_bytes());
}

pub(crate) fn put_u64_le(bytes: &mut [u8], at: usize, value: u64) {
    put(bytes, at, &value.to_le_bytes());
}

pub(crate) fn put_u16_be(bytes: &mut [u8], at: usize, value: u16) {
    put(bytes, at, &value.to_be_bytes());
}

pub(crate) fn put_u32_be(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, &value.to_be_bytes());
}

/// The text up to the first NUL, as [`crate::text`] keeps it; listings escape it.
pub(crate) fn c_string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    crate::text::from_bytes(&bytes[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_in_both_byte_orders() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(u16_le(&bytes, 1), 0x0302);
        assert_eq!(u32_le(&bytes, 1), 0x0504_0302);
        assert_eq!(u64_le(&bytes, 1), 0x0908_0706_0504_0302);
        assert_eq!(u16_be(&bytes, 1), 0x0203);
        assert_eq!(u32_be(&bytes, 1), 0x0203_0405);
    }

    #[test]
    fn an_offset_outside_the_slice_reads_zero_and_writes_nothing() {
        let mut bytes = [7, 7, 7];
        assert_eq!(u32_le(&bytes, 0), 0);
        assert_eq!(u16_le(&bytes, usize::MAX), 0);
        put_u32_le(&mut bytes, 1, u32::MAX);
        assert_eq!(bytes, [7, 7, 7]);
    }

    #[test]
    fn a_string_ends_at_the_first_nul_and_keeps_every_byte() {
        assert_eq!(c_string(b"Apple\0rest"), "Apple");
        assert_eq!(c_string(b"a\x1bb\xff"), "a\u{1b}b\u{10ffff}");
    }
}
