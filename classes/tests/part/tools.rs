//! Other partitioning tools against the classes and the writers, through the class `file`: the
//! tables of sfdisk, sgdisk and parted are listed here entry by entry, tables made here are listed
//! by them, and the results of mkfs in a partition are recognised.

use crate::common::part;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use ugeom_classes::part::edit::{self, Create, Editor, found};
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_format::plan::Scheme;
use ugeom_format::{ebr, mbr};
use ugeom_stack::{Channel, Delta, Opened, ProviderView, Tree};
use ugeom_testkit::{has, program};

const SIZE_BYTES: u64 = 64 << 20;

/// A sparse image in a directory of its own.
struct Image {
    path: PathBuf,
    _folder: TempDir,
}

impl Image {
    fn new() -> Image {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("disk.img");
        let file = std::fs::File::create(&path).expect("an image");
        file.set_len(SIZE_BYTES).expect("a size");
        Image {
            path,
            _folder: folder,
        }
    }

    fn open(&self, options: &str, writable: bool) -> Target {
        let options_of = TargetOptions {
            writable,
            ..TargetOptions::default()
        };
        let text = format!("{}{options}", self.path.display());
        open_target(&text, &options_of).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The partitions that the classes list: the name after the image's, first sector counted from
    /// the beginning of the disk, and sectors.
    fn listed(&self, options: &str) -> Vec<(String, u64, u64)> {
        let target = self.open(options, false);
        assert!(
            target.stack.taste_errors().is_empty(),
            "{:?}",
            target.stack.taste_errors()
        );
        let tree = target.stack.tree();
        let parts = tree
            .providers()
            .filter(|provider| provider.id != target.bottom);
        parts.map(|part| place(&tree, part, &target.name)).collect()
    }

    /// Changes the image's table, and closes it.
    fn edit<R>(
        &self,
        options: &str,
        with: impl FnOnce(&mut ugeom_stack::Channel, &ugeom_stack::Opened) -> R,
    ) -> R {
        let target = self.open(options, true);
        let mut channel = target.stack.channel(1).expect("a channel");
        let opened = target.open(Delta::READ_WRITE).expect("open for writing");
        with(&mut channel, &opened)
    }

    /// Runs a tool on the image and answers with what it printed.
    fn run(&self, tool: &str, arguments: &[&str], input: &str) -> Option<String> {
        let mut command = Command::new(program(tool)?);
        command.args(arguments).arg(&self.path);
        Some(output(command, input))
    }

    /// parted, if it is there, finds these partitions.
    fn parted_lists(&self, listed: &[(u64, u64, u64)]) {
        if let Some(text) = self.parted(&["unit", "s", "print"]) {
            assert_eq!(parted_entries(&text), listed, "{text}");
        }
    }

    /// `parted` takes its commands after the file.
    fn parted(&self, commands: &[&str]) -> Option<String> {
        let mut command = Command::new(program("parted")?);
        command.arg("-ms").arg(&self.path).args(commands);
        Some(output(command, ""))
    }

    fn json(&self, options: &[&str]) -> Option<Value> {
        let arguments = [options, &["--json"]].concat();
        let text = self.run("sfdisk", &arguments, "")?;
        let parsed: Value = serde_json::from_str(&text).expect("JSON");
        Some(parsed["partitiontable"].clone())
    }
}

fn output(mut command: Command, input: &str) -> String {
    let pipes = [Stdio::piped(), Stdio::piped(), Stdio::piped()];
    let [stdin, stdout, stderr] = pipes;
    let child = command
        .env("LC_ALL", "C.UTF-8")
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .spawn();
    let mut child = child.expect("the tool runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(input.as_bytes())
        .expect("it reads its script");
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn place(tree: &Tree, part: &ProviderView, disk: &str) -> (String, u64, u64) {
    let unit = u64::from(part.sectorsize_bytes);
    let name = part.name.strip_prefix(disk).expect("the disk's name first");
    (
        name.to_owned(),
        absolute_bytes(tree, part) / unit,
        part.mediasize_bytes / unit,
    )
}

/// Where a partition begins on the disk, through all tables below it.
fn absolute_bytes(tree: &Tree, part: &ProviderView) -> u64 {
    let Some(offset) = part.fact("offset") else { return 0 };
    let geom = tree.geom(part.geom).expect("its geom");
    let below = geom.consumers[0].provider.expect("a provider below");
    let below = tree
        .providers()
        .find(|provider| provider.id == below)
        .expect("it");
    offset.parse::<u64>().expect("a number") + absolute_bytes(tree, below)
}

/// Number, start and size of the entries in sfdisk's JSON.
fn entries(table: &Value) -> Vec<(u64, u64, u64)> {
    let entries = table["partitions"].as_array().expect("partitions");
    let number = |value: &Value| value.as_u64().expect("a number");
    let index = |entry: &Value| {
        let node = entry["node"].as_str().expect("a node");
        let (_, index) = node.rsplit_once(".img").expect("the image's name");
        index.parse().expect("a number")
    };
    entries
        .iter()
        .map(|e| (index(e), number(&e["start"]), number(&e["size"])))
        .collect()
}

/// The same of `parted -ms ... unit s print`.
fn parted_entries(text: &str) -> Vec<(u64, u64, u64)> {
    let number = |field: &str| field.trim_end_matches('s').parse().expect("a number");
    let rows = text
        .lines()
        .skip(2)
        .map(|line| line.split(':').collect::<Vec<&str>>());
    rows.map(|row| (number(row[0]), number(row[1]), number(row[3])))
        .collect()
}

/// Ours in the same form: what follows the letter is the number.
fn numbered(listed: &[(String, u64, u64)], letter: char) -> Vec<(u64, u64, u64)> {
    let number = |name: &str| name.strip_prefix(letter)?.parse().ok();
    let mut rows: Vec<(u64, u64, u64)> = listed
        .iter()
        .map(|(name, start, size)| (number(name).expect("a number"), *start, *size))
        .collect();
    rows.sort_unstable();
    rows
}

fn editor<'a>(channel: &'a mut Channel, opened: &'a Opened) -> Editor<'a> {
    Editor::open(channel, opened, None).expect("the table")
}

fn create(channel: &mut Channel, opened: &Opened, scheme: Scheme) {
    let wanted = Create {
        scheme,
        entries: None,
        force: false,
    };
    edit::create(channel, opened, &wanted).expect("a table");
}

const LOGICAL: &str = "label: dos
start=2048, size=4096, type=83, bootable
start=8192, size=2048, type=b
start=16384, size=100000, type=f
start=18432, size=4096, type=83
start=24576, size=4096, type=82
start=40960, size=8192, type=c
";

#[test]
fn logical_partitions_made_by_sfdisk_are_listed() {
    let image = Image::new();
    if image.run("sfdisk", &["-q"], LOGICAL).is_none() {
        return;
    }
    let theirs = entries(&image.json(&[]).expect("it ran before"));
    let listed = image.listed("");
    assert_eq!(numbered(&listed, 's'), theirs);
    assert_eq!(theirs.last(), Some(&(7, 40_960, 8192)));
}

#[test]
fn a_gpt_of_128_partitions_made_by_sgdisk_is_listed_with_labels_and_guids() {
    let image = Image::new();
    let mut arguments = vec!["-a1".to_owned()];
    for number in 1..=128 {
        let start = 2048 + 900 * number;
        arguments.push(format!("-n{number}:{start}:{}", start + 700 + number));
        arguments.push(format!("-c{number}:Teil \u{e4}{number}"));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if image.run("sgdisk", &arguments, "").is_none() {
        return;
    }
    let listed = image.listed("");
    assert_eq!(listed.len(), 128);
    let Some(table) = image.json(&[]) else { return };
    assert_eq!(numbered(&listed, 'p'), entries(&table));
    let target = image.open("", false);
    let tree = target.stack.tree();
    for theirs in table["partitions"].as_array().expect("partitions") {
        let node = theirs["node"].as_str().expect("a node");
        let (_, number) = node.rsplit_once(".img").expect("a number");
        let ours = tree
            .provider(&format!("disk.imgp{number}"))
            .expect("the same partition");
        let facts: BTreeMap<_, _> = ours.config.iter().cloned().collect();
        assert_eq!(facts["label"], theirs["name"]);
        assert_eq!(facts["rawuuid"].to_uppercase(), theirs["uuid"]);
        assert_eq!(facts["rawtype"].to_uppercase(), theirs["type"]);
        assert_eq!(ours.mark, None);
    }
}

const FDISK_LIST: &[&str] = &["-b", "4096", "-o", "Start,Sectors", "-l"];

#[test]
fn tables_with_large_sectors_made_by_fdisk_are_listed() {
    let gpt = "g\nn\n1\n256\n+1M\nn\n128\n1024\n+2M\nw\n";
    let mbr = "o\nn\np\n1\n256\n+1M\nn\ne\n2\n1024\n+40M\nn\nl\n2048\n+1M\n\
               n\nl\n4096\n+2M\nw\n";
    for (script, numbers, letter) in [(gpt, &[1, 128][..], 'p'), (mbr, &[1, 2, 5, 6], 's')] {
        let image = Image::new();
        if image.run("fdisk", &["-b", "4096"], script).is_none() {
            return;
        }
        let text = image.run("fdisk", FDISK_LIST, "");
        let text = text.expect("it ran before");
        let theirs: Vec<(u64, u64, u64)> = fdisk_entries(&text)
            .into_iter()
            .zip(numbers)
            .map(|((start, sectors), number)| (*number, start, sectors))
            .collect();
        assert_eq!(theirs.len(), numbers.len(), "{text}");
        assert_eq!(numbered(&image.listed("?sectorsize=4096"), letter), theirs);
    }
}

#[test]
fn a_disklabel_made_by_parted_is_listed() {
    let image = Image::new();
    let made = image.parted(&[
        "mklabel", "bsd", "mkpart", "ext2", "1MiB", "10MiB", "mkpart", "ext2", "10MiB", "20MiB",
    ]);
    if made.is_none() {
        return;
    }
    let text = image
        .parted(&["unit", "s", "print"])
        .expect("it ran before");
    let letters = lettered(image.listed(""));
    assert_eq!(letters, parted_entries(&text));
    assert_eq!(letters.len(), 2);
}

#[test]
fn an_edited_gpt_satisfies_sgdisk_sfdisk_and_parted() {
    let image = Image::new();
    image.edit("", |channel, opened| {
        create(channel, opened, Scheme::Gpt);
        for number in 0..128 {
            let mut new = part("linux-data", 2048 + 100 * number, 50 + number / 3);
            new.label = Some(format!("daten \u{fc} {number}"));
            editor(channel, opened).add_part(&new).expect("a partition");
        }
        for index in [1, 77, 128] {
            editor(channel, opened).delete(index).expect("deleted");
        }
    });
    let listed = numbered(&image.listed(""), 'p');
    assert_eq!(listed.len(), 125);
    if let Some(text) = image.run("sgdisk", &["-v"], "") {
        has(&text, "No problems found");
    }
    if let Some(table) = image.json(&[]) {
        assert_eq!(entries(&table), listed);
        assert_eq!(table["partitions"][0]["name"], "daten \u{fc} 1");
    }
    image.parted_lists(&listed);
}

#[test]
fn an_edited_mbr_and_its_logical_partitions_are_read_by_sfdisk_and_parted() {
    let image = Image::new();
    image.edit("", |channel, opened| {
        create(channel, opened, Scheme::Mbr);
        for new in [
            part("freebsd", 63, 5000),
            part("!131", 8192, 4096),
            part("ebr", 20_000, 50_000),
        ] {
            editor(channel, opened).add_part(&new).expect("a slice");
        }
    });
    let logicals: Vec<ebr::NewLogical> = (0..5)
        .map(|n| ebr::NewLogical {
            ebr_lba: 20_000 + 4000 * n,
            start: 20_063 + 4000 * n,
            sectors: 3900,
            kind: mbr::PartType::LINUX,
        })
        .collect();
    let chain = ebr::encode_chain(20_000, &logicals, mbr::Geometry::LBA_ASSIST).expect("a chain");
    let file = std::fs::File::options()
        .write(true)
        .open(&image.path)
        .expect("the image");
    for (lba, record) in chain {
        file.write_all_at(&record, lba * 512).expect("a write");
    }
    drop(file);
    let listed = numbered(&image.listed(""), 's');
    assert_eq!(listed.len(), 8);
    if let Some(table) = image.json(&[]) {
        assert_eq!(entries(&table), listed);
    }
    image.parted_lists(&listed);
}

/// The rows of `fdisk -l` after its heading: first sector and sectors.
fn fdisk_entries(text: &str) -> Vec<(u64, u64)> {
    let rows = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("Start"));
    let numbers = |row: &str| {
        let mut fields = row
            .split_whitespace()
            .map(|field| field.parse().expect("a number"));
        Some((fields.next()?, fields.next()?))
    };
    rows.skip(1).map_while(numbers).collect()
}

#[test]
fn an_edited_gpt_with_large_sectors_is_read_by_fdisk() {
    let (image, options) = (Image::new(), "?sectorsize=4096");
    image.edit(options, |channel, opened| {
        create(channel, opened, Scheme::Gpt);
        for number in 0..50 {
            let new = part("linux-data", 256 + 100 * number, 50 + number);
            editor(channel, opened).add_part(&new).expect("a partition");
        }
    });
    if let Some(text) = image.run("fdisk", FDISK_LIST, "") {
        let listed = numbered(&image.listed(options), 'p');
        let ours: Vec<_> = listed.iter().map(|row| (row.1, row.2)).collect();
        assert_eq!(fdisk_entries(&text), ours, "{text}");
    }
}

/// Index, first sector and sectors of the partitions of a label.
fn lettered(listed: Vec<(String, u64, u64)>) -> Vec<(u64, u64, u64)> {
    let index = |name: &str| u64::from(name.as_bytes()[0] - b'a') + 1;
    let rows = listed.into_iter();
    rows.map(|(name, start, size)| (index(&name), start, size))
        .collect()
}

#[test]
fn an_edited_disklabel_is_read_by_sfdisk_in_sector_1_and_by_parted_in_sector_0() {
    let image = Image::new();
    image.edit("", |channel, opened| {
        create(channel, opened, Scheme::Bsd);
        for new in [
            part("freebsd-ufs", 16, 1000),
            part("freebsd-swap", 2000, 3000),
        ] {
            editor(channel, opened).add_part(&new).expect("a partition");
        }
    });
    let letters = lettered(image.listed(""));
    assert_eq!(
        letters,
        [(1, 16, 1000), (2, 2000, 3000), (3, 0, SIZE_BYTES / 512)]
    );
    if let Some(table) = image.json(&[]) {
        assert_eq!(table["label"], "bsd");
        assert_eq!(entries(&table), letters);
    }
    let image = Image::new();
    if image.parted(&["mklabel", "bsd"]).is_none() {
        return;
    }
    image.edit("", |channel, opened| {
        let new = part("freebsd-ufs", 2048, 1000);
        editor(channel, opened).add_part(&new).expect("a partition");
    });
    let letters = lettered(image.listed(""));
    assert!(letters.contains(&(1, 2048, 1000)), "{letters:?}");
    image.parted_lists(&letters);
}

#[test]
fn sgdisk_is_content_with_what_recover_wrote() {
    let image = Image::new();
    let arguments = ["-n1:2048:+1M", "-c1:first", "-n3:0:+2M"];
    if image.run("sgdisk", &arguments, "").is_none() {
        return;
    }
    let file = std::fs::File::options().write(true).open(&image.path);
    let file = file.expect("the image");
    let recover = || {
        let repaired = image.edit("", edit::recover).expect("recovered");
        let text = image.run("sgdisk", &["-v"], "");
        let text = text.expect("it ran before");
        has(&text, "No problems found");
        (repaired, std::fs::read(&image.path).expect("the image"))
    };
    let before = std::fs::read(&image.path).expect("the image");
    for lba in [1, 2, SIZE_BYTES / 512 - 1, SIZE_BYTES / 512 - 33] {
        file.write_all_at(&[0xee; 512], lba * 512).expect("a write");
        let (repaired, after) = recover();
        assert_eq!(repaired.len(), 1, "{repaired:?}");
        assert_eq!(after[512..], before[512..]);
    }
    file.set_len(2 * SIZE_BYTES).expect("it grows");
    let (repaired, _) = recover();
    has(&repaired[0], "backup header is in sector 131071");
    assert_eq!(image.listed("").len(), 2);
}

#[test]
fn what_mkfs_made_in_a_partition_is_recognised() {
    for (tool, arguments, what) in [
        ("mkfs.ext4", &["-q", "-F"][..], "an ext4 file system"),
        ("mkfs.vfat", &[][..], "a FAT16 file system"),
        ("mkswap", &[][..], "a swap area"),
    ] {
        let Some(tool) = program(tool) else { continue };
        let image = Image::new();
        let inner = image.path.with_file_name("partition");
        let file = std::fs::File::create(&inner).expect("a partition");
        file.set_len(16 << 20).expect("a size");
        let mut command = Command::new(tool);
        command.args(arguments).arg(&inner);
        output(command, "");
        image.edit("", |channel, opened| {
            create(channel, opened, Scheme::Gpt);
            editor(channel, opened)
                .add_part(&part("linux-data", 2048, 32_768))
                .expect("a part");
        });
        let contents = std::fs::read(&inner).expect("the partition");
        let file = std::fs::File::options()
            .write(true)
            .open(&image.path)
            .expect("the image");
        file.write_all_at(&contents, 2048 * 512).expect("a write");
        let target = image.open("", false);
        let provider = target.stack.find("disk.imgp1").expect("the partition");
        let opened = target
            .stack
            .open(provider, Delta::READ)
            .expect("open for reading");
        let mut channel = target.stack.channel(1).expect("a channel");
        let found = found::look(&mut channel, &opened).expect("a look");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].title, what);
        let mut read = vec![0; contents.len()];
        channel.read(&opened, 0, &mut read).expect("all of it");
        assert!(read == contents, "the partition is read as it was written");
    }
}
