//! Images and devices, good and bad, on every engine.

mod beside;

use crate::{TargetOptions, open_target};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Command, Delta, Errno, ExtentKind, Flags};
use ugeom_testkit::has;

const ENGINES: [&str; 9] = [
    "auto",
    "io_uring",
    "guasi",
    "libaio",
    "sync",
    "seek",
    "splice",
    "mmap",
    "simulated",
];

fn image(dir: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, bytes).expect("an image");
    path
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 509) as u8).collect()
}

fn writable() -> TargetOptions {
    TargetOptions::default().for_writing()
}

/// The target text of a path with options.
fn text(path: &Path, options: &str) -> String {
    format!("\"{}\"?{options}", path.display())
}

fn refusal(text: &str, options: &TargetOptions) -> String {
    open_target(text, options)
        .err()
        .expect("refused")
        .to_string()
}

#[test]
fn what_lies_in_an_image_is_read_by_every_engine() {
    let dir = TempDir::new().expect("a directory");
    let bytes = pattern(64 * 1024);
    let path = image(&dir, "disk.img", &bytes);
    for engine in ENGINES {
        let target = open_target(
            &text(&path, &format!("engine={engine}")),
            &TargetOptions::default(),
        );
        let target = target.expect("open");
        assert_eq!(target.name, "disk.img");
        let opened = target.open(Delta::READ).expect("open");
        let mut channel = target.stack.channel(16).expect("a channel");
        let mut into = vec![0; 4096];
        assert_eq!(
            channel.read(&opened, 512, &mut into).expect("read"),
            4096,
            "{engine}"
        );
        assert_eq!(into, bytes[512..4608]);
        assert_eq!(
            channel
                .read(&opened, 63 * 1024, &mut into)
                .expect("the end"),
            1024
        );
        for index in 0..16 {
            let draft = channel
                .bio()
                .expect("a bio")
                .read(index * 4096, Buffer::new(4096));
            channel.submit(&opened, draft.cookie(index));
        }
        let mut seen = 0;
        while channel.wait(None) > 0 {
            while let Some(mut finished) = channel.finished() {
                assert_eq!(finished.result(), Ok(4096));
                let at = finished.cookie() as usize * 4096;
                let buffer = finished.take_buffer().expect("its buffer");
                assert_eq!(&buffer[..], &bytes[at..at + 4096]);
                seen += 1;
            }
        }
        assert_eq!(seen, 16, "{engine}");
    }
}

#[test]
fn writes_reach_the_file_and_zero_and_delete_read_as_zero() {
    for engine in ENGINES {
        let dir = TempDir::new().expect("a directory");
        let path = image(&dir, "disk.img", &pattern(64 * 1024));
        let mut expected = pattern(64 * 1024);
        {
            let target = open_target(&text(&path, &format!("engine={engine}")), &writable());
            let target = target.expect("open");
            let opened = target.open(Delta::READ_WRITE).expect("open");
            let mut channel = target.stack.channel(4).expect("a channel");
            assert_eq!(
                channel.write(&opened, 1024, &[9; 1536]).expect("write"),
                1536
            );
            expected[1024..2560].fill(9);
            for (command, at) in [(Command::Zero, 8192), (Command::Delete, 16384)] {
                assert_eq!(
                    channel.discard(&opened, command, at, 4096).expect("zero"),
                    4096
                );
                expected[at as usize..at as usize + 4096].fill(0);
            }
            let draft = channel
                .bio()
                .expect("a bio")
                .discard(Command::Zero, 32768, 512);
            channel.submit(&opened, draft.flags(Flags::FUA));
            channel.wait(None);
            assert_eq!(channel.finished().expect("done").result(), Ok(512));
            expected[32768..33280].fill(0);
            channel.flush(&opened).expect("flush");
        }
        assert_eq!(fs::read(&path).expect("the image"), expected, "{engine}");
    }
}

#[test]
fn a_read_only_target_cannot_be_opened_for_writing() {
    let dir = TempDir::new().expect("a directory");
    let path = image(&dir, "disk.img", &[0; 4096]);
    let target = open_target(&text(&path, "direct=0"), &TargetOptions::default()).expect("open");
    let refused = target.open(Delta::READ_WRITE).err().expect("refused");
    assert_eq!(refused.errno(), Errno::ROFS);
}

#[test]
fn zeroes_fill_up_the_last_sector_of_an_image_on_every_engine() {
    let dir = TempDir::new().expect("a directory");
    for (name, length, sector) in [("odd", 100_300, 512), ("tiny", 9, 4096)] {
        let bytes = pattern(length);
        let path = image(&dir, name, &bytes);
        let whole = length.next_multiple_of(sector);
        let mut expected = bytes;
        expected.resize(whole, 0);
        let direct = ["auto", "io_uring", "guasi", "libaio", "sync"].map(|it| (it, 1));
        for (engine, direct) in ENGINES.map(|it| (it, 0)).into_iter().chain(direct) {
            let text = text(
                &path,
                &format!("engine={engine}&direct={direct}&sectorsize={sector}"),
            );
            let Ok(target) = open_target(&text, &TargetOptions::default()) else {
                // The file system of the test has no direct I/O.
                assert_eq!(direct, 1, "{text}");
                continue;
            };
            let tree = target.stack.tree();
            let view = tree.provider(name).expect("a provider");
            assert_eq!(view.mediasize_bytes, whole as u64);
            assert_eq!(view.content_bytes(), length as u64);
            let mark = view.mark.as_deref().expect("a mark");
            let padding = whole - length;
            assert!(mark.contains(&format!("padded with {padding} zero bytes")));
            let opened = target.open(Delta::READ).expect("open");
            let mut channel = target.stack.channel(1).expect("a channel");
            for start in [0, whole - sector] {
                let mut into = vec![0xee; whole - start];
                let read = channel.read(&opened, start as u64, &mut into);
                assert_eq!(read.expect("read"), whole - start, "{text}");
                assert_eq!(into, expected[start..], "{text} from {start}");
            }
            let told = channel
                .extents(&opened, 0, whole as u64, 64)
                .expect("extents");
            let told: u64 = told.iter().map(|it| it.length_bytes).sum();
            assert_eq!(told, whole as u64, "{text}");
        }
    }
}

#[test]
fn an_image_that_shrinks_while_open_is_a_clear_error() {
    for engine in ENGINES {
        let dir = TempDir::new().expect("a directory");
        let path = image(&dir, "disk.img", &pattern(64 * 1024));
        let target = open_target(
            &text(&path, &format!("engine={engine}")),
            &TargetOptions::default(),
        );
        let target = target.expect("open");
        let opened = target.open(Delta::READ).expect("open");
        let mut channel = target.stack.channel(1).expect("a channel");
        File::options()
            .write(true)
            .open(&path)
            .and_then(|f| f.set_len(8192))
            .expect("shrink");
        assert_eq!(
            channel
                .read(&opened, 4096, &mut [0; 4096])
                .expect("still there"),
            4096
        );
        let error = channel
            .read(&opened, 6144, &mut [0; 4096])
            .expect_err("gone");
        assert_eq!(
            (error.errno, error.provider.as_str()),
            (Errno::IO, "disk.img"),
            "{engine}"
        );
        assert!(error.reason.contains("has become shorter"), "{error}");
        // Zeroes may not stand for what is gone.
        for size_bytes in [8192, 8193, 0] {
            let file = File::options().write(true).open(&path).expect("the file");
            file.set_len(size_bytes).expect("shrink");
            let extents = channel.extents(&opened, 0, 64 * 1024, 8).expect("extents");
            let kinds = extents.iter().map(|extent| extent.kind);
            assert!(
                kinds.clone().all(|kind| kind == ExtentKind::Data),
                "{extents:?}"
            );
        }
    }
}

#[test]
fn holes_are_found() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("sparse");
    let file = File::create(&path).expect("create");
    file.set_len(8 << 20).expect("size");
    file.write_all_at(&[1; 65536], 4 << 20).expect("data");
    let target = open_target(&text(&path, "engine=sync"), &TargetOptions::default()).expect("open");
    let opened = target.open(Delta::READ).expect("open");
    let mut channel = target.stack.channel(1).expect("a channel");
    let extents = channel.extents(&opened, 0, 8 << 20, 16).expect("extents");
    assert_eq!(
        extents
            .iter()
            .map(|extent| extent.length_bytes)
            .sum::<u64>(),
        8 << 20
    );
    let data: u64 = extents
        .iter()
        .filter(|extent| extent.kind == ExtentKind::Data)
        .map(|extent| extent.length_bytes)
        .sum();
    assert!((65536..8 << 20).contains(&data), "{extents:?}");
    let few = channel.extents(&opened, 0, 8 << 20, 1).expect("one");
    assert_eq!(few.len(), 1);
}

/// The run of data around it was found just before.
#[test]
fn a_hole_that_was_just_made_is_found() {
    let dir = TempDir::new().expect("a directory");
    let path = image(&dir, "disk.img", &pattern(1 << 20));
    for engine in ["engine=sync", "engine=io_uring"] {
        let options = TargetOptions::default().for_writing();
        let target = open_target(&text(&path, engine), &options).expect("open");
        let opened = target.open(Delta::READ_WRITE).expect("open");
        let mut channel = target.stack.channel(1).expect("a channel");
        channel
            .write(&opened, 0, &pattern(1 << 20))
            .expect("written");
        for (command, at) in [(Command::Delete, 256 << 10), (Command::Zero, 512 << 10)] {
            let before = channel.extents(&opened, at, 256 << 10, 8).expect("extents");
            assert_eq!(before[0].kind, ExtentKind::Data);
            channel
                .discard(&opened, command, at, 64 << 10)
                .expect("a hole");
            let after = channel.extents(&opened, at, 128 << 10, 8).expect("extents");
            let found: Vec<_> = after.iter().map(|it| (it.length_bytes, it.kind)).collect();
            let expected = [(64 << 10, ExtentKind::Hole), (64 << 10, ExtentKind::Data)];
            assert_eq!(found, expected, "{engine} {command:?}");
        }
    }
}

#[test]
fn workers_and_backend_are_for_the_engine_that_has_them() {
    let dir = TempDir::new().expect("a directory");
    let path = image(&dir, "disk.img", &pattern(4096));
    let options = TargetOptions::default();
    for good in [
        "engine=guasi&workers=2..3",
        "workers=3",
        "engine=guasi&backend=auto",
        "backend=workers",
    ] {
        open_target(&text(&path, good), &options).expect(good);
    }
    for (bad, reason) in [
        ("engine=guasi&workers=4..3", "`4..3` is not MIN..MAX"),
        ("engine=sync&workers=3", "workers is for engine=guasi"),
        ("engine=mmap&backend=ring", "backend is for engine=guasi"),
        (
            "engine=guasi&backend=rings",
            "`rings` is not one of workers, ring and auto",
        ),
    ] {
        let refused = refusal(&text(&path, bad), &options);
        has(&refused, reason);
    }
}

#[test]
fn direct_io_takes_memory_of_any_alignment() {
    let dir = TempDir::new_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    let bytes = pattern(64 * 1024);
    let path = image(&dir, "disk.img", &bytes);
    for engine in ENGINES {
        let text = text(&path, &format!("engine={engine}&direct=1"));
        if engine == "mmap" {
            let refused = refusal(&text, &writable());
            has(&refused, "engine=mmap and direct=1");
            continue;
        }
        let target = match open_target(&text, &writable()) {
            Ok(target) => target,
            Err(error) => {
                assert!(error.to_string().contains("no direct I/O"), "{error}");
                ugeom_testkit::skip(&error.to_string());
                return;
            }
        };
        let opened = target.open(Delta::READ_WRITE).expect("open");
        let mut channel = target.stack.channel(1).expect("a channel");
        let mut into = vec![0; 4097];
        assert_eq!(
            channel.read(&opened, 512, &mut into[1..]).expect("read"),
            4096,
            "{engine}"
        );
        assert_eq!(into[1..], bytes[512..4608]);
        assert_eq!(
            channel.write(&opened, 512, &into[1..]).expect("write"),
            4096
        );
        drop(opened);
        drop(channel);
        drop(target);
        assert_eq!(fs::read(&path).expect("the image"), bytes);
    }
}

#[test]
fn geometry_is_what_the_user_says() {
    let dir = TempDir::new().expect("a directory");
    let path = image(&dir, "flp", &[0; 1_474_560]);
    let target = open_target(
        &text(&path, "fwsectors=18&fwheads=2"),
        &TargetOptions::default(),
    );
    let target = target.expect("open");
    let opened = target.open(Delta::READ).expect("open");
    let mut channel = target.stack.channel(1).expect("a channel");
    for (name, expected) in [("GEOM::fwsectors", "18"), ("GEOM::fwheads", "2")] {
        let value = channel
            .attribute(&opened, name)
            .expect("asked")
            .expect("answered");
        assert_eq!(value.to_string(), expected);
    }
    assert_eq!(
        channel.attribute(&opened, "GEOM::ident").expect("asked"),
        None
    );
}

#[test]
fn a_larger_sector_size_is_kept_to() {
    let dir = TempDir::new().expect("a directory");
    let path = image(&dir, "disk.img", &[0; 8192]);
    let target = open_target(&text(&path, "sectorsize=4096"), &TargetOptions::default());
    let target = target.expect("open");
    let opened = target.open(Delta::READ).expect("open");
    let mut channel = target.stack.channel(1).expect("a channel");
    assert_eq!(
        channel.read(&opened, 4096, &mut [0; 4096]).expect("read"),
        4096
    );
    let error = channel
        .read(&opened, 512, &mut [0; 512])
        .expect_err("unaligned");
    assert_eq!(error.errno, Errno::INVAL);
}
