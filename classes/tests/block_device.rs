//! The class `file` on a block device: a loop device over an image, which needs root.

use std::path::Path;
use std::process::Command as Program;
use tempfile::TempDir;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_stack::{Command, Delta, Errno};

const SIZE: u64 = 8 << 20;

/// A loop device, given back at the end.
struct Loop {
    device: String,
    _dir: TempDir,
}

impl Loop {
    fn new(test: &str) -> Option<Self> {
        let losetup = ugeom_testkit::program(test, "losetup")?;
        let dir = TempDir::new().expect("a directory");
        let image = dir.path().join("image");
        let file = std::fs::File::create(&image).expect("an image");
        file.set_len(SIZE).expect("its size");
        let made = Program::new(losetup)
            .args(["--find", "--show"])
            .arg(&image)
            .output()
            .expect("losetup runs");
        if !made.status.success() {
            ugeom_testkit::skip(test, String::from_utf8_lossy(&made.stderr).trim());
            return None;
        }
        let device = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        Some(Self { device, _dir: dir })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // What cannot be detached now goes when its last user does.
        let _ = Program::new("losetup")
            .args(["--detach", &self.device])
            .status();
    }
}

fn writable() -> TargetOptions {
    TargetOptions::default().for_writing()
}

#[test]
fn a_device_is_read_and_written_with_its_own_sector_size() {
    let Some(device) = Loop::new("a_device_is_read_and_written_with_its_own_sector_size") else {
        return;
    };
    for options in ["engine=sync", "engine=auto", "engine=auto&direct=1"] {
        let target = open_target(&format!("{}?{options}", device.device), &writable());
        let target = target.unwrap_or_else(|error| panic!("{options}: {error}"));
        let view = target
            .stack
            .tree()
            .provider(&target.name)
            .cloned()
            .expect("the provider");
        assert_eq!((view.mediasize_bytes, view.sectorsize_bytes), (SIZE, 512));
        let opened = target
            .stack
            .open(target.top, Delta::READ_WRITE)
            .expect("open");
        let mut channel = target.stack.channel(1).expect("a channel");
        let data: Vec<u8> = (0..4096_u32).map(|at| (at * 13) as u8).collect();
        assert_eq!(channel.write(&opened, 512, &data).expect("write"), 4096);
        channel.flush(&opened).expect("flush");
        let mut back = vec![0; 4096];
        assert_eq!(channel.read(&opened, 512, &mut back).expect("read"), 4096);
        assert_eq!(back, data, "{options}");
        channel
            .discard(&opened, Command::Zero, 1024, 1024)
            .expect("zero");
        channel.read(&opened, 512, &mut back).expect("read");
        assert!(back[512..1536].iter().all(|byte| *byte == 0), "{options}");
        assert_eq!(back[1536..], data[1536..]);
        let error = channel
            .read(&opened, SIZE + 512, &mut back)
            .expect_err("past the end");
        assert_eq!(error.errno, Errno::IO);
    }
}

#[test]
fn a_device_is_opened_exclusively_unless_it_is_shared() {
    let Some(device) = Loop::new("a_device_is_opened_exclusively_unless_it_is_shared") else {
        return;
    };
    let first = open_target(&device.device, &TargetOptions::default()).expect("the first");
    let refused = open_target(&device.device, &TargetOptions::default())
        .err()
        .expect("refused");
    assert!(
        refused
            .to_string()
            .contains("is in use: mounted, or held by another process")
    );
    open_target(
        &format!("{}?shared=1", device.device),
        &TargetOptions::default(),
    )
    .expect("shared");
    drop(first);
    open_target(&device.device, &TargetOptions::default()).expect("free again");
}

#[test]
fn a_mounted_device_is_refused() {
    let test = "a_mounted_device_is_refused";
    let Some(device) = Loop::new(test) else {
        return;
    };
    let Some(mkfs) = ugeom_testkit::program(test, "mkfs.ext4") else {
        return;
    };
    let made = Program::new(mkfs)
        .args(["-q", &device.device])
        .status()
        .expect("mkfs runs");
    assert!(made.success());
    let dir = TempDir::new().expect("a directory");
    let mounted = Program::new("mount")
        .arg(&device.device)
        .arg(dir.path())
        .output();
    let mounted = mounted.expect("mount runs");
    if !mounted.status.success() {
        ugeom_testkit::skip(test, String::from_utf8_lossy(&mounted.stderr).trim());
        return;
    }
    let opened = open_target(&device.device, &writable())
        .err()
        .map(|error| error.to_string());
    unmount(dir.path());
    let refused = opened.expect("a mounted device must not be opened for writing");
    assert!(
        refused.ends_with("is in use: mounted, or held by another process"),
        "{refused}"
    );
}

fn unmount(at: &Path) {
    let done = Program::new("umount")
        .arg(at)
        .status()
        .expect("umount runs");
    assert!(done.success());
}
