//! A small READ, which most stacks answer at once: from request to reply without an operation.
//!
//! It is sent as the operation that it may become. When the bio is home before the call returns,
//! and whole, its data goes into the reply right here; in any other case the operation is made
//! then, and goes the way of all others (operation.rs).

use super::operation::{Kind, LOOK_BYTES_MIN, MAIN, cookie_of};
use super::output::Body;
use super::reply::put_piece;
use super::worker::Worker;
use crate::span::Span;
use ugeom_format::wire::nbd::Request;
use ugeom_stack::Finished;

impl Worker {
    /// Sends a READ that was found to be in order, and answers it if it comes home at once. False
    /// when it is not small, or no bio is to be had now: nothing has happened then.
    pub fn read_at_once(&mut self, index: usize, request: &Request, charge: usize) -> bool {
        if request.length_bytes >= LOOK_BYTES_MIN {
            return false;
        }
        let number = self.next_operation();
        let Some(connection) = self.connections[index].as_mut() else {
            return false;
        };
        let start = request.offset_bytes;
        let range = start..start + u64::from(request.length_bytes);
        let sector = u64::from(connection.chosen.export.sector_bytes);
        let Some(span) = Span::single(&range, sector) else {
            return false;
        };
        let Some(draft) = self.channel.bio() else {
            return false;
        };
        let draft = draft
            .read_or_lease(span.start(), self.buffers.take(span.sectors))
            .length(span.sectors as u64)
            .cookie(cookie_of(number, 0, MAIN));
        let opened = &connection.chosen.opened;
        let mut finished = match self.channel.submit_or_finish(opened, draft) {
            Some(finished) if is_whole(&finished) => finished,
            other => {
                self.new_operation(index, *request, false);
                self.add(number, Kind::Read, span, None);
                if let Some(finished) = other {
                    self.completed(finished);
                }
                return true;
            }
        };
        let (lease, buffer) = (finished.take_lease(), finished.take_buffer());
        self.channel.recycle(finished);
        let (start, end) = (span.skip, span.skip + span.length);
        let body = match (lease, buffer) {
            (Some(lease), buffer) => {
                if let Some(buffer) = buffer {
                    self.buffers.put(buffer);
                }
                Body::Lent { lease, start, end }
            }
            (None, Some(buffer)) => Body::Data { buffer, start, end },
            (None, None) => Body::Bytes(vec![0; span.length]),
        };
        let structured = connection.structured;
        put_piece(&mut connection.output, request, structured, body, charge);
        true
    }
}

fn is_whole(finished: &Finished) -> bool {
    finished.result() == Ok(finished.length())
}
