//! Places against what the options say.

use super::*;
use crate::error::Origin;
use crate::options::Setting;
use crate::options::apply;

fn job(settings: &[(&str, &str)]) -> Job {
    let mut job = Job::new("test", Origin::Default);
    for (name, value) in settings {
        let setting = Setting {
            name: (*name).to_owned(),
            value: Some((*value).to_owned()),
            origin: Origin::Default,
        };
        apply(&mut job, &setting).unwrap();
    }
    job
}

fn regions(lengths: &[u64]) -> Vec<Region> {
    let region = |length: &u64| Region {
        name: "f".to_owned(),
        start: 1 << 20,
        length: *length,
    };
    lengths.iter().map(region).collect()
}

fn all(places: &mut Places, kind: usize) -> Vec<Place> {
    std::iter::from_fn(|| places.next(kind))
        .take(1 << 20)
        .collect()
}

#[test]
fn a_sequence_covers_its_region_and_leaves_a_remainder_out() {
    let job = job(&[("rw", "read"), ("bs", "4k")]);
    let mut places = Places::new(&job, &regions(&[4096 * 3 + 100]), 1);
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
        let mut places = Places::new(&job, &regions(&[blocks * 4096]), 5);
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
    let mut places = Places::new(&job, &regions(&[4096 * 10]), 5);
    for _ in 0..1000 {
        let place = places.next(0).unwrap();
        let end = place.offset + u64::from(place.length);
        assert!(place.offset >= 1 << 20 && end <= (1 << 20) + 40960);
    }
}

#[test]
fn files_take_turns_and_the_modifier_makes_runs() {
    let job = job(&[("rw", "read"), ("bs", "4k")]);
    let mut places = Places::new(&job, &regions(&[8192, 8192]), 1);
    let files: Vec<u32> = all(&mut places, 0).iter().map(|place| place.file).collect();
    assert_eq!(files, [0, 1, 0, 1]);

    let job = self::job(&[("rw", "randread:4"), ("norandommap", "1"), ("bs", "4k")]);
    let mut places = Places::new(&job, &regions(&[4096 * 100_000]), 1);
    let offsets: Vec<u64> = (0..400).map(|_| places.next(0).unwrap().offset).collect();
    let follow = offsets
        .windows(2)
        .filter(|pair| pair[1] == pair[0] + 4096)
        .count();
    assert!((298..=305).contains(&follow), "{follow}");

    let job = self::job(&[("rw", "read:4k"), ("bs", "4k")]);
    let mut places = Places::new(&job, &regions(&[4096 * 4]), 1);
    let offsets: Vec<u64> = all(&mut places, 0)
        .iter()
        .map(|place| place.offset)
        .collect();
    assert_eq!(offsets, [1 << 20, (1 << 20) + 8192]);
}
