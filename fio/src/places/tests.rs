//! Places against the meaning of the options.

use super::*;
use ugeom_job::error::Origin;
use ugeom_job::options::Setting;
use ugeom_job::options::apply;
use ugeom_job::settings::{READ, WRITE};

fn job(settings: &[(&str, &str)]) -> Job {
    let mut job = Job::new("test", Origin::Default);
    for (name, value) in settings {
        let setting = Setting::new(name, Some((*value).to_owned()), Origin::Default);
        apply(&mut job, &setting).unwrap();
    }
    job
}

fn regions(lengths: &[u64]) -> Vec<Region> {
    let region = |length: &u64| Region {
        name: "f".to_owned(),
        start: 1 << 20,
        length: *length,
        file_bytes: (1 << 20) + length,
    };
    lengths.iter().map(region).collect()
}

fn next(places: &mut Places, kind: usize) -> Option<Place> {
    places.next(&mut || kind).map(|(_, place)| place)
}

fn places_of(job: &Job, lengths: &[u64], number: u32) -> Places {
    Places::new(job, &regions(lengths), &Seeds::of(job, number)).expect("room")
}

fn all(places: &mut Places, kind: usize) -> Vec<Place> {
    std::iter::from_fn(|| next(places, kind))
        .take(1 << 20)
        .collect()
}

#[test]
fn a_sequence_covers_its_region_and_leaves_a_remainder_out() {
    let job = job(&[("rw", "read"), ("bs", "4k")]);
    let mut places = places_of(&job, &[4096 * 3 + 100], 1);
    let offsets: Vec<u64> = all(&mut places, 0)
        .iter()
        .map(|place| place.offset)
        .collect();
    let start = 1 << 20;
    assert_eq!(offsets, [start, start + 4096, start + 8192]);
    places.restart();
    assert_eq!(all(&mut places, 0).len(), 3);
}

#[test]
fn random_places_visit_every_byte_once_whatever_the_sizes() {
    for sizes in [
        ("bs", "4k"),
        ("bsrange", "4k-64k"),
        ("bssplit", "4k/50:16k/30:64k/20"),
    ] {
        let job = job(&[("rw", "randread"), sizes]);
        let blocks = 1000_u64;
        let mut places = places_of(&job, &[blocks * 4096], 5);
        let mut seen = vec![0; blocks as usize];
        for place in all(&mut places, 0) {
            let first = (place.offset - (1 << 20)) / 4096;
            let count = u64::from(place.length) / 4096;
            (first..first + count).for_each(|block| seen[block as usize] += 1);
        }
        assert!(seen.iter().all(|seen| *seen == 1), "{sizes:?}");
    }
}

#[test]
fn without_a_map_places_repeat_and_stay_inside() {
    let job = job(&[
        ("rw", "randread"),
        ("norandommap", "1"),
        ("bsrange", "4k-16k"),
    ]);
    let mut places = places_of(&job, &[4096 * 10], 5);
    for _ in 0..1000 {
        let place = next(&mut places, 0).unwrap();
        let end = place.offset + u64::from(place.length);
        assert!(place.offset >= 1 << 20 && end <= (1 << 20) + 40960);
    }
}

#[test]
fn files_take_turns_and_the_modifier_makes_runs() {
    let job = job(&[("rw", "read"), ("bs", "4k")]);
    let mut places = places_of(&job, &[8192, 8192], 1);
    let files: Vec<u32> = all(&mut places, 0).iter().map(|place| place.file).collect();
    assert_eq!(files, [0, 1, 0, 1]);

    let job = self::job(&[("rw", "randread:4"), ("norandommap", "1"), ("bs", "4k")]);
    let mut places = places_of(&job, &[4096 * 100_000], 1);
    let offsets: Vec<u64> = (0..400)
        .map(|_| next(&mut places, 0).unwrap().offset)
        .collect();
    let follow = offsets
        .windows(2)
        .filter(|pair| pair[1] == pair[0] + 4096)
        .count();
    assert!((298..=305).contains(&follow), "{follow}");
}

#[test]
fn files_begin_anew_by_themselves_where_fio_begins_them_anew() {
    let files_of = |settings: &[(&str, &str)], count: usize| {
        let settings = [
            &[("bs", "4k"), ("runtime", "1"), ("nrfiles", "3")],
            settings,
        ]
        .concat();
        let mut places = places_of(&job(&settings), &[8192, 4096, 16384], 1);
        let files = std::iter::from_fn(|| next(&mut places, READ).map(|place| place.file));
        files.take(count).collect::<Vec<u32>>()
    };
    // In turn, whatever their lengths are.
    let in_turn = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2];
    assert_eq!(
        files_of(&[("rw", "randread"), ("time_based", "1")], 12),
        in_turn
    );
    // One after the other is worked through: none is left.
    assert_eq!(
        files_of(&[("rw", "read"), ("time_based", "1")], 12),
        [0, 1, 2, 0, 2, 2, 2]
    );
    assert_eq!(files_of(&[("rw", "randread")], 12).len(), 7);
    // One of the files has most requests, and none of them ends.
    let uneven = files_of(&[("rw", "read"), ("file_service_type", "zipf:1.2")], 1000);
    let of = |file| uneven.iter().filter(|one| **one == file).count();
    assert_eq!(uneven.len(), 1000);
    let counts = [of(0), of(1), of(2)];
    let most = counts.iter().max();
    assert!(most > Some(&800) && !counts.contains(&0), "{counts:?}");
}

/// The first random numbers that fio 3.33 draws: the block of 4 KiB and the number of blocks.
#[test]
fn places_are_those_that_fio_draws() {
    let known: [(&[(&str, &str)], &str); 7] = [
        (&[], "15/1 189/1 215/1 120/1 102/1 216/1 97/1 90/1"),
        (
            &[("random_generator", "tausworthe64")],
            "240/1 6/1 20/1 25/1 135/1 7/1 112/1 85/1",
        ),
        (
            &[("random_generator", "lfsr")],
            "235/1 205/1 163/1 196/1 114/1 41/1 154/1 93/1",
        ),
        (
            &[("random_distribution", "zipf:1.1")],
            "47/1 140/1 182/1 231/1 161/1 253/1 203/1 203/1",
        ),
        (
            &[("random_distribution", "pareto:0.2")],
            "47/1 203/1 203/1 63/1 203/1 102/1 203/1 203/1",
        ),
        (
            &[("random_distribution", "normal:20")],
            "187/1 233/1 82/1 6/1 86/1 52/1 18/1 255/1",
        ),
        (
            &[("bsrange", "4k-64k")],
            "15/3 189/11 215/13 120/6 102/15 228/2 97/5 90/3",
        ),
    ];
    for (settings, expected) in known {
        let job = job(&[&[("rw", "randread"), ("bs", "4k")], settings].concat());
        let region = Region {
            name: "j.0.0".to_owned(),
            start: 0,
            length: 1 << 20,
            file_bytes: 1 << 20,
        };
        let mut places = Places::new(&job, &[region], &Seeds::of(&job, 0)).expect("room");
        let places = std::iter::from_fn(|| next(&mut places, READ)).take(8);
        let places = places.map(|place| format!("{}/{}", place.offset >> 12, place.length >> 12));
        let places: Vec<String> = places.collect();
        assert_eq!(places.join(" "), expected, "{settings:?}");
    }
}

/// Offsets of `count` requests of a kind in one file of 16 blocks of 4 KiB, in blocks.
fn blocks_in_turn(settings: &[(&str, &str)], file_blocks: u64, kinds: &[usize]) -> Vec<u64> {
    let region = Region {
        name: "f".to_owned(),
        start: 0,
        length: 16 * 4096,
        file_bytes: file_blocks * 4096,
    };
    let mut places = {
        let job = job(settings);
        Places::new(&job, &[region], &Seeds::of(&job, 1)).expect("room")
    };
    let offset = |kind: &usize| Some(next(&mut places, *kind)?.offset / 4096);
    kinds.iter().map_while(offset).collect()
}

#[test]
fn zones_begin_anew_at_the_end_of_the_region_of_a_longer_file() {
    let zones = [
        ("zonemode", "strided"),
        ("zonesize", "8k"),
        ("zoneskip", "16k"),
    ];
    let settings = [&zones[..], &[("rw", "read"), ("bs", "4k")]].concat();
    let blocks = blocks_in_turn(&settings, 32, &[READ; 10]);
    assert_eq!(blocks, [0, 1, 6, 7, 12, 13, 0, 1, 6, 7]);
}

#[test]
fn steps_forward_begin_anew_at_the_end_of_the_file_and_steps_back_there() {
    let reads = [READ; 18];
    let forward = [("rw", "read:4k"), ("bs", "4k")];
    let blocks = blocks_in_turn(&forward, 16, &reads);
    let gaps = [0, 2, 4, 6, 8, 10, 12, 14];
    assert_eq!(blocks, [&gaps[..], &gaps, &gaps[..2]].concat());
    assert_eq!(blocks_in_turn(&forward, 32, &reads), gaps);

    let back = [("rw", "read:-8k"), ("bs", "4k")];
    let blocks = blocks_in_turn(&back, 16, &reads);
    let down: Vec<u64> = std::iter::once(0).chain((0..15).rev()).collect();
    assert_eq!(blocks[..16], down);
}

#[test]
fn requests_of_any_kind_count_until_a_place_is_drawn() {
    let settings = [
        ("rw", "randrw:4"),
        ("bs", "4k"),
        ("rw_sequencer", "identical"),
        ("norandommap", "1"),
    ];
    let kinds = [READ, WRITE, WRITE, READ, WRITE, WRITE];
    let blocks = blocks_in_turn(&settings, 16, &kinds);
    // The fifth is drawn, a write; those before repeat what their kind had last.
    assert_eq!(blocks[1..4], [0, 0, blocks[0]]);
    assert_eq!(blocks[4], blocks[5]);
    assert_ne!(blocks[4], 0);
}

#[test]
fn sizes_of_several_kinds_are_kept_and_share_a_map() {
    let settings = [("rw", "randrw"), ("bs", "4k,6k")];
    let mut places = places_of(&job(&settings), &[1 << 20], 1);
    let mut taken = vec![false; 256];
    let mut requests = 0;
    for kind in [READ, WRITE].into_iter().cycle() {
        let Some(place) = next(&mut places, kind) else {
            break;
        };
        let (size, offset) = ([4096, 6144][kind], place.offset - (1 << 20));
        assert!(u64::from(place.length) == size && offset.is_multiple_of(size));
        let bit = &mut taken[(offset / size) as usize];
        assert!(!std::mem::replace(bit, true));
        requests += 1;
    }
    // The last third of the map belongs to reads, since larger writes have fewer places.
    assert!((100..256).contains(&requests), "{requests}");

    let unmapped = job(&[("rw", "randwrite"), ("bs", "4k,6k"), ("norandommap", "1")]);
    let mut places = places_of(&unmapped, &[1 << 20], 1);
    assert!((0..500).all(|_| next(&mut places, WRITE).unwrap().length == 6144));
}

#[test]
fn sizes_of_a_range_are_multiples_of_the_smallest_or_the_largest_and_fit() {
    let job = self::job(&[
        ("rw", "randread"),
        ("bsrange", "3k-10k"),
        ("norandommap", "1"),
    ]);
    let mut places = places_of(&job, &[100 << 10], 1);
    let mut seen = [0; 4];
    for _ in 0..4000 {
        let place = next(&mut places, READ).unwrap();
        assert!(place.offset + u64::from(place.length) <= (1 << 20) + (100 << 10));
        let size = [3 << 10, 6 << 10, 9 << 10, 10 << 10]
            .iter()
            .position(|size| *size == place.length);
        seen[size.unwrap()] += 1;
    }
    // 3, 3, 3 and 1 of ten, but for what does not fit at the end.
    assert!(seen[..3].iter().all(|count| (1000..1500).contains(count)) && seen[3] < 600);
}

#[test]
fn aligned_places_leave_room_for_the_smallest_size() {
    let job = job(&[("rw", "randread"), ("bs", "4k"), ("ba", "1k")]);
    let mut places = places_of(&job, &[64 << 10], 1);
    assert!((0..2000).all(|_| next(&mut places, READ).unwrap().length == 4096));
}

/// Offsets from the start of the region.
fn offsets(settings: &[(&str, &str)], lengths: &[u64]) -> Vec<u64> {
    let mut places = places_of(&job(settings), lengths, 0);
    let places = all(&mut places, READ);
    places
        .iter()
        .map(|place| place.offset - (1 << 20))
        .collect()
}

#[test]
fn zones_are_left_when_all_files_have_had_their_size() {
    let zones = [
        ("rw", "read"),
        ("bs", "4k"),
        ("zonemode", "strided"),
        ("zonesize", "8k"),
        ("zoneskip", "8k"),
    ];
    assert_eq!(
        offsets(&zones, &[24 << 10])[..5],
        [0, 4096, 16384, 20480, 0]
    );
    // Every second request is for the second file; both count.
    let two = offsets(&zones, &[24 << 10, 24 << 10]);
    assert_eq!(two[..6], [0, 0, 16384, 4096, 0, 0]);
    // fio ignores zones of several open files.
    let open = [&zones[..], &[("openfiles", "2")]].concat();
    assert_eq!(
        offsets(&open, &[24 << 10, 24 << 10])[..4],
        [0, 0, 4096, 4096]
    );
}

#[test]
fn offsets_of_a_law_count_from_the_zone_and_may_be_past_it() {
    let settings = [
        ("rw", "randread"),
        ("bs", "4k"),
        ("random_distribution", "normal:10"),
        ("zonemode", "strided"),
        ("zonesize", "64k"),
        ("zoneskip", "64k"),
    ];
    // fio 3.33 makes 32 requests of these.
    let found = offsets(&settings, &[1 << 20]);
    assert_eq!(found.len(), 32);
    assert!(found.iter().any(|offset| *offset > 256 << 10));
}

#[test]
fn an_alignment_of_the_size_of_requests_keeps_the_map() {
    let settings = |align| [("rw", "randread"), ("bs", "4k"), ("ba", align)];
    let visits_once = |align| job(&settings(align)).visits_once();
    assert_eq!([visits_once("4k"), visits_once("8k")], [true, false]);
}
