//! The answer to EXTENTS of a media that knows what was written.

use ugeom_stack::{Extent, ExtentKind, Next, Request};

/// Answers with what `next` finds at an offset: a length in bytes, and whether it was written.
pub(crate) fn answer(mut request: Request<'_>, next: impl Fn(u64) -> (u64, bool)) -> Next {
    let mut at = request.offset();
    let end = at + request.length();
    let mut wanted = true;
    while wanted && at < end {
        let (length_bytes, written) = next(at);
        let kind = if written {
            ExtentKind::Data
        } else {
            ExtentKind::Hole
        };
        wanted = request.add_extent(Extent { length_bytes, kind });
        at += length_bytes;
    }
    request.finish()
}
