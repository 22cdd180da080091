//! Requests for which there is no room as a whole: how their parts begin and are answered.

use super::budget::cost;
use super::connection::{Incoming, Refusal, Unwanted};
use super::connections::Connections;
use super::divided::{Divided, PartEnd};
use super::handshake::ReplyStyle;
use super::operation::Ended;
use super::operations::Operations;
use super::reply::{put_chunks, put_reply, put_stretch};
use ugeom_format::wire::nbd::{ExtendedRequest, command, command_flag};

impl Connections {
    /// Divides a READ or WRITE for which there would be no room even alone; of the other requests
    /// one is always served. False when the request waits.
    pub(super) fn divide_or_wait(
        &mut self,
        index: usize,
        request: ExtendedRequest,
        charge: usize,
        operations: &mut Operations,
    ) -> bool {
        let Some(connection) = self.slots[index].as_mut() else { return true };
        let account = &mut connection.account;
        if account.requests >= self.budget.limits.requests {
            return false;
        }
        if !matches!(request.command, command::READ | command::WRITE) {
            if account.requests > 0 {
                return false;
            }
            self.begun += 1;
            self.budget.charge(account, charge);
            self.begin_whole(index, request, operations);
            return true;
        }
        if !self.budget.is_too_much(account, charge) {
            return false;
        }
        let one_chunk =
            connection.style == ReplyStyle::Simple || request.flags & command_flag::DF != 0;
        let in_order = request.command == command::READ && one_chunk;
        connection.divided_count = connection.divided_count.wrapping_add(1);
        let number = connection.divided_count;
        connection.dividing = Some(Divided::new(number, request, in_order));
        true
    }

    /// Begins the next part of the request that is being divided. False when it waits.
    pub(super) fn begin_part(&mut self, index: usize, operations: &mut Operations) -> bool {
        let Some(connection) = self.slots[index].as_mut() else { return true };
        let Some(dividing) = &mut connection.dividing else { return true };
        if dividing.rest() == 0 || (dividing.in_order && connection.operations > 0) {
            return false;
        }
        let sector_bytes = connection.chosen.export.sector_bytes;
        let (whole, begun) = (dividing.request, dividing.begun());
        let account = &mut connection.account;
        let Some(part) = self.budget.part(account, &whole, begun, sector_bytes) else {
            return false;
        };
        let charge = cost(&part, sector_bytes);
        self.begun += 1;
        self.budget.charge(account, charge);
        self.begun_bytes += charge;
        let number = dividing.number;
        let in_chunks = !dividing.in_order;
        dividing.begin(part.length_bytes);
        connection.settle_dividing();
        if part.command == command::WRITE {
            connection.incoming = Some(Incoming::new(part, sector_bytes, Some(number)));
        } else {
            connection.operations += 1;
            let of = (index, &connection.chosen);
            operations.begin(of, part, Vec::new(), (in_chunks, Some(number)));
        }
        true
    }

    /// Answers a part, and with the last one the request.
    pub(super) fn answer_part(
        &mut self,
        (index, number): (usize, u32),
        ended: &mut Ended,
        failure: Option<(u32, String)>,
        charge: usize,
        operations: &mut Operations,
    ) {
        let Some(connection) = self.slots[index].as_mut() else { return };
        let divided = connection
            .divided
            .iter_mut()
            .chain(&mut connection.dividing);
        let Some(divided) = divided.into_iter().find(|it| it.number == number) else {
            // Its rest is not wanted any more.
            return self.budget.release(&mut connection.account, 1, charge);
        };
        let (whole, in_order, failed) = (divided.request, divided.in_order, failure.is_some());
        let (end, dropped) = divided.end(failure);
        let is_write = whole.command == command::WRITE;
        if is_write && dropped > 0 {
            connection.unwanted = Some(Unwanted {
                bytes: dropped,
                of: Some(number),
                refusal: None,
            });
        }
        connection.settle_dividing();
        if end != PartEnd::More {
            connection.divided.retain(|it| it.number != number);
        }
        let (style, contexts) = (connection.style, connection.contexts);
        let output = &mut connection.output;
        match end {
            PartEnd::Failed(_, why)
                if in_order && ended.request.offset_bytes != whole.offset_bytes =>
            {
                self.budget.release(&mut connection.account, 1, charge);
                let why = format!("a READ failed in the middle of its reply: {why}");
                self.cut(index, Some(why), operations);
            }
            PartEnd::Failed(errno, why) => {
                let refusal = Refusal {
                    request: whole,
                    errno,
                    why,
                    charge,
                };
                connection.refuse_when_read(refusal, Some(number), &self.home.complaints);
            }
            PartEnd::More | PartEnd::Last if !is_write && in_order => {
                put_stretch(output, &whole, ended, style, charge);
            }
            PartEnd::More | PartEnd::Last if !is_write && !failed => {
                let (request, last) = (ended.request, end == PartEnd::Last);
                put_chunks(output, &request, &mut ended.tasks, (style, charge), last);
            }
            PartEnd::Last => {
                ended.request = whole;
                put_reply(output, ended, (style, contexts), charge);
            }
            PartEnd::More => self.budget.release(&mut connection.account, 1, charge),
        }
    }
}
