//! Geoms with I/O of their own: when they are told to settle, the I/O that they may do then, and
//! the end of their way down with them.

mod common;

use common::{Memory, Mirror, plan, stack, user};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use ugeom_stack::{
    AccessChange, Command, Cx, Delta, Errno, Geom, IoError, Lower, Next, ProviderId, Request,
    Stack, StackError, StackKnobs,
};

const SIZE: u64 = 64 * 512;

/// Keeps writes, and brings them down when it is told to settle.
#[derive(Default)]
struct Keeper {
    lower: OnceLock<Lower>,
    kept: Mutex<Vec<(u64, Vec<u8>)>>,
    settled: AtomicUsize,
}

impl Geom for Keeper {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        if request.command() != Command::Write {
            return request.forward(0);
        }
        let mut bytes = Vec::new();
        request.each(|_, piece| bytes.extend_from_slice(piece));
        let mut kept = self.kept.lock().expect("kept");
        kept.push((request.offset(), bytes));
        request.done_in_full()
    }

    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        Ok(change.exclusive_while_open())
    }

    fn does_own_io(&self) -> bool {
        true
    }

    fn attached(&self, lower: Lower) {
        assert!(self.lower.set(lower).is_ok(), "attached once");
    }

    fn settle(&self) -> Result<(), IoError> {
        self.settled.fetch_add(1, Ordering::Relaxed);
        let lower = self.lower.get().expect("attached");
        let mut channel = lower.channel(1).expect("a channel");
        let consumer = lower.consumer(0).expect("a consumer");
        let mut kept = self.kept.lock().expect("kept");
        for (offset, bytes) in kept.iter() {
            channel.write(&consumer, *offset, bytes)?;
        }
        kept.clear();
        Ok(())
    }
}

/// Refuses writes while it is told to.
#[derive(Default)]
struct Refuser(AtomicBool);

impl Geom for Refuser {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        if request.command() == Command::Write && self.0.load(Ordering::Relaxed) {
            return request.fail(Errno::IO, "told to refuse");
        }
        request.forward(0)
    }
}

struct Kept {
    stack: Stack,
    memory: Arc<Memory>,
    refuser: Arc<Refuser>,
    keeper: Arc<Keeper>,
    below: ProviderId,
    top: ProviderId,
}

fn kept(options: StackKnobs) -> Kept {
    let stack = stack(options);
    let (memory, keeper) = (Memory::new(SIZE as usize), Arc::new(Keeper::default()));
    let refuser = Arc::new(Refuser::default());
    let create = |class, plan, lower: &[ProviderId]| {
        stack.create(class, plan, lower).expect("a provider")[0]
    };
    let bottom = create("MEM", plan("mem", SIZE, memory.clone()), &[]);
    let below = create("REFUSE", plan("ref", SIZE, refuser.clone()), &[bottom]);
    let top = create("KEEP", plan("keep", SIZE, keeper.clone()), &[below]);
    Kept {
        stack,
        memory,
        refuser,
        keeper,
        below,
        top,
    }
}

impl Kept {
    fn first_byte(&self) -> u8 {
        self.memory.0.lock().expect("memory")[0]
    }

    fn settled(&self) -> usize {
        self.keeper.settled.load(Ordering::Relaxed)
    }
}

#[test]
fn the_last_writer_alone_makes_a_geom_settle_and_before_its_consumers_close() {
    for options in common::all_options() {
        let it = kept(options);
        let open = |delta| it.stack.open(it.top, delta).expect("opens");
        let (reader, first, last) = (
            open(Delta::READ),
            open(Delta::READ_WRITE),
            open(Delta::READ_WRITE),
        );
        let mut channel = it.stack.channel(1).expect("a channel");
        channel.write(&first, 0, &[7; 512]).expect("writes");
        drop(first);
        assert_eq!(
            (it.settled(), it.first_byte()),
            (0, 0),
            "another writer is there"
        );
        last.close().expect("nothing fails");
        assert_eq!((it.settled(), it.first_byte()), (1, 7));
        drop(reader);
        assert_eq!(it.settled(), 1, "a reader leaves nothing behind");
    }
}

#[test]
fn several_ways_down_make_no_difference() {
    let it = kept(StackKnobs::default());
    let slice = |name| {
        let plan = plan(name, SIZE / 2, Arc::new(Shares));
        it.stack.create("SHARE", plan, &[it.top]).expect("a slice")[0]
    };
    let halves = [slice("a"), slice("b")];
    let mirror = plan("mirror", SIZE / 2, Arc::new(Mirror));
    let mirror = it.stack.create("MIRROR", mirror, &halves).expect("it")[0];
    let (opened, mut channel) = user(&it.stack, mirror, Delta::READ_WRITE, 4);
    channel.write(&opened, 0, &[5; 512]).expect("writes");
    drop(opened);
    assert_eq!((it.settled(), it.first_byte()), (1, 5));
}

/// Passes everything on and opens nothing exclusively, so that two of it share a provider.
struct Shares;

impl Geom for Shares {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        request.forward(0)
    }
}

#[test]
fn closing_says_what_could_not_be_written_and_closes_all_the_same() {
    let it = kept(StackKnobs::default());
    let (opened, mut channel) = user(&it.stack, it.top, Delta::READ_WRITE, 1);
    channel.write(&opened, 512, &[7; 512]).expect("kept");
    it.refuser.0.store(true, Ordering::Relaxed);
    let error = opened.close().expect_err("refused");
    assert_eq!((error.errno, error.offset_bytes), (Errno::IO, 512));
    assert_eq!(
        (&*error.provider, &*error.reason),
        ("ref", "told to refuse")
    );
    let tree = it.stack.tree();
    let counts = tree.provider("ref").expect("it is there").mode;
    assert_eq!((counts.read, counts.write, counts.exclusive), (0, 0, 0));
    it.refuser.0.store(false, Ordering::Relaxed);
    let again = it.stack.open(it.top, Delta::READ_WRITE).expect("opens");
    again.close().expect("it has kept it until now");
    assert_eq!(it.memory.0.lock().expect("memory")[512], 7);
}

#[test]
fn a_geom_settles_before_it_is_taken_away() {
    let it = kept(StackKnobs::default());
    let (opened, mut channel) = user(&it.stack, it.top, Delta::READ_WRITE, 1);
    channel.write(&opened, 0, &[7; 512]).expect("kept");
    let geom = |stack: &Stack| {
        let tree = stack.tree();
        tree.geoms
            .iter()
            .find(|geom| geom.class == "KEEP")
            .map(|geom| geom.id)
    };
    let keep = geom(&it.stack).expect("it is there");
    assert!(matches!(it.stack.destroy(keep), Err(StackError::Busy(..))));
    it.stack.destroy_forced(keep).expect("goes");
    assert_eq!(it.first_byte(), 7);
    drop(opened);
    assert!(geom(&it.stack).is_none());
}

#[test]
fn a_geom_that_is_gone_reaches_nobody() {
    let it = kept(StackKnobs::default());
    let lower = it.keeper.lower.get().expect("attached");
    let mut channel = lower.channel(1).expect("a channel");
    let consumer = lower.consumer(0).expect("a consumer");
    let refused = channel
        .write(&consumer, 0, &[1; 512])
        .expect_err("not open");
    assert_eq!(refused.errno, Errno::PERM);
    let tree = it.stack.tree();
    let keep = tree.geoms.iter().find(|geom| geom.class == "KEEP");
    it.stack
        .destroy(keep.expect("it is there").id)
        .expect("goes");
    // Handles that come later must not stand where the geom's consumer was.
    let others: Vec<_> = (0..4)
        .map(|_| it.stack.open(it.below, Delta::READ_WRITE).expect("opens"))
        .collect();
    let refused = channel.write(&consumer, 0, &[1; 512]).expect_err("gone");
    assert_eq!(refused.errno, Errno::NXIO);
    assert_eq!(it.first_byte(), 0);
    drop(others);
    drop((consumer, channel));
    let keeper = Arc::clone(&it.keeper);
    drop(it);
    let lower = keeper.lower.get().expect("attached");
    assert!(matches!(lower.channel(1), Err(StackError::System { .. })));
}
