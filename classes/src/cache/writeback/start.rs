//! The data path of a cache that writes back, for everything but reads.

use super::WriteBack;
use super::blocks::Put;
use super::state::Progress;
use crate::cache::Buffer as Taken;
use crate::cache::Cache;
use crate::cache::counts::Count;
use crate::cache::index::Index;
use crate::cache::waits::{SHORTER, WAITS_MAX, pause_ns};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Command, Cx, Errno, Flags, Next, Request};

/// How often a request waits for another's change of its blocks below; with the pauses it is
/// some ten seconds. It ends then, and not never, as the other one's thread may not collect it.
const CHANGES_MAX: u32 = 10_000;

/// A request that is new here.
pub(in crate::cache) fn start<I: Index>(
    cache: &Cache<I>,
    back: &WriteBack,
    mut request: Request<'_>,
    cx: &mut Cx,
) -> Next {
    let alone = request.flags().contains(Flags::FUA);
    let ordered = request.flags().contains(Flags::ORDERED);
    match request.command() {
        Command::Write if !alone && !ordered => put(cache, back, request, cx, 0, 0),
        // Extents below would miss what is not there yet.
        Command::Flush | Command::Extents => drain(cache, back, request, cx),
        Command::Write | Command::Delete | Command::Zero if ordered => {
            drain(cache, back, request, cx)
        }
        Command::Write | Command::Delete | Command::Zero => enter(cache, request, cx, 0),
        Command::Read | Command::GetAttr => {
            *request.scratch() = Progress::Passed.word();
            request.forward(0)
        }
    }
}

/// A request that comes back from below, or whose wait is over.
pub(in crate::cache) fn proceed<I: Index>(
    cache: &Cache<I>,
    back: &WriteBack,
    mut request: Request<'_>,
    cx: &mut Cx,
) -> Next {
    match Progress::of(std::mem::take(request.scratch())) {
        Progress::Filling { done_bytes } => filled(cache, back, request, cx, done_bytes),
        Progress::Edges { number } => edges_written(cache, request, number),
        Progress::Changing { number } | Progress::Agreeing { number } => {
            agree(cache, request, number)
        }
        Progress::Putting { done_bytes, times } => put(cache, back, request, cx, done_bytes, times),
        Progress::Draining => drained(cache, request, cx),
        Progress::Entering { times } => enter(cache, request, cx, times),
        Progress::Flushing { round } => {
            back.flushed(cache, round, nothing_failed(request.result()));
            request.finish()
        }
        Progress::Passed => request.finish(),
    }
}

/// True for the result of a FLUSH that leaves nothing to be made durable below. A layer without
/// FLUSH has nothing to flush.
pub(super) fn nothing_failed<T>(result: Result<T, Errno>) -> bool {
    !result.is_err_and(|errno| errno != Errno::OPNOTSUPP)
}

/// Writes into blocks from `done_bytes` on, until it has to wait for something.
fn put<I: Index>(
    cache: &Cache<I>,
    back: &WriteBack,
    mut request: Request<'_>,
    cx: &mut Cx,
    mut done_bytes: u64,
    times: u32,
) -> Next {
    loop {
        let before = cache.store.dirty.buffers();
        let from = done_bytes;
        let stopped = put_pieces(cache, &request, &mut done_bytes);
        if done_bytes > from {
            back.blocked.written(before);
        }
        // It waits for another block now.
        let times = if done_bytes > from { 0 } else { times };
        let delay = |mut request: Request<'_>| {
            *request.scratch() = Progress::Putting {
                done_bytes,
                times: times + 1,
            }
            .word();
            request.delay(pause_ns(times))
        };
        return match stopped {
            None => {
                cache.store.lanes.add(Count::Writes, 1);
                request.done_in_full()
            }
            Some(Put::Absent) => match fill(cache, request, cx, done_bytes) {
                Ok(next) => next,
                Err((given_back, Taken::Present)) => {
                    request = given_back;
                    continue;
                }
                Err((request, _)) if times < WAITS_MAX => {
                    back.blocked.call();
                    delay(request)
                }
                Err((request, _)) => enter(cache, request, cx, 0),
            },
            Some(Put::Changing) if times < CHANGES_MAX => delay(request),
            Some(Put::Changing) => in_the_way(request),
            Some(Put::Busy | Put::NoBuffer) if times < WAITS_MAX => {
                if stopped == Some(Put::NoBuffer) {
                    back.blocked.call();
                }
                delay(request)
            }
            Some(Put::Full) if !back.blocked.is_stuck() => {
                wait_for_room(cache, back, request, done_bytes)
            }
            Some(Put::PastEnd) => request.fail(Errno::IO, SHORTER),
            // It cannot be kept here, so it goes below itself.
            Some(Put::Busy | Put::NoBuffer | Put::Full | Put::Done) => enter(cache, request, cx, 0),
        };
    }
}

/// Puts as much as possible now; returns the reason to stop.
fn put_pieces<I: Index>(
    cache: &Cache<I>,
    request: &Request<'_>,
    done_bytes: &mut u64,
) -> Option<Put> {
    let offset = request.offset();
    let mut stopped = None;
    request.each(|at, piece| {
        let skip = done_bytes.saturating_sub(at).min(piece.len() as u64);
        let mut piece = &piece[skip as usize..];
        while stopped.is_none() && !piece.is_empty() {
            let (block, within) = cache.place(offset + *done_bytes);
            let length = (cache.block_bytes - within).min(piece.len() as u64) as usize;
            let held = || cache.held_bytes(block);
            match cache
                .store
                .put(block, within as usize, &piece[..length], held)
            {
                Put::Done => {
                    *done_bytes += length as u64;
                    piece = &piece[length..];
                }
                other => stopped = Some(other),
            }
        }
    });
    stopped
}

/// Waits until fewer buffers are dirty.
fn wait_for_room<I: Index>(
    cache: &Cache<I>,
    back: &WriteBack,
    mut request: Request<'_>,
    done_bytes: u64,
) -> Next {
    cache.store.lanes.add(Count::Waits, 1);
    *request.scratch() = Progress::Putting {
        done_bytes,
        times: 0,
    }
    .word();
    let (bio, next) = request.park();
    if let Some(bio) = back.blocked.wait_for_room(bio) {
        bio.resume();
    }
    next
}

/// Reads the block below of which a WRITE changes a part only.
fn fill<'a, I: Index>(
    cache: &Cache<I>,
    mut request: Request<'a>,
    cx: &mut Cx,
    done_bytes: u64,
) -> Result<Next, (Request<'a>, Taken)> {
    let (block, _) = cache.place(request.offset() + done_bytes);
    let slot = match cache.store.getnewbuf(block) {
        Taken::New(slot) => slot,
        other => return Err((request, other)),
    };
    let held = cache.held_bytes(block) as usize;
    let Some(memory) = cache.store.slab().fill(&[slot], held) else {
        cache.store.abandon(block, slot);
        return Err((request, Taken::Full));
    };
    cache.store.lanes.add(Count::Fills, 1);
    *request.scratch() = Progress::Filling { done_bytes }.word();
    let mut below = request.fan_out(cx);
    below.read_into(0, block * cache.block_bytes, Box::new(memory));
    Ok(below.finish())
}

/// The block has been read, or could not be: the WRITE needs nothing of the rest of it, and goes
/// below.
fn filled<I: Index>(
    cache: &Cache<I>,
    back: &WriteBack,
    mut request: Request<'_>,
    cx: &mut Cx,
    done_bytes: u64,
) -> Next {
    let (block, _) = cache.place(request.offset() + done_bytes);
    let slot = cache.store.buffer_of_read(block);
    let failed = request.result().is_err();
    request.disregard();
    match slot {
        Some(slot) if failed => {
            cache.store.abandon(block, slot);
            enter(cache, request, cx, 0)
        }
        Some(slot) => {
            cache.store.publish(block, slot);
            put(cache, back, request, cx, done_bytes, 0)
        }
        None => enter(cache, request, cx, 0),
    }
}

/// Waits until everything that is dirty now is below.
fn drain<I: Index>(
    cache: &Cache<I>,
    back: &WriteBack,
    mut request: Request<'_>,
    cx: &mut Cx,
) -> Next {
    if cache.store.dirty.buffers() == 0 {
        return drained(cache, request, cx);
    }
    *request.scratch() = Progress::Draining.word();
    let (bio, next) = request.park();
    back.blocked.drain(bio);
    next
}

fn drained<I: Index>(cache: &Cache<I>, mut request: Request<'_>, cx: &mut Cx) -> Next {
    match request.command() {
        Command::Write | Command::Delete | Command::Zero => enter(cache, request, cx, 0),
        Command::Flush => {
            let round = cache.store.dirty.unflushed.begin_flush();
            *request.scratch() = Progress::Flushing { round }.word();
            request.forward(0)
        }
        _ => {
            *request.scratch() = Progress::Passed.word();
            request.forward(0)
        }
    }
}

/// Takes its blocks for itself and goes below.
fn enter<I: Index>(cache: &Cache<I>, mut request: Request<'_>, cx: &mut Cx, times: u32) -> Next {
    let (first, last) = cache.blocks_of(&request);
    let Some(number) = cache.store.writers.try_enter(first, last, false) else {
        if times >= CHANGES_MAX {
            return in_the_way(request);
        }
        *request.scratch() = Progress::Entering { times: times + 1 }.word();
        return request.delay(pause_ns(times));
    };
    cache.store.reads_are_stale(first, last);
    if request.command() == Command::Write {
        return go_below(request, number);
    }
    let edges = edges(cache, &request).map(|block| block.and_then(|block| edge(cache, block)));
    if edges.iter().all(Option::is_none) {
        return go_below(request, number);
    }
    *request.scratch() = Progress::Edges { number }.word();
    let mut below = request.fan_out(cx);
    for (offset, buffer) in edges.into_iter().flatten() {
        below.write_from(0, offset, Box::new(buffer));
    }
    below.finish()
}

fn in_the_way(request: Request<'_>) -> Next {
    request.fail(
        Errno::BUSY,
        "another change of the same blocks is in flight, and its thread does not poll for it",
    )
}

fn go_below(mut request: Request<'_>, number: usize) -> Next {
    *request.scratch() = Progress::Changing { number }.word();
    request.forward(0)
}

/// The blocks of which a DELETE or ZERO takes a part only.
fn edges<I: Index>(cache: &Cache<I>, request: &Request<'_>) -> [Option<u64>; 2] {
    let (first, last) = cache.blocks_of(request);
    let (start, end) = (request.offset(), request.offset() + request.length());
    let partial = |block: u64| {
        let from = block << cache.shift;
        start > from || end < from + cache.held_bytes(block)
    };
    let other = (last != first && partial(last)).then_some(last);
    [partial(first).then_some(first), other]
}

/// The dirty range of a block, gaps included, as one write.
fn edge<I: Index>(cache: &Cache<I>, block: u64) -> Option<(u64, Buffer)> {
    let (store, held) = (&cache.store, cache.held_bytes(block) as usize);
    let mut taken = None;
    store.begin_cleaning(block, |slot, parts| {
        let mut stretches = store.dirty.stretches(parts, held);
        let (start, length) = stretches.next().unwrap_or_default();
        let end = stretches
            .last()
            .map_or(start + length, |(at, length)| at + length);
        let mut buffer = Buffer::new(end - start);
        store.copyout(slot, start, &mut buffer);
        taken = Some(((block << cache.shift) + start as u64, buffer));
    });
    taken
}

/// The write of the dirty parts beside the range has ended, with or without an error.
fn edges_written<I: Index>(cache: &Cache<I>, mut request: Request<'_>, number: usize) -> Next {
    let failed = request.result().is_err();
    // Not those of `edges`: the media may have become shorter since, and what is being cleaned has
    // to end all the same.
    let (first, last) = cache.blocks_of(&request);
    for block in [first, last] {
        let held = cache.held_bytes(block) as usize;
        let all = cache.store.dirty.touched(0, held);
        cache
            .store
            .end_cleaning(block, if failed { all } else { 0 });
    }
    if failed {
        cache.store.writers.leave(number);
        return request.finish();
    }
    request.disregard();
    go_below(request, number)
}

/// The media has been changed, or not: the blocks are made to agree with it.
fn agree<I: Index>(cache: &Cache<I>, mut request: Request<'_>, number: usize) -> Next {
    let store = &cache.store;
    let (first, last) = cache.blocks_of(&request);
    let offset = request.offset();
    let durable = request.flags().contains(Flags::FUA);
    if request.result().is_err() {
        let end = offset + request.length();
        store.each_cached(first, last, |block| {
            let start = block << cache.shift;
            let from = offset.max(start);
            let until = end.min(start + cache.block_bytes);
            store.is_uncertain(block, (from - start) as usize, (until - from) as usize);
        });
    } else if request.command() == Command::Write {
        let mut agrees = true;
        request.each(|at, mut piece| {
            let mut at = offset + at;
            while !piece.is_empty() {
                let (block, within) = cache.place(at);
                let length = (cache.block_bytes - within).min(piece.len() as u64);
                let (now, rest) = piece.split_at(length as usize);
                let held = cache.held_bytes(block) as usize;
                let what = (within as usize, now);
                agrees &= store.wrote_below(block, what, held, durable);
                piece = rest;
                at += length;
            }
        });
        if !agrees {
            *request.scratch() = Progress::Agreeing { number }.word();
            return request.delay(pause_ns(10));
        }
    } else {
        store.forget_range(first, last);
        if !durable {
            store.dirty.unflushed.leaves(offset, request.length());
        }
    }
    store.writers.leave(number);
    request.finish()
}
