//! The last sector of an image or export that ends within it: zeroes stand for the bytes past the
//! end, and nothing else can be written there.

use ugeom_stack::{Command, Request};

/// Why a WRITE fails that [`loses_bytes`].
pub(crate) const NO_ROOM: &str =
    "the disk ends within its last sector, and only zeroes can be written behind its last byte";

/// Whether a WRITE has other bytes than zeroes behind the last one of a disk of `size_bytes`.
#[inline]
pub(crate) fn loses_bytes(request: &Request<'_>, size_bytes: u64) -> bool {
    let inside = size_bytes.saturating_sub(request.offset());
    inside < request.length() && request.command() == Command::Write && has_data(request, inside)
}

/// Whether there are other bytes than zeroes from `start` on.
#[cold]
fn has_data(request: &Request<'_>, start: u64) -> bool {
    let mut found = false;
    request.each(|at, piece| {
        let skipped = start.saturating_sub(at).min(piece.len() as u64) as usize;
        found |= piece[skipped..].iter().any(|byte| *byte != 0);
    });
    found
}
