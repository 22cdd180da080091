//! Tables of other machines, as the sectors that hold them.

use ugeom_format::gpt::Guid;
use ugeom_format::{bsd64, pc98, vtoc8};

#[path = "../../../format/tests/common/ldm.rs"]
pub mod ldm;

/// Writes: first sector and bytes.
pub type Sectors = Vec<(u64, Vec<u8>)>;

/// `a` and `c` of a Sun label with cylinders of 128 sectors.
pub fn vtoc8(sectors: u64) -> Sectors {
    let mut label = vtoc8::Label::create(sectors, 4, 32).expect("a label");
    label.partitions[0] = vtoc8::Partition {
        tag: vtoc8::Tag(2),
        cylinder: 1,
        sectors: 512,
        ..vtoc8::Partition::default()
    };
    vec![(0, label.encode().to_vec())]
}

/// `s1` of a PC-98 table: cylinders 1 to 4.
pub fn pc98() -> Sectors {
    let mut boot = [0; 512];
    boot[4..8].copy_from_slice(b"IPL1");
    let mut table = pc98::Table::create(&boot);
    let entry = &mut table.entries[0];
    entry.set_kind(pc98::Pc98Type::FREEBSD);
    entry.first.cylinder = 1;
    entry.last = pc98::Chs {
        sector: 16,
        head: 7,
        cylinder: 4,
    };
    entry.name[..4].copy_from_slice(b"root");
    vec![(0, table.encode().to_vec())]
}

/// `a` of a disklabel64.
pub fn bsd64(size_bytes: u64) -> Sectors {
    let mut label = bsd64::Label::create(size_bytes, 512, Guid([3; 16])).expect("a label");
    label.partitions[0] = bsd64::Partition {
        offset_bytes: label.first_bytes,
        size_bytes: 512 << 10,
        kind: bsd64::Bsd64Type::parse("dragonfly-hammer2").expect("a type"),
        guid: Guid([4; 16]),
    };
    let mut bytes = label.encode();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    vec![(0, bytes)]
}

/// `s1` of an SGI volume header, and the whole disk as `s11`.
pub fn sgi() -> Sectors {
    let mut header = vec![0; 512];
    put(&mut header, 0, 0x0be5_a941);
    for (index, fields) in [(0, [512, 128, 10]), (10, [2048, 0, 6])] {
        for (field, value) in fields.into_iter().enumerate() {
            put(&mut header, 312 + 12 * index + 4 * field, value);
        }
    }
    sign(&mut header, 504);
    vec![(0, header)]
}

/// `s1` of an Amiga's disk.
pub fn amiga() -> Sectors {
    let block = |magic: &[u8], words: &[(usize, u32)]| {
        let mut block = vec![0; 256];
        block[..4].copy_from_slice(magic);
        put(&mut block, 4, 64);
        for (at, value) in words {
            put(&mut block, *at, *value);
        }
        sign(&mut block, 8);
        block.resize(512, 0);
        block
    };
    let root = block(b"RDSK", &[(16, 512), (28, 2)]);
    let words = [
        (16, u32::MAX),
        (36, u32::from_be_bytes(*b"\x03DH0")),
        (140, 4),
        (148, 32),
        (164, 1),
        (168, 4),
        (192, u32::from_be_bytes(*b"DOS\x03")),
    ];
    vec![(0, root), (2, block(b"PART", &words))]
}

/// `s1` of an Atari's disk, and `s2` in an extended partition.
pub fn atari(sectors: u32) -> Sectors {
    let root = |entries: &[(&[u8; 3], u32, u32)]| {
        let mut root = vec![0; 512];
        put(&mut root, 0x1c2, sectors);
        for (index, (kind, start, length)) in entries.iter().enumerate() {
            let at = 0x1c6 + 12 * index;
            root[at] = 1;
            root[at + 1..at + 4].copy_from_slice(*kind);
            put(&mut root, at + 4, *start);
            put(&mut root, at + 8, *length);
        }
        root
    };
    vec![
        (0, root(&[(b"GEM", 2, 512), (b"XGM", 1024, 512)])),
        (1024, root(&[(b"LNX", 2, 100)])),
    ]
}

fn put(sector: &mut [u8], at: usize, value: u32) {
    sector[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// Puts a checksum there, so that all words add up to 0.
fn sign(sector: &mut [u8], at: usize) {
    put(sector, at, 0);
    let words = sector.chunks_exact(4);
    let words = words.map(|word| u32::from_be_bytes(word.try_into().expect("four bytes")));
    let sum = words.fold(0_u32, u32::wrapping_add);
    put(sector, at, sum.wrapping_neg());
}
