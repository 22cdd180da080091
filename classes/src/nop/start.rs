//! The data path of `nop`: translate, fail, delay.

use super::state::{Decider, Decision};
use crate::extents;
use ugeom_stack::{Command, Next, Request};

/// Moves a request by the offset of the window, and forwards it.
#[inline]
pub(super) fn translate(offset_bytes: u64, mut request: Request<'_>) -> Next {
    request.set_offset(request.offset() + offset_bytes);
    request.forward(0)
}

/// Decides about a request first. One that is delayed comes back to `resume`, to be translated
/// then.
pub(super) fn decide(decider: &Decider, offset_bytes: u64, request: Request<'_>) -> Next {
    if request.command() == Command::Extents && decider.decides_reads() {
        return extents::all_data(request);
    }
    match decider.decide(request.command()) {
        Decision::Pass => translate(offset_bytes, request),
        Decision::Fail(errno) => request.fail(errno, "a failure injected by nop"),
        Decision::Delay(delay_ns) => request.delay(delay_ns),
    }
}
