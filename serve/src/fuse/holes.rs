//! Holes and zeroes: fallocate(2) and lseek(2) on a provider.

use super::handles::Handle;
use rustix::io::Errno;
use std::ops::Range;
use ugeom_format::wire::fuse::{Fallocate, Lseek, lseek_reply};
use ugeom_stack::{Channel, Extent, ExtentKind, Flags, IoError, Unaligned};

/// Of fallocate(2): the file does not grow.
const KEEP_SIZE: u32 = 1;
/// Of fallocate(2): gives room back; it reads as zeroes afterwards.
const PUNCH_HOLE: u32 = 2;
/// Of fallocate(2): makes zeroes.
const ZERO_RANGE: u32 = 16;
/// Of lseek(2): the next data.
const SEEK_DATA: u32 = 3;
/// Of lseek(2): the next hole.
const SEEK_HOLE: u32 = 4;

/// Stretches that are asked for at a time.
const EXTENTS: usize = 64;

/// So much is read to see whether a file is empty, bytes: other programs that open files wait
/// meanwhile.
const ZEROES_READ_BYTES: u64 = 256 << 20;
const PIECE_BYTES: usize = 256 << 10;

/// Stretches of data and holes that are counted for stat(2).
const STRETCHES_COUNTED: usize = 256;

/// FALLOCATE: DELETE for a hole, ZERO for zeroes. Room that is certain cannot be promised.
pub(super) fn fallocate(
    channel: &mut Channel,
    unaligned: &mut Unaligned,
    handle: &Handle,
    what: &Fallocate,
) -> Result<(), Errno> {
    let end = what.offset.checked_add(what.length_bytes);
    let end = end.ok_or(Errno::FBIG)?;
    if what.length_bytes == 0 {
        return Err(Errno::INVAL);
    }
    let inside = what.offset.min(handle.size_bytes)..end.min(handle.size_bytes);
    match what.mode {
        mode if mode == PUNCH_HOLE | KEEP_SIZE => punch(channel, unaligned, handle, &inside),
        mode if mode & !KEEP_SIZE == ZERO_RANGE => {
            if mode & KEEP_SIZE == 0 && end > handle.size_bytes {
                return Err(Errno::NOSPC);
            }
            zero(channel, unaligned, handle, &inside, Flags::NO_HOLE)
        }
        _ => Err(Errno::OPNOTSUPP),
    }
}

/// DELETE is advice, and may leave the old data; a hole has to read as zeroes. So what is still
/// data after it is zeroed, which is nothing in a provider that has holes.
fn punch(
    channel: &mut Channel,
    unaligned: &mut Unaligned,
    handle: &Handle,
    range: &Range<u64>,
) -> Result<(), Errno> {
    let length = (range.end - range.start) as usize;
    match unaligned.delete(channel, &handle.opened, range.start, length) {
        Err(error) if error.errno != Errno::OPNOTSUPP => return Err(error.errno),
        _ => {}
    }
    let mut at = range.start;
    while at < range.end {
        let (data, end) = stretch(channel, handle, at)?;
        let end = end.min(range.end);
        if data {
            zero(channel, unaligned, handle, &(at..end), Flags::NONE)?;
        }
        at = end;
    }
    Ok(())
}

fn zero(
    channel: &mut Channel,
    unaligned: &mut Unaligned,
    handle: &Handle,
    range: &Range<u64>,
    flags: Flags,
) -> Result<(), Errno> {
    let length = (range.end - range.start) as usize;
    let zeroed = unaligned.zero(channel, &handle.opened, (range.start, length), flags);
    zeroed.map(drop).map_err(|error| error.errno)
}

/// LSEEK. Behind the last byte lies a hole.
pub(super) fn seek(channel: &mut Channel, handle: &Handle, what: &Lseek) -> Result<Vec<u8>, Errno> {
    if what.offset >= handle.size_bytes {
        return Err(Errno::NXIO);
    }
    let wants_data = match what.whence {
        SEEK_DATA => true,
        SEEK_HOLE => false,
        _ => return Err(Errno::INVAL),
    };
    let mut at = what.offset;
    while at < handle.size_bytes {
        let (data, end) = stretch(channel, handle, at)?;
        if data == wants_data {
            return Ok(lseek_reply(at).to_vec());
        }
        at = end;
    }
    if wants_data {
        return Err(Errno::NXIO);
    }
    Ok(lseek_reply(handle.size_bytes).to_vec())
}

/// How many bytes of a file are no hole, as far as its first stretches tell; the rest counts as
/// data.
pub(super) fn allocated(channel: &mut Channel, handle: &Handle) -> u64 {
    let (mut at, mut data_bytes) = (0, 0);
    for _ in 0..STRETCHES_COUNTED {
        if at >= handle.size_bytes {
            return data_bytes;
        }
        let Ok((data, end)) = stretch(channel, handle, at) else { break };
        data_bytes += if data { end - at } else { 0 };
        at = end;
    }
    data_bytes + (handle.size_bytes - at)
}

/// Whether all of a file is zeroes. Where no hole is known, [`ZEROES_READ_BYTES`] are read at most.
pub(super) fn is_empty(channel: &mut Channel, handle: &Handle) -> Result<bool, Errno> {
    let (mut at, mut left) = (0, ZEROES_READ_BYTES);
    while at < handle.size_bytes {
        let (data, end) = stretch(channel, handle, at)?;
        if data {
            let Some(rest) = left.checked_sub(end - at) else { return Ok(false) };
            left = rest;
            if !are_zeroes(channel, handle, at..end)? {
                return Ok(false);
            }
        }
        at = end;
    }
    Ok(true)
}

fn are_zeroes(channel: &mut Channel, handle: &Handle, range: Range<u64>) -> Result<bool, Errno> {
    let sector = handle.sector_bytes;
    let (mut at, end) = (
        range.start - range.start % sector,
        range.end.next_multiple_of(sector),
    );
    let mut piece = vec![0; PIECE_BYTES.next_multiple_of(sector as usize)];
    while at < end {
        let length = piece.len().min((end - at) as usize);
        let piece = &mut piece[..length];
        let read = channel.read(&handle.opened, at, piece);
        read.map_err(|error| error.errno)?;
        if piece.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        at += length as u64;
    }
    Ok(true)
}

/// Whether data lies at a place, and where that ends: up to the end where that is unknown.
fn stretch(channel: &mut Channel, handle: &Handle, at: u64) -> Result<(bool, u64), Errno> {
    let start = at - at % handle.sector_bytes;
    let left = handle.size_bytes.next_multiple_of(handle.sector_bytes) - start;
    let found = match channel.extents(&handle.opened, start, left, EXTENTS) {
        Ok(found) => found,
        Err(IoError { errno, .. }) if errno == Errno::OPNOTSUPP => Vec::new(),
        Err(error) => return Err(error.errno),
    };
    let is_data = |extent: &Extent| extent.kind == ExtentKind::Data;
    let Some(data) = found.first().map(is_data) else {
        return Ok((true, handle.size_bytes));
    };
    let same = found.iter().take_while(|extent| is_data(extent) == data);
    let end = start + same.map(|extent| extent.length_bytes).sum::<u64>();
    if end > at {
        Ok((data, end.min(handle.size_bytes)))
    } else {
        Ok((true, handle.size_bytes))
    }
}
