//! The fuzz targets for the frames of compressed files.

use ugeom_format::{gzip, xz, zstd};

/// The header of a member of a gzip file.
pub fn gzip(data: &[u8]) {
    if let Ok(length) = gzip::header_bytes(data) {
        assert!(length <= data.len() && length >= 10);
    }
}

/// The header, the index and the footer of a stream of xz.
pub fn xz(data: &[u8]) {
    if let Some(edge) = data.first_chunk() {
        if let Ok(flags) = xz::header(edge) {
            assert_eq!(&flags.header(), edge);
        }
        let _ = xz::footer(edge);
    }
    // With the checksum that fits, so that what is behind it is reached.
    let mut index = data.to_vec();
    index.extend(crc32fast::hash(data).to_le_bytes());
    if let Ok(records) = xz::index(&index) {
        assert!(records.len() <= data.len() / 2);
    }
}

/// Frames, blocks and the seek table of zstd.
pub fn zstd(data: &[u8]) {
    if let Ok(zstd::Frame::Data(header)) = zstd::Frame::decode(data) {
        assert!(header.header_bytes <= zstd::HEADER_BYTES_MAX as u64);
    }
    if let Some(head) = data.first_chunk() {
        let _ = zstd::Block::decode(*head);
    }
    let Some(footer) = data.last_chunk() else { return };
    if let Ok(Some(footer)) = zstd::SeekFooter::decode(*footer) {
        let start = data.len() as u64 - footer.table_bytes().min(data.len() as u64);
        if let Ok(entries) = footer.entries(&data[start as usize..]) {
            assert!(entries.len() <= data.len() / 8);
        }
    }
}
