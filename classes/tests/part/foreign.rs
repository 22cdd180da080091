//! Tables of other machines as parted, sfdisk, partx and ldmtool have them, and dynamic disks.

use crate::common::disks::{MIB, disk, errors, facts, mark, names, read_sector, view};
use crate::common::{foreign, write};
use std::path::{Path, PathBuf};
use std::process::Command;
use ugeom_classes::part::edit::{self, Editor};
use ugeom_classes::{TargetOptions, open_target};
use ugeom_format::Media;
use ugeom_format::plan::{Column, NewPart};
use ugeom_stack::{Delta, Stack};
use ugeom_testkit::{begins, program};

const IMAGE_BYTES: u64 = 64 << 20;

fn image(folder: &Path, size: u64) -> PathBuf {
    let path = folder.join("disk.img");
    let file = std::fs::File::create(&path).expect("an image");
    file.set_len(size).expect("a size");
    path
}

fn run(tool: &Path, arguments: &[&str], path: &Path, after: &[&str]) -> String {
    let output = Command::new(tool)
        .env("LC_ALL", "C.UTF-8")
        .args(arguments)
        .arg(path)
        .args(after)
        .output()
        .expect("the tool runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?} {after:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// First sector and length of each partition that the classes list, sorted.
fn listed(path: &Path, options: &str) -> Vec<(u64, u64)> {
    let text = format!("{}{options}", path.display());
    let target = open_target(&text, &TargetOptions::default());
    let target = target.unwrap_or_else(|error| panic!("{error}"));
    let tree = target.stack.tree();
    let places = tree.providers().filter_map(|view| {
        let start = view.fact("start")?.parse().ok()?;
        Some((start, view.mediasize_bytes / 512))
    });
    let mut places: Vec<(u64, u64)> = places.collect();
    places.sort_unstable();
    places
}

/// The same of what parted prints.
fn of_parted(text: &str) -> Vec<(u64, u64)> {
    let number = |field: &str| {
        field
            .trim_end_matches('s')
            .parse::<u64>()
            .expect("a number")
    };
    let rows = text
        .lines()
        .skip(2)
        .map(|line| line.split(':').collect::<Vec<&str>>());
    let mut places: Vec<(u64, u64)> = rows
        .filter(|row| row.get(4).is_none_or(|kind| *kind != "free;"))
        .map(|row| (number(row[1]), number(row[3])))
        .collect();
    places.sort_unstable();
    places
}

#[test]
fn tables_made_by_parted_are_listed() {
    let Some(parted) = program("parted") else { return };
    // parted takes cylinders of 128 sectors for an image of a PC-98.
    let cases = [
        ("sun", "", &["ext2"][..]),
        ("pc98", "?fwheads=4&fwsectors=32", &["primary", "fat16"]),
        ("amiga", "", &["primary", "affs1"]),
        ("dvh", "", &["primary", "xfs"]),
        ("atari", "", &["primary", "fat16"]),
    ];
    for (label, options, arguments) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let path = image(folder.path(), IMAGE_BYTES);
        run(&parted, &["-s"], &path, &["mklabel", label]);
        for place in [["16128s", "48383s"], ["64512s", "96767s"]] {
            let arguments = [&["unit", "s", "mkpart"], arguments, &place].concat();
            run(&parted, &["-s", "-a", "none"], &path, &arguments);
        }
        let text = run(&parted, &["-ms"], &path, &["unit", "s", "print"]);
        let mut expected = of_parted(&text);
        let mut ours = listed(&path, options);
        // parted does not print the partition that covers the disk; dvh's header it does.
        let printed = expected.clone();
        ours.retain(|place| printed.contains(place) || place.0 != 0);
        expected.sort_unstable();
        assert_eq!(ours, expected, "{label}: {text}");
        assert!(expected.len() >= 2, "{label}: {text}");
    }
}

#[test]
fn labels_made_by_sfdisk_are_listed() {
    let Some(sfdisk) = program("sfdisk") else { return };
    for label in ["sun", "sgi"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = image(folder.path(), IMAGE_BYTES);
        let script = folder.path().join("script");
        let text = format!("label: {label}\nstart=16065, size=16065\nstart=48195, size=32130\n");
        std::fs::write(&script, text).expect("a script");
        let made = Command::new(&sfdisk)
            .args(["--no-reread", "-q", "-f"])
            .arg(&path)
            .stdin(std::fs::File::open(&script).expect("the script"))
            .output();
        let made = made.expect("sfdisk runs");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let dumped = run(&sfdisk, &["--json"], &path, &[]);
        let parsed: serde_json::Value = serde_json::from_str(&dumped).expect("JSON");
        let entries = parsed["partitiontable"]["partitions"]
            .as_array()
            .expect("partitions");
        let mut expected: Vec<(u64, u64)> = entries
            .iter()
            .map(|e| {
                (
                    e["start"].as_u64().expect("a start"),
                    e["size"].as_u64().expect("a size"),
                )
            })
            .collect();
        expected.sort_unstable();
        assert_eq!(listed(&path, ""), expected, "{label}: {dumped}");
    }
}

/// The partitions that partx lists: first sector and length.
fn of_partx(partx: &Path, path: &Path) -> Vec<(u64, u64)> {
    let text = run(
        partx,
        &["--noheadings", "--show", "--output", "START,SECTORS"],
        path,
        &[],
    );
    let number = |field: Option<&str>| field.and_then(|f| f.parse().ok()).expect("a number");
    let mut places: Vec<(u64, u64)> = text
        .lines()
        .map(|line| {
            let mut fields = line.split_whitespace();
            (number(fields.next()), number(fields.next()))
        })
        .collect();
    places.sort_unstable();
    places
}

fn put(path: &Path, sectors: &[(u64, Vec<u8>)]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("the image");
    for (sector, bytes) in sectors {
        file.write_all_at(bytes, sector * 512).expect("a write");
    }
}

#[test]
fn partx_lists_the_same_sectors() {
    let Some(partx) = program("partx") else { return };
    let cases = [
        ("sun", foreign::vtoc8(IMAGE_BYTES / 512)),
        ("sgi", foreign::sgi()),
        ("atari", foreign::atari((IMAGE_BYTES / 512) as u32)),
    ];
    for (name, sectors) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let path = image(folder.path(), IMAGE_BYTES);
        put(&path, &sectors);
        let theirs = of_partx(&partx, &path);
        let mut ours = listed(&path, "");
        // libblkid leaves the whole disk out, and lists an extended partition beside its contents.
        ours.retain(|place| theirs.contains(place) || place.0 != 0);
        for place in &ours {
            assert!(theirs.contains(place), "{name}: {place:?} of {theirs:?}");
        }
        assert!(!ours.is_empty(), "{name}");
    }
}

/// A bootable CD of Solaris for SPARC: its label counts in sectors of 512 bytes.
#[test]
fn the_sun_label_of_a_cd_is_listed_with_sectors_of_either_size() {
    let Some(genisoimage) = program("genisoimage") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (boot, tree) = (folder.path().join("boot"), folder.path().join("tree"));
    std::fs::create_dir(&tree).expect("a tree");
    std::fs::write(&boot, vec![1; 300_000]).expect("a boot image");
    let (boot, path) = (boot.display().to_string(), folder.path().join("cd.iso"));
    let made = Command::new(genisoimage)
        .args(["-quiet", "-sparc-boot", &format!("{boot},{boot},..."), "-o"])
        .args([&path, &tree])
        .output();
    let made = made.expect("genisoimage runs");
    let error = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{error}");
    let places = listed(&path, "");
    assert_eq!(places.len(), 8, "{places:?}");
    let in_sectors = places.iter().map(|place| (place.0 / 4, place.1));
    assert_eq!(
        listed(&path, "?sectorsize=2048"),
        in_sectors.collect::<Vec<_>>()
    );
    if let Some(partx) = program("partx") {
        assert_eq!(places, of_partx(&partx, &path));
    }
}

#[test]
fn partx_agrees_about_labels_of_all_three_systems() {
    let Some(partx) = program("partx") else { return };
    let slice = 4096;
    let relative = [(0, 16, 1000), (1, 1100, 500), (2, 0, 20_000)];
    let absolute = |d: bool| {
        let mut entries = vec![(0, slice + 16, 1000), (1, slice + 1100, 500)];
        match d {
            true => entries.extend([(2, slice, 20_000), (3, 0, 131_072)]),
            false => entries.push((2, 0, 131_072)),
        }
        entries
    };
    for (kind, entries) in [
        (0xa5, relative.to_vec()),
        (
            0xa5,
            vec![
                (0, slice + 16, 1000),
                (1, slice + 1100, 500),
                (2, slice, 20_000),
            ],
        ),
        (0xa6, absolute(false)),
        (0xa9, absolute(true)),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = image(folder.path(), IMAGE_BYTES);
        let table = crate::common::disks::mbr_of(&[(kind, slice, 20_000)]);
        let label = crate::common::disks::label_of(512, 16, &entries);
        put(&path, &[(0, table), (u64::from(slice) + 1, label)]);
        let theirs = of_partx(&partx, &path);
        let target = open_target(&path.display().to_string(), &TargetOptions::default());
        let target = target.expect("the image");
        let tree = target.stack.tree();
        let start = |name: &str| {
            let name = format!("{}{name}", target.name);
            let view = tree.provider(&name).unwrap_or_else(|| panic!("{name}"));
            let start = view.fact("start").expect("a start");
            let start = start.parse::<u64>().expect("a number") + u64::from(slice);
            (start, view.mediasize_bytes / 512)
        };
        for name in ["s1a", "s1b"] {
            let place = start(name);
            assert!(
                theirs.contains(&place),
                "{kind:#x} {name}: {place:?} of {theirs:?}"
            );
        }
    }
}

#[test]
fn each_table_names_and_places_its_partitions() {
    type Listed = (&'static str, u64, u64, &'static str);
    let cases: [(foreign::Sectors, &[Listed]); 6] = [
        (
            foreign::vtoc8(8192),
            &[("md0a", 128, 512, "!2"), ("md0c", 0, 62 * 128, "!5")],
        ),
        (foreign::pc98(), &[("md0s1", 136, 4 * 136, "freebsd")]),
        (
            foreign::bsd64(4 * MIB),
            &[("md0a", 2112, 1024, "dragonfly-hammer2")],
        ),
        (
            foreign::sgi(),
            &[
                ("md0s1", 128, 512, "SGI xfs"),
                ("md0s11", 0, 2048, "SGI volume"),
            ],
        ),
        (foreign::amiga(), &[("md0s1", 128, 512, "DOS\\3")]),
        (
            foreign::atari(8192),
            &[("md0s1", 2, 512, "GEM"), ("md0s2", 1026, 100, "LNX")],
        ),
    ];
    for (sectors, expected) in cases {
        let stack = disk_with(4 * MIB, &sectors);
        let found: Vec<(String, u64, u64, String)> = names(&stack)
            .iter()
            .map(|name| {
                let view = view(&stack, name);
                let fact = |name: &str| view.fact(name).expect("a fact").to_owned();
                let start = fact("start").parse().expect("a number");
                (
                    name.clone(),
                    start,
                    view.mediasize_bytes / 512,
                    fact("type"),
                )
            })
            .collect();
        let expected: Vec<(String, u64, u64, String)> = expected
            .iter()
            .map(|it| (it.0.to_owned(), it.1, it.2, it.3.to_owned()))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(errors(&stack), [""; 0]);
    }
}

fn disk_with(size: u64, sectors: &[(u64, Vec<u8>)]) -> Stack {
    let writes: Vec<(u64, Vec<u8>)> = sectors
        .iter()
        .map(|(sector, bytes)| (sector * 512, bytes.clone()))
        .collect();
    disk(size, &writes)
}

fn volumes() -> Vec<foreign::ldm::NewVolume<'static>> {
    let pieces = vec![(1, 6000, 0, 100), (2, 0, 100, 100)];
    foreign::ldm::volumes(("Far", 7, 200, vec![(2, pieces)]))
}

#[test]
fn a_dynamic_disk_lists_its_volumes_and_not_its_partitions() {
    let stack = disk_with(10 * MIB, &foreign::ldm::disk(20_480, &volumes()));
    assert_eq!(names(&stack), ["md0s1", "md0s2", "md0s3", "md0s4"]);
    let kind = |name: &str| {
        let view = view(&stack, name);
        view.fact("type").expect("a type").to_owned()
    };
    assert_eq!(kind("md0s1"), "ntfs");
    assert_eq!(mark(&stack, "md0s2"), None);
    assert_eq!(
        mark(&stack, "md0s3").as_deref(),
        Some("one of 2 copies of volume Mirror")
    );
    assert_eq!(kind("md0s4"), "ms-ldm-data");
    let far = mark(&stack, "md0s4").expect("a mark");
    assert_eq!(far, "part of Far, a volume that is not all on this disk");
    assert_eq!(facts(&stack, "LDM", "group"), ["Group0"]);
    assert_eq!(errors(&stack), [""; 0]);
    // The same lines by the verbs of gpart, each piece where it lies.
    let view = view(&stack, "md0");
    let opened = stack
        .open(view.id, Delta::READ_WRITE)
        .expect("it is not open");
    let mut channel = stack.channel(1).expect("a channel");
    let tables = edit::show(&mut channel, &opened).expect("a table");
    let [table] = tables.as_slice() else { panic!("{tables:?}") };
    let text = table.show("md0", Column::Provider);
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let lines: Vec<String> = lines
        .map(|words| words[..words.len().min(4)].join(" "))
        .collect();
    let start = foreign::ldm::START;
    assert!(lines[0].starts_with("=>"), "{text}");
    for (first, sectors, provider, kind) in [
        (0, 1000, "md0s1", "ntfs"),
        (2000, 300, "md0s2", "ntfs"),
        (3000, 200, "md0s2", "ntfs"),
        (6000, 100, "md0s4", "ms-ldm-data"),
    ] {
        let line = format!("{} {sectors} {provider} {kind}", start + first);
        assert!(lines.contains(&line), "{line}: {text}");
    }
    begins(&table.backup(), "LDM 4\n1        ntfs    63  1000 Simple");
    let added = Editor::open(&mut channel, &opened, None)
        .and_then(|table| table.add_part(&NewPart::default()));
    let destroyed = Editor::open(&mut channel, &opened, None).and_then(|table| table.destroy(true));
    for refused in [added.map(drop), destroyed.map(drop)] {
        let error = refused.expect_err("it is only read").to_string();
        ugeom_testkit::has(&error, "LDM table is only read");
    }
}

#[test]
fn a_spanned_volume_is_read_and_written_across_its_pieces() {
    let stack = disk_with(10 * MIB, &foreign::ldm::disk(20_480, &volumes()));
    let disk = stack.find("md0").expect("the disk");
    let first = foreign::ldm::START;
    for (sector, text) in [(2000 + 299, b"end of 0"), (3000, b"begin 1.")] {
        write_inside(&stack, disk, (first + sector) * 512, text);
    }
    let sector = read_sector(&stack, "md0s2", 299 * 512).expect("the end of the first piece");
    assert_eq!(&sector[..8], b"end of 0");
    let volume = stack.find("md0s2").expect("the volume");
    assert_eq!(view(&stack, "md0s2").mediasize_bytes, 500 * 512);
    let opened = stack
        .open(volume, Delta::READ_WRITE)
        .expect("open for writing");
    let mut channel = stack.channel(1).expect("a channel");
    let mut both = vec![0; 4 * 512];
    let read = channel
        .read(&opened, 298 * 512, &mut both)
        .expect("a read across");
    assert_eq!(read, both.len());
    assert_eq!(
        (&both[512..520], &both[1024..1032]),
        (&b"end of 0"[..], &b"begin 1."[..])
    );
    both.fill(7);
    channel
        .write(&opened, 298 * 512, &both)
        .expect("a write across");
    drop(opened);
    for sector in [2298, 2299, 3000, 3001] {
        let bytes = read_sector(&stack, "md0", (first + sector) * 512).expect("a sector");
        assert!(bytes.iter().all(|byte| *byte == 7), "sector {sector}");
    }
    assert_eq!(stack.defects(), 0);
}

/// Writes through the disk; a whole sector, as it must be.
fn write_inside(stack: &Stack, disk: ugeom_stack::ProviderId, offset: u64, text: &[u8]) {
    let mut sector = vec![0; 512];
    sector[..text.len()].copy_from_slice(text);
    write(stack, disk, &[(offset, sector)]);
}

#[test]
fn volumes_of_a_gpt_are_named_after_their_partition() {
    let media = Media::of_512(20_480);
    let parts = [("ms-ldm-metadata", 40, 2048), ("ms-ldm-data", 4096, 10_000)];
    let mut sectors: Vec<(u64, Vec<u8>)> = crate::common::disks::gpt_of(media, &parts)
        .into_iter()
        .map(|(offset, bytes)| (offset / 512, bytes))
        .collect();
    // The database of a disk with an MBR, moved into its partition.
    let database = 20_480 - 2048;
    let made = foreign::ldm::disk(20_480, &volumes());
    let moved = made.into_iter().filter(|sector| sector.0 >= database);
    sectors.extend(moved.map(|(sector, mut bytes)| {
        if bytes.starts_with(b"PRIVHEAD") {
            bytes[283..291].copy_from_slice(&4096_u64.to_be_bytes());
            bytes[291..299].copy_from_slice(&10_000_u64.to_be_bytes());
            bytes[299..307].copy_from_slice(&40_u64.to_be_bytes());
        }
        (sector - database + 40, bytes)
    }));
    let stack = disk_with(10 * MIB, &sectors);
    assert_eq!(errors(&stack), [""; 0]);
    let mut found = names(&stack);
    found.sort();
    assert_eq!(
        found,
        ["md0p1", "md0p2", "md0p2s1", "md0p2s2", "md0p2s3", "md0p2s4"]
    );
    assert_eq!(view(&stack, "md0p2s1").fact("start"), Some("4096"));
}

#[test]
fn ldmtool_finds_the_same_volumes() {
    let Some(ldmtool) = program("ldmtool") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = image(folder.path(), 10 * MIB);
    put(&path, &foreign::ldm::disk(20_480, &volumes()));
    let scanned = run(&ldmtool, &["scan"], &path, &[]);
    let groups: serde_json::Value = serde_json::from_str(&scanned).expect("JSON");
    let guid = "12345678-1111-2222-3333-444455556666";
    assert_eq!(groups, serde_json::json!([guid]), "{scanned}");
    let shown = |what: &str| {
        let mut child = Command::new(&ldmtool)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("ldmtool runs");
        let mut pipe = child.stdin.take().expect("a pipe");
        let commands = format!("scan {}\nshow {what}\n", path.display());
        std::io::Write::write_all(&mut pipe, commands.as_bytes()).expect("it reads");
        drop(pipe);
        let output = child.wait_with_output().expect("it ends");
        // Some versions write a blank before the colon.
        String::from_utf8_lossy(&output.stdout).replace(" :", ":")
    };
    for (name, _, sectors, _) in volumes() {
        let volume = shown(&format!("volume {guid} {name}"));
        let size = format!("\"size\": {sectors}");
        let bytes = format!("\"size\": {}", sectors * 512);
        assert!(
            volume.contains(&size) || volume.contains(&bytes),
            "{volume}"
        );
    }
}
