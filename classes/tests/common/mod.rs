//! What the tests of the partition tables share: a sparse memory, stacks on it, and recorded disks.
#![allow(dead_code, reason = "each test binary uses some of it")]

pub mod disks;
pub mod foreign;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use ugeom_classes::part::edit;
use ugeom_classes::registry;
use ugeom_format::plan::{NewPart, Scheme};
use ugeom_format::{apm, ebr, mbr};
use ugeom_stack::{
    AttributeValue, Command, Cx, Delta, Errno, Geom, Next, Plan, ProviderId, ProviderPlan,
    ProviderView, Request, Stack, StackKnobs,
};

/// Memory of any size; what was never written reads as zeros.
#[derive(Default)]
pub struct Sparse {
    pieces: Mutex<BTreeMap<u64, Vec<u8>>>,
    /// Heads, and sectors a track, where the firmware knew them.
    geometry: Option<(i64, i64)>,
}

/// Bytes in one piece of a [`Sparse`].
const PIECE_BYTES: u64 = 4096;

impl Sparse {
    pub fn put(&self, offset: u64, bytes: &[u8]) {
        let mut pieces = self.pieces.lock().expect("the memory");
        for (at, byte) in (offset..).zip(bytes) {
            let piece = pieces
                .entry(at / PIECE_BYTES)
                .or_insert_with(|| vec![0; 4096]);
            piece[(at % PIECE_BYTES) as usize] = *byte;
        }
    }

    /// Reads bytes from anywhere.
    pub fn get(&self, offset: u64, into: &mut [u8]) {
        let pieces = self.pieces.lock().expect("the memory");
        let mut at = 0;
        while at < into.len() {
            let place = offset + at as u64;
            let skip = (place % PIECE_BYTES) as usize;
            let count = (PIECE_BYTES as usize - skip).min(into.len() - at);
            match pieces.get(&(place / PIECE_BYTES)) {
                Some(piece) => into[at..at + count].copy_from_slice(&piece[skip..skip + count]),
                None => into[at..at + count].fill(0),
            }
            at += count;
        }
    }
}

impl Geom for Sparse {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let start = request.offset();
        match request.command() {
            Command::Read => request.fill(|at, piece| self.get(start + at, piece)),
            Command::Write => request.each(|at, piece| self.put(start + at, piece)),
            Command::Delete | Command::Zero => {
                let zeros = vec![0; request.length() as usize];
                self.put(start, &zeros);
            }
            Command::Flush => {}
            Command::GetAttr => {
                let number = match (request.attribute(), self.geometry) {
                    ("GEOM::fwheads", Some((heads, _))) => heads,
                    ("GEOM::fwsectors", Some((_, sectors))) => sectors,
                    _ => return request.done(Err(Errno::OPNOTSUPP)),
                };
                return request.answer(AttributeValue::Number(number));
            }
            Command::Extents => return request.done(Err(Errno::OPNOTSUPP)),
        }
        request.done_in_full()
    }
}

/// A stack with all partition tables and nothing in it.
pub fn tables() -> Stack {
    Stack::new(StackKnobs::default(), registry::tasting()).expect("a stack")
}

/// Puts a memory at the bottom of a stack and lets all classes taste it.
pub fn add(stack: &Stack, name: &str, size: u64, sector: u32, memory: Arc<Sparse>) -> ProviderId {
    let provider = ProviderPlan::new(name, size, sector);
    let plan = Plan::of(provider, memory);
    stack.create("MD", plan, &[]).expect("a bottom")[0]
}

/// The image of a file as a memory.
pub fn load(bytes: &[u8]) -> Arc<Sparse> {
    let memory = Sparse::default();
    for (at, piece) in bytes.chunks(PIECE_BYTES as usize).enumerate() {
        if piece.iter().any(|byte| *byte != 0) {
            memory.put(at as u64 * PIECE_BYTES, piece);
        }
    }
    Arc::new(memory)
}

/// A disk as it was recorded.
pub struct Recorded {
    pub sectorsize_bytes: u32,
    pub mediasize_bytes: u64,
    pub memory: Arc<Sparse>,
}

/// Reads the DISKIMAGE format: numbers between tags, hexadecimal digits over several lines. A
/// media size of 0 means: up to the tenth sector after the last one that was recorded.
pub fn recorded(path: &Path) -> Recorded {
    let xml = std::fs::read_to_string(path).expect("a recorded disk");
    let text = |tag: &str, text: &str| -> Option<String> {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once('<')?.0.to_owned())
    };
    let number = |tag: &str, from: &str| text(tag, from)?.trim().parse::<u64>().ok();
    let sectorsize_bytes = number("sectorsize", &xml).expect("a sector size") as u32;
    let geometry = number("fwheads", &xml).zip(number("fwsectors", &xml));
    let memory = Arc::new(Sparse {
        pieces: Mutex::default(),
        geometry: geometry
            .filter(|geometry| geometry.1 != 0)
            .map(|(heads, sectors)| (heads as i64, sectors as i64)),
    });
    let mut last = 0;
    for sector in xml.split("<sector>").skip(1) {
        let offset = number("offset", sector).expect("an offset");
        let digits: Vec<u8> = text("hexdata", sector)
            .expect("data")
            .bytes()
            .filter_map(|c| char::from(c).to_digit(16).map(|digit| digit as u8))
            .collect();
        let bytes: Vec<u8> = digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect();
        memory.put(offset, &bytes);
        last = last.max(offset);
    }
    let mediasize_bytes = match number("mediasize", &xml) {
        Some(size) if size != 0 => size,
        _ => last + 10 * u64::from(sectorsize_bytes),
    };
    Recorded {
        sectorsize_bytes,
        mediasize_bytes,
        memory,
    }
}

/// The lines that diskinfo prints for all providers, sorted by name: sector size, media size,
/// sectors, and where the firmware knew them cylinders, heads and sectors a track.
pub fn diskinfo(stack: &Stack) -> Vec<String> {
    let mut channel = stack.channel(1).expect("a channel");
    let line = |provider: &ProviderView| {
        let (size, sector) = (
            provider.mediasize_bytes,
            u64::from(provider.sectorsize_bytes),
        );
        let opened = stack.open(provider.id, Delta::READ);
        let opened = opened.expect("open for reading");
        let mut ask = |name: &str| match channel.attribute(&opened, name) {
            Ok(Some(AttributeValue::Number(number))) => number as u64,
            _ => 0,
        };
        let (heads, track) = (ask("GEOM::fwheads"), ask("GEOM::fwsectors"));
        let cylinders = (size / sector).checked_div(heads * track);
        let geometry = cylinders.map_or_else(String::new, |c| format!("\t{c}\t{heads}\t{track}"));
        format!(
            "/dev/{}\t{sector}\t{size}\t{}{geometry}",
            provider.name,
            size / sector
        )
    };
    let tree = stack.tree();
    let mut providers: Vec<&ProviderView> = tree.providers().collect();
    providers.sort_by(|a, b| a.name.cmp(&b.name));
    providers.into_iter().map(line).collect()
}

/// Writes bytes to a provider and closes it, so that the classes taste it again.
pub fn write(stack: &Stack, provider: ProviderId, writes: &[(u64, Vec<u8>)]) {
    let mut channel = stack.channel(1).expect("a channel");
    let opened = stack
        .open(provider, Delta::READ_WRITE)
        .expect("open for writing");
    for (offset, bytes) in writes {
        let done = channel.write(&opened, *offset, bytes).expect("a write");
        assert_eq!(done, bytes.len());
    }
}

/// Makes a table of `class` on a disk of 1 MiB or more, with sectors of 512 bytes, and names one of
/// its partitions.
pub fn make_table(stack: &Stack, disk: ProviderId, class: &str) -> &'static str {
    match class {
        "mbr" => edited(stack, disk, Scheme::Mbr, "!131", "s1"),
        "bsd" => edited(stack, disk, Scheme::Bsd, "freebsd-ufs", "a"),
        "gpt" => edited(stack, disk, Scheme::Gpt, "linux-data", "p1"),
        "ebr" => {
            write(stack, disk, &chain());
            "s5"
        }
        "apm" => {
            write(stack, disk, &apple_map());
            "s2"
        }
        other => {
            let (sectors, name) = foreign_table(other);
            let writes: Vec<(u64, Vec<u8>)> = sectors
                .into_iter()
                .map(|(sector, bytes)| (sector * 512, bytes))
                .collect();
            write(stack, disk, &writes);
            name
        }
    }
}

/// A table of another machine, for the disk that the conformance suite makes for it.
fn foreign_table(class: &str) -> (foreign::Sectors, &'static str) {
    match class {
        "vtoc8" => (foreign::vtoc8(2048), "a"),
        "pc98" => (foreign::pc98(), "s1"),
        "bsd64" => (foreign::bsd64(4 << 20), "a"),
        "sgi" => (foreign::sgi(), "s1"),
        "amiga" => (foreign::amiga(), "s1"),
        "atari" => (foreign::atari(2048), "s1"),
        "ldm" => {
            let pieces = vec![(2, vec![(1, 1000, 0, 300), (1, 100, 300, 400)])];
            let spanned = ("Volume1", 7, 700, pieces);
            (foreign::ldm::disk(8192, &[spanned]), "s1")
        }
        other => panic!("no table of class {other} can be made"),
    }
}

fn edited(
    stack: &Stack,
    disk: ProviderId,
    scheme: Scheme,
    kind: &str,
    name: &'static str,
) -> &'static str {
    let mut channel = stack.channel(1).expect("a channel");
    let opened = stack.open(disk, Delta::READ_WRITE);
    let opened = opened.expect("open for writing");
    let table = edit::Create {
        scheme,
        entries: None,
        force: false,
    };
    edit::create(&mut channel, &opened, &table).expect("a table");
    let part = NewPart {
        start: Some(128),
        sectors: Some(512),
        kind: kind.to_owned(),
        ..NewPart::default()
    };
    edit::add(&mut channel, &opened, None, &part).expect("a partition");
    name
}

fn chain() -> Vec<(u64, Vec<u8>)> {
    let mut mbr = mbr::Mbr::empty(1);
    let geometry = mbr::Geometry::LBA_ASSIST;
    mbr.entries[0] = mbr::Entry::new(mbr::PartType::EXTENDED, 64, 1024, geometry);
    let logical = ebr::NewLogical {
        ebr_lba: 64,
        start: 127,
        sectors: 500,
        kind: mbr::PartType::LINUX,
    };
    let chain = ebr::encode_chain(64, &[logical], geometry).expect("a chain");
    let records = chain
        .iter()
        .map(|(lba, record)| (lba * 512, record.to_vec()));
    [(0, mbr.encode().to_vec())]
        .into_iter()
        .chain(records)
        .collect()
}

fn apple_map() -> Vec<(u64, Vec<u8>)> {
    let descriptor = apm::Descriptor {
        block_size_bytes: 512,
        blocks: 2048,
        drivers: 0,
    };
    let entry = |kind: &str, start, blocks| {
        let mut entry = apm::Entry {
            map_blocks: 2,
            start,
            blocks,
            ..apm::Entry::default()
        };
        entry.kind[..kind.len()].copy_from_slice(kind.as_bytes());
        entry.encode().to_vec()
    };
    let map = entry(apm::TYPE_MAP, 1, 63);
    let data = entry("Apple_HFS", 64, 640);
    vec![(0, descriptor.encode().to_vec()), (512, map), (1024, data)]
}

/// A partition of that type and place.
pub fn part(kind: &str, start: u64, sectors: u64) -> NewPart {
    NewPart {
        start: Some(start),
        sectors: Some(sectors),
        kind: kind.to_owned(),
        ..NewPart::default()
    }
}
