//! The data path of `md`.

use crate::extents;
use ugeom_machine::region::Region;
use ugeom_stack::{AttributeValue, Command, Errno, Next, Request};

/// READs of less are copied, bytes.
const LENT_BYTES_MIN: u64 = 4096;

/// Copies, and is done.
#[inline]
pub(super) fn start(region: &Region, mut request: Request<'_>) -> Next {
    let offset = request.offset();
    match request.command() {
        Command::Read if request.may_lend() => return lend(region, request),
        Command::Read => request.fill(|at, piece| region.read(offset + at, piece)),
        Command::Write => request.each(|at, piece| region.write(offset + at, piece)),
        _ => return start_other(region, request),
    }
    request.done_in_full()
}

/// Lends the memory itself where it is worth that, else copies.
fn lend(region: &Region, mut request: Request<'_>) -> Next {
    let (offset, length) = (request.offset(), request.length());
    if length >= LENT_BYTES_MIN
        && let Some(lease) = region.lease(offset, length)
    {
        return request.lend(lease);
    }
    request.fill(|at, piece| region.read(offset + at, piece));
    request.done_in_full()
}

/// The commands that carry no data. Memory has nothing to flush.
#[inline(never)]
pub(super) fn start_other(region: &Region, request: Request<'_>) -> Next {
    match request.command() {
        Command::Delete | Command::Zero => {
            // When the system does not take memory back, the range reads as zeroes all the same.
            let _ = region.discard(request.offset(), request.length());
            request.done_in_full()
        }
        Command::Extents => extents::answer(request, |at| region.next_extent(at)),
        Command::GetAttr if request.attribute() == "GEOM::candelete" => {
            request.answer(AttributeValue::Number(1))
        }
        Command::GetAttr => request.done(Err(Errno::OPNOTSUPP)),
        Command::Read | Command::Write | Command::Flush => request.done_in_full(),
    }
}
