//! Reports of lost acknowledged writes: every consumer gets one for each loss.

mod common;

use common::{Slicer, all_options, plan, stack};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use ugeom_stack::{
    Bio, Channel, Command, Cx, Delta, Errno, Geom, Losses, Next, Opened, ProviderId, Request,
    Stack, StackKnobs,
};

const SIZE: u64 = 64 * 512;
const WHY: &str = "the test has lost it";

/// A disk that forgets when it is told to.
#[derive(Default)]
struct Forgetful {
    losses: Arc<Losses>,
    /// How many FLUSHes fail.
    failing: AtomicU64,
    /// Failed writes are kept.
    keeps: AtomicBool,
    /// It keeps FLUSHes waiting.
    holds: AtomicBool,
    held: Mutex<Vec<Bio>>,
}

impl Geom for Forgetful {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        let less = |left: u64| left.checked_sub(1);
        let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
        let flush = request.command() == Command::Flush;
        if flush && self.failing.try_update(set, get, less).is_ok() {
            return request.fail(Errno::NOSPC, "no room");
        }
        if flush && self.holds.load(Ordering::SeqCst) {
            let (bio, next) = request.park();
            self.held.lock().expect("held").push(bio);
            return next;
        }
        request.done_in_full()
    }

    fn losses(&self) -> Arc<Losses> {
        Arc::clone(&self.losses)
    }

    fn notes_each_loss(&self) -> bool {
        self.keeps.load(Ordering::SeqCst)
    }
}

/// Two slices of one disk, and the disk.
struct Rig {
    stack: Stack,
    disk: Arc<Forgetful>,
    slice: ProviderId,
    bottom: ProviderId,
}

impl Rig {
    fn new(options: StackKnobs) -> Self {
        let stack = stack(options);
        let disk = Arc::new(Forgetful::default());
        let bottom = plan("disk", SIZE, Arc::clone(&disk) as Arc<dyn Geom>);
        let bottom = stack.create("DISK", bottom, &[]).expect("a disk")[0];
        let slice = plan("slice", SIZE, Slicer::hooked(0));
        let slice = stack.create("SLICE", slice, &[bottom]).expect("a slice")[0];
        Self {
            stack,
            disk,
            slice,
            bottom,
        }
    }

    fn open(&self, provider: ProviderId) -> (Opened, Channel) {
        let opened = self.stack.open(provider, Delta::READ_WRITE).expect("opens");
        (opened, self.stack.channel(4).expect("a channel"))
    }

    fn client(&self) -> (Opened, Channel) {
        self.open(self.slice)
    }
}

fn flush((opened, channel): &mut (Opened, Channel)) -> Result<(), (Errno, String)> {
    let flushed = channel.flush(opened);
    flushed.map_err(|error| (error.errno, error.to_string()))
}

fn fails_once(client: &mut (Opened, Channel)) {
    let (errno, text) = flush(client).expect_err("it has not heard");
    assert_eq!(errno, Errno::IO);
    assert!(text.contains(WHY), "{text}");
    assert_eq!(flush(client), Ok(()));
}

#[test]
fn every_handle_hears_of_each_loss_once() {
    for options in all_options() {
        let rig = Rig::new(options);
        let mut clients = [rig.client(), rig.client(), rig.client()];
        for client in &mut clients {
            assert_eq!(flush(client), Ok(()));
        }
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            rig.disk.losses.record(WHY);
            for at in order {
                fails_once(&mut clients[at]);
            }
        }
    }
}

/// The error of such a FLUSH is that of the request: its sender has to hear of other writes, too.
#[test]
fn a_flush_for_a_request_takes_no_report_from_the_next_flush() {
    for options in all_options() {
        let rig = Rig::new(options);
        let (mut writer, mut other) = (rig.client(), rig.client());
        let for_request = |(opened, channel): &mut (Opened, Channel)| {
            let flushed = channel.flush_for_request(opened);
            flushed.map_err(|error| error.errno)
        };
        assert_eq!(for_request(&mut writer), Ok(()));
        rig.disk.losses.record(WHY);
        assert_eq!(for_request(&mut writer), Err(Errno::IO));
        fails_once(&mut writer);
        assert_eq!(for_request(&mut writer), Ok(()));
        fails_once(&mut other);
        rig.disk.failing.store(1, Ordering::SeqCst);
        assert_eq!(for_request(&mut writer), Err(Errno::NOSPC));
        for client in [&mut writer, &mut other] {
            let heard = flush(client).expect_err("it has not heard");
            assert_eq!(heard.0, Errno::IO);
            assert_eq!(flush(client), Ok(()));
        }
    }
}

#[test]
fn two_losses_between_two_flushes_are_one_error() {
    let rig = Rig::new(StackKnobs::default());
    let mut clients = [rig.client(), rig.client()];
    rig.disk.losses.record(WHY);
    rig.disk.losses.record(WHY);
    clients.iter_mut().for_each(fails_once);
}

#[test]
fn a_flush_that_the_disk_fails_is_told_to_the_others_too() {
    for options in all_options() {
        let rig = Rig::new(options);
        let mut clients = [rig.client(), rig.client()];
        rig.disk.failing.store(1, Ordering::SeqCst);
        let (errno, _) = flush(&mut clients[0]).expect_err("no room");
        assert_eq!(errno, Errno::NOSPC);
        let (errno, text) = flush(&mut clients[1]).expect_err("it is lost for all");
        assert_eq!(errno, Errno::IO);
        assert!(text.contains("no room"), "{text}");
        for client in &mut clients {
            assert_eq!(flush(client), Ok(()));
        }
    }
}

#[test]
fn what_a_layer_keeps_is_not_lost() {
    let rig = Rig::new(StackKnobs::default());
    let mut clients = [rig.client(), rig.client()];
    rig.disk.keeps.store(true, Ordering::SeqCst);
    rig.disk.failing.store(1, Ordering::SeqCst);
    flush(&mut clients[0]).expect_err("no room now");
    assert_eq!(flush(&mut clients[1]), Ok(()));
    assert_eq!(flush(&mut clients[0]), Ok(()));
}

#[test]
fn users_of_the_layer_and_of_what_is_below_it_both_hear() {
    let rig = Rig::new(StackKnobs::default());
    let mut clients = [rig.open(rig.slice), rig.open(rig.slice)];
    rig.disk.losses.record(WHY);
    fails_once(&mut clients[1]);
    drop(clients);
    let mut below = rig.open(rig.bottom);
    assert_eq!(flush(&mut below), Ok(()), "it came after that was heard");
    rig.disk.losses.record(WHY);
    fails_once(&mut below);
    rig.disk.losses.record(WHY);
    drop(below);
    // The last one was reported to no consumer; the next consumer of any layer gets it.
    let slice = plan("other slice", SIZE, Slicer::hooked(0));
    let slice = rig.stack.create("SLICE", slice, &[rig.bottom]);
    fails_once(&mut rig.open(slice.expect("a slice")[0]));
}

#[test]
fn a_new_handle_hears_only_what_nobody_has_heard() {
    let rig = Rig::new(StackKnobs::default());
    let mut first = rig.client();
    rig.disk.losses.record(WHY);
    assert!(rig.disk.losses.is_unheard());
    let (opened, mut channel) = rig.client();
    channel.last_flush(&opened).expect_err("the disk is gone");
    drop((opened, channel));
    fails_once(&mut rig.client());
    assert_eq!(flush(&mut rig.client()), Ok(()));
    fails_once(&mut first);
}

#[test]
fn flushes_that_were_sent_before_the_error_came_all_fail() {
    for options in all_options() {
        let rig = Rig::new(options);
        let (opened, mut channel) = rig.client();
        rig.disk.holds.store(true, Ordering::SeqCst);
        for _ in 0..3 {
            let draft = channel.bio().expect("a bio").flush();
            channel.submit(&opened, draft);
        }
        rig.disk.losses.record(WHY);
        let first = loop {
            if let Some(bio) = rig.disk.held.lock().expect("held").pop() {
                break bio;
            }
            channel.poll();
        };
        rig.disk.holds.store(false, Ordering::SeqCst);
        first.complete(Ok(0));
        let mut results = Vec::new();
        while results.len() < 3 {
            channel.wait(None);
            while let Some(finished) = channel.finished() {
                results.push(finished.result());
                channel.recycle(finished);
            }
        }
        assert_eq!(results, [Err(Errno::IO); 3]);
        assert_eq!(flush(&mut (opened, channel)), Ok(()));
    }
}

#[test]
fn of_two_threads_none_gets_ok_for_what_was_lost_before_it_asked() {
    let rig = Rig::new(StackKnobs::default());
    let rounds = if cfg!(miri) { 5 } else { 300 };
    let barrier = std::sync::Barrier::new(3);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = rig.client();
                for _ in 0..rounds {
                    barrier.wait();
                    assert!(flush(&mut client).is_err());
                    barrier.wait();
                }
            });
        }
        for _ in 0..rounds {
            rig.disk.losses.record(WHY);
            barrier.wait();
            barrier.wait();
        }
    });
}

/// Two slices of one disk, of 32 sectors each.
struct Halves;

const HALF: u64 = SIZE / 2;

impl Geom for Halves {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let offset = request.offset() + u64::from(request.port()) * HALF;
        request.set_offset(offset);
        request.forward(0)
    }

    fn position(&self, port: u16) -> Option<u64> {
        Some(u64::from(port) * HALF)
    }
}

/// Both halves, and a slice of the upper one: the second quarter of it.
fn halves(rig: &Rig) -> [ProviderId; 3] {
    let mut halves = plan("half0", HALF, Arc::new(Halves));
    let mut upper = halves.providers[0].clone();
    upper.name = "half1".into();
    halves.providers.push(upper);
    let halves = rig.stack.create("HALVES", halves, &[rig.bottom]);
    let halves = halves.expect("halves");
    let quarter = plan("quarter", HALF / 2, Arc::new(Quarter));
    let quarter = rig.stack.create("QUARTER", quarter, &[halves[1]]);
    [halves[0], halves[1], quarter.expect("a quarter")[0]]
}

struct Quarter;

impl Geom for Quarter {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let offset = request.offset() + HALF / 2;
        request.set_offset(offset);
        request.forward(0)
    }

    fn position(&self, _port: u16) -> Option<u64> {
        Some(HALF / 2)
    }

    fn survives_spoil(&self) -> bool {
        true
    }
}

#[test]
fn who_sees_nothing_of_the_range_does_not_hear_of_it() {
    for options in all_options() {
        let rig = Rig::new(options);
        let providers = halves(&rig);
        let mut clients = providers.map(|provider| rig.open(provider));
        // Where it is lost, in sectors, and which of the clients hear of it.
        let cases = [
            (0..1, [true, false, false]),
            (31..32, [true, false, false]),
            (32..33, [false, true, false]),
            (47..48, [false, true, false]),
            (48..49, [false, true, true]),
            (63..64, [false, true, true]),
            (31..33, [true, true, false]),
            (0..64, [true, true, true]),
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            for (sectors, hear) in &cases {
                let range = sectors.start * 512..sectors.end * 512;
                rig.disk.losses.record_range(range, WHY);
                assert!(rig.disk.losses.is_unheard());
                for at in order {
                    let client = &mut clients[at];
                    match hear[at] {
                        true => fails_once(client),
                        false => assert_eq!(flush(client), Ok(()), "{sectors:?}, {at}"),
                    }
                }
                assert!(!rig.disk.losses.is_unheard(), "{sectors:?}");
            }
        }
    }
}

#[test]
fn a_neighbour_does_not_hear_in_place_of_the_writer() {
    let rig = Rig::new(StackKnobs::default());
    let [lower, upper, _] = halves(&rig);
    rig.disk.losses.record_range(0..512, WHY);
    assert_eq!(flush(&mut rig.open(upper)), Ok(()));
    // It is still unreported when the stack ends.
    rig.stack.finish().expect_err("an unreported loss");
    fails_once(&mut rig.open(lower));
    rig.stack.finish().expect("no unreported loss");
}

#[test]
fn more_losses_than_are_kept_apart_are_told_to_too_many_and_never_to_too_few() {
    let rig = Rig::new(StackKnobs::default());
    let [lower, upper, quarter] = halves(&rig);
    let mut clients = [lower, upper, quarter].map(|provider| rig.open(provider));
    for number in 0..1000_u64 {
        let at = number % 32 * 512;
        rig.disk.losses.record_range(at..at + 512, WHY);
    }
    rig.disk.losses.record_range(HALF..HALF + 512, WHY);
    fails_once(&mut clients[0]);
    fails_once(&mut clients[1]);
    assert_eq!(flush(&mut clients[2]), Ok(()));
    // One that spans two that lie apart.
    rig.disk.losses.record_range(0..512, WHY);
    for _ in 0..40 {
        rig.disk.losses.record_range(SIZE - 512..SIZE, WHY);
    }
    clients.iter_mut().for_each(fails_once);
}
