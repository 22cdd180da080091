//! Partition tables that are made and changed on a provider: the new partitions, refusals, and the
//! state after a stop between two writes.

use crate::common::{Sparse, add, part, tables};
use std::sync::{Arc, Mutex};
use ugeom_classes::part::edit::{self, Create, EditError, Editor, found};
use ugeom_format::content::Content;
use ugeom_format::plan::{Change, NewPart, Part, Scheme, Table};
use ugeom_format::{Media, SectorWrite, apm, mbr};
use ugeom_stack::{
    Channel, Command, Cx, Delta, Errno, Geom, Next, Opened, ProviderId, Request, Stack,
};
use ugeom_testkit::{begins, has};

const MIB: u64 = 1 << 20;

/// A stack with an empty disk of 1 MiB.
fn empty_disk() -> (Stack, ProviderId, Arc<Sparse>) {
    let memory = Arc::new(Sparse::default());
    let stack = tables();
    let disk = add(&stack, "md0", MIB, 512, Arc::clone(&memory));
    (stack, disk, memory)
}

/// Opens a provider for writing, calls, and closes it, so that the classes taste it.
fn edit<R>(stack: &Stack, name: &str, with: impl FnOnce(&mut Channel, &Opened) -> R) -> R {
    let provider = stack.find(name).expect("a provider");
    let mut channel = stack.channel(1).expect("a channel");
    let opened = stack
        .open(provider, Delta::READ_WRITE)
        .expect("open for writing");
    with(&mut channel, &opened)
}

fn changed<T>(
    stack: &Stack,
    name: &str,
    scheme: Option<Scheme>,
    change: impl FnOnce(Editor<'_>) -> Result<T, EditError>,
) -> Result<T, EditError> {
    edit(stack, name, |channel, opened| {
        change(Editor::open(channel, opened, scheme)?)
    })
}

fn create(stack: &Stack, name: &str, scheme: Scheme, force: bool) -> Result<Table, EditError> {
    let wanted = Create {
        scheme,
        entries: None,
        force,
    };
    edit(stack, name, |channel, opened| {
        edit::create(channel, opened, &wanted)
    })
}

fn add_part(stack: &Stack, name: &str, part: &NewPart) -> Result<String, EditError> {
    let added = changed(stack, name, None, |table| table.add_part(part))?;
    Ok(added.provider)
}

fn names(stack: &Stack) -> Vec<String> {
    let tree = stack.tree();
    tree.providers()
        .map(|provider| provider.name.clone())
        .skip(1)
        .collect()
}

fn look(stack: &Stack, name: &str) -> Vec<Content> {
    let provider = stack.find(name).expect("a provider");
    let opened = stack.open(provider, Delta::READ).expect("open for reading");
    let mut channel = stack.channel(1).expect("a channel");
    found::look(&mut channel, &opened).expect("a look")
}

#[test]
fn partitions_appear_when_the_disk_is_closed() {
    for (scheme, kind, name) in [
        (Scheme::Mbr, "freebsd", "md0s1"),
        (Scheme::Bsd, "freebsd-ufs", "md0a"),
        (Scheme::Gpt, "freebsd-ufs", "md0p1"),
        (Scheme::Gpt, "freebsd", "md0s1"),
    ] {
        let (stack, _, _) = empty_disk();
        create(&stack, "md0", scheme, false).expect("a table");
        let label = (scheme == Scheme::Bsd).then_some("md0c".to_owned());
        assert_eq!(names(&stack), Vec::from_iter(label.clone()));
        let added = add_part(&stack, "md0", &part(kind, 100, 50)).expect("a partition");
        assert_eq!(added, name);
        let view = stack.tree().provider(name).cloned().expect("the partition");
        assert_eq!((view.mediasize_bytes, view.mark), (50 * 512, None));
        let deleted = changed(&stack, "md0", Some(scheme), |table| table.delete(1));
        assert_eq!(deleted.expect("deleted"), name);
        assert_eq!(names(&stack), Vec::from_iter(label));
        assert!(
            stack.taste_errors().is_empty(),
            "{:?}",
            stack.taste_errors()
        );
    }
}

#[test]
fn a_table_is_not_made_where_nobody_looks_for_it() {
    let (stack, _, _) = empty_disk();
    create(&stack, "md0", Scheme::Mbr, false).expect("an MBR");
    add_part(&stack, "md0", &part("fat32", 63, 500)).expect("a slice");
    let error = create(&stack, "md0s1", Scheme::Mbr, true).expect_err("it would not be found");
    assert!(matches!(error, EditError::Nested { .. }), "{error}");
    let text = error.to_string();
    assert_eq!(
        text,
        "MBR on md0s1 would never be found: an MBR is not nested in a slice of an MBR"
    );
    create(&stack, "md0s1", Scheme::Bsd, true).expect("a label in any slice");
    add_part(&stack, "md0s1", &part("freebsd-ufs", 16, 100)).expect("a partition");
    let error = create(&stack, "md0s1a", Scheme::Gpt, true).expect_err("a label is a leaf");
    assert!(matches!(error, EditError::Nested { .. }), "{error}");
}

#[test]
fn a_table_is_not_made_over_another() {
    let (stack, _, memory) = empty_disk();
    for (first, what) in [
        (Scheme::Mbr, "an MBR (at byte 446)"),
        (Scheme::Bsd, "a BSD disklabel (at byte 512)"),
        (Scheme::Gpt, "a GPT (at byte 512)"),
    ] {
        for second in [Scheme::Mbr, Scheme::Bsd, Scheme::Gpt] {
            let zeros = vec![0; MIB as usize];
            memory.put(0, &zeros);
            create(&stack, "md0", first, true).expect("a first table");
            let kind = if first == Scheme::Mbr {
                "freebsd"
            } else {
                "freebsd-ufs"
            };
            add_part(&stack, "md0", &part(kind, 100, 50)).expect("a partition");
            let before = image(&memory);
            let error = create(&stack, "md0", second, false).expect_err("it is refused");
            let text = error.to_string();
            begins(&text, &format!("md0 carries {what}"));
            assert_eq!(image(&memory), before, "nothing was written");
            create(&stack, "md0", second, true).expect("a second table");
            let left: Vec<String> = look(&stack, "md0")
                .iter()
                .map(|f| f.title.clone())
                .collect();
            let expected = match second {
                Scheme::Mbr => vec!["an MBR without partitions"],
                Scheme::Bsd => vec!["a BSD disklabel"],
                _ => vec!["a GPT"],
            };
            assert_eq!(left, expected, "{second} over {first}");
            assert!(
                stack.taste_errors().is_empty(),
                "{:?}",
                stack.taste_errors()
            );
        }
    }
}

fn image(memory: &Sparse) -> Vec<u8> {
    let mut image = vec![0; MIB as usize];
    memory.get(0, &mut image);
    image
}

/// Changes one byte, whatever it is: identifiers are random.
fn damage(memory: &Sparse, offset: u64) {
    let mut byte = [0];
    memory.get(offset, &mut byte);
    memory.put(offset, &[!byte[0]]);
}

#[test]
fn an_apple_map_leaves_no_boot_code_behind() {
    let (stack, disk, _) = empty_disk();
    assert_eq!(crate::common::make_table(&stack, disk, "apm"), "s2");
    assert_eq!(names(&stack), ["md0s1", "md0s2"]);
    let error = create(&stack, "md0", Scheme::Mbr, false).expect_err("it is refused");
    has(&error.to_string(), "an Apple partition map (at byte 0)");
    create(&stack, "md0", Scheme::Mbr, true).expect("an MBR, by force");
    let left = look(&stack, "md0");
    let titles: Vec<&str> = left.iter().map(|content| content.title.as_str()).collect();
    assert_eq!(titles, ["an MBR without partitions"]);
    assert!(names(&stack).is_empty());
    let mut sector = [0; 512];
    let mut channel = stack.channel(1).expect("a channel");
    let opened = stack.open(disk, Delta::READ).expect("open for reading");
    channel.read(&opened, 0, &mut sector).expect("a read");
    assert!(apm::Descriptor::decode(&sector).is_err());
    assert!(sector[..440].iter().all(|byte| *byte == 0));
}

#[test]
fn boot_code_survives_a_new_table() {
    let (stack, _, memory) = empty_disk();
    let mut old = mbr::Mbr::empty(7);
    old.boot_code.fill(0x90);
    // With the signature it would be a table, without partitions.
    memory.put(0, &old.encode()[..510]);
    create(&stack, "md0", Scheme::Gpt, false).expect("a table");
    let mut sector = [0; 512];
    memory.get(0, &mut sector);
    assert_eq!(sector[..440], [0x90; 440]);
}

#[test]
fn where_there_is_no_table_the_reason_is_said() {
    let (stack, _, memory) = empty_disk();
    let any = part("linux-data", 100, 50);
    let error = add_part(&stack, "md0", &any).expect_err("nothing is there");
    let nothing = "there is no partition table on md0 that can be edited; `ugeom part search` \
                   looks for lost partitions";
    assert_eq!(error.to_string(), nothing);
    create(&stack, "md0", Scheme::Gpt, false).expect("a table");
    // No multiple of 8 as the size of entries: neither copy can be listed, not even as a
    // doubtful one.
    damage(&memory, 512 + 84);
    damage(&memory, MIB - 512 + 84);
    let error = add_part(&stack, "md0", &any).expect_err("both copies are damaged");
    let text = error.to_string();
    has(&text, "primary: sector 1");
    has(&text, "backup: sector 2047");
    let shown = edit(&stack, "md0", edit::show);
    assert_eq!(shown.expect_err("nothing to show").to_string(), text);
}

#[test]
fn a_protective_entry_is_not_given_away() {
    let (stack, _, memory) = empty_disk();
    create(&stack, "md0", Scheme::Gpt, false).expect("a table");
    let in_mbr = |stack: &Stack| {
        let new = part("linux-data", 100, 50);
        changed(stack, "md0", Some(Scheme::Mbr), |table| {
            table.add_part(&new)
        })
    };
    let error = in_mbr(&stack).expect_err("the MBR is protective");
    has(&error.to_string(), "belongs to its GPT");
    let mut mbr = mbr::Mbr::protective(2048);
    mbr.entries[1] = mbr::Entry::new(mbr::PartType::LINUX, 500, 50, mbr::Geometry::LBA_ASSIST);
    memory.put(0, &mbr.encode());
    let added = in_mbr(&stack).expect("a hybrid MBR has two entries left");
    assert_eq!((added.index, added.provider.as_str()), (3, "md0s3"));
    let mut sector = [0; 512];
    memory.get(0, &mut sector);
    let entries = mbr::Mbr::decode(&sector).expect("an MBR").entries;
    assert_eq!(entries[..2], mbr.entries[..2]);
}

#[test]
fn one_of_two_tables_has_to_be_named() {
    let (stack, _, memory) = empty_disk();
    create(&stack, "md0", Scheme::Bsd, false).expect("a label");
    let mut mbr = mbr::Mbr::empty(0);
    mbr.entries[0] = mbr::Entry::new(mbr::PartType::LINUX, 100, 10, mbr::Geometry::LBA_ASSIST);
    memory.put(0, &mbr.encode());
    let error = add_part(&stack, "md0", &part("freebsd-ufs", 500, 10)).expect_err("which one?");
    has(&error.to_string(), "more than one table (MBR, BSD)");
    let new = part("freebsd-ufs", 500, 10);
    let added = changed(&stack, "md0", Some(Scheme::Bsd), |table| {
        table.add_part(&new)
    });
    assert_eq!(added.expect("a partition").provider, "md0a");
}

#[test]
fn slices_of_a_hybrid_mbr_keep_their_names() {
    let (stack, _, memory) = empty_disk();
    create(&stack, "md0", Scheme::Gpt, false).expect("a table");
    add_part(&stack, "md0", &part("freebsd", 100, 50)).expect("a partition");
    let mut mbr = mbr::Mbr::protective(2048);
    mbr.entries[1] = mbr::Entry::new(mbr::PartType::FREEBSD, 100, 50, mbr::Geometry::LBA_ASSIST);
    memory.put(0, &mbr.encode());
    let new = part("freebsd", 200, 50);
    let added = changed(&stack, "md0", Some(Scheme::Gpt), |table| {
        table.add_part(&new)
    });
    assert_eq!(added.expect("a partition").provider, "md0p2");
    let mut found = names(&stack);
    found.sort();
    assert_eq!(found, ["md0p1", "md0p2", "md0s2"]);
}

#[test]
fn a_table_in_use_cannot_be_opened_for_writing() {
    let (stack, disk, _) = empty_disk();
    create(&stack, "md0", Scheme::Gpt, false).expect("a table");
    add_part(&stack, "md0", &part("linux-data", 100, 50)).expect("a partition");
    let _user = stack
        .open(stack.find("md0p1").expect("it"), Delta::READ)
        .expect("a reader");
    let refused = stack
        .open(disk, Delta::READ_WRITE)
        .map(drop)
        .expect_err("it is in use");
    assert_eq!(refused.errno(), Errno::PERM);
}

/// Memory that keeps the order of what it was asked, and can be told to fail.
#[derive(Default)]
struct Diary {
    memory: Sparse,
    entries: Mutex<Vec<Entry>>,
    fail_from: Mutex<Option<usize>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Write(u64, Vec<u8>),
    Flush,
}

impl Geom for Diary {
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        let mut entries = self.entries.lock().expect("the diary");
        match request.command() {
            Command::Write => {
                let fails = *self.fail_from.lock().expect("a number");
                if fails.is_some_and(|first| entries.len() >= first) {
                    return request.fail(Errno::IO, "the medium is worn out");
                }
                let mut bytes = Vec::new();
                request.each(|_, piece| bytes.extend_from_slice(piece));
                entries.push(Entry::Write(request.offset(), bytes));
            }
            Command::Flush => entries.push(Entry::Flush),
            _ => {}
        }
        self.memory.start(request, cx)
    }
}

fn diary_disk() -> (Stack, Arc<Diary>) {
    let stack = tables();
    let diary = Arc::new(Diary::default());
    let provider = ugeom_stack::ProviderPlan {
        name: "md0".into(),
        mediasize_bytes: MIB,
        sectorsize_bytes: 512,
        ..ugeom_stack::ProviderPlan::default()
    };
    let geom: Arc<dyn Geom> = Arc::clone(&diary) as Arc<dyn Geom>;
    let plan = ugeom_stack::Plan::of(provider, geom);
    stack.create("MD", plan, &[]).expect("a bottom");
    (stack, diary)
}

/// One change, and the writes that it makes, each followed by a FLUSH.
fn writes_of(stack: &Stack, diary: &Diary, change: Step, scheme: Scheme) -> Vec<SectorWrite> {
    diary.entries.lock().expect("the diary").clear();
    changed(stack, "md0", None, |table| change(table, scheme)).expect("a change");
    let entries = diary.entries.lock().expect("the diary").clone();
    let write = |pair: &[Entry]| match pair {
        [Entry::Write(offset, data), Entry::Flush] => SectorWrite {
            lba: offset / 512,
            data: data.clone(),
        },
        other => panic!("a FLUSH after each write, not {other:?}"),
    };
    entries.chunks(2).map(write).collect()
}

/// The partitions of the table on an image, of a GPT those of the good copy.
fn parts_on(image: &[u8], scheme: Scheme) -> Option<Vec<Part>> {
    let media = Media::of_512(2048);
    let read = &mut |lba: u64, count: u64| {
        let sectors = image.get(lba as usize * 512..(lba + count) as usize * 512);
        sectors
            .map(<[u8]>::to_vec)
            .ok_or_else(|| "past the end".to_owned())
    };
    Some(Table::load(scheme, media, read).ok()?.parts())
}

fn kind(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Mbr => "freebsd",
        _ => "freebsd-ufs",
    }
}

type Step = fn(Editor<'_>, Scheme) -> Result<(), EditError>;

/// Every kind of change, of a table with partition 1.
const STEPS: [(&str, Step); 6] = [
    ("add", |table, scheme| {
        let new = part(kind(scheme), 200, 50);
        table.add_part(&new).map(drop)
    }),
    ("modify", |table, scheme| {
        let other = match scheme {
            Scheme::Mbr => "linux-data",
            _ => "freebsd-swap",
        };
        let changes = [Change::Kind(other.to_owned())];
        table.change(1, &changes).map(drop)
    }),
    ("set", |table, scheme| {
        let name = match scheme {
            Scheme::Mbr => "active".to_owned(),
            Scheme::Gpt => "bootonce".to_owned(),
            _ => return Ok(()),
        };
        let changes = [Change::Attribute { name, on: true }];
        table.change(1, &changes).map(drop)
    }),
    ("resize", |table, _| {
        let wanted = edit::Resize {
            index: 1,
            sectors: Some(70),
            align_sectors: None,
            force: false,
        };
        table.resize(&wanted).map(drop)
    }),
    ("delete", |table, _| table.delete(2).map(drop)),
    ("destroy", |table, _| table.destroy(true).map(drop)),
];

#[test]
fn a_stop_after_any_sector_leaves_the_old_table_or_the_new_one() {
    for scheme in [Scheme::Mbr, Scheme::Bsd, Scheme::Gpt] {
        let (stack, diary) = diary_disk();
        create(&stack, "md0", scheme, false).expect("a table");
        add_part(&stack, "md0", &part(kind(scheme), 100, 50)).expect("a partition");
        for (name, step) in STEPS {
            let mut cut = image(&diary.memory);
            let writes = writes_of(&stack, &diary, step, scheme);
            let order: Vec<u64> = writes.iter().map(|write| write.lba).collect();
            match (scheme, name) {
                (Scheme::Bsd, "set") => assert_eq!(order, [0; 0]),
                (Scheme::Mbr, _) => assert_eq!(order, [0]),
                (Scheme::Bsd, _) => assert_eq!(order, [1]),
                // The protective MBR first: without a GPT, it would be a table of its own.
                (_, "destroy") => assert_eq!(order, [0, 2047, 1]),
                // Backup, primary, protective MBR.
                (_, _) => assert_eq!(order, [2015, 2047, 2, 1, 0]),
            }
            let (old, new) = (
                parts_on(&cut, scheme),
                parts_on(&image(&diary.memory), scheme),
            );
            let unchanged = scheme == Scheme::Bsd && name == "set";
            assert_eq!(old == new, unchanged, "{scheme} {name}");
            for write in &writes {
                for (sector, data) in (write.lba..).zip(write.data.chunks(512)) {
                    cut[sector as usize * 512..][..512].copy_from_slice(data);
                    let found = parts_on(&cut, scheme);
                    assert!(
                        found == old || found == new,
                        "{scheme} {name}: {found:?} after sector {sector}"
                    );
                }
            }
            assert!(
                cut == image(&diary.memory),
                "{scheme} {name}: all of it was seen"
            );
        }
    }
}

#[test]
fn a_failed_write_names_the_disk_and_the_reason() {
    let (stack, diary) = diary_disk();
    create(&stack, "md0", Scheme::Gpt, false).expect("a table");
    *diary.fail_from.lock().expect("a number") = Some(0);
    let error = add_part(&stack, "md0", &part("linux-data", 100, 50)).expect_err("it fails");
    let text = error.to_string();
    let said = text.starts_with("md0: writing the table:") && text.contains("worn out");
    assert!(said, "{text}");
    assert!(names(&stack).is_empty());
}
