//! The byte order of a label: that of the machine that wrote it.

use crate::bytes;

/// How integers stand in a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    /// Little-endian: PCs and Alphas.
    #[default]
    Little,
    /// SPARC, PowerPC, MIPS, m68k.
    Big,
}

impl ByteOrder {
    pub(super) fn u16(self, data: &[u8], at: usize) -> u16 {
        match self {
            ByteOrder::Little => bytes::u16_le(data, at),
            ByteOrder::Big => bytes::u16_be(data, at),
        }
    }

    pub(super) fn u32(self, data: &[u8], at: usize) -> u32 {
        match self {
            ByteOrder::Little => bytes::u32_le(data, at),
            ByteOrder::Big => bytes::u32_be(data, at),
        }
    }

    pub(super) fn put_u16(self, data: &mut [u8], at: usize, value: u16) {
        match self {
            ByteOrder::Little => bytes::put_u16_le(data, at, value),
            ByteOrder::Big => bytes::put_u16_be(data, at, value),
        }
    }

    pub(super) fn put_u32(self, data: &mut [u8], at: usize, value: u32) {
        match self {
            ByteOrder::Little => bytes::put_u32_le(data, at, value),
            ByteOrder::Big => bytes::put_u32_be(data, at, value),
        }
    }
}
