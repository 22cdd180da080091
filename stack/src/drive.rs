//! The loop that moves bios: layers decide, this acts.
//!
//! Going down, each hop is checked, recorded, counted and shown to its geom. Coming back, the
//! recorded path is walked backwards: hooks, counts, then home. The loop exists once for each
//! level of statistics; which one runs is chosen when the snapshot is built, so there is no branch
//! for it here. Direct dispatch runs the whole loop on the caller's thread; queued dispatch runs
//! one hop at a time on `g_down` and `g_up` ([`crate::queue`]).

use crate::bio::request::Verdict;
use crate::bio::slot::{Body, MAX_DEPTH, Stage};
use crate::bio::{Bio, Command, Flags, Next};
use crate::cx::Cx;
use crate::error::Errno;
use crate::losses;
use crate::shift;
use crate::snapshot::{Admission, Edge, NO_RUN, Snapshot, code};
use crate::statistics::{self, Level};

/// The next step of a bio.
pub(crate) enum Step {
    /// Check the request at this edge, and start it in the geom below.
    Down(u32),
    /// Ask the geom of the last hop again.
    Resume,
    /// Walk back; `true` when the geom of the last hop has not seen this result yet.
    Up(bool),
    /// The path is walked: it has completed, or has to be joined with its parent.
    Home,
}

/// The step that a bio's stage stands for.
#[inline]
pub(crate) fn first_step(snapshot: &Snapshot, bio: &mut Bio) -> Step {
    match bio.body().stage {
        Stage::Down => Step::Down(bio.body().edge),
        Stage::Child => {
            if let Some(parent) = bio.parent_body() {
                statistics::child_started(parent);
            }
            Step::Down(edge_of_child(snapshot, bio))
        }
        Stage::Resume => Step::Resume,
        Stage::Joined => Step::Up(true),
        Stage::Up => Step::Up(false),
        Stage::Idle | Stage::Deliver | Stage::Free => Step::Home,
    }
}

/// A clone names the consumer by its number; the edge follows from where its parent is.
fn edge_of_child(snapshot: &Snapshot, bio: &mut Bio) -> u32 {
    let consumer = bio.body().edge;
    let hop = bio
        .parent_body()
        .and_then(|parent| parent.last_hop().map(|hop| hop.edge));
    let edge = hop.and_then(|index| snapshot.edges.get(index as usize));
    match edge {
        Some(edge) if consumer < u32::from(edge.below_count) => edge.below + consumer,
        _ => u32::MAX,
    }
}

/// Moves a new request on this thread until it has completed or has another owner.
///
/// Most requests end in the first geom that is asked, once layers that only move them are passed
/// ([`crate::shift`]; `RUNS` is true where there are any): that way is this function. Those that
/// are forwarded take the rest of the plain path, [`descend`]; whatever is not plain goes step by
/// step.
pub(crate) fn begin<L: Level, const RUNS: bool>(
    snapshot: &Snapshot,
    cx: &mut Cx,
    mut bio: Bio,
) -> Option<Bio> {
    let body = bio.body();
    let (index, offset, length) = (body.edge, body.offset, body.length);
    let edge = snapshot.edges.get(index as usize);
    // FLUSH and GETATTR name no range, and there are reads and writes of nothing.
    let plain = length != 0 && !(L::TIME && body.flags.contains(Flags::MARKED));
    let edge = match edge {
        Some(edge) if plain && edge.admits(body.command.side(), offset, length) => edge,
        _ => return go_on::<L>(snapshot, cx, bio, Step::Down(index)),
    };
    if RUNS && edge.run != NO_RUN {
        let first = (edge.run, offset, 0);
        // An edge names a run that there is, and the run an edge that admits whatever the first
        // one admits.
        let (index, offset) = shift::pass(snapshot, bio.body_mut(), first)?;
        let edge = snapshot.edges.get(index as usize)?;
        return ask_first::<L, true>(snapshot, cx, bio, edge, (index, offset, 1));
    }
    ask_first::<L, RUNS>(snapshot, cx, bio, edge, (index, offset, 0))
}

/// Enters the first edge whose geom is asked: which that is, the offset there, and its place in the
/// path. A hop before it has no hook, and counts in no statistics.
#[inline(always)]
fn ask_first<L: Level, const RUNS: bool>(
    snapshot: &Snapshot,
    cx: &mut Cx,
    mut bio: Bio,
    edge: &Edge,
    (index, offset, depth): (u32, u64, usize),
) -> Option<Bio> {
    record(bio.body_mut(), edge, index, offset, depth);
    let next = edge.geom.start(bio.request_at(offset), cx);
    if next.is_done() && is_whole(bio.body()) {
        // The offset has gone down beside the bio, whose own is still the caller's.
        if L::COUNTS {
            statistics::passed_one(cx, edge.stat, bio.body());
        }
        bio.body_mut().depth = 0;
        return Some(bio);
    }
    if L::COUNTS {
        // Of the hop before it, if there is one.
        cx.passed[0] = shift::NO_PLACE;
        cx.passed[depth % MAX_DEPTH] = edge.stat;
    }
    if let Some(consumer) = next.forwards_below(edge.below_count) {
        let index = edge.below + consumer;
        return descend::<L, RUNS>(snapshot, cx, bio, index, next.offset, depth + 1);
    }
    first_decided::<L>(snapshot, cx, bio, edge, (offset, depth), &next)
}

/// The first geom neither ended the request nor forwarded it plainly.
#[inline(never)]
fn first_decided<L: Level>(
    snapshot: &Snapshot,
    cx: &mut Cx,
    mut bio: Bio,
    edge: &Edge,
    (offset, depth): (u64, usize),
    next: &Next,
) -> Option<Bio> {
    statistics::entered::<L>(cx, depth + 1);
    if next.is_done() {
        bio.body_mut().offset = offset;
    }
    let (bio, step) = decided(cx, bio, next, edge.below, edge.below_count)?;
    go_on::<L>(snapshot, cx, bio, step)
}

/// Moves a bio that waited somewhere, or a clone, until it has completed or has another owner.
pub(crate) fn drive<L: Level, const RUNS: bool>(
    snapshot: &Snapshot,
    cx: &mut Cx,
    mut bio: Bio,
) -> Option<Bio> {
    let body = bio.body();
    if body.stage == Stage::Down && body.depth == 0 {
        return begin::<L, RUNS>(snapshot, cx, bio);
    }
    let step = first_step(snapshot, &mut bio);
    go_on::<L>(snapshot, cx, bio, step)
}

/// The way down from an edge on, a loop with its state in registers.
///
/// A request that comes back from here is counted once, as done. One that leaves the plain path
/// is first counted as being in flight, hop by hop, from [`Cx::passed`]: the bio itself may be
/// gone.
#[inline(never)]
fn descend<L: Level, const RUNS: bool>(
    snapshot: &Snapshot,
    cx: &mut Cx,
    mut bio: Bio,
    mut index: u32,
    mut offset: u64,
    mut depth: usize,
) -> Option<Bio> {
    let body = bio.body();
    let (side, length) = (body.command.side(), body.length);
    // Attaching refuses stacks that are deeper than a path, so the loop always ends inside.
    while depth < MAX_DEPTH {
        let edge = match snapshot.edges.get(index as usize) {
            Some(edge) if edge.admits(side, offset, length) => edge,
            _ => {
                statistics::entered::<L>(cx, depth);
                bio.body_mut().offset = offset;
                return go_on::<L>(snapshot, cx, bio, Step::Down(index));
            }
        };
        if RUNS && edge.run != NO_RUN {
            let here = (edge.run, offset, depth);
            // An edge names a run that there is.
            (index, offset) = shift::pass(snapshot, bio.body_mut(), here)?;
            if L::COUNTS {
                cx.passed[depth] = shift::NO_PLACE;
            }
            depth += 1;
            continue;
        }
        record(bio.body_mut(), edge, index, offset, depth);
        if L::COUNTS {
            cx.passed[depth] = edge.stat;
        }
        let next = edge.geom.start(bio.request_at(offset), cx);
        if let Some(consumer) = next.forwards_below(edge.below_count) {
            index = edge.below + consumer;
            offset = next.offset;
            depth += 1;
            continue;
        }
        if next.is_done() && is_whole(bio.body()) {
            return ascend::<L>(snapshot, cx, bio, depth + 1);
        }
        statistics::entered::<L>(cx, depth + 1);
        if next.is_done() {
            bio.body_mut().offset = offset;
        }
        let (bio, step) = decided(cx, bio, &next, edge.below, edge.below_count)?;
        return go_on::<L>(snapshot, cx, bio, step);
    }
    bio.set_failed(
        Errno::LOOP,
        "the path of the request is longer than a stack can be",
    );
    go_on::<L>(snapshot, cx, bio, Step::Up(true))
}

/// Writes one hop into the path.
#[inline(always)]
fn record(body: &mut Body, edge: &Edge, index: u32, offset: u64, depth: usize) {
    // Attaching refuses stacks that are deeper than a path, so this never wraps.
    let place = depth % MAX_DEPTH;
    let hop = &mut body.hops[place];
    hop.edge = index;
    hop.offset = offset;
    body.depth = place as u8 + 1;
    body.port = edge.port;
    if edge.hooked {
        body.hooks |= 1 << place;
    }
}

/// True when the geom did all that was asked.
#[inline(always)]
fn is_whole(body: &Body) -> bool {
    body.completed == body.length && body.error == 0
}

/// The way back of a request that went well.
#[inline(always)]
fn ascend<L: Level>(snapshot: &Snapshot, cx: &mut Cx, mut bio: Bio, depth: usize) -> Option<Bio> {
    let last = 1 << ((depth - 1) % MAX_DEPTH);
    let hooks = bio.body().hooks & !last;
    if hooks != 0 {
        return ascend_hooked::<L>(snapshot, cx, bio, depth, hooks);
    }
    // The offset has gone down beside the bio, whose own is still the caller's.
    if L::COUNTS {
        statistics::passed(cx, 0..depth, bio.body());
    }
    bio.body_mut().depth = 0;
    Some(bio)
}

/// The same, where layers want to see it come back: `hooks` has a bit for each of their hops.
fn ascend_hooked<L: Level>(
    snapshot: &Snapshot,
    cx: &mut Cx,
    mut bio: Bio,
    depth: usize,
    mut hooks: u32,
) -> Option<Bio> {
    let mut counted = depth;
    while hooks != 0 {
        let top = hooks.ilog2() as usize;
        hooks &= !(1 << top);
        if L::COUNTS {
            statistics::passed(cx, top + 1..counted, bio.body());
            counted = top + 1;
        }
        let body = bio.body_mut();
        let hop = &body.hops[top % MAX_DEPTH];
        let (index, offset) = (hop.edge, hop.offset);
        // While a hook looks, the path ends at its hop.
        body.hooks = hooks;
        body.depth = top as u8 + 1;
        body.offset = offset;
        let edge = snapshot.edges.get(index as usize)?;
        let next = edge.geom.done(bio.request_at(offset), cx);
        if !next.is_done() || !is_whole(bio.body()) {
            statistics::entered::<L>(cx, counted.min(top + 1));
            return hook_decided::<L>(snapshot, cx, bio, &next, edge);
        }
    }
    if L::COUNTS {
        statistics::passed(cx, 0..counted, bio.body());
    }
    let body = bio.body_mut();
    body.offset = body.hops[0].offset;
    body.depth = 0;
    Some(bio)
}

/// A hook wants something else than to let the request go on its way.
#[cold]
fn hook_decided<L: Level>(
    snapshot: &Snapshot,
    cx: &mut Cx,
    mut bio: Bio,
    next: &Next,
    edge: &Edge,
) -> Option<Bio> {
    if matches!(next.verdict(), Verdict::Forward(_)) {
        // It will see the request come back once more.
        let body = bio.body_mut();
        body.hooks |= 1 << (body.depth - 1);
    }
    let (bio, step) = decided(cx, bio, next, edge.below, edge.below_count)?;
    go_on::<L>(snapshot, cx, bio, step)
}

/// Moves a bio step by step, in all cases.
#[inline(never)]
fn go_on<L: Level>(snapshot: &Snapshot, cx: &mut Cx, mut bio: Bio, mut step: Step) -> Option<Bio> {
    loop {
        let moved = match step {
            Step::Down(edge) => enter::<L>(snapshot, cx, bio, edge),
            Step::Resume => resume(snapshot, cx, bio),
            Step::Up(unseen) => {
                if !L::COUNTS && nothing_on_the_way(&mut bio) {
                    return deliver(cx, bio);
                }
                leave::<L>(snapshot, cx, bio, unseen)
            }
            Step::Home => return deliver(cx, bio),
        };
        (bio, step) = moved?;
    }
}

#[inline(always)]
fn plain(edge: &Edge, body: &Body) -> bool {
    body.length != 0 && edge.admits(body.command.side(), body.offset, body.length)
}

/// Enters one edge: check, record, count, ask. `None` when the bio has another owner now.
#[inline(always)]
pub(crate) fn enter<L: Level>(
    snapshot: &Snapshot,
    cx: &mut Cx,
    mut bio: Bio,
    index: u32,
) -> Option<(Bio, Step)> {
    let edge = match snapshot.edges.get(index as usize) {
        Some(edge) if plain(edge, bio.body()) => edge,
        _ => match snapshot.admit(index, bio.body_mut()) {
            Admission::Enter => snapshot.edges.get(index as usize)?,
            Admission::Nothing => {
                bio.body_mut().completed = 0;
                return Some((bio, Step::Up(true)));
            }
            Admission::Refused => return Some((bio, Step::Up(true))),
        },
    };
    let body = bio.body_mut();
    let depth = usize::from(body.depth);
    record(body, edge, index, body.offset, depth);
    if L::COUNTS {
        let flags = body.flags;
        let hop = &mut body.hops[depth % MAX_DEPTH];
        statistics::started::<L>(snapshot, cx, edge, hop, flags);
    }
    let next = if bio.body().command == Command::GetAttr {
        edge.geom.attribute(bio.request(), cx)
    } else {
        edge.geom.start(bio.request(), cx)
    };
    decided(cx, bio, &next, edge.below, edge.below_count)
}

/// Acts on a geom's decision.
#[inline(always)]
fn decided(
    cx: &mut Cx,
    mut bio: Bio,
    next: &Next,
    below: u32,
    below_count: u16,
) -> Option<(Bio, Step)> {
    match next.verdict() {
        Verdict::Forward(consumer) => {
            bio.body_mut().offset = next.offset;
            let edge = if consumer < below_count {
                below + u32::from(consumer)
            } else {
                u32::MAX
            };
            Some((bio, Step::Down(edge)))
        }
        Verdict::Done => {
            if bio.body().completed != bio.body().length {
                refuse_short(&mut bio);
            }
            Some((bio, Step::Up(false)))
        }
        Verdict::Parked => {
            // The code that parked it made a handle of its own; this one is void.
            bio.into_slot();
            None
        }
        Verdict::Delayed => {
            cx.timers.push(bio);
            None
        }
    }
}

/// A completion that is short inside the media is EIO. The end of the media needs no exception:
/// a request that crosses it was cut when it entered.
#[cold]
#[inline(never)]
fn refuse_short(bio: &mut Bio) {
    let body = bio.body_mut();
    if body.error == 0 && body.command.has_range() && body.command != crate::Command::Extents {
        let edge = body.last_hop().map_or(0, |hop| hop.edge);
        body.offset += body.completed;
        body.fail(code(Errno::IO), edge, "a short completion inside the media");
    }
}

/// Asks the geom of the last hop again.
#[cold]
pub(crate) fn resume(snapshot: &Snapshot, cx: &mut Cx, mut bio: Bio) -> Option<(Bio, Step)> {
    let Some(hop) = bio.body().last_hop().copied() else {
        return Some((bio, Step::Home));
    };
    let edge = snapshot.edges.get(hop.edge as usize)?;
    let next = if bio.is_cancelled() {
        bio.request().fail(Errno::CANCELED, "cancelled")
    } else {
        edge.geom.resume(bio.request(), cx)
    };
    decided(cx, bio, &next, edge.below, edge.below_count)
}

/// True when no hop on the way back wants to see the bio and nothing is wrong with it.
#[inline(always)]
fn nothing_on_the_way(bio: &mut Bio) -> bool {
    let body = bio.body_mut();
    let unseen = body.hooks != 0 || body.command == Command::Flush;
    if unseen || body.error == code(Errno::NOMEM) {
        return false;
    }
    if body.depth != 0 {
        body.offset = body.hops[0].offset;
        body.depth = 0;
    }
    true
}

/// Walks back over one hop: hook, count, forget. `None` when the bio has another owner now.
#[inline(always)]
pub(crate) fn leave<L: Level>(
    snapshot: &Snapshot,
    cx: &mut Cx,
    mut bio: Bio,
    unseen: bool,
) -> Option<(Bio, Step)> {
    let body = bio.body_mut();
    let Some(top) = usize::from(body.depth).checked_sub(1) else {
        return Some((bio, Step::Home));
    };
    let hop = &mut body.hops[top % MAX_DEPTH];
    body.offset = hop.offset;
    let index = hop.edge;
    let edge = snapshot.edges.get(index as usize)?;
    if body.error == code(Errno::NOMEM) {
        try_again_later::<L>(snapshot, cx, bio, unseen);
        return None;
    }
    if unseen && body.hooks >> top & 1 != 0 {
        let next = edge.geom.done(bio.request(), cx);
        if next.verdict() == Verdict::Done {
            // A hook that ends the request is through with it.
            bio.body_mut().hooks &= !(1 << top);
        }
        return decided(cx, bio, &next, edge.below, edge.below_count);
    }
    if body.command == Command::Flush {
        losses::flushed(snapshot, &mut bio, index, top);
    }
    let body = bio.body_mut();
    if L::COUNTS {
        statistics::ended(cx, edge, body);
        if L::TIME {
            statistics::timed(snapshot, cx, edge, body, top);
        }
    }
    body.hooks &= !(1 << top);
    body.depth = top as u8;
    Some((bio, Step::Up(true)))
}

/// ENOMEM never reaches the consumer: the last step is undone, and taken again after a pause.
#[cold]
fn try_again_later<L: Level>(snapshot: &Snapshot, cx: &mut Cx, mut bio: Bio, unseen: bool) {
    let body = bio.body_mut();
    if unseen {
        // The edge itself refused (an errored provider may say ENOMEM): enter it again.
        body.edge = body.reason.map_or(body.edge, |reason| reason.edge);
    } else if let Some(hop) = body.last_hop().copied() {
        body.edge = hop.edge;
        body.offset = hop.offset;
        body.depth -= 1;
        body.hooks &= !(1 << body.depth);
        if L::COUNTS
            && let Some(edge) = snapshot.edges.get(hop.edge as usize)
        {
            statistics::taken_back(cx, edge);
        }
    }
    body.error = 0;
    body.completed = 0;
    body.children = 0;
    body.inbed = 0;
    body.cloned_until = 0;
    body.stage = Stage::Down;
    cx.pace(bio);
}

/// The path is walked. A clone joins its parent; anything else has completed.
#[inline]
pub(crate) fn deliver(cx: &mut Cx, bio: Bio) -> Option<Bio> {
    if bio.body().parent.is_none() {
        return Some(bio);
    }
    join(cx, bio);
    None
}

/// Adds a clone's result to its parent's (`g_std_done`); the last one sets the parent going.
#[cold]
fn join(cx: &mut Cx, mut bio: Bio) {
    let (error, completed, reason) = {
        let body = bio.body();
        (body.error, body.completed, body.reason)
    };
    if let Some(parent) = bio.parent_body() {
        if error != 0 && parent.error == 0 {
            parent.error = error;
            parent.reason = reason;
        }
        parent.completed += completed;
        statistics::child_ended(parent);
    }
    let parent = bio.release_parent();
    // Memory that a geom gave to a request of its own goes back before the geom looks.
    let body = bio.body_mut();
    body.payload = crate::bio::Payload::None;
    body.asked = 0;
    cx.pool.put(bio);
    if let Some(mut parent) = parent {
        let body = parent.body_mut();
        body.stage = Stage::Joined;
        body.children = 0;
        body.inbed = 0;
        body.cloned_until = 0;
        let towards = parent.body().home.upward();
        if std::sync::Arc::ptr_eq(towards, &cx.home) {
            cx.ready.push(parent);
        } else {
            let towards = std::sync::Arc::clone(towards);
            parent.post_to(&towards);
        }
    }
}
