//! The attribute `GEOM::physpath`: where a provider is plugged in. Layers answer with a path of
//! their own, or append to that of the provider below.
//!
//! Source: FreeBSD's `g_nop_start`, `g_part_start` and `g_eli_getattr_done`.

use ugeom_stack::{AttributeValue, Next, Request};

/// The attribute with a provider's physical path, as FreeBSD names it.
pub const PHYSPATH: &str = "GEOM::physpath";

/// Answers a question for the attribute with this path, if there is one; `below` takes any other.
pub(crate) fn answer<'a>(
    path: Option<&String>,
    request: Request<'a>,
    below: impl FnOnce(Request<'a>) -> Next,
) -> Next {
    match path {
        Some(path) if request.attribute() == PHYSPATH => {
            request.answer(AttributeValue::Text(path.clone()))
        }
        _ => below(request),
    }
}
