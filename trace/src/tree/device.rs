//! Block devices: the facts of each in sysfs, and the devices below each.

use super::mounts;
use super::{Class, KernelTree, Node, TargetsOf, numbers};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use ugeom_format::diskstats::SECTOR_BYTES;
use ugeom_machine::block_device::System;
use ugeom_machine::mounts::Mount;

/// A file of sysfs that is longer than this is cut: all of those that are read are a page at most.
const TEXT_BYTES_MAX: u64 = 4096;

/// Files of `queue/` that are shown, and the names of the settings.
const QUEUE: &[(&str, &str)] = &[
    ("scheduler", "scheduler"),
    ("nr_requests", "queue depth"),
    ("max_sectors_kb", "largest request, KiB"),
    ("max_segments", "largest request, segments"),
    ("logical_block_size", "logical block, bytes"),
    ("physical_block_size", "physical block, bytes"),
    ("write_cache", "write cache"),
    ("fua", "FUA"),
    ("rotational", "rotational"),
    ("read_ahead_kb", "read-ahead, KiB"),
    ("iostats", "iostats"),
    ("discard_max_bytes", "largest discard, bytes"),
];

/// Files of a device's folder that are shown where the device has them.
const OWN: &[(&str, &str)] = &[
    ("diskseq", "diskseq"),
    ("loop/offset", "offset"),
    ("loop/sizelimit", "size limit"),
    ("loop/dio", "direct I/O"),
    ("loop/autoclear", "autoclear"),
    ("dm/uuid", "uuid"),
    ("md/level", "level"),
    ("md/raid_disks", "disks"),
    ("md/array_state", "state"),
    ("md/chunk_size", "chunk, bytes"),
    ("bcache/cache_mode", "cache mode"),
    ("bcache/state", "state"),
    ("comp_algorithm", "compression"),
    ("device/model", "model"),
    ("device/queue_depth", "device queue depth"),
    ("mq/0/nr_tags", "tags"),
];

/// Adds every block device with its partitions.
pub fn add_all(
    tree: &mut KernelTree,
    system: &System,
    targets: Option<&TargetsOf>,
) -> io::Result<()> {
    let block = system.sys.join("block");
    let mut names: Vec<String> = fs::read_dir(&block)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort_unstable_by_key(|name| natural(name));
    for name in names {
        let folder = block.join(&name);
        let node = disk(&name, &folder, targets);
        // An unused loop or nbd device has size 0 and nothing below it.
        if node.size_bytes == 0 && matches!(node.class, Class::Loop | Class::Nbd | Class::Zram) {
            continue;
        }
        let sector_bytes = node.sector_bytes;
        let Some(parent) = tree.add(node) else { continue };
        for part in partitions(&folder) {
            let mut node = partition(&folder.join(&part), &part);
            node.sector_bytes = sector_bytes;
            node.below.push(parent);
            tree.add(node);
        }
    }
    Ok(())
}

/// Names in the order of their numbers: loop2 before loop10.
fn natural(name: &str) -> (String, u64, String) {
    let digits = name.find(|c: char| c.is_ascii_digit());
    let (word, rest) = name.split_at(digits.unwrap_or(name.len()));
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let (number, rest) = rest.split_at(end.unwrap_or(rest.len()));
    (
        word.to_owned(),
        number.parse().unwrap_or(0),
        rest.to_owned(),
    )
}

fn disk(name: &str, folder: &Path, targets: Option<&TargetsOf>) -> Node {
    let number = text(&folder.join("dev")).and_then(|text| numbers(&text));
    let class = class(name, folder);
    let queue = folder.join("queue");
    let mut config = Vec::new();
    for (file, word) in QUEUE {
        if let Some(value) = text(&queue.join(file)) {
            let value = match *file {
                "scheduler" => chosen(&value),
                _ => value,
            };
            config.push(((*word).to_owned(), value));
        }
    }
    for (file, word) in OWN {
        if let Some(value) = text(&folder.join(file)) {
            config.push(((*word).to_owned(), value));
        }
    }
    let mut kind = match class {
        Class::Md => text(&folder.join("md/level")).unwrap_or_default(),
        _ => driver(folder).unwrap_or_default(),
    };
    if class == Class::Dm {
        let table = number
            .and_then(|number| targets?(number))
            .unwrap_or_default();
        for (at, target) in table.iter().enumerate() {
            config.push((format!("target {at}"), target.to_string()));
        }
        let mut names: Vec<&str> = table.iter().map(|target| target.kind.as_str()).collect();
        names.dedup();
        kind = names.join(", ");
    }
    let bytes = |file: &str| text(&queue.join(file)).and_then(|text| text.parse().ok());
    Node {
        name: name.replace('!', "/"),
        class,
        number,
        size_bytes: sectors(&folder.join("size")).unwrap_or(0),
        sector_bytes: bytes("logical_block_size").unwrap_or(SECTOR_BYTES as u32),
        start_bytes: None,
        read_only: text(&folder.join("ro")).as_deref() == Some("1"),
        kind,
        label: text(&folder.join("dm/name")).unwrap_or_default(),
        config,
        below: Vec::new(),
    }
}

fn partition(folder: &Path, name: &str) -> Node {
    Node {
        name: name.replace('!', "/"),
        class: Class::Part,
        number: text(&folder.join("dev")).and_then(|text| numbers(&text)),
        size_bytes: sectors(&folder.join("size")).unwrap_or(0),
        sector_bytes: 0,
        start_bytes: sectors(&folder.join("start")),
        read_only: text(&folder.join("ro")).as_deref() == Some("1"),
        kind: String::new(),
        label: String::new(),
        config: Vec::new(),
        below: Vec::new(),
    }
}

/// The kind of a device, by the folder that its driver makes, by its name, or by its driver.
fn class(name: &str, folder: &Path) -> Class {
    let has = |file: &str| folder.join(file).exists();
    match name {
        _ if has("dm") => Class::Dm,
        _ if has("md") => Class::Md,
        _ if has("bcache") && name.starts_with("bcache") => Class::Bcache,
        _ if name.starts_with("loop") => Class::Loop,
        _ if name.starts_with("zram") => Class::Zram,
        _ if name.starts_with("nbd") => Class::Nbd,
        _ if name.starts_with("ublkb") => Class::Ublk,
        _ if name.starts_with("nvme") => Class::Nvme,
        _ => match driver(folder).as_deref() {
            Some("virtio_blk") => Class::Virtio,
            Some("sd" | "sr") => Class::Scsi,
            _ => Class::Disk,
        },
    }
}

fn driver(folder: &Path) -> Option<String> {
    let link = fs::read_link(folder.join("device/driver")).ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

/// The scheduler in use, of a list in which it stands in brackets; a list of one has none.
fn chosen(list: &str) -> String {
    let mut words = list.split_whitespace();
    let marked = words.clone().find(|word| word.starts_with('['));
    let word = marked.or_else(|| words.next()).unwrap_or("");
    word.trim_matches(['[', ']']).to_owned()
}

/// Connects devices to those below, and adds the files of loop devices.
pub fn connect(tree: &mut KernelTree, system: &System, mounts: &[Mount]) {
    let block = system.sys.join("block");
    for at in 0..tree.nodes.len() {
        let node = &tree.nodes[at];
        if matches!(
            node.class,
            Class::Part | Class::Fs | Class::Fuse | Class::File
        ) {
            continue;
        }
        let folder = block.join(node.name.replace('/', "!"));
        let slaves = fs::read_dir(folder.join("slaves")).into_iter().flatten();
        let mut slaves: Vec<PathBuf> = slaves
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        slaves.sort_unstable();
        for slave in slaves {
            let number = text(&slave.join("dev")).and_then(|text| numbers(&text));
            if let Some(below) = number.and_then(|number| tree.numbered(number)) {
                tree.nodes[at].below.push(below);
            }
        }
        if let Some(path) = raw(&folder.join("loop/backing_file")) {
            let below = backing(tree, path.trim_end_matches('\n'), &folder, mounts);
            tree.nodes[at].below.extend(below);
        }
    }
}

/// The backing of a loop device: a device by its name, or a file, which is added.
fn backing(tree: &mut KernelTree, path: &str, folder: &Path, mounts: &[Mount]) -> Option<usize> {
    if path.starts_with("/dev/")
        && let Some(at) = tree.named(path)
    {
        return Some(at);
    }
    let whole = path.strip_suffix(" (deleted)").unwrap_or(path);
    let offset = text(&folder.join("loop/offset")).and_then(|text| text.parse().ok());
    let below = mounts::below(tree, mounts, whole);
    tree.add(Node {
        name: path.to_owned(),
        class: Class::File,
        number: None,
        size_bytes: fs::metadata(whole).map_or(0, |about| about.len()),
        sector_bytes: 0,
        start_bytes: None,
        read_only: false,
        kind: String::new(),
        label: String::new(),
        config: offset
            .filter(|offset: &u64| *offset > 0)
            .map(|offset| ("loop begins at".to_owned(), offset.to_string()))
            .into_iter()
            .collect(),
        below: below.into_iter().collect(),
    })
}

fn partitions(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(u64, String)> = entries
        .filter_map(|entry| {
            let index = text(&entry.path().join("partition"))?.parse().ok()?;
            Some((index, entry.file_name().into_string().ok()?))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name).collect()
}

fn sectors(path: &Path) -> Option<u64> {
    let sectors: u64 = text(path)?.parse().ok()?;
    sectors.checked_mul(SECTOR_BYTES)
}

/// A file without the blanks around its text; none when it is empty or cannot be read.
fn text(path: &Path) -> Option<String> {
    let text = raw(path)?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn raw(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(TEXT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
