//! Every class keeps the contract of a provider: `ugeom_testkit::provider`, run on one row or more
//! for each class: the first in every mode of dispatch, statistics, registry and pools, the others
//! in half of them.
//!
//! A new class adds a line to [`ROWS`]. What a row makes is fresh for each case, so that cases do
//! not meet each other's data.

mod common;

use ugeom_classes::registry::{self, registry};
use ugeom_classes::{Role, TargetOptions, open_target};
use ugeom_stack::StackKnobs;
use ugeom_testkit::Server;
use ugeom_testkit::provider::{Deleted, Device, Promises, Subject, check, check_half};

/// A device under test.
struct Row {
    /// The class that the row is for.
    class: &'static str,
    /// The device, in the stack language. For a table: the disk that it is written to.
    target: &'static str,
    promises: Promises,
}

const fn row(class: &'static str, target: &'static str, promises: Promises) -> Row {
    Row {
        class,
        target,
        promises,
    }
}

/// Reads as zeroes and forgets.
const ZERO: Promises = Promises {
    keeps_data: false,
    ..Promises::DISK
};
/// Reads as something else than zeroes, and forgets.
const NOT_ZERO: Promises = Promises {
    keeps_data: false,
    deleted: Deleted::Anything,
    zeroes: false,
    ..Promises::DISK
};
/// Encrypts: what was deleted reads as noise, and zeroes have to be written.
const ENCRYPTED: Promises = Promises {
    deleted: Deleted::Anything,
    zeroes: false,
    ..Promises::DISK
};
/// Leaves the memory of a read as it was.
const UNTOUCHED: Promises = Promises {
    stable: false,
    ..NOT_ZERO
};

const ROWS: &[Row] = &[
    row("md", "md:1m", Promises::DISK),
    row("md", "md:1m,sectorsize=4k", Promises::DISK),
    row("md", "md:512", Promises::DISK),
    row("md", "md:3s", Promises::DISK),
    row("zero", "zero", ZERO),
    row("zero", "zero:byte=165", NOT_ZERO),
    row("zero", "zero:clear=0", UNTOUCHED),
    row("disk", "disk:1m,overhead=1us,rate=10g/s", Promises::DISK),
    row(
        "disk",
        "disk:64k,overhead=1us,rate=1g/s,seek=20us,rpm=1000000,queue=8",
        Promises::DISK,
    ),
    row("disk", "disk:1m,overhead=0,data=0", ZERO),
    row("nop", "md:1m | nop", Promises::DISK),
    row("nop", "md:1m | nop:hook=1", Promises::DISK),
    row("nop", "md:1m | nop:offset=4608,size=96k", Promises::DISK),
    row("nop", "md:1m | nop:sectorsize=1536", Promises::DISK),
    row(
        "nop",
        "md:16k | nop:delay=1us | nop:rdelay=50%,delay=1us,hook=1",
        Promises::DISK,
    ),
    row("nop", "zero | nop | nop", ZERO),
    row("file", "IMAGE?engine=auto", Promises::DISK),
    row("file", "IMAGE?engine=sync", Promises::DISK),
    row("file", "IMAGE?engine=sync&sectorsize=4k", Promises::DISK),
    row("file", "IMAGE?engine=libaio", Promises::DISK),
    row("file", "IMAGE?engine=seek", Promises::DISK),
    row("file", "IMAGE?engine=mmap", Promises::DISK),
    row("file", "IMAGE?engine=simulated", Promises::DISK),
    row("file", "IMAGE | nop:hook=1", Promises::DISK),
    row("nbd", "nbd+unix:///?socket=SERVER", Promises::DISK),
    row("mbr", "md:1m", Promises::DISK),
    row("ebr", "md:1m", Promises::DISK),
    row("bsd", "md:1m", Promises::DISK),
    row("gpt", "md:1m", Promises::DISK),
    row("apm", "md:1m", Promises::DISK),
    row("bsd64", "md:4m", Promises::DISK),
    row("vtoc8", "md:1m", Promises::DISK),
    row("pc98", "md:1m", Promises::DISK),
    row("sgi", "md:1m", Promises::DISK),
    row("amiga", "md:1m", Promises::DISK),
    row("atari", "md:1m", Promises::DISK),
    row("ldm", "md:4m", Promises::DISK),
    row("cache", "md:1m | cache:2m", Promises::DISK),
    row("cache", "md:1m | cache:64k,block=4k", Promises::DISK),
    row("cache", "md:1m | cache:128k,index=splay", Promises::DISK),
    row("cache", "md:333s | cache:64k,block=64k", Promises::DISK),
    row(
        "cache",
        "md:1m | cache:64k,block=4k,write=back",
        Promises::DISK,
    ),
    row(
        "cache",
        "md:333s | cache:64k,block=64k,write=back,index=splay",
        Promises::DISK,
    ),
    row(
        "cache",
        "IMAGE?engine=auto | cache:96k,write=back,dirty=100%",
        Promises::DISK,
    ),
    row(
        "cache",
        "md:16k | delayed:seed=3,delay=1us | cache:8k,block=4k",
        Promises::DISK,
    ),
    row(
        "cache",
        "IMAGE?engine=auto | cache:96k | nop:hook=1",
        Promises::DISK,
    ),
    row(
        "cache",
        "md:1m | cache:64k,block=4k | cache:256k",
        Promises::DISK,
    ),
    row(
        "delayed",
        "md:16k | delayed:seed=3,delay=1us",
        Promises::DISK,
    ),
    row(
        "delayed",
        "md:16k | delayed:depth=4,delay=10us | nop:hook=1 | delayed:delay=0",
        Promises::DISK,
    ),
    row("crash", "md:1m | crash", Promises::DISK),
    row("crash", "md:333s | crash:cache=4k,tear=512", Promises::DISK),
    row("crash", "md:1m | crash:log=/dev/null", Promises::DISK),
    row(
        "crash",
        "md:1m | crash:log=/dev/null,seed=3",
        Promises::DISK,
    ),
    row("eli", "md:1m | eli:onetime=1", ENCRYPTED),
    row(
        "eli",
        "md:1m | eli:onetime=1,ealgo=aes-cbc,crypto=portable,sectorsize=4k",
        ENCRYPTED,
    ),
    row(
        "eli",
        "md:1m | eli:onetime=1,ealgo=camellia | cache:64k,block=4k",
        ENCRYPTED,
    ),
    row("eli", "IMAGE?engine=auto | eli:onetime=1", ENCRYPTED),
    row(
        "eli",
        "md:16k | delayed:seed=3,delay=1us | eli:onetime=1 | nop:hook=1",
        ENCRYPTED,
    ),
];

/// nbdkit, with a disk in memory.
fn nbdkit(folder: &std::path::Path) -> Server {
    let socket = folder.join("socket");
    let mut nbdkit = std::process::Command::new("nbdkit");
    let nbdkit = nbdkit.arg("-f").arg("-U").arg(&socket);
    // Written once it listens.
    let ready = folder.join("pid");
    let nbdkit = nbdkit.arg("-P").arg(&ready).args(["memory", "size=1M"]);
    let server = Server(nbdkit.spawn().expect("nbdkit"));
    while !ready.exists() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    server
}

fn open(row: &Row, knobs: StackKnobs) -> Device {
    let target = row.target;
    let is_table = registry::find(row.class).is_some_and(|entry| entry.role == Role::Table);
    let options = TargetOptions {
        writable: true,
        knobs: StackKnobs {
            taste: knobs.taste || is_table,
            ..knobs
        },
        ..TargetOptions::default()
    };
    // `IMAGE` stands for a new file of zeroes.
    let dir = tempfile::TempDir::new().expect("a directory for the image");
    let image = dir.path().join("image");
    std::fs::write(&image, vec![0; 1 << 20]).expect("an image");
    let text = target.replace("IMAGE", &image.display().to_string());
    // `SERVER` stands for the socket of a new disk of zeroes that another program serves.
    let server = text.contains("SERVER").then(|| nbdkit(dir.path()));
    let socket = dir.path().join("socket").display().to_string();
    let text = text.replace("SERVER", &socket);
    let opened = open_target(&text, &options);
    let opened = opened.unwrap_or_else(|error| panic!("{target}: {error}"));
    let mut provider = opened.top;
    if is_table {
        let suffix = common::make_table(&opened.stack, provider, row.class);
        let name = format!("{}{suffix}", opened.name);
        provider = opened
            .stack
            .find(&name)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    Device {
        stack: opened.stack,
        provider,
        keep: Box::new((server, dir)),
    }
}

fn conforms(class: &str) {
    let rows: Vec<_> = ROWS.iter().filter(|row| row.class == class).collect();
    assert!(!rows.is_empty(), "there is no row for {class}");
    for (turn, row) in rows.into_iter().enumerate() {
        let subject = Subject {
            name: row.target,
            open: &|options| open(row, options),
            promises: row.promises,
        };
        // The others are variants of the first.
        match turn {
            0 => check(&subject),
            _ => check_half(&subject, turn),
        }
    }
}

#[test]
fn every_class_is_tested_here() {
    for entry in registry() {
        let has_row = ROWS.iter().any(|row| row.class == entry.name);
        assert!(has_row, "class {} has no row", entry.name);
    }
}

#[test]
fn md_conforms() {
    conforms("md");
}

#[test]
fn zero_conforms() {
    conforms("zero");
}

#[test]
fn disk_conforms() {
    conforms("disk");
}

#[test]
fn nop_conforms() {
    conforms("nop");
}

#[test]
fn file_conforms() {
    conforms("file");
}

#[test]
fn nbd_conforms() {
    if ugeom_testkit::program("nbdkit").is_some() {
        conforms("nbd");
    }
}

#[test]
fn mbr_conforms() {
    conforms("mbr");
}

#[test]
fn ebr_conforms() {
    conforms("ebr");
}

#[test]
fn bsd_conforms() {
    conforms("bsd");
}

#[test]
fn gpt_conforms() {
    conforms("gpt");
}

#[test]
fn apm_conforms() {
    conforms("apm");
}

#[test]
fn delayed_conforms() {
    conforms("delayed");
}

#[test]
fn crash_conforms() {
    conforms("crash");
}

#[test]
fn eli_conforms() {
    conforms("eli");
}

#[test]
fn cache_conforms() {
    conforms("cache");
}
