//! Reading into buffers of a cache out of which others copy meanwhile: no layer gets a reference to
//! them, and copies that come too late are worthless and nothing worse. Miri and ThreadSanitizer
//! see the race if there is one.

mod common;

use common::{Memory, plan, stack};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use ugeom_machine::slab::Slab;
use ugeom_stack::{Channel, Command, Cx, Delta, Geom, Next, Opened, Request, StackKnobs};

const BLOCK: usize = 12 << 10;

/// Memory, which notes where the pieces lie that it is to fill.
struct Noted {
    memory: Arc<Memory>,
    pieces: Mutex<Vec<Range<usize>>>,
}

impl Geom for Noted {
    fn start(&self, mut request: Request<'_>, cx: &mut Cx) -> Next {
        if request.command() == Command::Read {
            request.fill(|_, piece| {
                let start = piece.as_ptr().addr();
                let mut pieces = self.pieces.lock().expect("pieces");
                pieces.push(start..start + piece.len());
            });
        }
        self.memory.start(request, cx)
    }
}

/// Divides each READ into two, which are clones, and the first of them into two again.
struct Halves;

impl Geom for Halves {
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        let (offset, length) = (request.offset(), request.length());
        let half = length / 2;
        let mut clones = request.fan_out(cx);
        clones.child(0, offset, 0, half).expect("a clone");
        clones
            .child(0, offset + half, half, length - half)
            .expect("a clone");
        clones.finish()
    }

    fn widest_fan_out(&self) -> usize {
        2
    }
}

struct Rig {
    bottom: Arc<Noted>,
    opened: Opened,
    channel: Channel,
}

fn rig(halves: usize) -> Rig {
    let stack = stack(StackKnobs::default());
    let memory = Memory::new(BLOCK);
    for (at, byte) in memory.0.lock().expect("memory").iter_mut().enumerate() {
        *byte = (at % 251) as u8;
    }
    let bottom = Arc::new(Noted {
        memory,
        pieces: Mutex::default(),
    });
    let geom = Arc::clone(&bottom) as Arc<dyn Geom>;
    let mut top = stack
        .create("DISK", plan("disk", BLOCK as u64, geom), &[])
        .expect("a disk")[0];
    for number in 0..halves {
        let name = format!("halves{number}");
        let plan = plan(&name, BLOCK as u64, Arc::new(Halves));
        top = stack.create("HALVES", plan, &[top]).expect("a layer")[0];
    }
    Rig {
        bottom,
        opened: stack.open(top, Delta::READ).expect("opens"),
        channel: stack.channel(4).expect("a channel"),
    }
}

impl Rig {
    fn read_into(&mut self, slab: &Arc<Slab>) {
        let fill = slab.fill(&[0], BLOCK).expect("a block without leases");
        let draft = self.channel.bio().expect("a bio");
        let draft = draft.transfer(false, 0, Box::new(fill));
        self.channel.submit(&self.opened, draft);
        while self.channel.poll() == 0 {
            self.channel.wait(None);
        }
        let finished = self.channel.finished().expect("it is done");
        assert_eq!(finished.result(), Ok(BLOCK as u64));
        self.channel.recycle(finished);
    }
}

#[test]
fn no_layer_gets_a_reference_to_what_others_may_copy() {
    for halves in [0, 1, 2] {
        let mut rig = rig(halves);
        let slab = Slab::new(1, BLOCK).expect("memory");
        rig.read_into(&slab);
        let lease = slab
            .lease(0, 0, BLOCK)
            .expect("a block that is not being filled");
        let whole = rig.bottom.memory.0.lock().expect("memory");
        assert!(lease.bytes() == &whole[..], "{halves}");
        let start = lease.bytes().as_ptr().addr();
        let pieces = rig.bottom.pieces.lock().expect("pieces");
        let inside = |piece: &Range<usize>| piece.start < start + BLOCK && start < piece.end;
        assert!(!pieces.is_empty());
        assert!(!pieces.iter().any(inside), "{halves}");
    }
}

#[test]
fn memory_of_its_own_is_filled_in_place() {
    let mut rig = rig(1);
    let buffer = ugeom_machine::buffer::Buffer::new(BLOCK);
    let start = buffer.as_ptr().addr();
    let draft = rig.channel.bio().expect("a bio").read(0, buffer);
    rig.channel.submit(&rig.opened, draft);
    let finished = rig.channel.finished().expect("it is done");
    rig.channel.recycle(finished);
    let pieces = rig.bottom.pieces.lock().expect("pieces");
    let half = BLOCK / 2;
    let halves = [start..start + half, start + half..start + BLOCK];
    assert_eq!(pieces[..], halves);
}

#[test]
fn copies_that_come_too_late_are_worthless_and_nothing_worse() {
    let mut rig = rig(1);
    let slab = Slab::new(1, BLOCK).expect("memory");
    let (ends, begins) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 64];
            begins.wait();
            while !ends.load(Ordering::Relaxed) {
                slab.copy_out(0, BLOCK / 2 - 32, &mut bytes);
                let old_or_new = |(at, byte): (usize, &u8)| {
                    *byte == 0 || *byte == ((BLOCK / 2 - 32 + at) % 251) as u8
                };
                assert!(bytes.iter().enumerate().all(old_or_new));
            }
        });
        begins.wait();
        for _ in 0..if cfg!(miri) { 2 } else { 1000 } {
            rig.read_into(&slab);
        }
        ends.store(true, Ordering::Relaxed);
    });
}
