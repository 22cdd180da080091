//! Tests of this engine alone: files that change their length under the mapping. The tests of every
//! engine are in the conformance suite.

use std::fs::OpenOptions;

use ugeom_machine::buffer::{Buffer, IoMemory};

use super::*;
use crate::op::{Engine, FileId, Op, OpKind};

fn open(content: &[u8]) -> (tempfile::TempDir, Arc<File>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    std::fs::write(&path, content).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(path);
    (folder, Arc::new(file.unwrap()))
}

fn run(
    engine: &mut MmapEngine<Buffer>,
    kind: OpKind,
    file: FileId,
    offset: u64,
    memory: Buffer,
) -> (Result<u64, Errno>, Buffer) {
    let length = memory.total_bytes();
    let op = Op {
        kind,
        file,
        offset,
        length,
    };
    engine.submit(op, memory);
    let mut end = None;
    engine.reap(&mut |completion| end = Some((completion.result, completion.memory)));
    end.unwrap()
}

#[test]
fn a_file_that_becomes_shorter_and_longer_is_followed() {
    let (_folder, file) = open(&[7; 20_000]);
    let mut engine = MmapEngine::new();
    let id = engine.register(Arc::clone(&file)).unwrap();
    let read =
        |engine: &mut _, offset, len| run(engine, OpKind::Read, id, offset, Buffer::new(len));
    assert_eq!(read(&mut engine, 0, 20_000).0, Ok(20_000));
    file.set_len(9_000).unwrap();
    let (count, bytes) = read(&mut engine, 8_000, 4_000);
    assert_eq!(count, Ok(1_000));
    assert!(bytes[..1_000].iter().all(|&byte| byte == 7));
    assert_eq!(read(&mut engine, 12_288, 1).0, Ok(0));
    file.set_len(30_000).unwrap();
    let (count, bytes) = read(&mut engine, 8_999, 30_000);
    assert_eq!(count, Ok(21_001));
    assert_eq!((bytes[0], bytes[1]), (7, 0));
}

#[test]
fn a_page_that_vanishes_during_the_copy_is_eio_and_not_a_crash() {
    let (_folder, file) = open(&[7; 16_384]);
    let mut mapped = Mapped::default().prepare(&file).unwrap().unwrap();
    let memory = Buffer::new(16_384);
    let step = Step {
        call: Call::Read,
        offset: 0,
        length: 16_384,
    };
    // The length is asked, and only then the file is cut: what a race would do.
    assert_eq!(mapped.inside(0, 16_384), Ok(16_384));
    file.set_len(4_096).unwrap();
    // SAFETY: the memory is alive and no other code's.
    let copied = unsafe { mapped.copy(&step, memory.segments(), 16_384) };
    assert_eq!(copied, Err(Errno::IO));
    // The next one asks again, and maps again.
    assert_eq!(mapped.inside(0, 16_384), Ok(4_096));
    // SAFETY: as above.
    let copied = unsafe { mapped.copy(&step, memory.segments(), 4_096) };
    assert_eq!(copied, Ok(()));
    assert!(memory[..4_096].iter().all(|&byte| byte == 7));
}

#[test]
fn nothing_asks_where_a_settled_file_ends_inside_its_mapping() {
    let (_folder, file) = open(&[7; 10_000]);
    let settled = Mapped {
        order: None,
        settled: true,
    };
    let mut mapped = settled.prepare(&file).unwrap().unwrap();
    assert_eq!(mapped.inside(9_000, 4_096), Ok(1_000));
    file.set_len(5_000).unwrap();
    assert_eq!(mapped.inside(4_000, 4_096), Ok(4_096));
    // Past the mapping it is asked for, as a file may become longer.
    file.set_len(20_000).unwrap();
    assert_eq!(mapped.inside(9_000, 4_096), Ok(4_096));
    assert_eq!(mapped.inside(19_000, 4_096), Ok(1_000));
}

#[test]
#[cfg_attr(tsan, ignore = "the sanitizer answers faults itself")]
fn a_signal_of_somebody_elses_page_still_ends_the_process() {
    let (_folder, file) = open(&[7; 8_192]);
    guard::install().unwrap();
    let mapping = Mapping::new(&file, 8_192, false).unwrap();
    file.set_len(0).unwrap();
    // SAFETY: the child only reads one byte and leaves by a signal or by _exit(2).
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            let limit = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &limit);
            libc::_exit(i32::from(ptr::read_volatile(mapping.base)));
        }
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
        status
    };
    assert!(libc::WIFSIGNALED(status), "status {status:#x}");
    assert_eq!(libc::WTERMSIG(status), libc::SIGBUS);
}

#[test]
fn writes_go_into_the_mapping_and_past_the_end() {
    let (folder, file) = open(&[1; 5_000]);
    let mut engine = MmapEngine::new();
    let id = engine.register(file).unwrap();
    let write = OpKind::Write { durable: true };
    let data = Buffer::from_slice(&[9; 3_000]);
    assert_eq!(run(&mut engine, write, id, 4_000, data).0, Ok(3_000));
    let flushed = run(&mut engine, OpKind::Flush, id, 0, Buffer::new(0));
    assert_eq!(flushed.0, Ok(0));
    let content = std::fs::read(folder.path().join("f")).unwrap();
    assert_eq!(content.len(), 7_000);
    assert!(content[..4_000].iter().all(|&byte| byte == 1));
    assert!(content[4_000..].iter().all(|&byte| byte == 9));
}

/// The kernel notes advice with the mapping (proc_pid_smaps(5)).
#[test]
fn the_kernel_is_told_the_order_of_requests() {
    let orders = [
        (None, [false, false]),
        (Some(AccessOrder::Random), [true, false]),
        (Some(AccessOrder::Sequential), [false, true]),
    ];
    for (order, expected) in orders {
        let (folder, file) = open(&[7; 8192]);
        let mut engine = MmapEngine::of(Mapped {
            order,
            settled: false,
        });
        let id = engine.register(file).unwrap();
        let (count, _) = run(&mut engine, OpKind::Read, id, 0, Buffer::new(512));
        assert_eq!(count, Ok(512));
        let path = folder.path().join("f").display().to_string();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = maps.lines().skip_while(|line| !line.ends_with(&path));
        let flags = lines.find(|line| line.starts_with("VmFlags:")).unwrap();
        let has = ["rr", "sr"].map(|flag| flags.split(' ').any(|word| word == flag));
        assert_eq!(has, expected, "{order:?}: {flags}");
    }
}
