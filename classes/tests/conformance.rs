//! Every class keeps the contract of a provider: `ugeom_testkit::provider`, run on one row or more
//! for each class: the first in every mode of dispatch, statistics, registry and pools, the others
//! in half of them.
//!
//! A new class adds a line to [`ROWS`], and its name to `each_conforms`. A row makes a fresh
//! provider for each case, so that cases do not meet each other's data.

mod common;

use ugeom_classes::registry::{self, registry};
use ugeom_classes::{Role, TargetOptions, open_target};
use ugeom_stack::StackKnobs;
use ugeom_testkit::Server;
use ugeom_testkit::provider::{Deleted, Device, Promises, Subject, check, check_half};

/// A class, what it promises, and devices of it in the stack language; for a table the disk that
/// it is written to.
type Row = (&'static str, Promises, &'static [&'static str]);

const DISK: Promises = Promises::DISK;
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
    (
        "md",
        DISK,
        &["md:1m", "md:1m,sectorsize=4k", "md:512", "md:3s"],
    ),
    ("zero", ZERO, &["zero"]),
    ("zero", NOT_ZERO, &["zero:byte=165"]),
    ("zero", UNTOUCHED, &["zero:clear=0"]),
    (
        "disk",
        DISK,
        &[
            "disk:1m,overhead=1us,rate=10g/s",
            "disk:64k,overhead=1us,rate=1g/s,seek=20us,rpm=1000000,queue=8",
        ],
    ),
    ("disk", ZERO, &["disk:1m,overhead=0,data=0"]),
    (
        "nop",
        DISK,
        &[
            "md:1m | nop",
            "md:1m | nop:hook=1",
            "md:1m | nop:offset=4608,size=96k",
            "md:1m | nop:sectorsize=1536",
            "md:16k | nop:delay=1us | nop:rdelay=50%,delay=1us,hook=1",
        ],
    ),
    ("nop", ZERO, &["zero | nop | nop"]),
    (
        "file",
        DISK,
        &[
            "IMAGE?engine=auto",
            "IMAGE?engine=sync",
            "IMAGE?engine=sync&sectorsize=4k",
            "IMAGE?engine=libaio",
            "IMAGE?engine=seek",
            "IMAGE?engine=mmap",
            "IMAGE?engine=simulated",
            "IMAGE | nop:hook=1",
        ],
    ),
    ("nbd", DISK, &["nbd+unix:///?socket=SERVER"]),
    ("mbr", DISK, &["md:1m"]),
    ("ebr", DISK, &["md:1m"]),
    ("bsd", DISK, &["md:1m"]),
    ("gpt", DISK, &["md:1m"]),
    ("apm", DISK, &["md:1m"]),
    ("bsd64", DISK, &["md:4m"]),
    ("vtoc8", DISK, &["md:1m"]),
    ("pc98", DISK, &["md:1m"]),
    ("sgi", DISK, &["md:1m"]),
    ("amiga", DISK, &["md:1m"]),
    ("atari", DISK, &["md:1m"]),
    ("ldm", DISK, &["md:4m"]),
    (
        "cache",
        DISK,
        &[
            "md:1m | cache:2m",
            "md:1m | cache:64k,block=4k",
            "md:1m | cache:128k,index=splay",
            "md:333s | cache:64k,block=64k",
            "md:1m | cache:64k,block=4k,write=back",
            "md:333s | cache:64k,block=64k,write=back,index=splay",
            "IMAGE?engine=auto | cache:96k,write=back,dirty=100%",
            "md:16k | delayed:seed=3,delay=1us | cache:8k,block=4k",
            "IMAGE?engine=auto | cache:96k | nop:hook=1",
            "md:1m | cache:64k,block=4k | cache:256k",
        ],
    ),
    (
        "delayed",
        DISK,
        &[
            "md:16k | delayed:seed=3,delay=1us",
            "md:16k | delayed:depth=4,delay=10us | nop:hook=1 | delayed:delay=0",
        ],
    ),
    (
        "crash",
        DISK,
        &[
            "md:1m | crash",
            "md:333s | crash:cache=4k,tear=512",
            "md:1m | crash:log=/dev/null",
            "md:1m | crash:log=/dev/null,seed=3",
        ],
    ),
    (
        "eli",
        ENCRYPTED,
        &[
            "md:1m | eli:onetime=1",
            "md:1m | eli:onetime=1,ealgo=aes-cbc,crypto=portable,sectorsize=4k",
            "md:1m | eli:onetime=1,ealgo=camellia | cache:64k,block=4k",
            "IMAGE?engine=auto | eli:onetime=1",
            "md:16k | delayed:seed=3,delay=1us | eli:onetime=1 | nop:hook=1",
        ],
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

fn open(class: &str, target: &str, knobs: StackKnobs) -> Device {
    let is_table = registry::find(class).is_some_and(|entry| entry.role == Role::Table);
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
        let suffix = common::make_table(&opened.stack, provider, class);
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
    let rows = ROWS.iter().filter(|row| row.0 == class);
    let devices = rows.flat_map(|row| row.2.iter().map(|target| (*target, row.1)));
    for (turn, (name, promises)) in devices.enumerate() {
        let subject = Subject {
            name,
            open: &|options| open(class, name, options),
            promises,
        };
        // The others are variants of the first.
        match turn {
            0 => check(&subject),
            _ => check_half(&subject, turn),
        }
    }
}

/// A test for each class.
macro_rules! each_conforms {
    ($($class:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($class)),*];

        mod each_conforms {
            $(#[test] fn $class() { super::conforms(stringify!($class)); })*
        }
    };
}

each_conforms! {
    md zero disk nop file mbr ebr bsd gpt apm
    bsd64 vtoc8 pc98 sgi amiga atari ldm cache delayed crash eli
}

#[test]
fn nbd_conforms() {
    if ugeom_testkit::program("nbdkit").is_some() {
        conforms("nbd");
    }
}

#[test]
fn every_class_is_tested_here() {
    for entry in registry() {
        assert!(
            ROWS.iter().any(|row| row.0 == entry.name),
            "class {} has no row",
            entry.name
        );
        let is_tested = entry.name == "nbd" || TESTED.contains(&entry.name);
        assert!(is_tested, "class {} has no test", entry.name);
    }
}
