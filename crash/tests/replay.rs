//! The states against a model of dm-log-writes, by the kernel's description
//! (Documentation/admin-guide/device-mapper/log-writes.rst): a write is logged when a FLUSH has
//! completed that was issued after the write's completion, a FUA write when it has completed. A
//! replay to a FLUSH or a FUA is our state at that record without any volatile write; other
//! completed writes are there in the state with all of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use ugeom_classes::crash::Recorder;
use ugeom_crash::{CampaignSettings, CrashState, Disk, NamedState, answer, replay};
use ugeom_format::crash_log::{Entry, Header};

const SECTOR: usize = 512;
const SECTORS: usize = 8;
const HISTORIES: u64 = 12;

/// The content of each sector, by the first byte.
type Content = [u8; SECTORS];

/// A write, from its submission on.
#[derive(Clone, Copy)]
struct Write {
    number: u64,
    sector: usize,
    value: u8,
    fua: bool,
    completed: bool,
    logged: bool,
}

/// The disk below dm-log-writes, and what a replay of its log shows.
#[derive(Default)]
struct Model {
    writes: Vec<Write>,
    replayed: Content,
}

impl Model {
    /// Writes go into the log in the order of their completion; none in flight share a sector, so
    /// the order of those of one sector is that of their submission.
    fn log(&mut self, which: impl Fn(&Write) -> bool) {
        for write in self.writes.iter_mut() {
            if !write.logged && which(write) {
                write.logged = true;
                self.replayed[write.sector] = write.value;
            }
        }
    }

    fn in_flight(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter().filter(|write| !write.completed)
    }

    /// Our writes that no barrier covers.
    fn volatile(&self) -> BTreeSet<u64> {
        let volatile = self.writes.iter().filter(|write| !write.logged);
        volatile.map(|write| write.number).collect()
    }

    /// With everything that was submitted.
    fn newest(&self) -> Content {
        let mut content = self.replayed;
        let volatile = self.writes.iter().filter(|write| !write.logged);
        volatile.for_each(|write| content[write.sector] = write.value);
        content
    }
}

/// A FLUSH in flight: its ticket, and the writes that had completed when it was issued.
struct Flush {
    ticket: u64,
    covers: Vec<u64>,
}

/// The content that the disk must have after a record: without any volatile write, and with all of
/// them.
struct Expected {
    cut: u64,
    volatile: BTreeSet<u64>,
    replayed: Content,
    newest: Content,
}

/// A random history, recorded; what dm-log-writes would show at each FLUSH and FUA, and before.
fn history(log: &Path, seed: u64) -> Vec<Expected> {
    let header = Header {
        media_bytes: (SECTOR * SECTORS) as u64,
        sector_bytes: SECTOR as u32,
    };
    let recorder = Recorder::create(log, header).expect("a log");
    recorder.begin();
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut model, mut flushes, mut expected) = (Model::default(), Vec::new(), Vec::new());
    for step in 1..=120_u8 {
        match random.u8(..8) {
            0..3 => submit(&recorder, &mut model, &mut random, step),
            3..6 => {
                let numbers: Vec<usize> = model.in_flight().map(|it| it.number as usize).collect();
                let Some(number) = random.choice(numbers) else { continue };
                complete(&recorder, &mut model, number as u64);
            }
            6 => {
                let completed = model.writes.iter().filter(|write| write.completed);
                flushes.push(Flush {
                    ticket: recorder.flush(),
                    covers: completed.map(|write| write.number).collect(),
                });
                continue;
            }
            _ if flushes.is_empty() => continue,
            _ => {
                let flush: Flush = flushes.swap_remove(random.usize(..flushes.len()));
                recorder.flushed(flush.ticket, true);
                model.log(|write| flush.covers.contains(&write.number));
            }
        }
        expected.push(Expected {
            cut: recorder.records() - 1,
            volatile: model.volatile(),
            replayed: model.replayed,
            newest: model.newest(),
        });
    }
    recorder.write_out().expect("the log");
    expected
}

fn submit(recorder: &Recorder, model: &mut Model, random: &mut fastrand::Rng, value: u8) {
    let busy: Vec<usize> = model.in_flight().map(|write| write.sector).collect();
    let free = (0..SECTORS).filter(|sector| !busy.contains(sector));
    let Some(sector) = random.choice(free.collect::<Vec<_>>()) else { return };
    let fua = random.u8(..4) == 0;
    let entry = Entry::Write {
        offset_bytes: (sector * SECTOR) as u64,
        length_bytes: SECTOR as u64,
        fua,
    };
    let number = recorder.submitted(entry, |with| with(&[value; SECTOR]));
    model.writes.push(Write {
        number: number.expect("the log"),
        sector,
        value,
        fua,
        completed: false,
        logged: false,
    });
}

fn complete(recorder: &Recorder, model: &mut Model, number: u64) {
    let write = model.writes.iter_mut().find(|write| write.number == number);
    let write = write.expect("it was submitted");
    write.completed = true;
    let (fua, sector) = (write.fua, write.sector);
    recorder.completed(number, fua);
    if fua {
        // Both disks apply writes of one sector in order: earlier ones cannot come back over it.
        model.log(|other| other.sector == sector && other.number <= number);
    }
}

fn shown(log: &Path, state: &CrashState) -> Content {
    let seen = Mutex::new([0; SECTORS]);
    let look = |disk: &Disk| {
        let mut bytes = [0; SECTOR * SECTORS];
        let read = disk.read(0, &mut bytes);
        read.map_err(|error| error.to_string())?;
        *seen.lock().expect("not poisoned") = std::array::from_fn(|at| bytes[at * SECTOR]);
        Ok(Vec::new())
    };
    let settings = CampaignSettings::default();
    let replayed = replay(log, &settings, &answer(look), &state.clone().into());
    replayed.unwrap_or_else(|error| panic!("{state}: {error}"));
    seen.into_inner().expect("not poisoned")
}

#[test]
fn a_replay_to_each_flush_and_fua_is_the_state_without_volatile_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut compared = 0;
    for seed in 0..HISTORIES {
        let log = folder.path().join("log");
        for expected in history(&log, seed) {
            let mut state = CrashState {
                cut: expected.cut,
                ..CrashState::default()
            };
            assert_eq!(shown(&log, &state), expected.newest, "seed {seed}: {state}");
            state.lost = expected.volatile;
            assert_eq!(
                shown(&log, &state),
                expected.replayed,
                "seed {seed}: {state}"
            );
            compared += 2;
        }
    }
    println!("{compared} states compared");
}

#[test]
fn the_example_of_the_kernels_description() {
    // W1,W2,W3,C3,C2,Wflush,C1,Cflush is logged as W3,W2,flush,W1.
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let header = Header {
        media_bytes: (SECTOR * SECTORS) as u64,
        sector_bytes: SECTOR as u32,
    };
    let recorder = Recorder::create(&log, header).expect("a log");
    recorder.begin();
    let numbers = [1_u8, 2, 3].map(|value| {
        let entry = Entry::Write {
            offset_bytes: u64::from(value) * SECTOR as u64,
            length_bytes: SECTOR as u64,
            fua: false,
        };
        let number = recorder.submitted(entry, |with| with(&[value; SECTOR]));
        number.expect("the log")
    });
    recorder.completed(numbers[2], false);
    recorder.completed(numbers[1], false);
    let ticket = recorder.flush();
    recorder.completed(numbers[0], false);
    recorder.flushed(ticket, true);
    let cut = recorder.records() - 1;
    recorder.write_out().expect("the log");
    let lost = |lost: BTreeSet<u64>| CrashState {
        cut,
        lost,
        ..CrashState::default()
    };
    let without = shown(&log, &lost([numbers[0]].into()));
    assert_eq!(without, [0, 0, 2, 3, 0, 0, 0, 0], "the replay to the flush");
    assert_eq!(
        shown(&log, &lost(BTreeSet::new())),
        [0, 1, 2, 3, 0, 0, 0, 0]
    );
    let settings = CampaignSettings::default();
    let covered = lost([numbers[1]].into());
    let look = |_: &Disk| Ok(Vec::new());
    let refused = replay(&log, &settings, &answer(look), &covered.into());
    assert!(refused.is_err(), "a FLUSH covers it");
    let all = NamedState {
        state: lost(BTreeSet::new()),
        all_lost: true,
    };
    let replayed = replay(&log, &settings, &answer(look), &all).expect("replays");
    assert_eq!(
        replayed.state,
        lost([numbers[0]].into()),
        "what is volatile, by number"
    );
}
