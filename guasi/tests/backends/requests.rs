//! The life of one request: the answers of calls, their order, cancelling, status, waiting.

use super::*;
use ugeom_guasi::Statx;

pub fn calls_answer_as_the_manual_says(backend: Backend) {
    let context = wide(backend);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f\0");
    let path = path.to_str().unwrap().as_ptr().cast();
    let flags = libc::O_RDWR | libc::O_CREAT;
    let (fd, error) = call(
        &context,
        IoCall::Open {
            path,
            flags,
            mode: 0o600,
        },
    );
    assert!(fd >= 0 && error == 0, "{fd} {error}");
    let fd = fd as i32;
    let (data, mut memory) = (b"guasi", [0u8; 8]);
    let len = data.len();
    let at = |offset| IoCall::WriteAt {
        fd,
        memory: data.as_ptr(),
        len,
        offset,
    };
    assert_eq!(call(&context, at(2)), (5, 0));
    assert_eq!(call(&context, at(-1)), (-1, libc::EINVAL));
    let position = IoCall::Write {
        fd,
        memory: data.as_ptr(),
        len,
    };
    assert_eq!([0, 1].map(|_| call(&context, position)), [(5, 0); 2]);
    let room = memory.as_mut_ptr();
    let read_at = |offset| IoCall::ReadAt {
        fd,
        memory: room,
        len: 8,
        offset,
    };
    assert_eq!(call(&context, read_at(0)), (8, 0));
    assert_eq!(&memory, b"guasigua");
    assert_eq!(call(&context, read_at(6)), (4, 0), "short at the end");
    assert_eq!(
        call(
            &context,
            IoCall::Read {
                fd,
                memory: room,
                len: 8
            }
        ),
        (0, 0),
        "the end"
    );
    let nowhere = IoCall::ReadAt {
        fd,
        memory: std::ptr::without_provenance_mut(8),
        len: 8,
        offset: 0,
    };
    assert_eq!(call(&context, nowhere), (-1, libc::EFAULT));
}

pub fn calls_without_data_answer_as_the_manual_says(backend: Backend) {
    let context = wide(backend);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f\0");
    std::fs::write(folder.path().join("f"), b"some").unwrap();
    let path = path.to_str().unwrap().as_ptr().cast();
    let open = |flags| IoCall::Open {
        path,
        flags,
        mode: 0o600,
    };
    assert_eq!(
        call(&context, open(libc::O_CREAT | libc::O_EXCL)),
        (-1, libc::EEXIST)
    );
    let (fd, error) = call(&context, open(libc::O_RDWR));
    assert!(fd >= 0 && error == 0, "{fd} {error}");
    let fd = fd as i32;
    assert_eq!(call(&context, IoCall::Sync { fd }), (0, 0));
    assert_eq!(call(&context, IoCall::DataSync { fd }), (0, 0));
    assert_eq!(
        call(
            &context,
            IoCall::Allocate {
                fd,
                mode: 0,
                offset: 0,
                len: 99
            }
        ),
        (0, 0)
    );
    // SAFETY: a structure of zeroes is a valid one.
    let mut facts: libc::statx = unsafe { std::mem::zeroed() };
    let facts_at = &raw mut facts;
    let statx = |path| {
        IoCall::Statx(Statx {
            directory: libc::AT_FDCWD,
            path,
            flags: 0,
            mask: libc::STATX_SIZE,
            memory: facts_at,
        })
    };
    let (named, missing) = (statx(path), statx(c"/nonexistent/file".as_ptr()));
    assert_eq!(call(&context, named), (0, 0));
    assert_eq!(facts.stx_size, 99);
    assert_eq!(call(&context, missing), (-1, libc::ENOENT));
    assert_eq!(call(&context, IoCall::Sync { fd: -1 }), (-1, libc::EBADF));
    let mut memory = [0u8; 8];
    let (reader, _writer) = std::io::pipe().unwrap();
    let fd = reader.as_raw_fd();
    let on_pipe = IoCall::ReadAt {
        fd,
        memory: memory.as_mut_ptr(),
        len: 8,
        offset: 0,
    };
    assert_eq!(call(&context, on_pipe), (-1, libc::ESPIPE));
    assert_eq!(call(&context, IoCall::Nothing), (0, 0));
}

pub fn a_long_batch_comes_back_whole_and_right(backend: Backend) {
    const COUNT: usize = 5_000;
    let context = settings(backend)
        .workers(0, 8)
        .ring_depth(64)
        .open()
        .unwrap();
    let mut file = tempfile::tempfile().unwrap();
    let numbers: Vec<u8> = (0..COUNT as u32).flat_map(u32::to_ne_bytes).collect();
    file.write_all(&numbers).unwrap();
    let mut memory = vec![0u8; COUNT * 4];
    let room = memory.as_mut_ptr();
    let fd = file.as_raw_fd();
    let works = (0..COUNT).map(|tag| {
        let memory = room.wrapping_add(4 * tag);
        let offset = 4 * tag as i64;
        (
            tag,
            io(IoCall::ReadAt {
                fd,
                memory,
                len: 4,
                offset,
            }),
        )
    });
    let mut ids = Vec::new();
    assert_eq!(
        context.submit_batch(1, works, |id| ids.push(id)).unwrap(),
        COUNT
    );
    let mut seen = vec![false; COUNT];
    let mut left = COUNT;
    while left > 0 {
        left -= context.collect(left.min(1000), 1000, None, |info| {
            assert_eq!((info.result, info.id), (4, ids[info.tag]));
            assert!(!std::mem::replace(&mut seen[info.tag], true), "twice");
        });
    }
    assert_eq!(memory, numbers);
}

pub fn what_waits_runs_by_priority_and_then_in_order(backend: Backend) {
    let mut blocked = blocked(backend);
    let context = &blocked.context;
    let (reader, writer) = std::io::pipe().unwrap();
    for (priority, data) in [
        (2, b"a"),
        (0, b"b"),
        (3, b"c"),
        (2, b"d"),
        (1, b"e"),
        (0, b"f"),
    ] {
        context
            .submit(priority, 0, write(writer.as_raw_fd(), data))
            .unwrap();
    }
    blocked.writer.write_all(b"x").unwrap();
    fetch(context, 7);
    let mut order = [0; 6];
    let (memory, len) = (order.as_mut_ptr(), 6);
    let fd = reader.as_raw_fd();
    assert_eq!(call(context, IoCall::Read { fd, memory, len }), (6, 0));
    assert_eq!(&order, b"bfeadc");
}

pub fn results_come_back_by_priority(backend: Backend) {
    let context = narrow(backend);
    for (tag, priority) in [3, 1, 0, 1, 3, 0].into_iter().enumerate() {
        let id = context.submit(priority, tag, io(IoCall::Nothing)).unwrap();
        // One after the other, so that the order of ends is known.
        until(|| status(&context, id) == Status::Complete);
    }
    let mut first = Vec::new();
    assert_eq!(context.fetch(1, 3, None, |info| first.push(info.tag)), 3);
    let rest: Vec<usize> = fetch(&context, 3).iter().map(|info| info.tag).collect();
    assert_eq!((first, rest), (vec![2, 5, 1], vec![3, 0, 4]));
}

pub fn what_waits_is_cancelled_and_never_runs(backend: Backend) {
    let mut blocked = blocked(backend);
    let context = &blocked.context;
    let (reader, writer) = std::io::pipe().unwrap();
    let id = context
        .submit(0, 5, write(writer.as_raw_fd(), b"never"))
        .unwrap();
    assert_eq!(status(context, id), Status::Pending);
    assert_eq!(context.cancel(id), Cancel::Canceled);
    let infos = fetch(context, 1);
    assert_eq!((infos[0].tag, infos[0].status), (5, Status::Canceled));
    assert_eq!(end(&infos[0]), (-1, libc::ECANCELED));
    assert_eq!(context.cancel(id), Cancel::Complete);
    assert!(context.release(id));
    assert_eq!(context.cancel(id), Cancel::Unknown);
    blocked.writer.write_all(b"x").unwrap();
    fetch(context, 1);
    drop(writer);
    let mut room = [0; 8];
    let (fd, memory, len) = (reader.as_raw_fd(), room.as_mut_ptr(), 8);
    assert_eq!(
        call(context, IoCall::Read { fd, memory, len }),
        (0, 0),
        "nothing was written"
    );
}

pub fn what_runs_is_interrupted_with_eintr(backend: Backend) {
    let blocked = blocked(backend);
    let Blocked { context, id, .. } = &blocked;
    assert_eq!(context.cancel(*id), Cancel::Interrupted);
    let infos = fetch(context, 1);
    assert_eq!(infos[0].status, Status::Complete);
    assert_eq!(end(&infos[0]), (-1, libc::EINTR));
    assert_eq!(context.cancel(*id), Cancel::Complete);
}

pub fn an_interruption_ends_its_request_alone(backend: Backend) {
    let context = narrow(backend);
    let (silent, _writer) = std::io::pipe().unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut bytes = [0u8; 2];
    let memory = bytes.as_mut_ptr();
    for round in 0..200 {
        writer.write_all(b"x").unwrap();
        let waits = read(silent.as_raw_fd(), memory, 1);
        let waits = context.submit(0, 1, waits).unwrap();
        let next = read(reader.as_raw_fd(), memory.wrapping_add(1), 1);
        let next = context.submit(0, 2, next).unwrap();
        if round % 2 == 0 {
            until(|| status(&context, waits) != Status::Pending);
        }
        context.cancel(waits);
        for info in fetch(&context, 2) {
            let expected: &[(isize, i32)] = if info.id == next {
                &[(1, 0)]
            } else {
                &[(-1, libc::EINTR), (-1, libc::ECANCELED)]
            };
            assert!(expected.contains(&end(&info)), "round {round}: {info:?}");
            assert!(context.release(info.id));
        }
    }
}

pub fn a_request_tells_its_status_until_it_is_released(backend: Backend) {
    let Blocked {
        ref context,
        mut writer,
        ref id,
        ..
    } = blocked(backend);
    let next = context.submit(1, 8, io(IoCall::Sync { fd: -1 })).unwrap();
    let info = context.info(next).unwrap();
    assert_eq!((info.status, end(&info)), (Status::Pending, (-1, 0)));
    assert!(!context.release(next), "not fetched");
    writer.write_all(b"x").unwrap();
    // Without a fetch.
    until(|| status(context, *id) == Status::Complete);
    until(|| status(context, next) == Status::Complete);
    assert_eq!(context.cancel(next), Cancel::Complete);
    fetch(context, 2);
    let info = context.info(next).unwrap();
    assert_eq!((info.tag, end(&info)), (8, (-1, libc::EBADF)));
    assert!(context.release(next) && !context.release(next), "once");
    assert_eq!(context.info(next), None);
    let again = context.submit(0, 9, io(IoCall::Nothing)).unwrap();
    assert_ne!(again, next, "the slot is used again under another name");
    assert_eq!(context.info(next), None);
}

pub fn a_fetch_waits_for_as_many_as_it_wants_and_no_longer_than_it_may(backend: Backend) {
    let context = wide(backend);
    let time = Duration::from_millis(20);
    let start = Instant::now();
    assert_eq!(
        context.fetch(1, 1, Some(time), |_| ()),
        0,
        "nothing was submitted"
    );
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut bytes = [0u8; 3];
    let memory = bytes.as_mut_ptr();
    for at in 0..3 {
        let read = read(reader.as_raw_fd(), memory.wrapping_add(at), 1);
        context.submit(0, at, read).unwrap();
    }
    assert_eq!(context.fetch(1, 1, Some(time), |_| ()), 0, "none of three");
    assert!(start.elapsed() >= 2 * time);
    writer.write_all(b"a").unwrap();
    // Long enough for a worker to be scheduled on a loaded machine.
    assert_eq!(
        context.fetch(2, 2, Some(25 * time), |_| ()),
        1,
        "one of two: the time passes"
    );
    let writing = std::thread::spawn(move || {
        for data in [b"b", b"c"] {
            std::thread::sleep(time / 4);
            writer.write_all(data).unwrap();
        }
    });
    assert_eq!(context.fetch(2, 2, None, |_| ()), 2);
    writing.join().unwrap();
    assert_eq!(context.fetch(1, 0, None, |_| ()), 0, "nothing is wanted");
}

pub fn the_descriptor_is_readable_while_there_is_something_to_fetch(backend: Backend) {
    let context = wide(backend);
    let readable = |wait_ms| crate::common::readable(&context, wait_ms);
    context.submit(0, 0, io(IoCall::Nothing)).unwrap();
    assert!(readable(10_000), "asked for after the end of the first");
    assert_eq!(context.collect(1, 1, None, |_| ()), 1);
    for _ in 0..100 {
        context.submit(0, 1, io(IoCall::Nothing)).unwrap();
        context.submit(0, 2, || Outcome::done(0)).unwrap();
        assert!(readable(10_000));
        assert_eq!(context.collect(1, 1, None, |_| ()), 1);
        assert!(readable(10_000), "one is left, or still to come");
        assert_eq!(context.collect(1, 1, None, |_| ()), 1);
        assert!(!readable(0));
    }
}
