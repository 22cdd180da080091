//! The seventeen system calls as requests: `guasi__read` and so on.
//!
//! Calls that a context can run itself are handed to it as such; the others are small functions
//! here.

use std::ffi::{c_char, c_int, c_long, c_longlong, c_void};

use libc::{sockaddr, socklen_t};
use ugeom_guasi::{CCall, CFunction, Io, IoCall, ready};

use crate::{GuasiHandle, RequestHandle, set_errno, submit};

/// Defines a wrapper, by its parameters after the four that all of them have, and what it runs: a
/// call that the context knows, or a function with its parameters.
macro_rules! wrapper {
    ($name:ident($($parameter:ident: $type:ty),*) => io $call:expr) => {
        wrapper!($name($($parameter: $type),*), hctx, private, asid, prio, {
            // SAFETY: the promise of the wrapper's caller.
            let io = unsafe { Io::new($call) };
            submit(hctx, asid, prio, io.with_private(private))
        });
    };
    ($name:ident($($parameter:ident: $type:ty),*) => $function:ident [$($param:expr),*]) => {
        wrapper!($name($($parameter: $type),*), hctx, private, asid, prio, {
            let function: CFunction = $function;
            let params = [$($param as isize),*];
            // SAFETY: the promise of the wrapper's caller; the parameters are fewer than 16.
            match unsafe { CCall::new(function, None, private, &params) } {
                Some(call) => submit(hctx, asid, prio, call),
                None => crate::null(libc::EINVAL),
            }
        });
    };
    (
        $name:ident($($parameter:ident: $type:ty),*),
        $hctx:ident, $private:ident, $asid:ident, $prio:ident, $body:block
    ) => {
        #[doc = concat!("`", stringify!($name), "`; see guasi(3).")]
        ///
        /// # Safety
        /// What the pointers name stays valid, and memory that is written to is left alone, until
        /// the request has ended.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $hctx: GuasiHandle,
            $private: *mut c_void,
            $asid: *mut c_void,
            $prio: c_int,
            $($parameter: $type),*
        ) -> RequestHandle $body
    };
}

wrapper!(guasi__read(fd: c_int, buf: *mut u8, size: usize) =>
    io IoCall::Read { fd, memory: buf, len: size });
wrapper!(guasi__write(fd: c_int, buf: *const u8, size: usize) =>
    io IoCall::Write { fd, memory: buf, len: size });
wrapper!(guasi__pread(fd: c_int, buf: *mut u8, size: usize, off: c_longlong) =>
    io IoCall::ReadAt { fd, memory: buf, len: size, offset: off });
wrapper!(guasi__pwrite(fd: c_int, buf: *const u8, size: usize, off: c_longlong) =>
    io IoCall::WriteAt { fd, memory: buf, len: size, offset: off });
wrapper!(guasi__sendfile(ofd: c_int, ifd: c_int, off: *mut c_longlong, cnt: usize) =>
    sendfile [ofd, ifd, off, cnt]);
wrapper!(guasi__fsync(fd: c_int) => io IoCall::Sync { fd });
wrapper!(guasi__open(name: *const c_char, flags: c_long, mode: c_long) =>
    io IoCall::Open { path: name, flags: flags as c_int, mode: mode as u32 });
wrapper!(guasi__opendir(name: *const c_char) => opendir [name]);
wrapper!(guasi__readdir(dir: *mut libc::DIR) => readdir [dir]);
wrapper!(guasi__stat(name: *const c_char, sbuf: *mut libc::stat) => stat [name, sbuf]);
wrapper!(guasi__fstat(fd: c_int, sbuf: *mut libc::stat) => fstat [fd, sbuf]);
wrapper!(guasi__recv(fd: c_int, buf: *mut u8, size: usize, flags: c_int, timeo: c_long) =>
    io IoCall::Receive { fd, memory: buf, len: size, flags, timeout_ms: timeo });
wrapper!(guasi__recvfrom(
        fd: c_int, buf: *mut u8, size: usize, flags: c_int,
        from: *mut sockaddr, fromlen: *mut socklen_t, timeo: c_long) =>
    recvfrom [fd, buf, size, flags, from, fromlen, timeo]);
wrapper!(guasi__send(fd: c_int, buf: *const u8, size: usize, flags: c_int, timeo: c_long) =>
    io IoCall::Send { fd, memory: buf, len: size, flags, timeout_ms: timeo });
wrapper!(guasi__sendto(
        fd: c_int, buf: *const u8, size: usize, flags: c_int,
        to: *const sockaddr, tolen: socklen_t, timeo: c_long) =>
    sendto [fd, buf, size, flags, to, tolen, timeo]);
wrapper!(guasi__accept(fd: c_int, addr: *mut sockaddr, addrlen: *mut socklen_t, timeo: c_long) =>
    io IoCall::Accept { fd, address: addr, address_len: addrlen, timeout_ms: timeo });
wrapper!(guasi__connect(fd: c_int, addr: *const sockaddr, addrlen: socklen_t, timeo: c_long) =>
    io IoCall::Connect { fd, address: addr, address_len: addrlen, timeout_ms: timeo });

/// A pointer among the parameters.
fn pointer<T>(param: isize) -> *mut T {
    std::ptr::with_exposed_provenance_mut(param as usize)
}

/// The parameters of a function.
///
/// # Safety
/// There are N of them.
unsafe fn all<const N: usize>(params: *const isize) -> [isize; N] {
    // SAFETY: by contract.
    unsafe { params.cast::<[isize; N]>().read() }
}

unsafe extern "C-unwind" fn sendfile(_private: *mut c_void, params: *const isize) -> isize {
    // SAFETY: the parameters are those of the wrapper, whose caller promises that they are valid.
    unsafe {
        let [ofd, ifd, off, cnt] = all(params);
        libc::sendfile64(ofd as c_int, ifd as c_int, pointer(off), cnt as usize)
    }
}

unsafe extern "C-unwind" fn opendir(_private: *mut c_void, params: *const isize) -> isize {
    // SAFETY: as in `sendfile`.
    unsafe {
        let [name] = all(params);
        libc::opendir(pointer(name)).expose_provenance() as isize
    }
}

unsafe extern "C-unwind" fn readdir(_private: *mut c_void, params: *const isize) -> isize {
    // SAFETY: as in `sendfile`.
    unsafe {
        let [dir] = all(params);
        libc::readdir(pointer(dir)).expose_provenance() as isize
    }
}

unsafe extern "C-unwind" fn stat(_private: *mut c_void, params: *const isize) -> isize {
    // SAFETY: as in `sendfile`.
    unsafe {
        let [name, sbuf] = all(params);
        libc::stat(pointer(name), pointer(sbuf)) as isize
    }
}

unsafe extern "C-unwind" fn fstat(_private: *mut c_void, params: *const isize) -> isize {
    // SAFETY: as in `sendfile`.
    unsafe {
        let [fd, sbuf] = all(params);
        libc::fstat(fd as c_int, pointer(sbuf)) as isize
    }
}

/// Waits until a socket is ready for `event`, then calls `transfer` with the descriptor, the memory
/// and its size, the flags, and the address with its length (or where that goes).
///
/// # Safety
/// The parameters are those of the wrapper of recvfrom(2) or sendto(2).
unsafe fn when_ready(
    params: *const isize,
    event: i16,
    transfer: impl FnOnce(c_int, *mut c_void, usize, c_int, isize, isize) -> isize,
) -> isize {
    // SAFETY: by contract.
    let [fd, buf, size, flags, address, address_len, timeo] = unsafe { all(params) };
    match ready(fd as c_int, event, timeo as i64) {
        Ok(()) => transfer(
            fd as c_int,
            pointer(buf),
            size as usize,
            flags as c_int,
            address,
            address_len,
        ),
        Err(failed) => {
            set_errno(failed.error);
            -1
        }
    }
}

unsafe extern "C-unwind" fn recvfrom(_private: *mut c_void, params: *const isize) -> isize {
    // SAFETY: as in `sendfile`.
    unsafe {
        when_ready(
            params,
            libc::POLLIN,
            |fd, buf, size, flags, from, fromlen| {
                libc::recvfrom(fd, buf, size, flags, pointer(from), pointer(fromlen))
            },
        )
    }
}

unsafe extern "C-unwind" fn sendto(_private: *mut c_void, params: *const isize) -> isize {
    // SAFETY: as in `sendfile`.
    unsafe {
        when_ready(params, libc::POLLOUT, |fd, buf, size, flags, to, tolen| {
            libc::sendto(fd, buf, size, flags, pointer(to), tolen as socklen_t)
        })
    }
}
