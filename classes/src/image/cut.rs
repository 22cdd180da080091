//! Images whose file is shorter than their clusters: a copy that was interrupted, a disk that was
//! full. qemu reads missing clusters as zeroes and reports nothing.
//!
//! The end of the last cluster comes from the tables that count or place clusters, so a warning
//! costs some reads of the file, and no walk through the map.

use super::{ImageFormat, bytes_of};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use ugeom_format::qcow2::Header;

/// The most bytes of tables that are read for a warning.
const TABLES_BYTES_MAX: u64 = 64 << 20;
const SECTOR_BYTES: u64 = 512;

/// Warns if a qcow2 image counts clusters past the end of its file.
pub(super) fn warn_of_qcow2(shown: &str, file: &File, header: &Header) {
    // A damaged table is reported elsewhere.
    if let Ok(Some(start)) = last_counted(file, header) {
        warn(shown, file, start + 1, "reading past it fails");
    }
}

/// Warns if an image that qemu-nbd opens has clusters past the end of its file.
pub(super) fn warn_of(shown: &str, path: &Path, format: ImageFormat) {
    let Ok(file) = File::open(path) else { return };
    let end = match format {
        ImageFormat::Vdi => end_of_vdi(&file),
        ImageFormat::Vmdk => end_of_vmdk(&file),
        _ => return,
    };
    if let Ok(Some(end)) = end {
        warn(shown, &file, end, "the missing part reads as zeroes");
    }
}

fn warn(shown: &str, file: &File, needed: u64, effect: &str) {
    let Ok(end) = bytes_of(file) else { return };
    if end < needed {
        log::warn!(
            "{shown}: cut short: the file ends at byte {end}, its clusters reach past it; {effect}"
        );
    }
}

/// Reads as much as the file has, and zeroes after it.
fn read(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(bytes)
}

/// The offset of the last cluster with a refcount. QEMU docs/interop/qcow2.rst, "Host cluster
/// management".
fn last_counted(file: &File, header: &Header) -> io::Result<Option<u64>> {
    const OFFSET_BITS: u64 = 0xffff_ffff_ffff_fe00;
    const BLOCKS_MAX: usize = 16;
    let table_bytes = header.refcounts.end - header.refcounts.start;
    if table_bytes > TABLES_BYTES_MAX || header.refcount_bits == 0 {
        return Ok(None);
    }
    let table = read(file, header.refcounts.start, table_bytes)?;
    let (entries, _) = table.as_chunks::<8>();
    let blocks = entries
        .iter()
        .map(|entry| u64::from_be_bytes(*entry) & OFFSET_BITS)
        .enumerate()
        .filter(|(_, offset)| *offset > 0);
    let bits = u64::from(header.refcount_bits);
    let counts = header.cluster_bytes * 8 / bits;
    for (number, offset) in blocks.rev().take(BLOCKS_MAX) {
        let block = read(file, offset, header.cluster_bytes)?;
        let Some(byte) = block.iter().rposition(|byte| *byte > 0) else { continue };
        let highest_bit = u64::from(block[byte].ilog2());
        let last = match bits {
            1..8 => byte as u64 * (8 / bits) + highest_bit / bits,
            _ => byte as u64 / (bits / 8),
        };
        return Ok((number as u64 * counts + last).checked_mul(header.cluster_bytes));
    }
    Ok(None)
}

/// The end of the last block of a VDI image. VirtualBox, `VDICore.h`: the offset of the data at
/// byte 344, the size of a block at 376, the number of blocks in the file at 388.
fn end_of_vdi(file: &File) -> io::Result<Option<u64>> {
    let head = read(file, 0, 512)?;
    let word = |at| u64::from(word(&head, at));
    Ok(Some(word(344) + word(376) * word(388)))
}

/// The end of what the last grain of a sparse VMDK extent needs at least. VMware, Virtual Disk
/// Format 5.0: capacity at byte 12, sectors of a grain at 20, entries of a grain table at 44, the
/// grain directory at 56, in sectors; entries of 1 are grains of zeroes.
fn end_of_vmdk(file: &File) -> io::Result<Option<u64>> {
    const AT_THE_END: u64 = u64::MAX;
    let head = read(file, 0, 512)?;
    let long = |at: usize| u64::from(word(&head, at)) | u64::from(word(&head, at + 4)) << 32;
    let (capacity, grain, entries) = (long(12), long(20), u64::from(word(&head, 44)));
    let directory = long(56);
    let covered = grain.saturating_mul(entries);
    if !head.starts_with(b"KDMV") || covered == 0 || directory == AT_THE_END {
        return Ok(None);
    }
    let tables = capacity.div_ceil(covered);
    if tables.saturating_mul(entries) > TABLES_BYTES_MAX / 4 {
        return Ok(None);
    }
    let Some(directory) = directory.checked_mul(SECTOR_BYTES) else { return Ok(None) };
    let directory = read(file, directory, tables * 4)?;
    let mut last = 0;
    for number in 0..tables as usize {
        let table = u64::from(word(&directory, number * 4)) * SECTOR_BYTES;
        if table == 0 {
            continue;
        }
        let table = read(file, table, entries * 4)?;
        let (grains, _) = table.as_chunks::<4>();
        let grains = grains.iter().map(|grain| u32::from_le_bytes(*grain));
        last = grains.max().unwrap_or(0).max(last);
    }
    let end = u64::from(last) * SECTOR_BYTES + 1;
    Ok((last > 1).then_some(end))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    word.map_or(0, |word| u32::from_le_bytes(*word))
}
