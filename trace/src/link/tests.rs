//! Streams of events with known truth.

use super::parts::divide;
use super::*;
use proptest::prelude::*;

const VDA: Dev = 254 << 20;
const LOOP: Dev = 7 << 20;
const DM: Dev = 252 << 20;
const ADDRESS: u64 = 0xffff_8880_0000_0000;

/// A kernel that fires events.
struct Simulated {
    events: Vec<Event>,
    topology: Topology,
    next: u64,
    /// Whether events carry addresses.
    addresses: bool,
}

impl Simulated {
    fn new() -> Self {
        let topology = Topology {
            has_done: true,
            ..Topology::default()
        };
        Self {
            events: Vec::new(),
            topology,
            next: ADDRESS,
            addresses: true,
        }
    }

    fn address(&mut self) -> u64 {
        self.next += 0x100;
        if self.addresses { self.next } else { 0 }
    }

    fn fire(&mut self, time_ns: u64, kind: EventKind, dev: Dev, place: (u64, u32)) -> &mut Event {
        self.events.push(Event {
            time_ns,
            kind,
            cpu: 0,
            op: Op::Read,
            tid: 100,
            pid: 100,
            dev,
            sector: place.0,
            sectors: place.1,
            id: 0,
            other: 0,
            extra: 0,
        });
        let last = self.events.len() - 1;
        &mut self.events[last]
    }

    /// A bio enters a device at `at` and is issued 10 ns later: bio and request.
    fn issue(&mut self, at: u64, tid: u32, dev: Dev, place: (u64, u32)) -> (u64, u64) {
        let (bio, request) = (self.address(), self.address());
        for (time, kind) in [(at, EventKind::Queue), (at + 4, EventKind::GetRequest)] {
            let event = self.fire(time, kind, dev, place);
            (event.id, event.tid, event.pid) = (bio, tid, tid);
        }
        let event = self.fire(at + 10, EventKind::Issue, dev, place);
        (event.id, event.other, event.tid) = (request, bio, tid);
        (bio, request)
    }

    fn complete(&mut self, at: u64, dev: Dev, request: u64, place: (u64, u32)) {
        let event = self.fire(at, EventKind::Complete, dev, place);
        (event.id, event.extra) = (request, u64::from(place.1) * 512);
        self.fire(at + 2, EventKind::Done, dev, place).id = request;
    }

    fn link(&self) -> (Vec<Tree>, Quality) {
        let mut events = self.events.clone();
        events.sort_by_key(|event| event.time_ns);
        let mut linker = Linker::new(self.topology.clone());
        for event in &events {
            linker.event(event);
        }
        linker.finish()
    }
}

/// The time of each device and phase; checks that the parts add up.
fn sums(tree: &Tree) -> HashMap<(Dev, Phase), u64> {
    let mut sums = HashMap::new();
    let parts = divide(tree);
    for part in &parts {
        *sums
            .entry((tree.spans[part.span].dev, part.phase))
            .or_default() += part.ns;
    }
    let whole = tree.spans[0].end_ns - tree.spans[0].start_ns;
    assert_eq!(parts.iter().map(|part| part.ns).sum::<u64>(), whole);
    sums
}

#[test]
fn a_read_is_divided_into_its_phases() {
    let mut kernel = Simulated::new();
    let (_, request) = kernel.issue(1000, 100, VDA, (8, 8));
    kernel.complete(1150, VDA, request, (8, 8));
    let (trees, quality) = kernel.link();
    let expected = HashMap::from([
        ((VDA, Phase::Block), 4),
        ((VDA, Phase::Plug), 6),
        ((VDA, Phase::Device), 140),
        ((VDA, Phase::Completing), 2),
    ]);
    assert_eq!(sums(&trees[0]), expected);
    assert_eq!(
        (quality.roots, quality.ambiguous, quality.unmatched_starts),
        (1, 0, 0)
    );
}

/// Loop devices on each other, the lowest on a disk; each adds `own[n]` before and 5 ns after.
fn chain(own: &[u64], disk_ns: u64, addresses: bool) -> (Vec<Tree>, Quality) {
    let mut kernel = Simulated::new();
    kernel.addresses = addresses;
    let devs: Vec<Dev> = (0..own.len() as u32).map(|number| LOOP | number).collect();
    for (at, dev) in devs.iter().enumerate() {
        let below = devs.get(at + 1).copied().unwrap_or(VDA);
        kernel.topology.loops.insert(*dev, Some((below, 0)));
    }
    let place = (64, 8);
    let (mut now, mut open) = (1000, Vec::new());
    for (at, dev) in devs.iter().chain([&VDA]).enumerate() {
        let (tid, above) = (100 + at as u32, at.checked_sub(1).map(|above| devs[above]));
        if let Some(above) = above {
            let event = kernel.fire(now - own[at - 1] + 1, EventKind::WorkQueue, above, place);
            (event.id, event.tid) = (u64::from(above), tid - 1);
            let event = kernel.fire(now, EventKind::WorkStart, above, place);
            (event.id, event.tid) = (u64::from(above), tid);
        }
        let (_, request) = kernel.issue(now, tid, *dev, place);
        open.push((*dev, request));
        now += 10 + own.get(at).copied().unwrap_or(0);
    }
    now += disk_ns;
    for (dev, request) in open.into_iter().rev() {
        kernel.complete(now, dev, request, place);
        now += 5;
    }
    kernel.link()
}

#[test]
fn delays_of_a_chain_of_loop_devices_are_found_where_they_were_planted() {
    for addresses in [true, false] {
        for depth in 1..=6_usize {
            let own: Vec<u64> = (0..depth as u64).map(|at| 1000 * (at + 1)).collect();
            let (trees, quality) = chain(&own, 150_000, addresses);
            assert_eq!(quality.roots, 1, "{depth}: {trees:?}");
            assert_eq!(quality.ambiguous, 0);
            let sums = sums(&trees[0]);
            for (at, delay) in own.iter().enumerate() {
                let worker = sums[&(LOOP | at as u32, Phase::Worker)];
                assert_eq!(worker, *delay, "depth {depth}, layer {at}");
            }
            assert_eq!(sums[&(VDA, Phase::Device)], 150_000);
        }
    }
}

#[test]
fn a_server_that_tells_of_itself_is_a_layer_below_its_connection() {
    let mut kernel = Simulated::new();
    kernel.topology.loops.insert(LOOP, None);
    let (_, request) = kernel.issue(1000, 100, LOOP, (8, 8));
    let event = kernel.fire(1012, EventKind::WorkQueue, LOOP, (0, 0));
    event.id = 77;
    for (time, kind) in [(1050, EventKind::WorkStart), (1060, EventKind::FuseSend)] {
        let event = kernel.fire(time, kind, 42, (0, 0));
        (event.id, event.tid) = (if kind == EventKind::FuseSend { 5 } else { 77 }, 200);
    }
    // Taken 70 ns after it was sent; the reply arrives 30 ns after it was begun.
    let event = kernel.fire(3130, EventKind::Served, 42, (0, 0));
    (event.id, event.extra, event.tid) = (5, 1130, 0);
    kernel.fire(3160, EventKind::FuseEnd, 42, (0, 0)).id = 5;
    kernel.complete(3200, LOOP, request, (8, 8));
    let (trees, quality) = kernel.link();
    assert_eq!((trees.len(), quality.unmatched_ends), (1, 0));
    let sums = sums(&trees[0]);
    assert_eq!(sums[&(42 | FUSE | SERVER, Phase::Device)], 2000);
    assert_eq!(sums[&(42 | FUSE, Phase::Worker)], 70);
    assert_eq!(sums[&(42 | FUSE, Phase::Return)], 30);
    assert!(!sums.contains_key(&(42 | FUSE, Phase::Device)));
}

#[test]
fn a_server_that_tells_of_what_was_not_sent_changes_nothing() {
    let mut kernel = Simulated::new();
    let event = kernel.fire(3130, EventKind::Served, 42, (0, 0));
    (event.id, event.extra) = (5, 1130);
    let (trees, quality) = kernel.link();
    assert_eq!((trees.len(), quality.unmatched_ends), (0, 1));
}

#[test]
fn a_partition_is_a_layer_of_its_own() {
    let mut kernel = Simulated::new();
    let part = 259 << 20;
    kernel.topology.partitions.insert(part);
    let (bio, request) = kernel.issue(1000, 100, VDA, (2056, 8));
    kernel.complete(1150, VDA, request, (2056, 8));
    let event = kernel.fire(997, EventKind::Remap, VDA, (2056, 8));
    (event.id, event.other, event.extra) = (bio, u64::from(part), 8);
    let (trees, quality) = kernel.link();
    assert_eq!((trees.len(), quality.roots), (1, 1));
    assert_eq!(trees[0].spans[0].dev, part);
    assert_eq!(trees[0].spans[0].sector, 8);
    assert_eq!(sums(&trees[0])[&(part, Phase::Block)], 3);
    assert_eq!(trees[0].spans.len(), 2);
}

#[test]
fn copies_of_a_mirror_share_the_time_in_which_both_are_open() {
    let mut kernel = Simulated::new();
    let parent = kernel.address();
    kernel.fire(1000, EventKind::Queue, DM, (8, 8)).id = parent;
    for (disk, end) in [(VDA, 1100), (VDA | 16, 1200)] {
        let (bio, request) = kernel.issue(1010, 100, disk, (72, 8));
        let event = kernel.fire(1010, EventKind::Remap, disk, (72, 8));
        (event.id, event.other, event.extra) = (bio, u64::from(DM), 8);
        // The remap comes before the queue event of its bio.
        let remap = kernel.events.pop().unwrap();
        let at = kernel.events.len() - 3;
        kernel.events.insert(at, remap);
        kernel.complete(end - 2, disk, request, (72, 8));
    }
    kernel.fire(1210, EventKind::BioComplete, DM, (8, 8)).id = parent;
    let (trees, _) = kernel.link();
    assert_eq!(trees.len(), 1, "{trees:?}");
    let sums = sums(&trees[0]);
    let of = |dev: Dev| -> u64 {
        let own = sums.iter().filter(|((of, _), _)| *of == dev);
        own.map(|(_, ns)| *ns).sum()
    };
    // 90 ns of both, 100 ns of the slower one, 10 ns before and after.
    assert_eq!((of(VDA), of(VDA | 16), of(DM)), (45, 145, 20));
}

#[test]
fn merged_bios_end_with_the_request_that_took_them() {
    for addresses in [true, false] {
        let mut kernel = Simulated::new();
        kernel.addresses = addresses;
        let (first, request) = (kernel.address(), kernel.address());
        kernel.fire(1000, EventKind::Queue, VDA, (0, 8)).id = first;
        kernel.fire(1001, EventKind::GetRequest, VDA, (0, 8)).id = first;
        for at in 1..4_u64 {
            let bio = kernel.address();
            kernel
                .fire(1000 + 10 * at, EventKind::Queue, VDA, (8 * at, 8))
                .id = bio;
            kernel
                .fire(1001 + 10 * at, EventKind::BackMerge, VDA, (8 * at, 8))
                .id = bio;
        }
        let event = kernel.fire(1050, EventKind::Issue, VDA, (0, 32));
        (event.id, event.other) = (request, first);
        kernel.complete(1200, VDA, request, (0, 32));
        let (trees, quality) = kernel.link();
        assert_eq!((trees.len(), quality.unmatched_starts), (4, 0));
        for tree in &trees {
            assert_eq!(sums(tree)[&(VDA, Phase::Device)], 150);
        }
    }
}

#[test]
fn the_parts_of_a_split_bio_end_together_and_requeues_count_as_such() {
    for addresses in [true, false] {
        split_and_requeued(addresses);
    }
}

fn split_and_requeued(addresses: bool) {
    let mut kernel = Simulated::new();
    kernel.addresses = addresses;
    let (bio, part) = (kernel.address(), kernel.address());
    let (one, two) = (kernel.address(), kernel.address());
    kernel.fire(1000, EventKind::Queue, VDA, (0, 4120)).id = bio;
    let event = kernel.fire(1001, EventKind::Split, VDA, (0, 4096));
    (event.id, event.extra) = (part, 4096);
    kernel.fire(1002, EventKind::GetRequest, VDA, (0, 4096)).id = part;
    kernel.fire(1003, EventKind::GetRequest, VDA, (4096, 24)).id = bio;
    for (request, of, place) in [(one, part, (0, 4096)), (two, bio, (4096, 24))] {
        for (time, kind) in [
            (1010, EventKind::Issue),
            (1015, EventKind::Requeue),
            (1100, EventKind::Insert),
            (1200, EventKind::Issue),
        ] {
            let event = kernel.fire(time, kind, VDA, place);
            (event.id, event.other) = (request, of);
        }
    }
    kernel.complete(1300, VDA, one, (0, 4096));
    kernel.complete(1500, VDA, two, (4096, 24));
    let (trees, quality) = kernel.link();
    assert_eq!((trees.len(), quality.unmatched_ends), (1, 0));
    let sums = sums(&trees[0]);
    assert_eq!(sums[&(VDA, Phase::Requeued)], 85);
    assert_eq!(sums[&(VDA, Phase::Scheduler)], 100);
    assert_eq!(trees[0].spans[0].end_ns, 1502);
}

#[test]
fn a_flush_of_the_kernel_serves_several_and_belongs_to_none() {
    let mut kernel = Simulated::new();
    let (bio, request, flush) = (kernel.address(), kernel.address(), kernel.address());
    let event = kernel.fire(1000, EventKind::Queue, VDA, (0, 0));
    (event.id, event.op) = (bio, Op::Write);
    kernel.fire(1001, EventKind::GetRequest, VDA, (0, 0)).id = bio;
    let event = kernel.fire(1010, EventKind::Issue, VDA, (0, 0));
    (event.id, event.op) = (flush, Op::Flush);
    let event = kernel.fire(1100, EventKind::Complete, VDA, (u64::MAX, 0));
    (event.id, event.op) = (flush, Op::Flush);
    let event = kernel.fire(1110, EventKind::Complete, VDA, (0, 0));
    (event.id, event.other) = (request, bio);
    kernel.fire(1112, EventKind::Done, VDA, (0, 0)).id = request;
    let (trees, quality) = kernel.link();
    assert_eq!(
        (trees.len(), quality.shared_flushes, quality.unmatched_ends),
        (1, 1, 0)
    );
    assert_eq!(trees[0].spans[0].end_ns, 1112);
}

#[test]
fn a_flush_of_the_kernel_does_not_end_the_request_at_sector_0_that_waits_for_it() {
    // An fsync without addresses, as Linux 6.18 fires it on a device with a write-back cache.
    let mut kernel = Simulated::new();
    kernel.addresses = false;
    for (time, kind, op, sector) in [
        (1000, EventKind::Queue, Op::Write, 0),
        (1001, EventKind::GetRequest, Op::Write, 0),
        (1010, EventKind::Issue, Op::Flush, 0),
        (1100, EventKind::Complete, Op::Flush, u64::MAX),
        (1105, EventKind::Done, Op::Flush, 0),
        (1110, EventKind::Complete, Op::Write, 0),
        (1112, EventKind::Done, Op::Write, 0),
    ] {
        kernel.fire(time, kind, VDA, (sector, 0)).op = op;
    }
    let (trees, quality) = kernel.link();
    assert_eq!((trees.len(), quality.shared_flushes), (1, 1));
    assert_eq!((quality.unmatched_ends, quality.ambiguous), (0, 0));
    assert_eq!(trees[0].spans[0].end_ns, 1112);
}

#[test]
fn what_a_vanished_device_never_ends_is_unmatched() {
    let mut kernel = Simulated::new();
    for at in 0..10 {
        kernel.issue(1000 + at * 20, 100, VDA, (8 * at, 8));
    }
    let (trees, quality) = kernel.link();
    assert_eq!((trees.len(), quality.unmatched_starts), (0, 10));
    // An end whose start came before the trace.
    let mut kernel = Simulated::new();
    kernel.complete(1000, VDA, ADDRESS, (8, 8));
    assert_eq!(kernel.link().1.unmatched_ends, 1);
}

#[test]
fn a_request_whose_end_was_lost_does_not_lend_its_start_to_the_next_one() {
    let mut kernel = Simulated::new();
    let (bio, _) = kernel.issue(1000, 100, VDA, (8, 8));
    // The memory of bio and request is used again.
    let request = bio + 0x100;
    for (time, kind, id, other) in [
        (9000, EventKind::Queue, bio, 0),
        (9001, EventKind::GetRequest, bio, 0),
        (9002, EventKind::Issue, request, bio),
        (9500, EventKind::Complete, request, bio),
        (9502, EventKind::Done, request, 0),
    ] {
        let event = kernel.fire(time, kind, VDA, (800, 8));
        (event.id, event.other, event.extra) = (id, other, 4096);
    }
    let (trees, quality) = kernel.link();
    assert_eq!((trees.len(), quality.unmatched_starts), (1, 1));
    assert_eq!(trees[0].spans[0].start_ns, 9000);
}

#[test]
fn two_reads_of_one_place_are_ambiguous_without_addresses_and_exact_with_them() {
    for addresses in [true, false] {
        let mut kernel = Simulated::new();
        kernel.addresses = addresses;
        let (_, one) = kernel.issue(1000, 100, VDA, (8, 8));
        let (_, two) = kernel.issue(2000, 101, VDA, (8, 8));
        kernel.complete(3000, VDA, one, (8, 8));
        kernel.complete(4000, VDA, two, (8, 8));
        let (trees, quality) = kernel.link();
        assert_eq!(trees.len(), 2);
        assert_eq!(quality.ambiguous, if addresses { 0 } else { 2 });
        let whole: u64 = trees
            .iter()
            .map(|tree| sums(tree).values().sum::<u64>())
            .sum();
        assert_eq!(whole, 4004, "sums are right in any case");
    }
}

#[test]
fn a_clock_that_goes_back_is_counted_and_breaks_no_sum() {
    let mut kernel = Simulated::new();
    let (_, request) = kernel.issue(5000, 100, VDA, (8, 8));
    let mut linker = Linker::new(kernel.topology.clone());
    kernel.complete(1000, VDA, request, (8, 8));
    for event in &kernel.events {
        linker.event(event);
    }
    let (trees, quality) = linker.finish();
    assert!(quality.clock_backwards > 0);
    sums(&trees[0]);
}

#[test]
fn the_wake_up_is_a_part_of_a_synchronous_request() {
    let mut kernel = Simulated::new();
    kernel.topology.has_run = true;
    let (_, request) = kernel.issue(1000, 100, VDA, (8, 8));
    kernel.complete(1150, VDA, request, (8, 8));
    kernel.fire(1190, EventKind::Run, 0, (0, 0));
    let (_, request) = kernel.issue(2000, 100, VDA, (8, 8));
    kernel.complete(2150, VDA, request, (8, 8));
    // This one polls: it submits again without having slept.
    kernel.issue(2160, 100, VDA, (16, 8));
    let (trees, _) = kernel.link();
    assert_eq!(sums(&trees[0])[&(VDA, Phase::WakeUp)], 38);
    assert!(!sums(&trees[1]).contains_key(&(VDA, Phase::WakeUp)));
}

#[test]
fn a_thread_that_ran_before_its_request_was_accounted_waits_for_no_later_run() {
    let mut kernel = Simulated::new();
    kernel.topology.has_run = true;
    let (_, request) = kernel.issue(1000, 100, VDA, (8, 8));
    // Reported at 1150, accounted at 1152; the thread was woken between.
    kernel.complete(1150, VDA, request, (8, 8));
    kernel.fire(1151, EventKind::Run, 0, (0, 0));
    // Another thread had its processor for a while.
    kernel.fire(900_000, EventKind::Run, 0, (0, 0));
    let (trees, _) = kernel.link();
    assert_eq!(trees.len(), 1);
    assert!(!sums(&trees[0]).contains_key(&(VDA, Phase::WakeUp)));
    assert_eq!(trees[0].spans[0].end_ns, 1152);
}

#[test]
fn a_hundred_thousand_processes_and_a_million_lost_ends_stay_within_bounds() {
    let mut linker = Linker::new(Topology {
        has_done: true,
        has_run: true,
        ..Topology::default()
    });
    let mut kernel = Simulated::new();
    let mut ended = 0;
    for tid in 0..100_000_u32 {
        kernel.events.clear();
        let at = u64::from(tid) * 1000;
        let (_, request) = kernel.issue(at, tid, VDA, (u64::from(tid) * 8, 8));
        if tid % 2 == 0 {
            kernel.complete(at + 100, VDA, request, (u64::from(tid) * 8, 8));
        }
        for event in &kernel.events {
            linker.event(event);
        }
        ended += linker.take().len();
        assert!(linker.live.open_count() <= OPEN_MAX + 1);
    }
    let (rest, quality) = linker.finish();
    assert_eq!(ended + rest.len(), 50_000);
    assert_eq!(quality.unmatched_starts, 50_000);
}

#[test]
fn a_request_that_failed_is_marked_on_each_device_that_reported_it() {
    let mut kernel = Simulated::new();
    let (_, request) = kernel.issue(1000, 100, VDA, (8, 8));
    kernel.complete(1100, VDA, request, (8, 8));
    let failed = kernel.events.len() - 2;
    kernel.events[failed].extra |= FAILED;
    let bio = kernel.address();
    kernel.fire(2000, EventKind::Queue, DM, (8, 8)).id = bio;
    let event = kernel.fire(2100, EventKind::BioComplete, DM, (8, 8));
    (event.id, event.extra) = (bio, FAILED);
    let (_, request) = kernel.issue(3000, 100, VDA, (8, 8));
    kernel.complete(3100, VDA, request, (8, 8));
    let (trees, _) = kernel.link();
    let failed: Vec<bool> = trees.iter().map(|tree| tree.spans[0].failed).collect();
    assert_eq!(failed, [true, true, false]);
}

/// RAID 0 remaps the bio itself; bcache without a cache does not even tell of that.
#[test]
fn a_bio_that_is_handed_on_ends_on_both_devices() {
    for (addresses, remaps) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut kernel = Simulated::new();
        kernel.addresses = addresses;
        let (bio, request) = (kernel.address(), kernel.address());
        kernel.fire(1000, EventKind::Queue, DM, (8, 8)).id = bio;
        if remaps {
            let event = kernel.fire(1010, EventKind::Remap, VDA, (108, 8));
            (event.id, event.other, event.extra) = (bio, u64::from(DM), 8);
        }
        kernel.fire(1020, EventKind::GetRequest, VDA, (108, 8)).id = bio;
        let event = kernel.fire(1030, EventKind::Issue, VDA, (108, 8));
        (event.id, event.other) = (request, bio);
        kernel.complete(1130, VDA, request, (108, 8));
        let (trees, quality) = kernel.link();
        assert_eq!(
            (trees.len(), quality.unmatched_starts),
            (1, 0),
            "{addresses} {remaps}"
        );
        let sums = sums(&trees[0]);
        let entered = if remaps { 10 } else { 20 };
        assert_eq!(sums.get(&(DM, Phase::Block)), Some(&entered), "{sums:?}");
        assert_eq!(sums.get(&(VDA, Phase::Device)), Some(&100), "{sums:?}");
        assert_eq!(
            (trees[0].spans[0].end_ns, trees[0].spans[1].end_ns),
            (1132, 1132)
        );
    }
}

/// Both parts of a bio that RAID 0 split are handed on, to devices without requests.
#[test]
fn parts_of_a_split_bio_are_handed_on_each() {
    let mut kernel = Simulated::new();
    let (bio, part) = (kernel.address(), kernel.address());
    let (one, two) = (VDA | 16, VDA | 32);
    kernel.fire(1000, EventKind::Queue, DM, (0, 16)).id = bio;
    let event = kernel.fire(1005, EventKind::Split, DM, (0, 8));
    (event.id, event.extra) = (part, 8);
    for (at, id, dev, sector) in [(1010, part, one, 0), (1040, bio, two, 8)] {
        let event = kernel.fire(at, EventKind::Remap, dev, (sector, 8));
        (event.id, event.other, event.extra) = (id, u64::from(DM), sector);
        kernel
            .fire(at + 20, EventKind::BioComplete, dev, (sector, 8))
            .id = id;
    }
    let (trees, quality) = kernel.link();
    assert_eq!((trees.len(), quality.unmatched_starts), (1, 0), "{trees:?}");
    let sums = sums(&trees[0]);
    assert_eq!(sums.get(&(one, Phase::Block)), Some(&20), "{sums:?}");
    assert_eq!(sums.get(&(two, Phase::Block)), Some(&20), "{sums:?}");
    assert_eq!(trees[0].spans[0].end_ns, 1060);
}

proptest! {
    #[test]
    fn parts_of_any_tree_add_up(
        spans in prop::collection::vec(
            (0_u64..1000, 0_u64..1000, 0_usize..8, prop::collection::vec(0_u64..1200, 0..4)),
            1..20,
        )
    ) {
        let mut tree = Tree { spans: Vec::new() };
        for (position, (start, length, parent, inside)) in spans.into_iter().enumerate() {
            let mut phases = vec![(start, Phase::Block)];
            let mut inside = inside;
            inside.sort_unstable();
            phases.extend(inside.into_iter().map(|at| (start.max(at), Phase::Device)));
            tree.spans.push(Span {
                dev: 0,
                op: Op::Read,
                sector: 0,
                sectors: 8,
                tid: 1,
                pid: 1,
                start_ns: start,
                end_ns: start + length,
                phases,
                parent: (position > 0).then(|| parent % position.max(1)),
                ambiguous: false,
                failed: false,
                file: None,
            });
        }
        sums(&tree);
    }

    #[test]
    fn any_events_are_linked_or_counted(
        stream in prop::collection::vec(
            (0_usize..20, 0_u64..4, 0_u64..4, 0_u64..64, 0_u32..16, 0_u32..4, 0_u64..9), 0..200
        ),
        addresses: bool,
        has_done: bool,
    ) {
        let mut kernel = Simulated::new();
        kernel.topology.has_done = has_done;
        kernel.topology.loops.insert(LOOP, Some((VDA, 8)));
        kernel.topology.loops.insert(LOOP | 1, None);
        kernel.topology.partitions.insert(3);
        let devs = [VDA, LOOP, LOOP | 1, 3];
        for (at, (kind, id, other, sector, sectors, tid, extra)) in stream.into_iter().enumerate() {
            let dev = devs[tid as usize];
            // Some at the end of the numbers, as a damaged recording has them.
            let sector = if sector < 56 { sector } else { u64::MAX - (63 - sector) };
            let event = kernel.fire(at as u64 * 3, EventKind::ALL[kind], dev, (sector, sectors));
            if addresses {
                event.id = ADDRESS + id;
                event.other = if other == 0 { 0 } else { ADDRESS + other };
            }
            event.tid = tid;
            event.extra = extra * 512;
        }
        let (trees, quality) = kernel.link();
        prop_assert_eq!(quality.roots, trees.len() as u64);
        for tree in &trees {
            sums(tree);
        }
    }
}

#[test]
fn requests_that_begin_outside_of_a_window_are_no_part_of_the_sample() {
    let mut kernel = Simulated::new();
    let window = |kernel: &mut Simulated, at, extra| {
        let event = kernel.fire(at, EventKind::Window, 0, (0, 0));
        (event.tid, event.pid, event.extra) = (0, 0, extra);
    };
    window(&mut kernel, 900, WINDOW_OPEN);
    // One ends after the window, one begins after it, one never ends, one begins in the next.
    let (_, inside) = kernel.issue(1000, 100, VDA, (8, 8));
    let (_, lost) = kernel.issue(1050, 100, VDA, (80, 8));
    window(&mut kernel, 1100, 0);
    let (_, outside) = kernel.issue(1200, 100, VDA, (16, 8));
    kernel.complete(1300, VDA, inside, (8, 8));
    kernel.complete(1400, VDA, outside, (16, 8));
    let (_, late) = kernel.issue(1450, 100, VDA, (24, 8));
    window(&mut kernel, 1500, WINDOW_CLOSED);
    window(&mut kernel, 9000, WINDOW_OPEN);
    // Ends of what began in the pause, or before it.
    kernel.complete(9050, VDA, lost, (80, 8));
    kernel.complete(9060, VDA, late, (24, 8));
    let (_, next) = kernel.issue(9100, 100, VDA, (8, 8));
    kernel.complete(9200, VDA, next, (8, 8));
    let (trees, quality) = kernel.link();
    let starts: Vec<u64> = trees.iter().map(|tree| tree.spans[0].start_ns).collect();
    assert_eq!(starts, [1000, 9100]);
    assert_eq!((quality.roots, quality.unmatched_starts), (2, 1));
}
