//! The data path of `delayed`: down at once, up through the thread.

use super::state::HeldRequests;
use crate::extents;
use ugeom_stack::{Command, Next, Request};

/// On its way down a request is passed on; of holes nothing would be read, so none are shown.
pub(super) fn down(request: Request<'_>) -> Next {
    if request.command() == Command::Extents {
        return extents::all_data(request);
    }
    request.forward(0)
}

/// On its way up it is held. One that failed will be resumed, and goes on as the layer below left
/// it, with that layer's explanation.
pub(super) fn up(held: &HeldRequests, request: Request<'_>) -> Next {
    let result = request.result();
    let (bio, next) = request.park();
    held.add(bio, result.ok());
    next
}
