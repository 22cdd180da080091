//! A small READ, which most stacks answer at once: from request to reply without an operation.
//!
//! It is sent as the operation that it may become. When the bio completes before the call returns,
//! and whole, its data goes into the reply right here; in any other case the operation is made
//! then, and goes the way of all others (operations.rs).

use super::exports::Chosen;
use super::operation::{LOOK_BYTES_MIN, MAIN, TaskKind, cookie_of};
use super::operations::Operations;
use super::output::Body;
use std::sync::Arc;
use ugeom_format::wire::nbd::ExtendedRequest;
use ugeom_stack::Finished;
use ugeom_stack::unaligned::Span;

/// The result of a READ.
pub(super) enum AtOnce {
    /// It completed at once, with this data.
    Read(Body),
    /// It is an operation.
    Begun,
    /// It is not small, or no bio is to be had now: nothing has happened.
    NotTried,
}

impl Operations {
    /// Sends a READ that was found to be in order, and fetches its data if it completes at once.
    #[inline]
    pub fn read_at_once(
        &mut self,
        (connection, chosen): (usize, &Arc<Chosen>),
        request: &ExtendedRequest,
    ) -> AtOnce {
        if request.length_bytes >= LOOK_BYTES_MIN {
            return AtOnce::NotTried;
        }
        let number = self.next_operation();
        let start = request.offset_bytes;
        let range = start..start + request.length_bytes;
        let sector = u64::from(chosen.export.sector_bytes);
        let Some(span) = Span::single(&range, sector) else {
            return AtOnce::NotTried;
        };
        let Some(draft) = self.channel.bio() else {
            return AtOnce::NotTried;
        };
        let draft = draft
            .read_or_lease(span.start(), self.buffers.take(span.sectors))
            .length(span.sectors as u64)
            .cookie(cookie_of(number, 0, MAIN));
        let mut finished = match self.channel.submit_or_finish(&chosen.opened, draft) {
            Some(finished) if is_whole(&finished) => finished,
            other => {
                self.new_operation((connection, chosen), *request, false);
                self.add(number, TaskKind::Read, span, None);
                if let Some(finished) = other {
                    self.completed(finished);
                }
                return AtOnce::Begun;
            }
        };
        let (lease, buffer) = (finished.take_lease(), finished.take_buffer());
        self.channel.recycle(finished);
        let (start, end) = (span.skip, span.skip + span.length);
        AtOnce::Read(match (lease, buffer) {
            (Some(lease), buffer) => {
                if let Some(buffer) = buffer {
                    self.buffers.put(buffer);
                }
                Body::Lent { lease, start, end }
            }
            (None, Some(buffer)) => Body::Data { buffer, start, end },
            (None, None) => Body::Bytes(vec![0; span.length]),
        })
    }
}

fn is_whole(finished: &Finished) -> bool {
    finished.result() == Ok(finished.length())
}
