//! The life of a bio: down, back, parked, delayed, dropped, cloned, cancelled, ordered; with every
//! kind of dispatch and every level of statistics.

mod common;

use common::{
    Memory, Mirror, Nothing, Parker, Slicer, all_stacks, bytes_of, pile, plan, stack, user,
};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use ugeom_machine::buffer::{Buffer, Scatter};
use ugeom_stack::{
    Channel, Command, Cx, Delta, Errno, Flags, Geom, Next, Opened, ProviderId, Request, Stack,
    StackKnobs,
};

const SIZE: u64 = 64 * 512;

fn memory(stack: &Stack, name: &str) -> ProviderId {
    stack
        .create("MEM", plan(name, SIZE, Memory::new(SIZE as usize)), &[])
        .expect("memory")[0]
}

fn layer(stack: &Stack, name: &str, geom: Arc<dyn Geom>, below: &[ProviderId]) -> ProviderId {
    stack
        .create("LAYER", plan(name, SIZE, geom), below)
        .expect("a layer")[0]
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at * 31 + seed * 7 + at / 251) as u8)
        .collect()
}

/// Collects everything that is in flight.
fn drain(channel: &mut Channel) -> Vec<(u64, Result<u64, Errno>)> {
    let mut all = Vec::new();
    loop {
        let waiting = channel.wait(Some(Duration::from_secs(30)));
        while let Some(finished) = channel.finished() {
            all.push((finished.cookie(), finished.result()));
        }
        if waiting == 0 {
            assert_eq!(channel.in_flight(), 0, "nothing hangs");
            return all;
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes; others here follow a bio through its life")]
fn what_is_written_through_slices_lies_where_they_say() {
    for (options, stack) in all_stacks() {
        let bottom = memory(&stack, "mem");
        let half = layer(&stack, "half", Slicer::new(1024), &[bottom]);
        let quarter = layer(&stack, "quarter", Slicer::hooked(2048), &[half]);
        let data = pattern(4096, 3);
        {
            let (opened, mut channel) = user(&stack, quarter, Delta::READ_WRITE, 4);
            assert_eq!(channel.write(&opened, 512, &data).expect("write"), 4096);
            channel.flush(&opened).expect("flush");
            let mut back = vec![0; 4096];
            assert_eq!(channel.read(&opened, 512, &mut back).expect("read"), 4096);
            assert_eq!(back, data);
        }
        let back = bytes_of(&stack, bottom, 3584, 4096);
        assert_eq!(back, data, "{options:?}");
        assert_eq!(stack.defects(), 0);
    }
}

#[test]
fn a_hook_sees_each_request_come_back_once() {
    const READS: u64 = if cfg!(miri) { 2 } else { 10 };
    for (options, stack) in all_stacks() {
        let bottom = memory(&stack, "mem");
        let hooks: Vec<_> = (0..3).map(|_| Slicer::hooked(0)).collect();
        let mut top = bottom;
        for (index, hook) in hooks.iter().enumerate() {
            top = layer(&stack, &format!("hook{index}"), hook.clone(), &[top]);
            top = layer(&stack, &format!("plain{index}"), Slicer::new(0), &[top]);
        }
        let (opened, mut channel) = user(&stack, top, Delta::READ, 1);
        for _ in 0..READS {
            channel.read(&opened, 0, &mut [0; 512]).expect("read");
        }
        for hook in &hooks {
            assert_eq!(hook.seen.load(Ordering::Relaxed), READS, "{options:?}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes; others here follow a bio through its life")]
fn a_short_completion_inside_the_media_is_eio() {
    struct Half;
    impl Geom for Half {
        fn start(&self, request: Request<'_>, _: &mut Cx) -> Next {
            let half = request.length() / 2;
            request.done(Ok(half))
        }
    }
    for (_, stack) in all_stacks() {
        let bottom = layer(&stack, "half", Arc::new(Half), &[]);
        let top = pile(&stack, bottom, SIZE, 2, true);
        let (opened, mut channel) = user(&stack, top, Delta::READ, 1);
        let error = channel
            .read(&opened, 1024, &mut [0; 1024])
            .expect_err("short");
        assert_eq!((error.errno, error.provider.as_str()), (Errno::IO, "half"));
        assert_eq!(error.offset_bytes, 1536);
        assert!(error.reason.contains("short"), "{error}");
    }
}

#[test]
fn a_bio_that_another_thread_completes_comes_home() {
    for (options, stack) in all_stacks() {
        let parker = Arc::new(Parker::default());
        let bottom = layer(&stack, "park", parker.clone(), &[]);
        let hook = Slicer::hooked(0);
        let top = layer(&stack, "hook", hook.clone(), &[bottom]);
        let opened = stack.open(top, Delta::READ).expect("open");
        let stop = Arc::new(AtomicUsize::new(0));
        let thread = std::thread::spawn({
            let stop = stop.clone();
            move || {
                while stop.load(Ordering::Acquire) == 0 {
                    // The last first: out of order.
                    let bio = parker.held.lock().expect("held").pop();
                    match bio {
                        Some(bio) => bio.complete(Ok(512)),
                        None => std::thread::yield_now(),
                    }
                }
            }
        });
        let mut channel = stack.channel(64).expect("a channel");
        let mut cookies = Vec::new();
        let rounds = if cfg!(miri) { 1 } else { 20 };
        for round in 0..rounds {
            for index in 0..50 {
                let draft = channel.bio().expect("a bio").read(0, Buffer::new(512));
                channel.submit(&opened, draft.cookie(round * 50 + index));
            }
            cookies.extend(drain(&mut channel));
        }
        stop.store(1, Ordering::Release);
        thread.join().expect("thread");
        cookies.sort_unstable_by_key(|(cookie, _)| *cookie);
        let expected: Vec<_> = (0..rounds * 50).map(|cookie| (cookie, Ok(512))).collect();
        assert_eq!(cookies, expected, "{options:?}");
        assert_eq!(hook.seen.load(Ordering::Relaxed), rounds * 50);
    }
}

#[test]
fn a_dropped_bio_is_eio_and_a_defect() {
    struct Drops;
    impl Geom for Drops {
        fn start(&self, request: Request<'_>, _: &mut Cx) -> Next {
            let (bio, next) = request.park();
            drop(bio);
            next
        }
    }
    for (_, stack) in all_stacks() {
        let bottom = layer(&stack, "drops", Arc::new(Drops), &[]);
        let (opened, mut channel) = user(&stack, bottom, Delta::READ, 1);
        let error = channel
            .read(&opened, 0, &mut [0; 512])
            .expect_err("dropped");
        assert_eq!(error.errno, Errno::IO);
        assert!(error.reason.contains("dropped"), "{error}");
        assert_eq!(stack.defects(), 1);
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes; others here follow a bio through its life")]
fn enomem_never_reaches_the_consumer() {
    struct Tight(AtomicU64);
    impl Geom for Tight {
        fn start(&self, mut request: Request<'_>, _: &mut Cx) -> Next {
            request.fill(|_, piece| piece.fill(9));
            if self.0.fetch_add(1, Ordering::Relaxed) % 4 != 3 {
                return request.done(Err(Errno::NOMEM));
            }
            request.done_in_full()
        }
    }
    for (options, stack) in all_stacks() {
        let tight = Arc::new(Tight(AtomicU64::new(0)));
        let bottom = layer(&stack, "tight", tight.clone(), &[]);
        let hook = Slicer::hooked(0);
        let top = layer(&stack, "hook", hook.clone(), &[bottom]);
        let (opened, mut channel) = user(&stack, top, Delta::READ, 8);
        let mut into = [0; 512];
        assert_eq!(channel.read(&opened, 512, &mut into).expect("at last"), 512);
        assert_eq!(into, [9; 512]);
        assert_eq!(
            hook.seen.load(Ordering::Relaxed),
            1,
            "the hook saw the good end only"
        );
        for index in 0..8 {
            let draft = channel.bio().expect("a bio").read(0, Buffer::new(512));
            channel.submit(&opened, draft.cookie(index));
        }
        assert!(
            drain(&mut channel)
                .iter()
                .all(|(_, result)| *result == Ok(512))
        );
        let provider = stack.find("tight").expect("tight");
        if options.statistics != ugeom_stack::Statistics::Off {
            let totals = stack.statistics(provider).expect("statistics");
            assert_eq!((totals.in_flight(), totals.errors), (0, 0), "{options:?}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes; others here follow a bio through its life")]
fn clones_join_their_parent() {
    for (options, stack) in all_stacks() {
        let (a, b) = (memory(&stack, "a"), memory(&stack, "b"));
        let mirror = layer(&stack, "mirror", Arc::new(Mirror), &[a, b]);
        let top = pile(&stack, mirror, SIZE, 1, true);
        let data = pattern(8192, 1);
        {
            let (opened, mut channel) = user(&stack, top, Delta::READ_WRITE, 4);
            assert_eq!(channel.write(&opened, 1024, &data).expect("write"), 8192);
            let mut back = vec![0; 8192];
            assert_eq!(channel.read(&opened, 1024, &mut back).expect("read"), 8192);
            assert_eq!(back, data, "{options:?}");
        }
        for half in [a, b] {
            let back = bytes_of(&stack, half, 1024, 8192);
            assert_eq!(back, data, "both halves have it");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes; others here follow a bio through its life")]
fn the_first_error_of_the_clones_is_the_parents() {
    struct Fails;
    impl Geom for Fails {
        fn start(&self, request: Request<'_>, _: &mut Cx) -> Next {
            request.fail(Errno::NODEV, "it always fails")
        }
    }
    for (_, stack) in all_stacks() {
        let a = memory(&stack, "a");
        let b = layer(&stack, "b", Arc::new(Fails), &[]);
        let mirror = layer(&stack, "mirror", Arc::new(Mirror), &[a, b]);
        let (opened, mut channel) = user(&stack, mirror, Delta::READ_WRITE, 4);
        let error = channel
            .write(&opened, 0, &[0; 1024])
            .expect_err("half failed");
        assert_eq!(error.errno, Errno::NODEV);
    }
}

/// Memory in three pieces of odd sizes.
fn pieces(data: &[u8]) -> Box<Scatter> {
    let (first, rest) = data.split_at(700);
    let (second, third) = rest.split_at(1);
    let buffers = [first, second, third].map(Buffer::from_slice);
    Box::new(Scatter::new(buffers.into()))
}

#[test]
#[cfg_attr(miri, ignore = "minutes; others here follow a bio through its life")]
fn data_in_several_segments_is_divided_correctly_among_clones() {
    for (_, stack) in all_stacks() {
        let (a, b) = (memory(&stack, "a"), memory(&stack, "b"));
        let mirror = layer(&stack, "mirror", Arc::new(Mirror), &[a, b]);
        let (opened, mut channel) = user(&stack, mirror, Delta::READ_WRITE, 4);
        let data = pattern(2048, 5);
        let draft = channel
            .bio()
            .expect("a bio")
            .transfer(true, 512, pieces(&data));
        channel.submit(&opened, draft);
        assert_eq!(drain(&mut channel), [(0, Ok(2048))]);
        let mut back = vec![0; 2048];
        channel.read(&opened, 512, &mut back).expect("read");
        assert_eq!(back, data);
        let draft = channel
            .bio()
            .expect("a bio")
            .transfer(false, 512, pieces(&[0; 2048]));
        channel.submit(&opened, draft);
        assert!(channel.wait(None) > 0);
        let mut finished = channel.finished().expect("finished");
        assert_eq!(finished.result(), Ok(2048));
        let mut seen = vec![0; 2048];
        finished.each(|at, piece| seen[at as usize..][..piece.len()].copy_from_slice(piece));
        assert_eq!(seen, data);
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes; others here follow a bio through its life")]
fn read_clones_may_not_share_memory() {
    #[derive(Default)]
    struct Greedy(Mutex<Vec<Result<(), Errno>>>);
    impl Geom for Greedy {
        fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
            let length = request.length();
            let mut fan = request.fan_out(cx);
            let mut results = self.0.lock().expect("results");
            results.push(fan.child(0, 0, 0, length));
            results.push(fan.child(0, 0, 0, 512));
            results.push(fan.child(0, 0, length, 512));
            fan.finish()
        }
        fn widest_fan_out(&self) -> usize {
            3
        }
    }
    let stack = stack(StackKnobs::default());
    let bottom = memory(&stack, "mem");
    let greedy = Arc::new(Greedy::default());
    let top = layer(&stack, "greedy", greedy.clone(), &[bottom]);
    let (opened, mut channel) = user(&stack, top, Delta::READ, 1);
    channel
        .read(&opened, 0, &mut [0; 1024])
        .expect("the good clone does it");
    let results = greedy.0.lock().expect("results").clone();
    assert_eq!(results, [Ok(()), Err(Errno::INVAL), Err(Errno::INVAL)]);
}

struct Later(u64);
impl Geom for Later {
    fn start(&self, request: Request<'_>, _: &mut Cx) -> Next {
        request.delay(self.0)
    }
    fn resume(&self, request: Request<'_>, _: &mut Cx) -> Next {
        request.forward(0)
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes; others here follow a bio through its life")]
fn delayed_requests_wait_side_by_side() {
    for (_, stack) in all_stacks() {
        let bottom = memory(&stack, "mem");
        let top = layer(&stack, "later", Arc::new(Later(2_000_000)), &[bottom]);
        let opened = stack.open(top, Delta::READ).expect("open");
        let many = if cfg!(miri) { 50 } else { 1000 };
        let mut channel = stack.channel(many).expect("a channel");
        let start = std::time::Instant::now();
        for index in 0..many as u64 {
            let draft = channel.bio().expect("a bio").read(0, Buffer::new(512));
            channel.submit(&opened, draft.cookie(index));
        }
        assert!(channel.bio().is_none(), "the depth is out");
        let all = drain(&mut channel);
        assert_eq!(all.len(), many);
        assert!(all.iter().all(|(_, result)| *result == Ok(512)));
        assert!(start.elapsed() >= Duration::from_millis(2));
        assert!(
            cfg!(miri) || start.elapsed() < Duration::from_secs(2),
            "not one after the other"
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes; others here follow a bio through its life")]
fn cancelling_brings_waiting_requests_home_at_once() {
    for (options, stack) in all_stacks() {
        let bottom = memory(&stack, "mem");
        let later = layer(
            &stack,
            "later",
            Arc::new(Later(3_600_000_000_000)),
            &[bottom],
        );
        let parker = layer(&stack, "park", Arc::new(Parker::default()), &[]);
        let mut channel = stack.channel(8).expect("a channel");
        for provider in [later, parker] {
            let opened = stack.open(provider, Delta::READ).expect("open");
            let draft = channel.bio().expect("a bio").read(0, Buffer::new(512));
            let id = channel.submit(&opened, draft.cookie(5));
            // Queued dispatch may need a moment to get it there.
            std::thread::sleep(Duration::from_millis(5));
            channel.cancel(id);
            assert_eq!(
                drain(&mut channel),
                [(5, Err(Errno::CANCELED))],
                "{options:?}"
            );
            channel.cancel(id);
            assert_eq!(
                channel.poll(),
                0,
                "a ticket of an earlier life cancels nothing"
            );
        }
    }
}

#[test]
fn a_cancel_that_races_with_its_request_is_not_lost() {
    for (options, stack) in all_stacks() {
        let bottom = layer(&stack, "park", Arc::new(Parker::default()), &[]);
        let top = pile(&stack, bottom, SIZE, 2, true);
        let (opened, mut channel) = user(&stack, top, Delta::READ, 1);
        let rounds = if cfg!(miri) { 4 } else { 300 };
        for round in 0..rounds {
            let draft = channel.bio().expect("a bio").read(0, Buffer::new(512));
            let id = channel.submit(&opened, draft.cookie(round));
            // From no delay at all to one in which it has certainly arrived.
            for _ in 0..round % 50 * 20 {
                std::hint::spin_loop();
            }
            channel.cancel(id);
            let all = drain(&mut channel);
            assert_eq!(all, [(round, Err(Errno::CANCELED))], "{options:?}");
        }
    }
}

#[test]
fn a_flush_waits_for_what_came_before_and_holds_back_what_comes_after() {
    /// Records the order in which requests start; completes writes later.
    #[derive(Default)]
    struct Order(Mutex<Vec<Command>>);
    impl Geom for Order {
        fn start(&self, request: Request<'_>, _: &mut Cx) -> Next {
            self.0.lock().expect("order").push(request.command());
            if request.command() == Command::Write {
                request.delay(1_000_000)
            } else {
                request.done_in_full()
            }
        }
        fn resume(&self, request: Request<'_>, _: &mut Cx) -> Next {
            self.0.lock().expect("order").push(Command::Zero);
            request.done_in_full()
        }
    }
    use Command::{Flush, Read, Write, Zero};
    for (options, stack) in all_stacks() {
        let order = Arc::new(Order::default());
        let bottom = layer(&stack, "order", order.clone(), &[]);
        let (opened, mut channel) = user(&stack, bottom, Delta::READ_WRITE, 16);
        let submit = |channel: &mut Channel, opened: &Opened, command| {
            let draft = channel.bio().expect("a bio");
            let draft = match command {
                Flush => draft.flush(),
                Write => draft.write(0, Buffer::new(512)),
                _ => draft.read(0, Buffer::new(512)),
            };
            channel.submit(opened, draft);
        };
        for command in [Write, Write, Flush, Read, Flush, Flush, Read, Read] {
            submit(&mut channel, &opened, command);
        }
        assert_eq!(drain(&mut channel).len(), 8);
        let seen = std::mem::take(&mut *order.0.lock().expect("order"));
        // The writes may overlap or not, as the threads run; all of both comes before the flush.
        let (before, after) = seen.split_at(4);
        let count = |wanted| before.iter().filter(|command| **command == wanted).count();
        assert_eq!((count(Write), count(Zero)), (2, 2), "{options:?}: {seen:?}");
        assert_eq!(
            after,
            [Flush, Read, Flush, Flush, Read, Read],
            "{options:?}"
        );
        let draft = channel.bio().expect("a bio").write(0, Buffer::new(512));
        channel.submit(&opened, draft.flags(Flags::ORDERED));
        submit(&mut channel, &opened, Read);
        drain(&mut channel);
        let seen = std::mem::take(&mut *order.0.lock().expect("order"));
        assert_eq!(seen, [Write, Zero, Read], "{options:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes there, and others cover its unsafe code")]
fn statistics_count_what_happened() {
    for (options, stack) in all_stacks() {
        let bottom = memory(&stack, "mem");
        let top = layer(&stack, "slice", Slicer::new(512), &[bottom]);
        {
            let (opened, mut channel) = user(&stack, top, Delta::READ_WRITE, 4);
            for _ in 0..10 {
                channel.read(&opened, 0, &mut [0; 1024]).expect("read");
            }
            channel.write(&opened, 0, &[0; 512]).expect("write");
            channel
                .read(&opened, SIZE - 512, &mut [0; 512])
                .expect_err("past the parent");
        }
        for (name, failed) in [("mem", 0), ("slice", 1)] {
            let provider = stack.find(name).expect(name);
            let totals = stack.statistics(provider).expect("statistics");
            if options.statistics == ugeom_stack::Statistics::Off {
                assert_eq!(totals.ended(), 0);
                continue;
            }
            assert_eq!(totals.in_flight(), 0);
            assert_eq!(totals.errors, failed, "{name} {options:?}");
            assert_eq!(totals.operations[Command::Read as usize], 10 + failed);
            assert_eq!(totals.bytes[Command::Read as usize], 10 * 1024);
            assert_eq!(totals.bytes[Command::Write as usize], 512);
            if let ugeom_stack::Statistics::Time { .. } = options.statistics {
                let time = totals.time.expect("times");
                assert_eq!(time.read.count(), 10 + failed, "{options:?}");
                assert_eq!(time.write.count(), 1);
            }
        }
    }
}

#[test]
#[cfg_attr(
    miri,
    ignore = "under Miri the clock reads take longer than the layers"
)]
fn exclusive_time_leaves_out_the_layers_below() {
    struct Slow;
    impl Geom for Slow {
        fn start(&self, request: Request<'_>, _: &mut Cx) -> Next {
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_millis(2) {}
            request.done_in_full()
        }
    }
    let statistics = ugeom_stack::Statistics::Time { one_in: 1 };
    let stack = stack(StackKnobs {
        statistics,
        ..StackKnobs::default()
    });
    let (a, b) = (
        layer(&stack, "a", Arc::new(Slow), &[]),
        layer(&stack, "b", Arc::new(Slow), &[]),
    );
    let mirror = layer(&stack, "mirror", Arc::new(Mirror), &[a, b]);
    let top = layer(&stack, "slice", Slicer::new(0), &[mirror]);
    let (opened, mut channel) = user(&stack, top, Delta::READ, 1);
    for _ in 0..5 {
        channel.read(&opened, 0, &mut [0; 1024]).expect("read");
    }
    let time = |name: &str| {
        let totals = stack
            .statistics(stack.find(name).expect(name))
            .expect("statistics");
        let time = totals.time.expect("times");
        (
            time.exclusive_ns,
            time.read.min().unwrap_or(0),
            time.busy_ns,
        )
    };
    for name in ["a", "b"] {
        assert!(time(name).0 >= 10_000_000, "{name}: {:?}", time(name));
    }
    for name in ["mirror", "slice"] {
        let (exclusive_ns, shortest_ns, busy_ns) = time(name);
        assert!(
            shortest_ns >= 3_900_000,
            "{name} spans both halves: {shortest_ns}"
        );
        assert!(
            busy_ns >= 19_000_000,
            "{name} was busy all the time: {busy_ns}"
        );
        // A busy machine may take the thread away between two clock readings, so the bound is
        // loose; without leaving the layers below out it would be 20 ms.
        assert!(exclusive_ns < 10_000_000, "{name}: {exclusive_ns}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes there, and others cover its unsafe code")]
fn several_threads_share_a_stack() {
    for (_, stack) in all_stacks() {
        let bottom = layer(&stack, "zero", Arc::new(Nothing), &[]);
        let top = pile(&stack, bottom, SIZE, 3, false);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let stack = stack.clone();
                std::thread::spawn(move || {
                    let (opened, mut channel) = user(&stack, top, Delta::READ, 8);
                    for index in 0..300_u64 {
                        if let Some(draft) = channel.bio() {
                            let draft = draft.read(index % 8 * 512, Buffer::new(512));
                            channel.submit(&opened, draft);
                        } else {
                            channel.wait(None);
                        }
                        while let Some(finished) = channel.finished() {
                            assert_eq!(finished.result(), Ok(512));
                            channel.recycle(finished);
                        }
                    }
                    drain(&mut channel);
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("a thread");
        }
        assert_eq!(stack.defects(), 0);
        assert_eq!(stack.statistics(bottom).expect("statistics").in_flight(), 0);
    }
}

#[test]
#[cfg_attr(miri, ignore = "minutes; others here follow a bio through its life")]
fn dropping_a_channel_waits_for_its_requests() {
    for (options, stack) in all_stacks() {
        let bottom = memory(&stack, "mem");
        let top = layer(&stack, "later", Arc::new(Later(5_000_000)), &[bottom]);
        let (opened, mut channel) = user(&stack, top, Delta::READ, 4);
        for _ in 0..4 {
            let draft = channel.bio().expect("a bio").read(0, Buffer::new(512));
            channel.submit(&opened, draft);
        }
        drop(channel);
        if options.statistics != ugeom_stack::Statistics::Off {
            assert_eq!(stack.statistics(bottom).expect("statistics").ended(), 4);
        }
    }
}
