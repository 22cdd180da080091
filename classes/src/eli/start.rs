//! The data path of `eli`: reads are decrypted in the caller's memory when they come back, writes
//! are encrypted into memory of the layer's own, so that the caller's is never touched.
//!
//! A large READ may be lent by the layer below. A lease is whole sectors in one piece, and so is
//! the caller's memory then.

use super::Eli;
use super::cores::DIVIDED_BYTES;
use super::crypt::CryptError;
use std::io;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::lease::Lease;
use ugeom_stack::{Command, Cx, Errno, Extent, ExtentKind, Flags, Next, Request};

const NO_DELETE: &str = "the provider is set not to pass DELETE on (NODELETE)";
const NO_ZERO: &str = "zeroes are data like any other here: write them";
const NOT_AUTHENTIC: &str =
    "the sector failed its authentication: it was changed, or never written";
const NO_MEMORY: &str = "there is no memory for a data key";
const LOST: &str = "the read below returned no buffer";

/// READs of less are copied by the layer below, bytes. From there on they are divided, and each
/// core copies the sectors that it decrypts.
const LENT_BYTES_MIN: u64 = DIVIDED_BYTES as u64;

/// A request that is new here.
#[inline]
pub(super) fn start(eli: &Eli, mut request: Request<'_>, cx: &mut Cx) -> Next {
    match request.command() {
        Command::Read if eli.tagged => read_sealed(eli, request, cx),
        Command::Read => {
            if request.length() < LENT_BYTES_MIN {
                request.refuse_lease();
            }
            request.forward(0)
        }
        Command::Write => write(eli, request, cx),
        _ => other(eli, request, cx),
    }
}

/// A request that comes back from below.
pub(super) fn done(eli: &Eli, request: Request<'_>) -> Next {
    match (request.command(), request.result()) {
        (_, Err(_)) => failed(eli, request),
        (Command::Read, Ok(_)) if eli.tagged => unseal(eli, request),
        (Command::Read, Ok(length)) if length == request.length() => decrypt(eli, request),
        (Command::Write | Command::Delete, Ok(_)) => request.done_in_full(),
        _ => request.finish(),
    }
}

#[inline(never)]
fn other(eli: &Eli, mut request: Request<'_>, cx: &mut Cx) -> Next {
    match request.command() {
        Command::Delete if eli.no_delete => request.fail(Errno::OPNOTSUPP, NO_DELETE),
        Command::Delete if eli.tagged => {
            // FreeBSD passes the range on as it is, which deletes other sectors than were named.
            let (below, length) = eli.crypt.layout().below(request.offset(), request.length());
            let mut clones = request.fan_out(cx);
            clones.delete_instead(0, below, length);
            clones.finish()
        }
        Command::Zero => request.fail(Errno::OPNOTSUPP, NO_ZERO),
        Command::Extents => {
            // Holes below do not read as zeroes through a cipher.
            let extent = Extent {
                length_bytes: request.length(),
                kind: ExtentKind::Data,
            };
            request.add_extent(extent);
            request.done_in_full()
        }
        _ => request.forward(0),
    }
}

/// Lends the memory of a READ in whole sectors: as it lies, or by way of a copy where a piece of it
/// ends inside a sector. `with` gets the place among the request's bytes.
fn each_sectors<E>(
    request: &mut Request<'_>,
    sector_bytes: usize,
    mut with: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut whole = true;
    request.each(|_, piece| whole &= piece.len().is_multiple_of(sector_bytes));
    let mut result = Ok(());
    if whole {
        request.fill(|at, piece| {
            if result.is_ok() {
                result = with(at, piece);
            }
        });
        return result;
    }
    let mut copy = gathered(request);
    result = with(0, &mut copy);
    request.fill(|at, piece| {
        let at = at as usize;
        piece.copy_from_slice(&copy[at..at + piece.len()]);
    });
    result
}

/// All bytes of a request in one piece.
fn gathered(request: &Request<'_>) -> Buffer {
    let mut copy = Buffer::new(request.length() as usize);
    request.each(|at, piece| {
        let at = at as usize;
        copy[at..at + piece.len()].copy_from_slice(piece);
    });
    copy
}

#[inline]
fn decrypt(eli: &Eli, mut request: Request<'_>) -> Next {
    let offset = request.offset();
    let sector_bytes = eli.crypt.layout().sector_bytes as usize;
    let result = match request.take_lease() {
        Some(lease) => decrypt_lent(eli, &mut request, &lease),
        None => each_sectors(&mut request, sector_bytes, |at, data| {
            eli.crypt.decrypt_on_cores(offset + at, data)
        }),
    };
    match result {
        Ok(()) => request.done_in_full(),
        Err(_) => request.fail(Errno::IO, NO_MEMORY),
    }
}

/// Decrypts the lease of the layer below into the caller's memory.
fn decrypt_lent(eli: &Eli, request: &mut Request<'_>, lease: &Lease) -> io::Result<()> {
    let offset = request.offset();
    let mut result = Ok(());
    request.fill(|at, data| {
        if result.is_ok() {
            result = eli
                .crypt
                .decrypt_lent(offset + at, (lease, at as usize), data);
        }
    });
    result
}

fn write(eli: &Eli, request: Request<'_>, cx: &mut Cx) -> Next {
    let (offset, length) = (request.offset(), request.length());
    let layout = eli.crypt.layout();
    let sector_bytes = layout.sector_bytes as usize;
    let (below, below_length) = layout.below(offset, length);
    let stride = layout.stride_bytes();
    let mut out = eli.pending.fresh(below_length as usize);
    let mut whole = true;
    request.each(|_, piece| whole &= piece.len().is_multiple_of(sector_bytes));
    let mut result = Ok(());
    let mut seal = |at: u64, piece: &[u8]| {
        let start = (at / sector_bytes as u64 * stride) as usize;
        let end = start + piece.len() / sector_bytes * stride as usize;
        if result.is_ok() {
            result = eli
                .crypt
                .seal_on_cores(offset + at, piece, &mut out[start..end]);
        }
    };
    match whole {
        true => request.each(seal),
        false => seal(0, &gathered(&request)),
    }
    if result.is_err() {
        eli.pending.put_fresh(out);
        return request.fail(Errno::IO, NO_MEMORY);
    }
    let mut clones = request.fan_out(cx);
    clones.write_instead(0, below, eli.pending.lend(out));
    clones.finish()
}

/// Reads the sectors below, tags and all, into memory of the layer's own.
fn read_sealed(eli: &Eli, mut request: Request<'_>, cx: &mut Cx) -> Next {
    request.refuse_lease();
    let (below, length) = eli.crypt.layout().below(request.offset(), request.length());
    let (number, buffer) = eli.pending.send(length as usize);
    *request.scratch() = number;
    let mut clones = request.fan_out(cx);
    clones.read_returning(0, below, buffer);
    clones.finish()
}

fn unseal(eli: &Eli, mut request: Request<'_>) -> Next {
    let number = *request.scratch();
    let Some(sealed) = eli.pending.take(number) else {
        return request.fail(Errno::IO, LOST);
    };
    let offset = request.offset();
    let layout = eli.crypt.layout();
    let (sector_bytes, stride) = (u64::from(layout.sector_bytes), layout.stride_bytes());
    let result = each_sectors(&mut request, sector_bytes as usize, |at, data| {
        let start = (at / sector_bytes * stride) as usize;
        let end = start + (data.len() as u64 / sector_bytes * stride) as usize;
        eli.crypt
            .open_on_cores(offset + at, &sealed.buffer[start..end], data)
    });
    eli.pending.put(sealed);
    match result {
        Ok(()) => request.done_in_full(),
        Err(error @ CryptError::Authentication { offset, .. }) => {
            // A taste may read sectors that were never written.
            if !request.flags().contains(Flags::UNHEARD) {
                log::warn!("{}: {error}", eli.name);
            }
            request.set_offset(offset);
            request.fail(Errno::BADMSG, NOT_AUTHENTIC)
        }
        Err(CryptError::Memory(_)) => request.fail(Errno::IO, NO_MEMORY),
    }
}

/// The layer below has failed it; its sectors are dropped.
#[cold]
fn failed(eli: &Eli, mut request: Request<'_>) -> Next {
    if eli.tagged && request.command() == Command::Read {
        let number = *request.scratch();
        if let Some(arrived) = eli.pending.take(number) {
            eli.pending.put(arrived);
        }
    }
    request.finish()
}
