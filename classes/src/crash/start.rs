//! The data path of `crash`: record and pass on, or hand over to the thread.

use super::recorder::{Recorder, entry};
use super::state::Worker;
use ugeom_stack::{Command, Errno, Flags, Next, Request};

/// A FLUSH that a server makes for a client that has gone. No program can rely on it, and it would
/// hide that a program does not sync.
fn is_of_nobody(request: &Request<'_>) -> bool {
    request.command() == Command::Flush && request.flags().contains(Flags::UNHEARD)
}

/// Writes the record, remembers its number, and forwards.
pub(super) fn record(recorder: &Recorder, mut request: Request<'_>) -> Next {
    if is_of_nobody(&request) {
        return request.forward(0);
    }
    if request.command() == Command::Flush {
        *request.scratch() = recorder.flush();
        return request.forward(0);
    }
    let (offset, length) = (request.offset(), request.length());
    if length > 0
        && let Some(entry) = entry(request.command(), offset, length, request.flags())
    {
        let written = recorder.submitted(entry, |with| request.each(|_, piece| with(piece)));
        match written {
            Ok(number) => *request.scratch() = number,
            Err(_) => {
                return request.fail(Errno::IO, "the log of the class crash cannot be written");
            }
        }
    }
    request.forward(0)
}

/// A request comes back: barriers go into the log now.
pub(super) fn recorded(recorder: &Recorder, mut request: Request<'_>) -> Next {
    if is_of_nobody(&request) {
        return request.finish();
    }
    let succeeded = request.result().is_ok();
    let number = *request.scratch();
    match request.command() {
        Command::Flush => recorder.flushed(number, succeeded),
        Command::Write | Command::Zero | Command::Delete if request.length() > 0 => {
            let durable = request.flags().contains(Flags::FUA);
            recorder.completed(number, durable && succeeded);
        }
        _ => {}
    }
    request.finish()
}

/// Hands a request over to the thread.
pub(super) fn park(worker: &Worker, request: Request<'_>) -> Next {
    let (bio, next) = request.park();
    worker.add(bio);
    next
}
