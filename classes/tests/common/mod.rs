//! Shared parts of the tests of partition tables: a sparse memory, and stacks on it.
#![allow(dead_code, reason = "each test binary uses some of it")]

pub mod disks;
pub mod foreign;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use ugeom_classes::part::edit::{self, Editor};
use ugeom_classes::registry;
use ugeom_format::plan::{NewPart, Scheme};
use ugeom_format::{apm, ebr, mbr};
use ugeom_stack::{
    Command, Cx, Delta, Errno, Geom, Next, Plan, ProviderId, ProviderPlan, Request, Stack,
    StackKnobs,
};

/// Memory of any size; what was never written reads as zeros.
#[derive(Default)]
pub struct Sparse {
    pieces: Mutex<BTreeMap<u64, Vec<u8>>>,
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
            Command::GetAttr | Command::Extents => return request.done(Err(Errno::OPNOTSUPP)),
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
    let table = Editor::open(&mut channel, &opened, None).expect("the table");
    table.add_part(&part(kind, 128, 512)).expect("a partition");
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
