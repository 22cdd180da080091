//! How many system calls the documentation promises, as strace(1) counts them.
//!
//! The test starts itself once more under strace; that process marks the calls to count by calls of
//! getppid(2), which no other code makes. ThreadSanitizer makes calls of its own.
#![cfg(not(tsan))]

use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ugeom_guasi::{Backend, Context, Io, IoCall, Outcome, Settings};

const COUNT: usize = 1_000;

/// Set in the process that is watched.
const WATCHED: &str = "UGEOM_GUASI_WATCHED";

fn mark() {
    // SAFETY: getppid(2) has no requirements.
    unsafe { libc::getppid() };
}

/// The calls of the marking thread between one mark and the next.
struct Watched(Vec<Vec<String>>);

impl Watched {
    fn count(&self, part: usize, call: &str) -> usize {
        self.0[part]
            .iter()
            .filter(|line| line.contains(call))
            .count()
    }
}

/// Runs this test under strace and reads its log; `None` in the watched process, after `watched`.
fn watch(watched: impl FnOnce()) -> Option<Watched> {
    if std::env::var_os(WATCHED).is_some() {
        watched();
        return None;
    }
    let strace = ugeom_testkit::program("strace")?;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let output = Command::new(strace)
        .args(["-f", "-o"])
        .arg(&log)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &ugeom_testkit::test_name(), "--test-threads=1"])
        .env(WATCHED, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("Operation not permitted") {
        ugeom_testkit::skip("strace may not trace here");
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(parts(&log))
}

fn parts(log: &Path) -> Watched {
    let text = std::fs::read_to_string(log).unwrap();
    let is_mark = |line: &&str| line.contains("getppid(");
    let marker = text.lines().find(is_mark).expect("a mark");
    let thread = marker.split_whitespace().next().unwrap().to_owned() + " ";
    let mut parts = Vec::new();
    for line in text.lines().filter(|line| line.starts_with(&thread)) {
        if is_mark(&line) {
            parts.push(Vec::new());
        } else if let Some(part) = parts.last_mut()
            // The other half of a line that strace had begun.
            && !line.contains("resumed>")
        {
            part.push(line.to_owned());
        }
    }
    Watched(parts)
}

fn submit(context: &Context, works: impl ExactSizeIterator<Item = (usize, Io)>) {
    assert_eq!(context.submit_batch(0, works, |_| ()).unwrap(), COUNT);
}

#[test]
fn a_batch_wakes_one_worker_and_its_fetcher_sleeps_once() {
    let watched = watch(|| {
        let context = Settings::new()
            .workers(2, 2)
            .spin(Duration::ZERO)
            .open()
            .unwrap();
        let works = || (0..COUNT).map(|tag| (tag, || Outcome::done(0)));
        // Once before: the first user of the clock prepares it, and wakes others.
        context.submit_batch(0, works(), |_| ()).unwrap();
        context.collect(COUNT, COUNT, None, |_| ());
        while context.idle_workers() < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let works = works();
        mark();
        assert_eq!(context.submit_batch(0, works, |_| ()).unwrap(), COUNT);
        mark();
        assert_eq!(context.collect(COUNT, COUNT, None, |_| ()), COUNT);
        mark();
    });
    let Some(watched) = watched else { return };
    assert!(
        watched.count(0, "FUTEX_WAKE") <= COUNT.div_ceil(64),
        "a wake for each part"
    );
    assert_eq!(
        watched.0[0].len(),
        watched.count(0, "futex("),
        "{:?}",
        watched.0[0]
    );
    assert!(watched.count(1, "FUTEX_WAIT") <= 1, "{:?}", watched.0[1]);
    assert_eq!(
        watched.0[1].len(),
        watched.count(1, "FUTEX_WAIT"),
        "{:?}",
        watched.0[1]
    );
}

#[test]
fn a_batch_in_the_ring_is_one_call_and_its_fetch_none() {
    let Ok(context) = Settings::new().backend(Backend::Ring).open() else {
        return ugeom_testkit::skip("no io_uring here");
    };
    let watched = watch(|| {
        // SAFETY: the call names no memory.
        let no_op = || unsafe { Io::new(IoCall::Nothing) };
        mark();
        submit(&context, (0..COUNT).map(|tag| (tag, no_op())));
        mark();
        assert_eq!(context.collect(COUNT, COUNT, None, |_| ()), COUNT);
        mark();
    });
    let Some(watched) = watched else { return };
    assert_eq!(watched.count(0, "io_uring_enter("), 1, "{:?}", watched.0[0]);
    assert_eq!(watched.0[0].len(), 1, "{:?}", watched.0[0]);
    assert!(watched.0[1].is_empty(), "{:?}", watched.0[1]);
}

#[test]
fn cached_reads_of_auto_stay_out_of_the_ring() {
    let context = Settings::new().backend(Backend::Auto).open().unwrap();
    if !context.has_ring() {
        return ugeom_testkit::skip("no io_uring here");
    }
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&[7; 64], 0).unwrap();
    let fd = file.as_raw_fd();
    let mut memory = [0u8; 64];
    let vector = libc::iovec {
        iov_base: memory.as_mut_ptr().cast(),
        iov_len: 64,
    };
    // SAFETY: one vector of 64 bytes, ours.
    if unsafe { libc::preadv2(fd, &raw const vector, 1, 0, libc::RWF_NOWAIT) } != 64 {
        return ugeom_testkit::skip("this file system has no RWF_NOWAIT");
    }
    let watched = watch(|| {
        let memory = memory.as_mut_ptr();
        mark();
        for tag in 0..COUNT {
            let (len, offset) = (64, 0);
            let call = IoCall::ReadAt {
                fd,
                memory,
                len,
                offset,
            };
            // SAFETY: the memory outlives the requests, all of which write the same bytes to it.
            context.submit(0, tag, unsafe { Io::new(call) }).unwrap();
        }
        mark();
        assert_eq!(context.collect(COUNT, COUNT, None, |_| ()), COUNT);
        mark();
    });
    let Some(watched) = watched else { return };
    assert_eq!(watched.count(0, "preadv2("), COUNT);
    assert_eq!(watched.count(0, "io_uring_enter("), 0);
    // Beside the reads, one look in sixteen whether they go past the cache.
    let calls = COUNT + COUNT.div_ceil(16);
    assert_eq!(watched.0[0].len(), calls, "{:?}", watched.0[0].first());
    assert!(watched.0[1].is_empty(), "{:?}", watched.0[1]);
}
