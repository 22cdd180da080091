//! The data path of `nbd`: operations of the server go to a link, questions are answered here.

use super::state::ThreadLink;
use super::{NbdGeom, Ways};
use crate::odd_end;
use ugeom_format::wire::nbd::export_flag;
use ugeom_stack::{AttributeValue, Command, Cx, Errno, Extent, ExtentKind, Next, Request};

pub(super) fn start(geom: &NbdGeom, mut request: Request<'_>, cx: &mut Cx) -> Next {
    let remote = &geom.remote;
    if let Some(presence) = &geom.presence {
        presence.sees(request.command());
    }
    match request.command() {
        Command::GetAttr if request.attribute() == "GEOM::candelete" => {
            let deletes = geom.writable && remote.has(export_flag::SEND_TRIM);
            return request.answer(AttributeValue::Number(deletes.into()));
        }
        Command::GetAttr => return request.done(Err(Errno::OPNOTSUPP)),
        Command::Delete if !remote.has(export_flag::SEND_TRIM) => {
            return request.fail(Errno::OPNOTSUPP, "the server has no TRIM");
        }
        Command::Zero if !remote.has(export_flag::SEND_WRITE_ZEROES) => {
            return request.fail(Errno::OPNOTSUPP, "the server has no WRITE_ZEROES");
        }
        // Without FLUSH a server promises that nothing waits to be made durable, or nothing at all.
        Command::Flush if !remote.has(export_flag::SEND_FLUSH) => return request.done_in_full(),
        Command::Extents if remote.facts.allocation.is_none() => {
            let length_bytes = request.length();
            let kind = ExtentKind::Data;
            request.add_extent(Extent { length_bytes, kind });
            return request.finish();
        }
        Command::Write if odd_end::loses_bytes(&request, remote.facts.size_bytes) => {
            return request.fail(Errno::NOSPC, odd_end::NO_ROOM);
        }
        _ => {}
    }
    if let Ways::One(service) = &geom.ways {
        let (bio, next) = request.park();
        service.submit(bio);
        return next;
    }
    match cx.local::<ThreadLink>(geom) {
        Ok(link) => {
            let (bio, next) = request.park();
            link.submit(bio);
            next
        }
        Err(errno) => request.fail(errno, "this thread has no connection to the server"),
    }
}
