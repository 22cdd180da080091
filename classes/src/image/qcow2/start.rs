//! The data path: requests in plain clusters go to the thread's engine, the rest to a worker.

use super::Qcow2Geom;
use super::bounds;
use super::guard;
use super::state::ThreadEngine;
use imago::Mapping;
use std::io;
use ugeom_stack::{AttributeValue, Command, Cx, Errno, Extent, ExtentKind, Flags, Next, Request};

/// Where a request's bytes are.
enum DataLocation {
    /// In one piece in a file of the chain: its number, and the offset in it.
    File(usize, u64),
    Zeroes,
    /// Past the end of a file of the chain.
    Lost,
    /// Where the image keeps a structure: nothing is written there.
    Structure,
    /// In several pieces, compressed, or nowhere yet.
    Elsewhere,
}

pub(super) fn start(geom: &Qcow2Geom, mut request: Request<'_>, cx: &mut Cx) -> Next {
    if let Some(presence) = &geom.presence {
        presence.sees(request.command());
    }
    match request.command() {
        Command::GetAttr if request.attribute() == "GEOM::candelete" => {
            return request.answer(AttributeValue::Number(geom.writable.into()));
        }
        Command::GetAttr => return request.done(Err(Errno::OPNOTSUPP)),
        Command::Extents => return extents(geom, request),
        Command::Read | Command::Write => {}
        Command::Delete | Command::Zero | Command::Flush => return by_worker(geom, request),
    }
    let (offset, length) = (request.offset(), request.length());
    let writes = request.command() == Command::Write;
    match place(geom, offset, length, writes) {
        // Making a write durable may include writing the map.
        Ok(DataLocation::File(..)) if request.flags().contains(Flags::FUA) => {
            by_worker(geom, request)
        }
        Ok(DataLocation::File(file, at)) => match cx.local::<ThreadEngine>(geom) {
            Ok(engine) => {
                let (bio, next) = request.park();
                engine.submit(bio, file, at);
                next
            }
            Err(errno) => request.fail(errno, "this thread has no I/O engine"),
        },
        Ok(DataLocation::Zeroes) if !writes => {
            request.fill(|_, piece| piece.fill(0));
            request.done_in_full()
        }
        Ok(DataLocation::Structure) => request.fail(Errno::IO, guard::OVER_A_STRUCTURE),
        Ok(DataLocation::Lost) => request.fail(Errno::IO, bounds::PAST_THE_END),
        Ok(_) => by_worker(geom, request),
        Err(_) => request.fail(Errno::IO, "the image's map cannot be read"),
    }
}

fn by_worker(geom: &Qcow2Geom, request: Request<'_>) -> Next {
    let (bio, next) = request.park();
    geom.pool.submit(bio);
    next
}

fn place(geom: &Qcow2Geom, offset: u64, length: u64, writes: bool) -> io::Result<DataLocation> {
    let (mapping, mapped) = geom.image.get_mapping(offset, length)?;
    if mapped < length {
        return Ok(DataLocation::Elsewhere);
    }
    Ok(match mapping {
        Mapping::Raw {
            storage,
            offset,
            writable,
            ..
        } if writable || !writes => {
            let address = std::ptr::from_ref(storage) as usize;
            let Some(number) = geom.files.iter().position(|it| it.address == address) else {
                return Ok(DataLocation::Elsewhere);
            };
            let guard = geom.guard.as_ref().as_ref().filter(|_| writes);
            if guard.is_some_and(|guard| !guard.allows(offset, length)) {
                return Ok(DataLocation::Structure);
            }
            let is_there = writes
                || geom.files[number]
                    .bounds
                    .as_ref()
                    .is_none_or(|bounds| bounds.reach(offset + length));
            if is_there {
                DataLocation::File(number, offset)
            } else {
                DataLocation::Lost
            }
        }
        Mapping::Zero { .. } => DataLocation::Zeroes,
        _ => DataLocation::Elsewhere,
    })
}

/// The allocated clusters, in all images of the chain.
fn extents(geom: &Qcow2Geom, mut request: Request<'_>) -> Next {
    let mut at = request.offset();
    let end = at + request.length();
    let mut pending: Option<Extent> = None;
    while at < end {
        let (kind, length_bytes) = match geom.image.get_mapping(at, end - at) {
            Ok((Mapping::Zero { .. }, length)) if length > 0 => (ExtentKind::Hole, length),
            Ok((Mapping::Eof { .. }, _)) => (ExtentKind::Hole, end - at),
            Ok((_, length)) if length > 0 => (ExtentKind::Data, length),
            Ok(_) => (ExtentKind::Data, end - at),
            Err(_) => return request.fail(Errno::IO, "the image's map cannot be read"),
        };
        let length_bytes = length_bytes.min(end - at);
        at += length_bytes;
        match &mut pending {
            Some(last) if last.kind == kind => last.length_bytes += length_bytes,
            _ => {
                let before = pending.replace(Extent { length_bytes, kind });
                if before.is_some_and(|extent| !request.add_extent(extent)) {
                    return request.finish();
                }
            }
        }
    }
    if let Some(extent) = pending {
        request.add_extent(extent);
    }
    request.finish()
}
