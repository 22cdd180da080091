//! Requests of a device whose queue is full wait in the context, and not in threads of the kernel.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ugeom_guasi::{Backend, Io, IoCall, Settings};

const BLOCK: usize = 4096;

/// A loop device that is detached at the end.
struct Loop(PathBuf);

impl Loop {
    fn on(file: &Path) -> Option<Loop> {
        let losetup = ugeom_testkit::program("losetup")?;
        let made = Command::new(losetup)
            .args(["--show", "-f"])
            .arg(file)
            .output()
            .unwrap();
        let name = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        if !made.status.success() || name.is_empty() {
            let why = String::from_utf8_lossy(&made.stderr).trim().to_owned();
            ugeom_testkit::skip(&format!("losetup: {why}"));
            return None;
        }
        Some(Loop(name.into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

/// Threads of the kernel that run requests of this process's rings.
fn kernel_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.flatten().filter_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm"));
        name.ok()
    });
    names.filter(|name| name.starts_with("iou-wrk")).count()
}

#[test]
fn a_full_queue_of_a_device_needs_no_thread_of_the_kernel() {
    const DEPTH: usize = 1_000;
    let Ok(context) = Settings::new().backend(Backend::Ring).open() else {
        return ugeom_testkit::skip("no io_uring here");
    };
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().set_len(64 << 20).unwrap();
    let Some(disk) = Loop::on(image.path()) else { return };
    let mut options = File::options();
    let file = options.read(true).custom_flags(libc::O_DIRECT);
    let file = file.open(&disk.0).unwrap();
    let layout = std::alloc::Layout::from_size_align(DEPTH * BLOCK, BLOCK).unwrap();
    // SAFETY: the size is not 0.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) };
    let submit = |tag: usize, at: usize| {
        let call = IoCall::ReadAt {
            fd: file.as_raw_fd(),
            memory: memory.wrapping_add(tag * BLOCK),
            len: BLOCK,
            offset: (at * 7919 % 16_384 * BLOCK) as i64,
        };
        // SAFETY: the memory is freed at the end, after the context.
        context.submit(0, tag, unsafe { Io::new(call) }).unwrap();
    };
    let (mut free, mut at, mut in_flight_max, mut in_flight) = (Vec::new(), 0, 0, 0);
    free.extend(0..DEPTH);
    while at < 30 * DEPTH {
        // As many as there are free, in parts that fit into the queue, and a fetch after each.
        for tag in free.split_off(free.len().saturating_sub(50)) {
            submit(tag, at);
            (at, in_flight) = (at + 1, in_flight + 1);
        }
        in_flight_max = in_flight.max(in_flight_max);
        let min = usize::from(free.is_empty());
        in_flight -= context.collect(min, DEPTH, Some(Duration::from_secs(60)), |info| {
            assert_eq!((info.result, info.error), (BLOCK as isize, 0));
            free.push(info.tag);
        });
    }
    context.collect(in_flight, DEPTH, Some(Duration::from_secs(60)), |_| ());
    assert_eq!(kernel_threads(), 0);
    drop(context);
    // SAFETY: allocated above with this layout, and no request uses it any more.
    unsafe { std::alloc::dealloc(memory, layout) };
    println!("at most {in_flight_max} at a time");
}
