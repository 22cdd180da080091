//! The behaviour without io_uring, which many containers forbid: here by a seccomp filter
//! (seccomp(2)) on the thread of the test.

use ugeom_engine::{Choice, open_engine};
use ugeom_machine::buffer::Buffer;

/// Makes the system call fail with `errno` in this thread, from now on.
fn forbid(call: libc::c_long, errno: libc::c_int) -> bool {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        // The first word of the data is the number of the system call.
        instruction(LOAD, 0, 0, 0),
        instruction(JUMP_IF_EQUAL, 0, 1, call as u32),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: both calls change this thread only; the filter lives until the kernel has copied it.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    }
}

/// Opens both choices in a thread for which io_uring_setup fails with `errno`.
fn open_forbidden(errno: libc::c_int) -> Option<(String, String)> {
    std::thread::spawn(move || {
        if !forbid(libc::SYS_io_uring_setup, errno) {
            ugeom_testkit::skip("no seccomp filters here");
            return None;
        }
        let (engine, why) = open_engine::<Buffer>(Choice::Auto, 8).unwrap();
        assert_eq!(engine.name(), "guasi");
        let error = open_engine::<Buffer>(Choice::IoUring, 8).err().unwrap();
        Some((why, error.to_string()))
    })
    .join()
    .unwrap()
}

#[test]
fn a_container_that_forbids_io_uring_gets_threads_and_the_reason() {
    let Some((why, error)) = open_forbidden(libc::EPERM) else { return };
    assert!(why.starts_with("guasi: io_uring cannot be used: "), "{why}");
    assert!(why.contains("forbid"), "{why}");
    assert_eq!(why, format!("guasi: {error}"));
}

#[test]
fn a_kernel_without_io_uring_gets_threads_and_the_reason() {
    let Some((why, _)) = open_forbidden(libc::ENOSYS) else { return };
    assert!(why.contains("no io_uring"), "{why}");
}
