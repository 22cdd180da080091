//! The data path of `delayed`: down at once, up through the thread.

use super::state::Held;
use ugeom_stack::{Next, Request};

/// On its way down a request is passed on.
pub(super) fn down(request: Request<'_>) -> Next {
    request.forward(0)
}

/// On its way up it is held. One that failed will be resumed, and goes on as the layer below left
/// it, with that layer's explanation.
pub(super) fn up(held: &Held, request: Request<'_>) -> Next {
    let result = request.result();
    let (bio, next) = request.park();
    held.add(bio, result.ok());
    next
}
