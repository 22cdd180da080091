//! The writers of partition tables and keys, on a disk that crashes: each state has the table, or
//! the keys, from before or after the verb that was cut, and never one from before an earlier verb.
//! `UGEOM_CRASH_STATES=10000` is the long mode.

use std::fmt::Debug;
use std::path::Path;
use ugeom_classes::eli::admin::{self, AdminError, EliDisk, InitSettings, KeyChange};
use ugeom_classes::eli::kdf::KdfLimit;
use ugeom_classes::eli::keys::{KeyComponents, open_slot};
use ugeom_classes::part::edit::{self, EditError, Editor};
use ugeom_crash::{CampaignSettings, Disk, Points, Recording, answer, campaign};
use ugeom_format::eli::{Cipher, EliFlags, Metadata};
use ugeom_format::plan::{Change, Error as PlanError, NewPart, Scheme, Table};
use ugeom_format::{Media, SectorRead};
use ugeom_stack::{Channel, Delta, Opened};

const SECTOR: usize = 512;
const SECTORS: u64 = 2048;
/// States of a campaign.
fn states() -> u64 {
    let asked = std::env::var("UGEOM_CRASH_STATES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(400)
}

/// Verbs of a campaign: one that writes one sector leaves two states.
fn verbs() -> u64 {
    states() / 2
}

/// Records what `work` does with a disk.
fn record(log: &Path, work: impl FnOnce(&Recording, &mut Channel, &Opened)) {
    let recording = Recording::start(log, SECTORS * SECTOR as u64).expect("a recording");
    let (stack, name) = recording.stack().expect("a stack");
    let provider = stack.tree().provider(&name).expect("a provider").id;
    let mut channel = stack.channel(1).expect("a channel");
    let opened = stack.open(provider, Delta::READ_WRITE).expect("opens");
    work(&recording, &mut channel, &opened);
    drop((opened, channel, stack));
    recording.finish().expect("a log");
}

/// Records verbs. `verb` does one, and answers with what is there afterwards; `find` looks at a
/// state, and must see what was there after the last verb before the cut, or after the next one.
fn survives<T: PartialEq + Debug + Sync>(
    mut verb: impl FnMut(&mut Channel, &Opened, u64) -> T,
    find: impl Fn(&Disk) -> Result<T, String> + Sync,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let mut history = Vec::new();
    record(&log, |recording, channel, opened| {
        history.push(verb(channel, opened, 0));
        recording.begin();
        for number in 1..=verbs() {
            history.push(verb(channel, opened, number));
            recording.promise(&format!("v{number}"));
        }
    });
    check(&log, &history, find);
}

fn check<T: PartialEq + Debug + Sync>(
    log: &Path,
    history: &[T],
    find: impl Fn(&Disk) -> Result<T, String> + Sync,
) {
    let look = |disk: &Disk| {
        let found = find(disk)?;
        let last = history.iter().rposition(|there| *there == found);
        let last = last.ok_or_else(|| format!("{found:?} was never there"))?;
        Ok((1..=last).map(|number| format!("v{number}")).collect())
    };
    let settings = CampaignSettings {
        points: Points::Count(states()),
        tear_bytes: SECTOR as u64,
        ordered: true,
        ..CampaignSettings::default()
    };
    let outcome = campaign(log, &settings, &answer(look)).expect("a campaign");
    println!("{} states", outcome.states);
    assert!(outcome.states > 100, "{} states", outcome.states);
    assert_eq!(outcome.failed, 0, "{:#?}", outcome.smallest);
}

/// The partitions of a table, as text.
fn parts(table: &Table) -> String {
    format!("{:?}", table.parts())
}

/// `None` where there is no room.
fn add(channel: &mut Channel, opened: &Opened, table: &Table, number: u64) -> Option<()> {
    let kinds = |scheme| match scheme {
        Scheme::Mbr | Scheme::Ebr | Scheme::Pc98 => "freebsd",
        _ => "freebsd-ufs",
    };
    let wanted = NewPart {
        // Neighbours in time differ, and six of them fit.
        sectors: Some(20 + number % 160),
        kind: kinds(table.scheme()).to_owned(),
        label: (table.scheme() == Scheme::Gpt).then(|| format!("n{number}")),
        ..NewPart::default()
    };
    let table = Editor::open(channel, opened, None);
    match table.and_then(|table| table.add_part(&wanted)) {
        Ok(_) => Some(()),
        Err(EditError::Plan {
            error: PlanError::NoSpace { .. },
            ..
        }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// One verb of `ugeom part` on a table.
struct Step<'a> {
    channel: &'a mut Channel,
    opened: &'a Opened,
    table: &'a Table,
    number: u64,
    random: &'a mut fastrand::Rng,
}

/// Does its work, or answers `None`, with nothing written, where it cannot.
type Verb = fn(&mut Step<'_>) -> Option<()>;

const ALL: &[Scheme] = &[Scheme::Gpt, Scheme::Mbr, Scheme::Bsd];

/// The verbs that change a table, and the schemes that have them.
const TABLE_VERBS: [(&str, &[Scheme], Verb); 7] = [
    ("add", ALL, |step| step.add()),
    ("delete", ALL, |step| {
        let index = step.any()?;
        step.editor()?.delete(index).ok().map(drop)
    }),
    ("modify", ALL, |step| {
        let kind = match (step.table.scheme(), step.random.bool()) {
            (Scheme::Mbr, true) => "!131",
            (Scheme::Mbr, false) => "freebsd",
            (_, true) => "freebsd-swap",
            (_, false) => "freebsd-ufs",
        };
        step.change(Change::Kind(kind.to_owned()))
    }),
    ("modify -l", &[Scheme::Gpt], |step| {
        step.change(Change::Label(format!("m{}", step.number)))
    }),
    ("resize", ALL, |step| {
        let (index, sectors) = (step.any()?, step.random.u64(8..90));
        let wanted = edit::Resize {
            index,
            sectors: Some(sectors),
            align_sectors: None,
            force: true,
        };
        step.editor()?.resize(&wanted).ok().map(drop)
    }),
    ("set, unset", &[Scheme::Gpt, Scheme::Mbr], |step| {
        let name = step.random.choice(step.table.attributes())?;
        let (name, on) = ((*name).to_owned(), step.random.bool());
        step.change(Change::Attribute { name, on })
    }),
    ("destroy", ALL, |step| {
        step.editor()?.destroy(true).ok().map(drop)
    }),
];

impl Step<'_> {
    fn editor(&mut self) -> Option<Editor<'_>> {
        Editor::open(self.channel, self.opened, None).ok()
    }

    /// One of the partitions, if there is one.
    fn any(&mut self) -> Option<u32> {
        let all = self.table.parts();
        self.random.choice(all).map(|part| part.index)
    }

    fn add(&mut self) -> Option<()> {
        let most = if self.table.scheme() == Scheme::Mbr {
            4
        } else {
            6
        };
        let room = self.table.parts().len() < most;
        room.then(|| add(self.channel, self.opened, self.table, self.number))?
    }

    fn change(&mut self, change: Change) -> Option<()> {
        let index = self.any()?;
        self.editor()?.change(index, &[change]).ok().map(drop)
    }
}

fn create(channel: &mut Channel, opened: &Opened, scheme: Scheme) -> Table {
    let wanted = edit::Create {
        scheme,
        entries: None,
        force: false,
    };
    edit::create(channel, opened, &wanted).expect("makes")
}

/// The partitions of the table on a disk, if there is one.
fn there(table: Option<Table>) -> String {
    table.map_or_else(|| "no table".to_owned(), |table| parts(&table))
}

fn partition_tables(scheme: Scheme) {
    let mut random = fastrand::Rng::with_seed(scheme as u64);
    let mut done = [0; TABLE_VERBS.len()];
    let now = |channel: &mut Channel, opened: &Opened| {
        let tables = edit::show(channel, opened).unwrap_or_default();
        tables.into_iter().find(|table| table.scheme() == scheme)
    };
    let verb = |channel: &mut Channel, opened: &Opened, number: u64| {
        let Some(table) = now(channel, opened) else {
            return parts(&create(channel, opened, scheme));
        };
        loop {
            let which = random.usize(..TABLE_VERBS.len());
            let mut step = Step {
                channel,
                opened,
                table: &table,
                number,
                random: &mut random,
            };
            let (_, schemes, verb) = TABLE_VERBS[which];
            // Each table lives for some verbs.
            let early = which + 1 == TABLE_VERBS.len() && step.random.u8(..4) > 0;
            if schemes.contains(&scheme) && !early && verb(&mut step).is_some() {
                done[which] += 1;
                break;
            }
        }
        there(now(channel, opened))
    };
    survives(verb, move |disk| {
        Ok(there(Table::load(scheme, media(), &mut reader(disk)).ok()))
    });
    for ((name, schemes, _), done) in TABLE_VERBS.iter().zip(done) {
        assert!(
            done > 0 || !schemes.contains(&scheme),
            "{name} was never done"
        );
    }
}

fn media() -> Media {
    Media::new(SECTORS * SECTOR as u64, SECTOR as u32).expect("a media")
}

fn reader(disk: &Disk) -> Box<SectorRead<'_>> {
    Box::new(|lba, count| {
        let mut bytes = vec![0; count as usize * SECTOR];
        let read = disk.read(lba * SECTOR as u64, &mut bytes);
        read.map_err(|error| error.to_string())?;
        Ok(bytes)
    })
}

#[test]
fn verbs_on_a_gpt_leave_the_old_or_the_new_table() {
    partition_tables(Scheme::Gpt);
}

#[test]
fn verbs_on_an_mbr_leave_the_old_or_the_new_table() {
    partition_tables(Scheme::Mbr);
}

#[test]
fn verbs_on_a_bsd_label_leave_the_old_or_the_new_table() {
    partition_tables(Scheme::Bsd);
}

/// Whether a disk has a table of that scheme.
fn has(disk: &Disk, scheme: Scheme) -> bool {
    Table::load(scheme, media(), &mut reader(disk)).is_ok()
}

#[test]
fn create_leaves_no_table_or_an_empty_one() {
    for scheme in [Scheme::Gpt, Scheme::Mbr, Scheme::Bsd] {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        record(&log, |recording, channel, opened| {
            recording.begin();
            create(channel, opened, scheme);
            recording.promise("made");
        });
        let look = |disk: &Disk| {
            let others = [Scheme::Gpt, Scheme::Mbr, Scheme::Bsd];
            let mut others = others.into_iter().filter(|other| *other != scheme);
            // Below a GPT there is a protective MBR.
            if scheme != Scheme::Gpt && others.any(|other| has(disk, other)) {
                return Err("a table of another scheme".to_owned());
            }
            Ok(if has(disk, scheme) {
                vec!["made".to_owned()]
            } else {
                Vec::new()
            })
        };
        let settings = CampaignSettings {
            points: Points::All,
            tear_bytes: SECTOR as u64,
            ..CampaignSettings::default()
        };
        let outcome = campaign(&log, &settings, &answer(look)).expect("a campaign");
        assert!(outcome.states > 1, "{scheme}: {} states", outcome.states);
        assert_eq!(outcome.failed, 0, "{scheme}: {:#?}", outcome.smallest);
    }
}

#[test]
fn recover_of_a_gpt_leaves_a_table_that_can_be_read() {
    let (good, bad) = (SECTORS - 1, 1);
    let verb = |channel: &mut Channel, opened: &Opened, number: u64| {
        if number == 0 {
            let table = create(channel, opened, Scheme::Gpt);
            add(channel, opened, &table, 1).expect("room");
        } else {
            // One copy, then the other.
            let lba = if number.is_multiple_of(2) { good } else { bad };
            let written = channel.write(opened, lba * SECTOR as u64, &[0; SECTOR]);
            written.expect("damages");
            channel.flush(opened).expect("flushes");
            let repaired = edit::recover(channel, opened).expect("recovers");
            assert!(!repaired.is_empty());
        }
        parts(&edit::show(channel, opened).expect("a table")[0])
    };
    survives(verb, |disk| {
        let table = Table::load(Scheme::Gpt, media(), &mut reader(disk));
        table
            .map(|table| parts(&table))
            .map_err(|it| it.to_string())
    });
}

fn key(number: u8) -> KeyComponents {
    let mut components = KeyComponents::new().expect("memory");
    let added = components.add_keyfile(&[number; 64][..]);
    added.expect("a keyfile");
    components
}

/// The keys that open it, and its flags.
type Keys = (Vec<u8>, u32);

fn keys(metadata: &Metadata) -> Keys {
    let fits = |number: &u8| {
        let user = key(*number).user_key(&metadata.salt, -1, &KdfLimit::default());
        open_slot(metadata, &user.expect("a key"), None).is_ok()
    };
    ((0..4).filter(fits).collect(), metadata.flags.0)
}

fn change(disk: &mut EliDisk<'_>, random: &mut fastrand::Rng) -> Result<(), AdminError> {
    let there = keys(&disk.metadata()?).0;
    let old = there[random.usize(..there.len())];
    let limit = KdfLimit::default();
    match random.u8(..4) {
        0 => admin::configure(disk, &[(EliFlags::BOOT, random.bool())]).map(|_| ()),
        1 if there.len() == 2 => admin::delete_key(disk, Some(random.usize(..2)), false),
        _ => {
            let new = (0..4).filter(|number| !there.contains(number));
            let new = random.choice(new.collect::<Vec<_>>()).expect("a new key");
            let change = KeyChange {
                slot: Some(random.usize(..2)),
                iterations: None,
            };
            admin::replace_key(disk, (&key(old), &key(new)), change, &limit).map(|_| ())
        }
    }
}

#[test]
fn changes_of_geli_keys_leave_the_old_or_the_new_keys() {
    let mut random = fastrand::Rng::with_seed(5);
    let verb = |channel: &mut Channel, opened: &Opened, number: u64| {
        let mut disk = EliDisk::new(channel, opened).expect("a disk");
        if number == 0 {
            let settings = InitSettings {
                version: 7,
                flags: EliFlags::AUTORESIZE,
                cipher: Cipher::AesXts,
                key_bits: 256,
                authentication: None,
                sector_bytes: Some(512),
                iterations: None,
            };
            let made = admin::initialize(&mut disk, &settings, &key(1), &KdfLimit::default());
            made.expect("made");
        } else {
            change(&mut disk, &mut random).expect("changed");
        }
        keys(&disk.metadata().expect("metadata"))
    };
    survives(verb, |disk| {
        let mut sector = [0; SECTOR];
        let read = disk.read((SECTORS - 1) * SECTOR as u64, &mut sector);
        read.map_err(|error| error.to_string())?;
        let metadata = Metadata::decode(&sector).map_err(|error| error.to_string())?;
        Ok(keys(&metadata))
    });
}
