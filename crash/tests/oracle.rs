//! The states of random runs, against all that a disk with a volatile cache may show, counted out
//! by a model that knows nothing of logs.

use std::collections::BTreeSet;
use std::sync::Mutex;
use ugeom_crash::{CampaignSettings, Disk, Points, Recording, answer, campaign};

const SECTOR: usize = 512;
const SECTORS: usize = 4;
/// Where all subsets are tried.
const VOLATILE_MAX: usize = 6;

#[derive(Clone, Copy, Debug)]
enum Act {
    Write(usize),
    WriteDurably(usize),
    Flush,
}

/// The first byte of each sector.
type Content = [u8; SECTORS];

/// A run in which never more than [`VOLATILE_MAX`] writes are volatile.
fn acts(random: &mut fastrand::Rng) -> Vec<Act> {
    let mut volatile = 0;
    let act = |_| {
        let sector = random.usize(..SECTORS);
        match random.u8(..10) {
            0..6 if volatile < VOLATILE_MAX => {
                volatile += 1;
                Act::Write(sector)
            }
            6..8 if volatile < VOLATILE_MAX => Act::WriteDurably(sector),
            _ => {
                volatile = 0;
                Act::Flush
            }
        }
    };
    (0..16).map(act).collect()
}

/// All contents that a power cut during or after the run may leave.
fn allowed(acts: &[Act]) -> BTreeSet<Content> {
    // Each write with its value and whether it is durable.
    let mut writes: Vec<(usize, u8, bool)> = Vec::new();
    let mut found = BTreeSet::new();
    add_all(&writes, &mut found);
    for (index, act) in acts.iter().enumerate() {
        let value = index as u8 + 1;
        match act {
            Act::Write(sector) => writes.push((*sector, value, false)),
            Act::WriteDurably(sector) => {
                writes.push((*sector, value, false));
                add_all(&writes, &mut found);
                writes.last_mut().expect("just added").2 = true;
            }
            Act::Flush => writes.iter_mut().for_each(|write| write.2 = true),
        }
        add_all(&writes, &mut found);
    }
    found
}

/// The contents with each subset of what is not durable.
fn add_all(writes: &[(usize, u8, bool)], found: &mut BTreeSet<Content>) {
    let volatile = writes.iter().filter(|write| !write.2).count();
    for subset in 0..1_u32 << volatile {
        let mut content = [0; SECTORS];
        let mut bit = 0;
        for (sector, value, durable) in writes {
            let kept = *durable || {
                bit += 1;
                subset >> (bit - 1) & 1 == 1
            };
            if kept {
                content[*sector] = *value;
            }
        }
        found.insert(content);
    }
}

#[test]
fn the_states_are_those_that_a_cache_may_leave_and_all_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..60 {
        let acts = acts(&mut fastrand::Rng::with_seed(seed));
        let log = folder.path().join("log");
        let recording = Recording::start(&log, (SECTORS * SECTOR) as u64).expect("a recording");
        let disk = recording.disk();
        recording.begin();
        for (index, act) in acts.iter().enumerate() {
            let data = [index as u8 + 1; SECTOR];
            let done = match act {
                Act::Write(sector) => disk.write((sector * SECTOR) as u64, &data),
                Act::WriteDurably(sector) => disk.write_durably((sector * SECTOR) as u64, &data),
                Act::Flush => disk.flush(),
            };
            done.expect("it is a disk");
        }
        recording.finish().expect("a log");
        let seen = Mutex::new(BTreeSet::new());
        let look = |disk: &Disk| {
            let mut bytes = [0; SECTORS * SECTOR];
            disk.read(0, &mut bytes)
                .map_err(|error| error.to_string())?;
            let content: Content = std::array::from_fn(|sector| bytes[sector * SECTOR]);
            seen.lock().expect("not poisoned").insert(content);
            // A check may write: the next state must not show it.
            disk.write(0, &[0xff; SECTOR])
                .map_err(|error| error.to_string())?;
            Ok(Vec::new())
        };
        let settings = CampaignSettings {
            points: Points::All,
            lanes: 1 + seed as usize % 3,
            ..CampaignSettings::default()
        };
        let outcome = campaign(&log, &settings, &answer(look)).expect("a campaign");
        assert_eq!(outcome.failed, 0);
        let seen = seen.into_inner().expect("not poisoned");
        assert_eq!(seen, allowed(&acts), "seed {seed}: {acts:?}");
    }
}
