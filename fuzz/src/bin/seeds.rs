//! Writes a first corpus for each format: small disks made by our own writers.
//!
//! `cargo run --bin seeds` in this folder, before the first run of a target.
#![forbid(unsafe_code)]

use std::fs;
use std::io;
use ugeom_experiment::{Common, run_here};
use ugeom_format::plan::{Create, NewPart, Scheme, Table};
use ugeom_format::wire::fuse::{InHeader, ROOT, opcode};
use ugeom_format::wire::nbd::{OptionHeader, option};
use ugeom_format::{Media, apm, ebr, gpt, mbr};
use ugeom_fuzz::{content, labels};
use ugeom_harness::{Control, Machine};
use ugeom_lab::layers;
use ugeom_serve::control::{Answer, Figures, Layer, Spread, Times};

/// Jobs that use each kind of value, and a file that they include.
const JOBS: &str = "[global]
bs=4k,8k
bssplit=4k/10:64k/50:32k/
include b
[a]
rw=randrw:8
size=50%
random_distribution=zipf:1.2
verify=pattern
verify_pattern=0xdead%o\"ab\"-1
filename=${LONG}
steadystate=iops_slope:0.3%
=====iodepth=$ncpus
runtime=2m
";

fn main() -> io::Result<()> {
    tables()?;
    for (target, input, disk) in labels::all() {
        write(target, "label", &input)?;
        write("taste", target, &[&[0, 0], &disk[..]].concat())?;
        write("content", target, &content::input(&disk))?;
    }
    write("zstd", "frame", &labels::zstd_frame())?;
    write("zstd", "seek-table", &labels::zstd_seek_table())?;
    write("foreign", "fio", FIO)?;
    write("foreign", "hyperfine", HYPERFINE)?;
    let small = small_gpt();
    write("gpt", "gpt-small", &[&[2], &small[..]].concat())?;
    write(
        "plan",
        "gpt-small",
        &[&[2, 0, 3, 7, 255], &small[..]].concat(),
    )?;
    write("taste", "gpt-small", &[&[0, 0], &small[..]].concat())?;
    let text = b"GPT 128\n1   freebsd-boot    34  1024 loader  [bootme] \n";
    write("part_backup", "gpt", text)?;
    write("ebr", "chain", &chain())?;
    let back = b"\x0064k,block=4k,index=splay,write=back,dirty=25%,idle=1ms,age=1s,readahead=off";
    write("cache", "back", back)?;
    for (name, text) in [
        ("size", "1.5g"),
        ("time", "250us"),
        ("share", "12.5%"),
        ("hex", "0x10k"),
    ] {
        write("units", name, text.as_bytes())?;
    }
    write("job", "mix", JOBS.as_bytes())?;
    let result = layers()?;
    for target in ["report", "compare"] {
        write(target, "layers", result.as_bytes())?;
    }
    let sets = b"\0,\x2250\n200\n150 # a\n=1,2\n3e9,4\n0x1p3,5\n";
    write("ministat", "two-sets", sets)?;
    let requests = [[0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0], [0; 16]].concat();
    write("raidtest", "two", &[&[9], &requests[..]].concat())?;
    let faults = b"0 + 1\n0x0 0x100000 +\n0x100000 512 -\n0x100200 65024 ?\n";
    write("ddrescue", "small", faults)?;
    write("verify_state", "two", &verify_state())?;
    write("qcow2", "overlay", &qcow2())?;
    write("vmdk", "two-extents", VMDK.as_bytes())?;
    write("vmdk", "loose", b"RW\n8\tFLAT\r\"a\" 0\n")?;
    write("nbd_uri", "tcp", b"nbds://[::1]:1/a%20b")?;
    write("nbd_uri", "unix", b"nbd+unix:///x\n\n/run/a%20b")?;
    write("crash_log", "small", &crash_log())?;
    let go = b"\0\0\0\x03md0\0\x01\0\x03";
    write("wire", "go", go)?;
    write("wire", "greeting", b"NBDMAGICIHAVEOPT\0\x03")?;
    write("wire_fuse", "lookup", &lookup())?;
    options_before_tls()?;
    write("apm", "map", &map())?;
    write("control", "question", FIGURES_WANTED)?;
    write("control", "answer", figures().as_bytes())?;
    write("diskstats", "linux-6", DISKSTATS)
}

/// Disks with each of the tables that are made in full.
fn tables() -> io::Result<()> {
    for (choice, size, sectors) in [(0, 512, 80), (1, 4096, 24)] {
        let media = Media {
            sector_size_bytes: size,
            sectors,
        };
        for scheme in [Scheme::Mbr, Scheme::Bsd, Scheme::Gpt] {
            let disk = partitioned(scheme, media);
            let name = format!("{scheme}-{size}").to_lowercase();
            write(
                "plan",
                &name,
                &[&[choice, 0, 3, 7, 255], &disk[..]].concat(),
            )?;
            write("taste", &name, &[&[choice, 0], &disk[..]].concat())?;
            write("content", &name, &content::input(&disk))?;
            match scheme {
                Scheme::Mbr => write("mbr", &name, &disk[..size as usize])?,
                Scheme::Bsd => write("bsd", &name, &[&[choice], &disk[..]].concat())?,
                Scheme::Gpt => {
                    write("gpt", &name, &[&[choice], &disk[..]].concat())?;
                    write(
                        "gpt",
                        &format!("{name}-crc"),
                        &[&[choice | 2], &disk[..]].concat(),
                    )?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// A log with a record of most kinds.
fn crash_log() -> Vec<u8> {
    use ugeom_format::crash_log::{Entry, Header, Record};
    let header = Header {
        media_bytes: 1 << 20,
        sector_bytes: 512,
    };
    let write = Entry::Write {
        offset_bytes: 512,
        length_bytes: 512,
        fua: true,
    };
    let mut log = header.encode().to_vec();
    for (entry, data) in [
        (write, &b"data"[..]),
        (Entry::Durable { write: 0 }, b""),
        (Entry::Begin, b""),
        (Entry::Barrier { covers: 2 }, &[1, 0, 0, 0, 0, 0, 0, 0]),
        (Entry::Promise, b"ack 1"),
    ] {
        log.extend(Record::new(entry, data).encode());
        log.extend(data);
    }
    log
}

/// Options of NBD before STARTTLS, which the target appends: those that a server without TLS would
/// carry out, one that is not known, and one whose length is a lie. The odd first byte asks for it.
fn options_before_tls() -> io::Result<()> {
    let header = |option: u32, length: u32| OptionHeader { option, length }.encode();
    let go = [&header(option::GO, 6)[..], &[0; 6]].concat();
    let all = [
        ("export-name", header(option::EXPORT_NAME, 0).to_vec()),
        ("list", header(option::LIST, 0).to_vec()),
        ("go", go.clone()),
        ("go-twice", [&go[..], &go].concat()),
        ("unknown", header(77, 0).to_vec()),
        ("cut", header(option::INFO, u32::MAX).to_vec()),
        ("starttls", header(option::STARTTLS, 0).to_vec()),
    ];
    for (name, said) in all {
        write("serve_tls", name, &[&[1], &said[..]].concat())?;
    }
    Ok(())
}

/// A kernel's question for a file, as a message of FUSE.
fn lookup() -> Vec<u8> {
    let header = InHeader {
        length_bytes: 44,
        opcode: opcode::LOOKUP,
        unique: 2,
        node: ROOT,
        ..InHeader::default()
    };
    [&header.encode()[..], b"md0\0"].concat()
}

/// A result that was measured in a second.
fn layers() -> io::Result<String> {
    let options = layers::LayersOptions {
        common: Common {
            budget_ns: Some(1),
            ..Common::default()
        },
        ..layers::LayersOptions::default()
    };
    let mut control = Control::silent();
    run_here::<layers::Layers>(&options, &Machine, &mut control)
        .and_then(|document| document.to_json())
        .map_err(io::Error::other)
}

const FIGURES_WANTED: &[u8] = br#"{"ask":"figures","consumers":true}"#;

/// An answer with two layers.
fn figures() -> String {
    let layer = |id: u64, below: Vec<u64>| Layer {
        id,
        below,
        name: format!("md{id}"),
        times: Times {
            read: Spread {
                samples: 3,
                sum_ns: 900,
                buckets: vec![(256, 2), (384, 1)],
            },
            ..Times::default()
        },
        ..Layer::default()
    };
    let figures = Figures {
        providers: vec![layer(1, Vec::new()), layer(2, vec![1])],
        ..Figures::default()
    };
    Answer::Figures(Box::new(figures)).line()
}

const FIO: &[u8] = br#"{"fio version":"fio-3.33","jobs":[{"jobname":"a","error":0,
"read":{"io_bytes":4096,"bw_bytes":4096,"iops":1.0,"runtime":1000,"total_ios":1,
"clat_ns":{"min":1,"max":9,"mean":5.0,"stddev":1.0,"N":2,"percentile":{"50.000000":5}}},
"write":{"iops":0.0}}]}"#;

const HYPERFINE: &[u8] =
    br#"{"results":[{"command":"a","mean":0.5,"stddev":0.1,"times":[0.4,0.5,0.6]}]}"#;

/// A loop device and a disk, as Linux 6 and Linux 2.6 list them.
const DISKSTATS: &[u8] = b"   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 64129 18609 10844695 41074 41705 111496 40299592 242890 0 27768 286382 13444 60 \
2026848 2205 4677 212
   8       0 sda 1 2 3 4 5 6 7 8 0 9 10
";

fn write(target: &str, name: &str, data: &[u8]) -> io::Result<()> {
    let folder = format!("corpus/{target}");
    fs::create_dir_all(&folder)?;
    fs::write(format!("{folder}/{name}"), data)
}

fn partitioned(scheme: Scheme, media: Media) -> Vec<u8> {
    let size = media.sector_size_bytes as usize;
    let mut disk = vec![0; media.sectors as usize * size];
    let mut table = Table::create(scheme, media, &Create::default()).expect("it fits");
    let kind = if scheme == Scheme::Mbr {
        "freebsd"
    } else {
        "freebsd-ufs"
    };
    for _ in 0..3 {
        let (sectors, kind) = (Some(2), kind.to_owned());
        let new = NewPart {
            sectors,
            kind,
            ..Default::default()
        };
        table.add(&new).expect("there is room");
    }
    for write in table.encode() {
        disk[write.lba as usize * size..][..write.data.len()].copy_from_slice(&write.data);
    }
    disk
}

/// A disk of six kilobytes: small inputs are what a fuzzer is fast with.
fn small_gpt() -> Vec<u8> {
    let media = Media::of_512(12);
    let header = gpt::Header {
        revision: gpt::REVISION,
        my_lba: 1,
        alternate_lba: 11,
        first_usable: 3,
        last_usable: 9,
        disk_guid: gpt::types::EFI,
        table_lba: 2,
        entry_count: 4,
        entry_size_bytes: 128,
        table_crc: 0,
        extra: Vec::new(),
    };
    let mut entries = vec![gpt::Entry::default(); 4];
    entries[1] = gpt::Entry {
        kind: gpt::types::LINUX_DATA,
        first: 4,
        last: 5,
        ..Default::default()
    };
    let mut disk = vec![0; 12 * 512];
    disk[..512].copy_from_slice(&mbr::Mbr::protective(12).encode());
    for write in (gpt::Table {
        header,
        entries: entries.into(),
    })
    .encode(media)
    {
        disk[write.lba as usize * 512..][..write.data.len()].copy_from_slice(&write.data);
    }
    disk
}

fn chain() -> Vec<u8> {
    let logical = |index: u64| ebr::NewLogical {
        ebr_lba: 100 + 10 * index,
        start: 101 + 10 * index,
        sectors: 9,
        kind: mbr::PartType::LINUX,
    };
    let logicals: Vec<_> = (0..3).map(logical).collect();
    let records = ebr::encode_chain(100, &logicals, mbr::Geometry::LBA_ASSIST).expect("in order");
    let place = (100_u64 << 32 | 1000).to_le_bytes().to_vec();
    records.into_iter().fold(place, |bytes, (_, record)| {
        [&bytes[..], &record[..]].concat()
    })
}

fn map() -> Vec<u8> {
    let descriptor = apm::Descriptor {
        block_size_bytes: 512,
        blocks: 9,
        drivers: 0,
    };
    let mut bytes = [&[0][..], &descriptor.encode()].concat();
    for (start, kind) in [(1, apm::TYPE_MAP), (4, "Apple_HFS"), (7, apm::TYPE_FREE)] {
        let mut entry = apm::Entry {
            map_blocks: 3,
            start,
            blocks: 3,
            ..Default::default()
        };
        entry.kind[..kind.len()].copy_from_slice(kind.as_bytes());
        bytes.extend(entry.encode());
    }
    bytes
}

/// The header of an overlay on `base.img`.
/// The state of a job with two writes, which the target seals.
fn verify_state() -> Vec<u8> {
    let mut file = vec![0; 208];
    for (at, byte) in [
        (0, 3),
        (8, 184),
        (24, 2),
        (32, 2),
        (36, 1),
        (40, 2),
        (112, b'a'),
    ] {
        file[at] = byte;
    }
    file[185] = 16;
    file
}

const VMDK: &str = "# Disk DescriptorFile\nversion=1\nCID=9b20db1c\nparentCID=fffffffe\n\
                    parentFileNameHint=\"a.vmdk\"\n\n# Extents\nRW 8 SPARSE \"a-s001.vmdk\"\n\
                    RW 2048 FLAT \"a-flat.vmdk\" 0\n";

fn qcow2() -> Vec<u8> {
    let mut head = vec![0; 136];
    head[..8].copy_from_slice(b"QFI\xfb\0\0\0\x03");
    head[8..24].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 8, 0, 0, 0, 16]);
    head[100..112].copy_from_slice(&[0, 0, 0, 104, 0xe2, 0x79, 0x2a, 0xca, 0, 0, 0, 3]);
    head[112..115].copy_from_slice(b"raw");
    head[128..].copy_from_slice(b"base.img");
    head
}
