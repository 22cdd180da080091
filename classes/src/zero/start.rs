//! The data path of `zero`.

use ugeom_stack::{Command, Errno, Extent, ExtentKind, Next, Request};

/// Fills reads with `byte`.
#[inline]
pub(super) fn filled(byte: u8, mut request: Request<'_>) -> Next {
    match request.command() {
        Command::Read => {
            request.fill(|_, piece| piece.fill(byte));
            request.done_in_full()
        }
        Command::Write => request.done_in_full(),
        _ => other(Some(byte), request),
    }
}

/// Finishes reads and does not touch their memory.
#[inline]
pub(super) fn untouched(request: Request<'_>) -> Next {
    match request.command() {
        Command::Read | Command::Write => request.done_in_full(),
        _ => other(None, request),
    }
}

/// The commands that carry no data. Beyond what gzero does, FLUSH succeeds: there is nothing that
/// could be lost, and clients take a failed FLUSH for lost data.
#[inline(never)]
fn other(byte: Option<u8>, mut request: Request<'_>) -> Next {
    match (request.command(), byte) {
        (Command::Zero, Some(0)) => request.done_in_full(),
        (Command::Zero, _) => request.fail(Errno::OPNOTSUPP, "the device does not read as zeroes"),
        (Command::Extents, _) => {
            let length_bytes = request.length();
            let kind = if byte == Some(0) {
                ExtentKind::Hole
            } else {
                ExtentKind::Data
            };
            request.add_extent(Extent { length_bytes, kind });
            request.finish()
        }
        (Command::GetAttr, _) => request.done(Err(Errno::OPNOTSUPP)),
        (Command::Read | Command::Write | Command::Delete | Command::Flush, _) => {
            request.done_in_full()
        }
    }
}
