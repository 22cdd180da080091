//! The fuzz target for images: any bytes are a file, which is opened as qcow2, gzip, xz or zstd,
//! and read as far as it goes.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_stack::Delta;

/// How much of a disk is read, bytes: its start, its middle and its end.
const READ_BYTES: u64 = 1 << 20;

/// A byte for the format, then the file.
pub fn image(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let format = ["qcow2", "gzip", "xz", "zstd"][usize::from(choice % 4)];
    let file = memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("memory for a file");
    let file = File::from(file);
    file.write_all_at(bytes, 0).expect("written");
    let text = format!(
        "/proc/self/fd/{}?format={format}&engine=sync",
        file.as_raw_fd()
    );
    let options = TargetOptions {
        unlocked: true,
        ..TargetOptions::default()
    };
    let Ok(target) = open_target(&text, &options) else { return };
    let opened = target
        .stack
        .open(target.bottom, Delta::READ)
        .expect("open for reading");
    let mut channel = target.stack.channel(1).expect("a channel");
    let size = opened.view().expect("it is there").mediasize_bytes;
    let mut buffer = vec![0; 64 << 10];
    for start in [0, size / 2, size.saturating_sub(READ_BYTES)] {
        let start = start / 512 * 512;
        let mut at = start;
        while at < size.min(start + READ_BYTES) {
            let length = (buffer.len() as u64).min(size - at) as usize;
            // A place may be damaged; what matters is that the answer comes.
            let _ = channel.read(&opened, at, &mut buffer[..length]);
            at += length as u64;
        }
    }
}
