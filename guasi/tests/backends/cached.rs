//! Reads that may find their data in the page cache: the same answers whether they run while they
//! are submitted or later.

use super::*;

const PAGE: usize = 4096;

fn read_at(fd: i32, memory: *mut u8, len: usize, offset: i64) -> Io {
    io(IoCall::ReadAt {
        fd,
        memory,
        len,
        offset,
    })
}

/// A file that is on its disk, and what it holds.
fn written(pages: usize) -> (std::fs::File, Vec<u8>) {
    let mut file = tempfile::tempfile().unwrap();
    let data: Vec<u8> = (0..pages * PAGE).map(|at| (at / 7) as u8).collect();
    file.write_all(&data).unwrap();
    file.sync_all().unwrap();
    (file, data)
}

/// Takes a file out of the page cache.
fn forget(file: &std::fs::File) {
    // SAFETY: posix_fadvise(2) has no requirements.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    // SAFETY: as above.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
}

pub fn reads_are_whole_whatever_part_of_them_is_cached(backend: Backend) {
    const PAGES: usize = 32;
    let context = wide(backend);
    let (file, data) = written(PAGES);
    for cached in [0, 1, PAGES / 2, PAGES - 1, PAGES] {
        forget(&file);
        let mut part = vec![0; cached * PAGE];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut part, 0).unwrap();
        for round in 0..3 {
            let mut memory = vec![0u8; data.len()];
            let whole = read_at(file.as_raw_fd(), memory.as_mut_ptr(), data.len(), 0);
            context.submit(0, 0, whole).unwrap();
            let result = end(&fetch(&context, 1)[0]);
            assert_eq!(result, (data.len() as isize, 0), "{cached} {round}");
            assert!(memory == data, "{cached} {round}");
        }
    }
}

/// It has no position, although it can be asked for one; and a read would empty it.
pub fn an_eventfd_answers_as_pread_does(backend: Backend) {
    let context = wide(backend);
    // SAFETY: eventfd(2) has no requirements; the descriptors are ours, and the memory is large
    // enough.
    unsafe {
        let [theirs, ours] = [0, 1].map(|_| libc::eventfd(7, libc::EFD_NONBLOCK));
        let mut memory = [[0u8; 16]; 2];
        let truth = libc::pread(theirs, memory[0].as_mut_ptr().cast(), 16, 0);
        context
            .submit(0, 0, read_at(ours, memory[1].as_mut_ptr(), 16, 0))
            .unwrap();
        assert_eq!(fetch(&context, 1)[0].result, truth);
        assert_eq!(memory[0], memory[1]);
        // Both are empty now, or none.
        let [one, other] = [theirs, ours].map(|fd| {
            let result = libc::read(fd, memory[0].as_mut_ptr().cast(), 8);
            libc::close(fd);
            result
        });
        assert_eq!(one, other);
    }
}

pub fn a_cached_read_overtakes_nothing_that_waits(backend: Backend) {
    let mut blocked = blocked(backend);
    let context = &blocked.context;
    let (file, data) = written(1);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut memory = [0u8; 64];
    context
        .submit(1, 1, write(writer.as_raw_fd(), b"first"))
        .unwrap();
    let cached = read_at(file.as_raw_fd(), memory.as_mut_ptr(), 64, 0);
    let id = context.submit(1, 2, cached).unwrap();
    assert_eq!(status(context, id), Status::Pending);
    blocked.writer.write_all(b"x").unwrap();
    let order: Vec<usize> = fetch(context, 3).iter().map(|info| info.tag).collect();
    assert_eq!(order, [99, 1, 2]);
    assert_eq!(memory, data[..64]);
    let mut first = [0; 5];
    std::io::Read::read_exact(&mut reader, &mut first).unwrap();
}

pub fn cached_reads_come_back_by_priority_in_every_thread(backend: Backend) {
    const EACH: usize = 500;
    let context = wide(backend);
    let (file, data) = written(4);
    let fd = file.as_raw_fd();
    let mut memory = vec![0u8; 2 * EACH * 16];
    std::thread::scope(|scope| {
        for (thread, room) in memory.chunks_mut(EACH * 16).enumerate() {
            let context = &context;
            scope.spawn(move || {
                for (at, piece) in room.chunks_mut(16).enumerate() {
                    let read = read_at(fd, piece.as_mut_ptr(), 16, 16 * at as i64);
                    let tag = thread * EACH + at;
                    context.submit(at as u32 % 4, tag, read).unwrap();
                }
            });
        }
    });
    until(|| {
        let mut statuses = (0..).map_while(|slot| {
            let id = RequestId::from_bits(slot);
            context.info(id).map(|info| info.status)
        });
        statuses.all(|status| status == Status::Complete)
    });
    let infos = fetch(&context, 2 * EACH);
    let priorities: Vec<usize> = infos.iter().map(|info| info.tag % EACH % 4).collect();
    assert!(priorities.is_sorted());
    for info in &infos {
        assert_eq!(end(info), (16, 0));
        assert_eq!(context.cancel(info.id), Cancel::Complete);
        assert!(context.release(info.id) && !context.release(info.id));
    }
    assert!(memory[..EACH * 16] == data[..EACH * 16] && memory[EACH * 16..] == data[..EACH * 16]);
}
