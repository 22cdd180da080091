//! The data path of `cache`: blocks in the cache are copied, others are read below, block by block.

use super::counts::Count;
use super::index::Index;
use super::pending::Pending;
use super::state::Progress;
use super::store::Outcome;
use super::waits::{SHORTER, WAITS_MAX, pause_ns};
use super::writeback;
use super::{Buffer, Cache};
use std::ops::Range;
use ugeom_stack::{Command, Cx, Errno, Next, Request};

/// The most that is read below at once for one request, bytes.
const RUN_BYTES_MAX: u64 = 256 << 10;

/// A request that is new here.
#[inline]
pub(super) fn start<I: Index>(cache: &Cache<I>, mut request: Request<'_>, cx: &mut Cx) -> Next {
    if request.command() != Command::Read {
        return match &cache.back {
            None => other(cache, request),
            Some(back) => writeback::start(cache, back, request, cx),
        };
    }
    let (offset, length) = (request.offset(), request.length());
    if cache.ends_before(offset + length) {
        return past_the_end(request);
    }
    let (block, within) = cache.place(offset);
    if within + length <= cache.block_bytes {
        let store = &cache.store;
        if request.may_lend()
            && let Some(lease) = store.lease(block, within as usize, length as usize)
        {
            return request.lend(lease);
        }
        let outcome = store.read(block, within as usize, length as usize, |slot| {
            request.fill(|at, piece| store.copyout(slot, (within + at) as usize, piece));
        });
        if outcome == Outcome::Hit {
            return request.done_in_full();
        }
    }
    go_on(cache, request, cx, 0, 0)
}

/// The media has become shorter since the request set out: buffers hold less than it asks for.
#[cold]
fn past_the_end(request: Request<'_>) -> Next {
    request.fail(Errno::IO, SHORTER)
}

/// A request that changes the media, or asks something.
#[inline(never)]
fn other<I: Index>(cache: &Cache<I>, mut request: Request<'_>) -> Next {
    let progress = match request.command() {
        Command::Write | Command::Delete | Command::Zero => {
            let (first, last) = cache.blocks_of(&request);
            let number = cache.store.writers.enter(first, last);
            cache.store.reads_are_stale(first, last);
            Progress::Writing(number)
        }
        _ => Progress::Passed,
    };
    *request.scratch() = progress.word();
    request.forward(0)
}

/// A request that comes back from below.
pub(super) fn done<I: Index>(cache: &Cache<I>, mut request: Request<'_>, cx: &mut Cx) -> Next {
    if let Some(back) = &cache.back
        && request.command() != Command::Read
    {
        return writeback::proceed(cache, back, request, cx);
    }
    match Progress::of(std::mem::take(request.scratch())) {
        Progress::Reading(number) => arrived(cache, request, cx, number),
        Progress::Writing(number) => {
            written(cache, &request, number);
            request.finish()
        }
        Progress::Passed if request.command() == Command::Flush => {
            cache.forget_what_is_lost();
            request.finish()
        }
        Progress::Passed | Progress::Waiting { .. } => request.finish(),
    }
}

/// A read whose pause is over.
pub(super) fn resume<I: Index>(cache: &Cache<I>, mut request: Request<'_>, cx: &mut Cx) -> Next {
    if let Some(back) = &cache.back
        && request.command() != Command::Read
    {
        return writeback::proceed(cache, back, request, cx);
    }
    match Progress::of(std::mem::take(request.scratch())) {
        Progress::Waiting { done_bytes, times } => go_on(cache, request, cx, done_bytes, times),
        _ => request.finish(),
    }
}

/// Does a READ from `done_bytes` on: copies cached blocks until it has to wait.
#[inline(never)]
fn go_on<I: Index>(
    cache: &Cache<I>,
    mut request: Request<'_>,
    cx: &mut Cx,
    mut done_bytes: u64,
    mut waited: u32,
) -> Next {
    let store = &cache.store;
    while done_bytes < request.length() {
        let (block, within) = cache.place(request.offset() + done_bytes);
        let wanted = (cache.block_bytes - within).min(request.length() - done_bytes);
        let outcome = store.read(block, within as usize, wanted as usize, |slot| {
            fill(
                &mut request,
                done_bytes..done_bytes + wanted,
                |at, piece| {
                    store.copyout(slot, (within + at) as usize, piece);
                },
            );
        });
        match outcome {
            Outcome::Hit => {
                done_bytes += wanted;
                waited = 0;
            }
            Outcome::Absent => match read_blocks(cache, request, cx, done_bytes, block) {
                Ok(next) => return next,
                // Another thread was faster.
                Err(given_back) => request = given_back,
            },
            Outcome::Busy if waited < WAITS_MAX => {
                store.lanes.add(Count::Waits, 1);
                *request.scratch() = Progress::Waiting {
                    done_bytes,
                    times: waited + 1,
                }
                .word();
                return request.delay(pause_ns(waited));
            }
            Outcome::Busy => {
                // Perhaps it is there, and always being written when this looks at it.
                let there = store.read_locked(block, |slot| {
                    let range = done_bytes..done_bytes + wanted;
                    fill(&mut request, range, |at, piece| {
                        store.copyout(slot, (within + at) as usize, piece);
                    });
                });
                if !there {
                    return read_past(cache, request, cx, done_bytes, wanted);
                }
                store.lanes.add(Count::Hits, 1);
                done_bytes += wanted;
                waited = 0;
            }
        }
    }
    request.done_in_full()
}

/// Reads a run of blocks that are not there into buffers, with one request below.
fn read_blocks<'a, I: Index>(
    cache: &Cache<I>,
    mut request: Request<'a>,
    cx: &mut Cx,
    done_bytes: u64,
    first: u64,
) -> Result<Next, Request<'a>> {
    let store = &cache.store;
    let end = request.offset() + request.length();
    let most = (RUN_BYTES_MAX / cache.block_bytes).max(1);
    let last = ((end - 1) / cache.block_bytes).min(first + most - 1);
    let (number, mut pending) = cache.pending.take();
    let mut full = false;
    for block in first..=last {
        match store.getnewbuf(block) {
            Buffer::New(slot) => pending.slots.push(slot),
            Buffer::Present => break,
            Buffer::Full => {
                full = true;
                break;
            }
        }
    }
    let last = first + pending.slots.len() as u64 - u64::from(!pending.slots.is_empty());
    pending.last_bytes = cache.held_bytes(last);
    let fill = match pending.slots.is_empty() {
        true => None,
        false => store
            .slab()
            .fill(&pending.slots, pending.last_bytes as usize),
    };
    let Some(memory) = fill else {
        for (block, slot) in (first..).zip(&pending.slots) {
            store.abandon(block, *slot);
        }
        cache.pending.release(number, pending);
        if !full {
            return Err(request);
        }
        let (_, within) = cache.place(request.offset() + done_bytes);
        let wanted = (cache.block_bytes - within).min(request.length() - done_bytes);
        return Ok(read_past(cache, request, cx, done_bytes, wanted));
    };
    store.lanes.add(Count::Misses, pending.slots.len() as u64);
    if let Some(ahead) = &store.ahead {
        ahead.missed(first, (end - 1) / cache.block_bytes);
    }
    pending.done_bytes = done_bytes;
    pending.first = first;
    pending.past_bytes = 0;
    cache.pending.put(number, pending);
    *request.scratch() = Progress::Reading(number).word();
    let mut below = request.fan_out(cx);
    below.read_into(0, first * cache.block_bytes, Box::new(memory));
    Ok(below.finish())
}

/// Reads a part of a request into its own memory, past the cache.
fn read_past<I: Index>(
    cache: &Cache<I>,
    mut request: Request<'_>,
    cx: &mut Cx,
    done_bytes: u64,
    wanted: u64,
) -> Next {
    cache.store.lanes.add(Count::Bypasses, 1);
    let (number, mut pending) = cache.pending.take();
    pending.done_bytes = done_bytes;
    pending.past_bytes = wanted;
    cache.pending.put(number, pending);
    *request.scratch() = Progress::Reading(number).word();
    let offset = request.offset() + done_bytes;
    let mut below = request.fan_out(cx);
    // The range is inside the request's own, and the only one in flight.
    let added = below.child(0, offset, done_bytes, wanted);
    debug_assert!(added.is_ok());
    below.finish()
}

/// The blocks of a READ have arrived in their buffers, or not.
fn arrived<I: Index>(
    cache: &Cache<I>,
    mut request: Request<'_>,
    cx: &mut Cx,
    number: usize,
) -> Next {
    let pending = cache.pending.get(number);
    let blocks = (pending.first..).zip(pending.slots.iter().copied());
    if request.result().is_err() {
        blocks.for_each(|(block, slot)| cache.store.abandon(block, slot));
        let own = own_part(cache, &request, &pending);
        let done_bytes = pending.done_bytes;
        cache.pending.release(number, pending);
        if let Some(wanted) = own {
            // An unreadable block may lie beside the range of this request.
            request.disregard();
            return read_past(cache, request, cx, done_bytes, wanted);
        }
        return request.finish();
    }
    let mut done_bytes = pending.done_bytes + pending.past_bytes;
    let last = pending.first + (pending.slots.len() as u64).saturating_sub(1);
    let mut missing = false;
    for (block, slot) in blocks {
        let (_, within) = cache.place(request.offset() + done_bytes);
        let wanted = (cache.block_bytes - within).min(request.length() - done_bytes);
        missing |= block == last && within + wanted > pending.last_bytes;
        // Before others can find it, and so before it can be taken away again.
        fill(
            &mut request,
            done_bytes..done_bytes + wanted,
            |at, piece| {
                cache.store.copyout(slot, (within + at) as usize, piece);
            },
        );
        cache.store.publish(block, slot);
        done_bytes += wanted;
    }
    cache.pending.release(number, pending);
    if missing {
        return past_the_end(request);
    }
    if done_bytes == request.length() {
        return request.done_in_full();
    }
    go_on(cache, request, cx, done_bytes, 0)
}

/// How much of the blocks that were read the request is about, from the bytes that are done on, if
/// that is not all of them.
fn own_part<I: Index>(cache: &Cache<I>, request: &Request<'_>, pending: &Pending) -> Option<u64> {
    let whole = (pending.slots.len() as u64).checked_sub(1)?;
    let start = pending.first * cache.block_bytes;
    let end = start + whole * cache.block_bytes;
    let from = request.offset() + pending.done_bytes;
    let until = (request.offset() + request.length()).min(end + cache.block_bytes);
    let all = start..end + pending.last_bytes;
    ((from..until) != all).then(|| until - from)
}

/// A change of the media has been made below, or not.
fn written<I: Index>(cache: &Cache<I>, request: &Request<'_>, number: usize) {
    let store = &cache.store;
    let (first, last) = cache.blocks_of(request);
    let is_written = request.command() == Command::Write && request.result().is_ok();
    if is_written && store.writers.keep(number) {
        let offset = request.offset();
        request.each(|at, piece| overwrite(cache, offset + at, piece));
    } else {
        // The present contents of the media are unknown here. An older write that is being copied
        // must not come after this one has ended.
        store.writers.wait_for_keepers(number);
        store.drop_range(first, last);
    }
    store.writers.leave(number);
}

/// Brings a piece that was written into the blocks that it touches.
fn overwrite<I: Index>(cache: &Cache<I>, mut offset: u64, mut piece: &[u8]) {
    while !piece.is_empty() {
        let (block, within) = cache.place(offset);
        let length = (cache.block_bytes - within).min(piece.len() as u64);
        let (now, rest) = piece.split_at(length as usize);
        let whole = within == 0 && length >= cache.held_bytes(block);
        cache.store.written(block, within as usize, now, whole);
        piece = rest;
        offset += length;
    }
}

/// Lends the part `range` of the memory of a READ, piece by piece; `at` counts from its beginning.
fn fill(request: &mut Request<'_>, range: Range<u64>, mut with: impl FnMut(u64, &mut [u8])) {
    request.fill(|at, piece| {
        let start = range.start.max(at);
        let end = range.end.min(at + piece.len() as u64);
        if start < end {
            let part = (start - at) as usize..(end - at) as usize;
            with(start - range.start, &mut piece[part]);
        }
    });
}
