//! Fuzz targets of the tables inside images of virtual machines, which are checked before a write.

use ugeom_format::qcow2;
use ugeom_format::vmdk::grains;

/// The header of a qcow2 image.
pub fn qcow2(data: &[u8]) {
    let Ok(header) = qcow2::Header::decode(data) else { return };
    let backing = header.backing.iter().map(|backing| &backing.name);
    for name in backing.chain(&header.data_file) {
        let bytes = name.as_bytes();
        assert!(data.windows(bytes.len()).any(|there| there == bytes));
    }
    let mut read = |at: u64, length: usize| Ok(padded(data, at, length));
    if let Ok(structures) = qcow2::Structures::read(&header, &mut read) {
        assert!(structures.in_range(0, 1).is_some());
        let _ = structures.fault(&header, data.len() as u64, &mut read);
    }
}

/// The directory and the tables of a sparse extent.
pub fn vmdk_tables(data: &[u8]) {
    let mut read = |at: u64, length: usize| Ok(padded(data, at, length));
    let found = grains::fault(data.len() as u64, &mut read);
    assert!(found.is_ok(), "memory can be read");
}

/// The largest part of fixed length that is read of a table, bytes.
const PART_BYTES: usize = 4096;

/// Bytes of a file; zeroes past its end. Of a larger table only what the file has: an entry of
/// zeroes is none, and 40 MiB of them would be most of the time of a run.
fn padded(file: &[u8], at: u64, length: usize) -> Vec<u8> {
    let start = usize::try_from(at).unwrap_or(usize::MAX).min(file.len());
    let end = start.saturating_add(length).min(file.len());
    let mut bytes = file[start..end].to_vec();
    bytes.resize(bytes.len().max(length.min(PART_BYTES)), 0);
    bytes
}
