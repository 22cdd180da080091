//! The partitioning tools of other people: tables made by sfdisk, fdisk,
//! sgdisk and parted are read here, tables made here are read by them, entry
//! by entry.

use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use ugeom_format::plan::{Create, NewPart, Scheme, Table};
use ugeom_format::{Media, SectorWrite, bsd, ebr, gpt, mbr};

const DISK_SIZE_BYTES: u64 = 64 << 20;

/// A sparse image in a directory of its own.
struct Image {
    path: PathBuf,
    media: Media,
    _folder: TempDir,
}

impl Image {
    fn new(sector_size_bytes: u32) -> Image {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.img");
        std::fs::File::create(&path)
            .unwrap()
            .set_len(DISK_SIZE_BYTES)
            .unwrap();
        let media = Media::new(DISK_SIZE_BYTES, sector_size_bytes).unwrap();
        Image {
            path,
            media,
            _folder: folder,
        }
    }

    fn read(&self, lba: u64, count: u64) -> Vec<u8> {
        let size = u64::from(self.media.sector_size_bytes);
        let mut bytes = vec![0; (count * size) as usize];
        let file = std::fs::File::open(&self.path).unwrap();
        file.read_exact_at(&mut bytes, lba * size).unwrap();
        bytes
    }

    fn write(&self, writes: &[SectorWrite]) {
        let file = std::fs::File::options()
            .write(true)
            .open(&self.path)
            .unwrap();
        for write in writes {
            let at = write.lba * u64::from(self.media.sector_size_bytes);
            file.write_all_at(&write.data, at).unwrap();
        }
    }

    fn gpt(&self) -> gpt::Gpt {
        gpt::Gpt::read(self.media, &mut |lba, count| Ok(self.read(lba, count)))
    }

    fn load(&self, scheme: Scheme) -> Table {
        Table::load(scheme, self.media, &mut |lba, count| {
            Ok(self.read(lba, count))
        })
        .unwrap()
    }

    /// Number, first sector, length and type of every MBR slice, logical ones
    /// from 5 on.
    fn slices(&self) -> Vec<(u64, u64, u64, u8)> {
        let table = mbr::Mbr::decode(&self.read(0, 1)).unwrap();
        let mut found = Vec::new();
        for (number, entry) in table.slices() {
            let (start, sectors) = (u64::from(entry.start), u64::from(entry.sectors));
            found.push((number as u64, start, sectors, entry.kind.0));
        }
        let extended = table.slices().find(|(_, entry)| entry.kind.is_extended());
        if let Some((_, extended)) = extended {
            let (start, length) = (u64::from(extended.start), u64::from(extended.sectors));
            let mut walk = ebr::EbrWalk::new(start, length);
            let mut number = 5;
            while let Some(lba) = walk.next_lba() {
                let step = walk.feed(&self.read(lba, 1));
                assert_eq!(step.error, None);
                if let Some(logical) = step.logical {
                    let (start, sectors) = (logical.start, logical.sectors);
                    found.push((number, start, sectors, logical.entry.kind.0));
                    number += 1;
                }
            }
        }
        found
    }
}

/// Runs a tool with a script on its standard input; `None`, after saying so,
/// when it is not installed. Some tools answer 1 to warnings: the tables that
/// they leave are what is tested.
fn run(test: &str, tool: &str, arguments: &[&str], path: &Path, script: &str) -> Option<String> {
    let child = Command::new(tool)
        .args(arguments)
        .arg(path)
        .env("LC_ALL", "C.UTF-8")
        .env(
            "PATH",
            format!(
                "{}:/usr/sbin:/sbin",
                std::env::var("PATH").unwrap_or_default()
            ),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            ugeom_testkit::skip(test, &format!("{tool} cannot be run: {error}"));
            return None;
        }
    };
    child
        .stdin
        .take()
        .unwrap()
        .write_all(script.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `parted` takes its commands after the file.
fn parted(test: &str, path: &Path, commands: &str) -> Option<String> {
    let script = format!("exec parted -ms \"$0\" {commands}");
    run(test, "parted", &["--version"], Path::new("--version"), "")?;
    run(test, "sh", &["-c", &script], path, "")
}

fn json(test: &str, path: &Path) -> Option<Value> {
    let text = run(test, "sfdisk", &["--json"], path, "")?;
    let parsed: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    Some(parsed["partitiontable"].clone())
}

/// Number (what follows the image's name), start and size of an entry.
fn place(entry: &Value) -> (u64, u64, u64) {
    let node = entry["node"].as_str().unwrap();
    let number = node.rsplit_once(".img").unwrap().1.parse().unwrap();
    (
        number,
        entry["start"].as_u64().unwrap(),
        entry["size"].as_u64().unwrap(),
    )
}

fn json_slices(table: &Value) -> Vec<(u64, u64, u64, u8)> {
    let entries = table["partitions"].as_array().unwrap();
    entries
        .iter()
        .map(|entry| {
            let (number, start, size) = place(entry);
            let kind = u8::from_str_radix(entry["type"].as_str().unwrap(), 16).unwrap();
            (number, start, size, kind)
        })
        .collect()
}

/// Columns of `fdisk -l` after its heading, which begins with `Start`.
fn fdisk_rows(text: &str) -> Vec<Vec<String>> {
    let rows = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("Start"))
        .skip(1);
    rows.map(|row| row.split_whitespace().map(str::to_owned).collect())
        .collect()
}

/// Start, size and type of the partitions in `parted -ms ... unit s print`.
fn parted_rows(text: &str) -> Vec<(u64, u64, u64)> {
    let number = |field: &str| field.trim_end_matches('s').parse().unwrap();
    text.lines()
        .skip(2)
        .map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (number(fields[0]), number(fields[1]), number(fields[3]))
        })
        .collect()
}

const SFDISK_MBR: &str = "label: dos
label-id: 0x12345678
start=2048, size=4096, type=83, bootable
start=8192, size=2048, type=a5
start=16384, size=100000, type=5
start=18432, size=4096, type=83
start=24576, size=4096, type=82
start=40960, size=8192, type=c
";

#[test]
fn an_mbr_with_logical_partitions_made_by_sfdisk_is_read() {
    let test = "an_mbr_with_logical_partitions_made_by_sfdisk_is_read";
    let image = Image::new(512);
    if run(test, "sfdisk", &["-q"], &image.path, SFDISK_MBR).is_none() {
        return;
    }
    let table = json(test, &image.path).expect("sfdisk ran before");
    assert_eq!(image.slices(), json_slices(&table));
    assert_eq!(image.slices().len(), 6);
    let mbr = mbr::Mbr::decode(&image.read(0, 1)).unwrap();
    assert_eq!(
        (mbr.disk_id, mbr.entries[0].is_active()),
        (0x1234_5678, true)
    );
    for entry in mbr.entries {
        let geometry = mbr::Geometry::LBA_ASSIST;
        let last = entry.end().saturating_sub(1);
        assert!(
            entry.last_chs.agrees_with(last, geometry) || !entry.is_used(),
            "{entry:?}"
        );
    }
}

#[test]
fn sfdisk_and_parted_read_an_mbr_with_logical_partitions_made_here() {
    let test = "sfdisk_and_parted_read_an_mbr_with_logical_partitions_made_here";
    let image = Image::new(512);
    let create = Create {
        random: [0x5a; 16],
        ..Default::default()
    };
    let mut table = Table::create(Scheme::Mbr, image.media, &create).unwrap();
    let add = |table: &mut Table, start, sectors, kind: &str| {
        let (start, sectors, kind) = (Some(start), Some(sectors), kind.to_owned());
        table
            .add(&NewPart {
                start,
                sectors,
                kind,
                ..Default::default()
            })
            .unwrap();
    };
    add(&mut table, 63, 5000, "freebsd");
    add(&mut table, 10_000, 2000, "fat32lba");
    add(&mut table, 20_000, 50_000, "ebr");
    image.write(&table.encode());
    let logicals: Vec<_> = (0..12)
        .map(|index| ebr::NewLogical {
            ebr_lba: 20_000 + 4000 * index,
            start: 20_063 + 4000 * index,
            sectors: 3900,
            kind: mbr::PartType::LINUX,
        })
        .collect();
    let chain = ebr::encode_chain(20_000, &logicals, mbr::Geometry::LBA_ASSIST).unwrap();
    for (lba, bytes) in chain {
        image.write(&[SectorWrite {
            lba,
            data: bytes.to_vec(),
        }]);
    }
    assert_eq!(image.slices().len(), 15);
    if let Some(table) = json(test, &image.path) {
        assert_eq!(json_slices(&table), image.slices());
        assert_eq!(table["id"], "0x5a5a5a5a");
    }
    if let Some(text) = parted(test, &image.path, "unit s print") {
        let ours: Vec<_> = image.slices().iter().map(|s| (s.0, s.1, s.2)).collect();
        assert_eq!(parted_rows(&text), ours, "{text}");
    }
}

#[test]
fn an_mbr_with_large_sectors_made_by_fdisk_is_read() {
    let test = "an_mbr_with_large_sectors_made_by_fdisk_is_read";
    let image = Image::new(4096);
    let script = "o\nn\np\n1\n256\n+1M\nn\ne\n2\n1024\n+40M\nn\nl\n2048\n+1M\n\
                  n\nl\n4096\n+2M\nt\n5\n82\nw\n";
    if run(test, "fdisk", &["-b", "4096"], &image.path, script).is_none() {
        return;
    }
    let list = ["-b", "4096", "-o", "Start,Sectors,Id", "-l"];
    let rows = fdisk_rows(&run(test, "fdisk", &list, &image.path, "").unwrap());
    let theirs: Vec<_> = rows
        .iter()
        .map(|row| {
            let kind = u8::from_str_radix(&row[2], 16).unwrap();
            (row[0].parse().unwrap(), row[1].parse().unwrap(), kind)
        })
        .collect();
    let ours: Vec<_> = image.slices().iter().map(|s| (s.1, s.2, s.3)).collect();
    assert_eq!((ours.len(), &ours), (4, &theirs));
}

/// Compares a whole GPT with sfdisk's view of it.
fn assert_same_as_sfdisk(test: &str, image: &Image) {
    let Some(table) = json(test, &image.path) else {
        return;
    };
    let gpt = image.gpt();
    assert_eq!(gpt.findings(), []);
    let ours = gpt.primary.unwrap();
    let upper = |guid: gpt::Guid| guid.to_string().to_uppercase();
    assert_eq!(table["label"], "gpt");
    assert_eq!(table["id"], upper(ours.header.disk_guid));
    assert_eq!(table["firstlba"], ours.header.first_usable);
    assert_eq!(table["lastlba"], ours.header.last_usable);
    let theirs = table["partitions"].as_array().unwrap();
    assert_eq!(ours.partitions().count(), theirs.len());
    for ((number, ours), theirs) in ours.partitions().zip(theirs) {
        assert_eq!(place(theirs), (number as u64, ours.first, ours.sectors()));
        assert_eq!(theirs["type"], upper(ours.kind));
        assert_eq!(theirs["uuid"], upper(ours.guid));
        assert_eq!(theirs["name"].as_str().unwrap_or(""), ours.label());
    }
}

#[test]
fn a_gpt_of_128_partitions_made_by_sgdisk_is_read() {
    let test = "a_gpt_of_128_partitions_made_by_sgdisk_is_read";
    let image = Image::new(512);
    let mut arguments = vec!["-a1".to_owned()];
    for number in 1..=128 {
        let start = 2048 + 900 * number;
        arguments.push(format!("-n{number}:{start}:{}", start + 700 + number));
        arguments.push(format!("-c{number}:Partition \u{df} {number}"));
        arguments.push(format!(
            "-t{number}:{}",
            ["8300", "ef00", "a503"][number % 3]
        ));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if run(test, "sgdisk", &arguments, &image.path, "").is_none() {
        return;
    }
    assert_eq!(image.gpt().primary.unwrap().partitions().count(), 128);
    assert_same_as_sfdisk(test, &image);
    // Written again from what was read, the disk stays as it is.
    let before = std::fs::read(&image.path).unwrap();
    image.write(&image.load(Scheme::Gpt).encode());
    let after = std::fs::read(&image.path).unwrap();
    assert_eq!(after[512..], before[512..]);
    assert_eq!(after[446..450], before[446..450]);
}

fn made_here(image: &Image, count: u32) -> Table {
    let create = Create {
        random: [0x11; 16],
        ..Default::default()
    };
    let mut table = Table::create(Scheme::Gpt, image.media, &create).unwrap();
    for index in 0..count {
        let new = NewPart {
            sectors: Some(20 + u64::from(index)),
            align_sectors: Some(8),
            kind: ["linux-data", "efi", "freebsd-zfs", "ms-basic-data"][index as usize % 4].into(),
            label: Some(format!("teil \u{e4} {index}")),
            random: [index as u8; 16],
            ..Default::default()
        };
        table.add(&new).unwrap();
    }
    image.write(&table.encode());
    table
}

#[test]
fn sfdisk_sgdisk_and_parted_read_a_gpt_made_here() {
    let test = "sfdisk_sgdisk_and_parted_read_a_gpt_made_here";
    let image = Image::new(512);
    let mut table = made_here(&image, 128);
    for index in [1, 64, 128] {
        table.delete(index).unwrap();
    }
    image.write(&table.encode());
    if json(test, &image.path).is_some() {
        assert_same_as_sfdisk(test, &image);
    }
    if let Some(text) = run(test, "sgdisk", &["-v"], &image.path, "") {
        assert!(text.contains("No problems found"), "{text}");
    }
    if let Some(text) = parted(test, &image.path, "unit s print") {
        let ours: Vec<_> = table
            .parts()
            .iter()
            .map(|p| (u64::from(p.index), p.start, p.sectors))
            .collect();
        assert_eq!(parted_rows(&text), ours, "{text}");
        assert!(
            text.lines()
                .nth(1)
                .unwrap()
                .contains(":131072s:file:512:512:gpt:"),
            "{text}"
        );
    }
}

fn assert_same_as_fdisk(test: &str, image: &Image) {
    let list = [
        "-b",
        "4096",
        "-o",
        "Start,Sectors,Type-UUID,UUID,Name",
        "-l",
    ];
    let text = run(test, "fdisk", &list, &image.path, "").unwrap();
    let table = image.gpt().primary.unwrap();
    let ours: Vec<Vec<String>> = table
        .partitions()
        .map(|(_, entry)| {
            let guids = [entry.kind, entry.guid].map(|guid| guid.to_string().to_uppercase());
            let places = [entry.first, entry.sectors()].map(|number| number.to_string());
            let label = entry.label();
            let words = label.split_whitespace().map(str::to_owned);
            places.into_iter().chain(guids).chain(words).collect()
        })
        .collect();
    assert_eq!(fdisk_rows(&text), ours, "{text}");
    assert!(!ours.is_empty());
}

#[test]
fn a_gpt_with_large_sectors_made_by_fdisk_is_read() {
    let test = "a_gpt_with_large_sectors_made_by_fdisk_is_read";
    let image = Image::new(4096);
    let script = "g\nn\n1\n256\n+1M\nn\n128\n1024\n+2M\nt\n1\n1\nw\n";
    if run(test, "fdisk", &["-b", "4096"], &image.path, script).is_none() {
        return;
    }
    assert_eq!(image.gpt().findings(), []);
    assert_same_as_fdisk(test, &image);
}

#[test]
fn fdisk_reads_a_gpt_with_large_sectors_made_here() {
    let test = "fdisk_reads_a_gpt_with_large_sectors_made_here";
    let image = Image::new(4096);
    made_here(&image, 50);
    if run(test, "fdisk", &["-v"], Path::new("-v"), "").is_some() {
        assert_same_as_fdisk(test, &image);
    }
}

#[test]
fn sgdisk_is_content_with_a_gpt_recovered_here() {
    let test = "sgdisk_is_content_with_a_gpt_recovered_here";
    let image = Image::new(512);
    let arguments = ["-n1:2048:+1M", "-c1:first", "-n3:0:+2M"];
    if run(test, "sgdisk", &arguments, &image.path, "").is_none() {
        return;
    }
    let before = std::fs::read(&image.path).unwrap();
    for lba in [1, 2, image.media.last_lba(), image.media.last_lba() - 32] {
        image.write(&[SectorWrite {
            lba,
            data: vec![0xee; 512],
        }]);
        let mut table = image.load(Scheme::Gpt);
        assert_eq!(table.recover().unwrap().len(), 1);
        image.write(&table.encode());
        let text = run(test, "sgdisk", &["-v"], &image.path, "").unwrap();
        assert!(text.contains("No problems found"), "{text}");
        assert_eq!(std::fs::read(&image.path).unwrap()[512..], before[512..]);
    }
}

#[test]
fn sgdisk_is_content_with_a_gpt_moved_to_the_end_of_a_grown_image() {
    let test = "sgdisk_is_content_with_a_gpt_moved_to_the_end_of_a_grown_image";
    let mut image = Image::new(512);
    if run(test, "sgdisk", &["-n1:2048:+1M"], &image.path, "").is_none() {
        return;
    }
    let file = std::fs::File::options()
        .write(true)
        .open(&image.path)
        .unwrap();
    file.set_len(2 * DISK_SIZE_BYTES).unwrap();
    image.media = Media::new(2 * DISK_SIZE_BYTES, 512).unwrap();
    let mut table = image.load(Scheme::Gpt);
    table.recover().unwrap();
    image.write(&table.encode());
    let text = run(test, "sgdisk", &["-v"], &image.path, "").unwrap();
    assert!(text.contains("No problems found"), "{text}");
    assert_same_as_sfdisk(test, &image);
}

#[test]
fn a_disklabel_made_by_parted_is_read() {
    let test = "a_disklabel_made_by_parted_is_read";
    let image = Image::new(512);
    let commands = "mklabel bsd mkpart ext2 1MiB 10MiB mkpart ext2 10MiB 20MiB";
    if parted(test, &image.path, commands).is_none() {
        return;
    }
    let text = parted(test, &image.path, "unit s print").unwrap();
    let (location, label) = bsd::find(&image.read(0, 2), 512).unwrap();
    assert_eq!(location, bsd::Location::Alpha);
    let ours: Vec<_> = label
        .slices()
        .map(|s| (s.index as u64 + 1, s.start_bytes / 512, s.size_bytes / 512))
        .collect();
    assert_eq!(parted_rows(&text), ours);
    assert_eq!(ours.len(), 2);
    let sector = image.read(0, 1);
    let sum = u64::from_le_bytes(sector[504..].try_into().unwrap());
    assert_eq!(bsd::alpha_checksum(&sector), sum);
}

#[test]
fn parted_and_sfdisk_read_a_disklabel_made_here() {
    let test = "parted_and_sfdisk_read_a_disklabel_made_here";
    let image = Image::new(512);
    let mut table = Table::create(Scheme::Bsd, image.media, &Create::default()).unwrap();
    for (sectors, kind) in [(1000, "freebsd-ufs"), (2000, "freebsd-swap"), (9000, "!8")] {
        let (sectors, kind) = (Some(sectors), kind.to_owned());
        let align_sectors = Some(16);
        table
            .add(&NewPart {
                sectors,
                kind,
                align_sectors,
                ..Default::default()
            })
            .unwrap();
    }
    let Table::Bsd(made) = &table else {
        unreachable!()
    };
    let ours: Vec<_> = made
        .label()
        .slices()
        .map(|s| (s.index as u64 + 1, s.start_bytes / 512, s.size_bytes / 512))
        .collect();
    assert_eq!(ours.len(), 4);
    // sfdisk looks in sector 1, parted at byte 64 of sector 0.
    image.write(&table.encode());
    if let Some(table) = json(test, &image.path) {
        assert_eq!(table["label"], "bsd");
        let theirs: Vec<_> = table["partitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(place)
            .collect();
        assert_eq!(theirs, ours);
    }
    let mut sector0 = vec![0; 512];
    bsd::put(&mut sector0, bsd::Location::Alpha, made.label()).unwrap();
    image.write(&[SectorWrite {
        lba: 0,
        data: sector0,
    }]);
    if let Some(text) = parted(test, &image.path, "unit s print") {
        // parted leaves out the raw partition, which is of type 0.
        let listed: Vec<_> = ours.iter().copied().filter(|row| row.0 != 3).collect();
        assert_eq!(parted_rows(&text), listed, "{text}");
    }
}
