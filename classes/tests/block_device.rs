//! The class `file` on a block device: a loop device over an image, which needs root.

use tempfile::TempDir;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_stack::{Command, Delta, Errno};
use ugeom_testkit::LoopDevice;

const SIZE: u64 = 8 << 20;

/// An image and a loop device over it.
fn loop_device() -> Option<(TempDir, LoopDevice)> {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("image");
    let file = std::fs::File::create(&image).expect("an image");
    file.set_len(SIZE).expect("its size");
    Some((folder, LoopDevice::over(&image, &[])?))
}

fn writable() -> TargetOptions {
    TargetOptions::default().for_writing()
}

#[test]
fn a_device_is_read_and_written_with_its_own_sector_size() {
    let Some((_folder, device)) = loop_device() else { return };
    for options in ["engine=sync", "engine=auto", "engine=auto&direct=1"] {
        let target = open_target(&format!("{}?{options}", device.text()), &writable());
        let target = target.unwrap_or_else(|error| panic!("{options}: {error}"));
        let view = target
            .stack
            .tree()
            .provider(&target.name)
            .cloned()
            .expect("the provider");
        assert_eq!((view.mediasize_bytes, view.sectorsize_bytes), (SIZE, 512));
        let opened = target.open(Delta::READ_WRITE).expect("open");
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
    let Some((_folder, device)) = loop_device() else { return };
    let first = open_target(&device.text(), &TargetOptions::default()).expect("the first");
    let refused = open_target(&device.text(), &TargetOptions::default())
        .err()
        .expect("refused");
    assert!(
        refused
            .to_string()
            .contains("is in use: mounted, or held by another process")
    );
    open_target(
        &format!("{}?shared=1", device.text()),
        &TargetOptions::default(),
    )
    .expect("shared");
    drop(first);
    open_target(&device.text(), &TargetOptions::default()).expect("free again");
}
