//! A worked example: redb, a database in Rust, on a recorded disk. It survives every crash with
//! its usual durability; with `Durability::None` it is caught.

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use std::io;
use std::sync::Mutex;
use ugeom_crash::{CampaignSettings, Disk, Outcome, Points, Recording, answer, campaign};

const SECTOR: u64 = 512;
const SIZE_BYTES: u64 = 4 << 20;
const TRANSACTIONS: u64 = 12;
const TABLE: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("t");

/// A file on a disk: the first sector has its length, the data follows.
#[derive(Debug)]
struct FileOnDisk {
    disk: Hidden,
    /// One write at a time: parts of sectors are read, changed and written.
    writing: Mutex<()>,
}

/// A disk, which has nothing to show.
struct Hidden(Disk);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Disk")
    }
}

impl FileOnDisk {
    fn new(disk: &Disk) -> Self {
        Self {
            disk: Hidden(disk.clone()),
            writing: Mutex::new(()),
        }
    }

    fn length(&self) -> io::Result<u64> {
        let mut word = [0; 8];
        self.disk.0.read(0, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn change(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let _one = self.writing.lock().expect("not poisoned");
        let start = offset / SECTOR * SECTOR;
        let end = (offset + data.len() as u64).next_multiple_of(SECTOR);
        let mut sectors = vec![0; (end - start) as usize];
        self.disk.0.read(start, &mut sectors)?;
        let at = (offset - start) as usize;
        sectors[at..at + data.len()].copy_from_slice(data);
        self.disk.0.write(start, &sectors)
    }
}

impl redb::StorageBackend for FileOnDisk {
    fn len(&self) -> Result<u64, io::Error> {
        self.length()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.disk.0.read(SECTOR + offset, out)
    }

    fn set_len(&self, length: u64) -> Result<(), io::Error> {
        let before = self.length()?;
        self.change(0, &length.to_le_bytes())?;
        if length > before {
            self.change(SECTOR + before, &vec![0; (length - before) as usize])?;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.disk.0.flush()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.change(SECTOR + offset, data)
    }
}

fn open(disk: &Disk) -> Result<Database, String> {
    let mut builder = Database::builder();
    builder.set_cache_size(1 << 20);
    let opened = builder.create_with_backend(FileOnDisk::new(disk));
    opened.map_err(|error| format!("opening: {error}"))
}

fn outcome(durability: Durability) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let recording = Recording::start(&log, SIZE_BYTES).expect("a recording");
    let database = open(&recording.disk()).expect("opens");
    recording.begin();
    for number in 0..TRANSACTIONS {
        let mut transaction = database.begin_write().expect("begins");
        transaction.set_durability(durability).expect("is known");
        {
            let mut table = transaction.open_table(TABLE).expect("a table");
            for part in ["a", "b"] {
                let key = format!("t{number}/{part}");
                table.insert(key.as_str(), &[7; 900][..]).expect("inserts");
            }
        }
        transaction.commit().expect("commits");
        for part in ["a", "b"] {
            recording.promise(&format!("t{number}/{part}"));
        }
    }
    drop(database);
    recording.finish().expect("a log");
    let settings = CampaignSettings {
        points: Points::Count(states()),
        ordered: true,
        ..CampaignSettings::default()
    };
    campaign(&log, &settings, &answer(look)).expect("a campaign")
}

/// The keys of a state, all of whose values are whole.
fn look(disk: &Disk) -> Result<Vec<String>, String> {
    let mut database = open(disk)?;
    let sound = database.check_integrity();
    sound.map_err(|error| format!("checking: {error}"))?;
    let transaction = database.begin_read().map_err(|error| error.to_string())?;
    let table = match transaction.open_table(TABLE) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        opened => opened.map_err(|error| error.to_string())?,
    };
    let mut keys = Vec::new();
    for entry in table.iter().map_err(|error| error.to_string())? {
        let (key, value) = entry.map_err(|error| error.to_string())?;
        if value.value() != [7; 900] {
            return Err(format!("{} has another value", key.value()));
        }
        keys.push(key.value().to_owned());
    }
    Ok(keys)
}

/// States of a campaign: `UGEOM_CRASH_STATES` asks for more.
fn states() -> u64 {
    let asked = std::env::var("UGEOM_CRASH_STATES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(300)
}

#[test]
fn redb_survives() {
    let outcome = outcome(Durability::Immediate);
    assert!(outcome.states > 100, "{} states", outcome.states);
    assert_eq!(outcome.failed, 0, "{:#?}", outcome.failures.first());
}

#[test]
fn redb_without_durability_is_caught() {
    let outcome = outcome(Durability::None);
    let smallest = outcome.smallest.expect("it is caught");
    assert_eq!(smallest.judgement.verdict, ugeom_crash::Verdict::Durability);
}
