//! The data path of `file`: I/O of the kernel goes to the engine, questions are answered here.

use super::FileGeom;
use super::facts::Facts;
use super::state::ThreadEngine;
use crate::extents;
use crate::odd_end;
use rustix::fs::SeekFrom;
use std::sync::atomic::Ordering;
use ugeom_stack::{AttributeValue, Command, Cx, Errno, Extent, ExtentKind, Next, Request};

/// Holes of a file that has become shorter are given in such units: no sector is larger.
const HOLE_BYTES_MIN: u64 = 1 << 20;

/// Whether a write reaches past the last byte of the file.
fn loses_bytes(geom: &FileGeom, request: &Request<'_>) -> bool {
    odd_end::loses_bytes(request, geom.facts.size_bytes.load(Ordering::Relaxed))
}

pub(super) fn start(geom: &FileGeom, request: Request<'_>, cx: &mut Cx) -> Next {
    match request.command() {
        Command::GetAttr => attribute(&geom.facts, request),
        Command::Extents => holes(geom, request),
        Command::Write if loses_bytes(geom, &request) => {
            request.fail(Errno::NOSPC, odd_end::NO_ROOM)
        }
        Command::Read | Command::Write | Command::Delete | Command::Zero | Command::Flush => {
            if let Some(presence) = &geom.facts.presence {
                presence.sees(request.command());
            }
            match cx.local::<ThreadEngine>(geom) {
                Ok(engine) => {
                    let (bio, next) = request.park();
                    engine.submit(bio);
                    next
                }
                Err(errno) => request.fail(errno, "this thread has no I/O engine"),
            }
        }
    }
}

fn attribute(facts: &Facts, request: Request<'_>) -> Next {
    let number = match request.attribute() {
        "GEOM::candelete" => i64::from(facts.writable),
        "GEOM::fwsectors" if facts.fwsectors > 0 => facts.fwsectors as i64,
        "GEOM::fwheads" if facts.fwheads > 0 => facts.fwheads as i64,
        _ => return request.done(Err(Errno::OPNOTSUPP)),
    };
    request.answer(AttributeValue::Number(number))
}

/// Where an image has holes. A block device does not say; all of it is data then.
fn holes(geom: &FileGeom, mut request: Request<'_>) -> Next {
    if !geom.facts.shows_holes {
        return extents::all_data(request);
    }
    let mut at = request.offset();
    let end = at + request.length();
    let mut wanted = true;
    while wanted && at < end {
        let (kind, until) = match stretch(geom, at, end) {
            Ok(stretch) => stretch,
            Err(errno) => return request.fail(errno, "the file system does not report holes"),
        };
        wanted = request.add_extent(Extent {
            length_bytes: until - at,
            kind,
        });
        at = until;
    }
    request.finish()
}

/// The data or hole at `at`, and its end (`lseek(2)`: SEEK_DATA, SEEK_HOLE). Reads and writes give
/// their offsets themselves, so moving the file's own offset disturbs no reader.
fn stretch(geom: &FileGeom, at: u64, end: u64) -> Result<(ExtentKind, u64), Errno> {
    let changes = match geom.facts.data_run.end_of(at) {
        Ok(until) => return Ok((ExtentKind::Data, until.min(end))),
        Err(changes) => changes,
    };
    let file = &*geom.file;
    let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => data,
        // No data from here to the end.
        Err(Errno::NXIO) => return last_hole(geom, at, end),
        Err(Errno::INVAL) => return Ok((ExtentKind::Data, end)),
        Err(errno) => return Err(errno),
    };
    if data > at {
        return Ok((ExtentKind::Hole, data.min(end)));
    }
    let size_bytes = geom.facts.size_bytes.load(Ordering::Relaxed);
    let until = match rustix::fs::seek(file, SeekFrom::Hole(at)) {
        // The hole behind the last byte begins in the middle of a sector.
        Ok(hole) if hole == size_bytes => hole.max(end),
        Ok(hole) if hole % 512 > 0 => end,
        Ok(hole) if hole > at => hole,
        Ok(_) | Err(Errno::INVAL) => end,
        // The file became shorter meanwhile.
        Err(Errno::NXIO) => end,
        Err(errno) => return Err(errno),
    };
    geom.facts.data_run.keep(at..until, changes);
    Ok((ExtentKind::Data, until.min(end)))
}

/// The hole behind all data. A file that has become shorter has none behind its end: zeroes would
/// stand for what it has lost, and a READ says so.
fn last_hole(geom: &FileGeom, at: u64, end: u64) -> Result<(ExtentKind, u64), Errno> {
    let size_bytes = rustix::fs::fstat(&*geom.file)?.st_size as u64;
    if size_bytes >= geom.facts.size_bytes.load(Ordering::Relaxed) {
        return Ok((ExtentKind::Hole, end));
    }
    let until = size_bytes / HOLE_BYTES_MIN * HOLE_BYTES_MIN;
    Ok(match until > at {
        true => (ExtentKind::Hole, until.min(end)),
        false => (ExtentKind::Data, end),
    })
}
