//! Calls on sockets and pipes, which wait until the other side does something.

use super::*;

pub fn sockets_wait_until_they_are_ready(backend: Backend) {
    let context = wide(backend);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let accept = IoCall::Accept {
        fd: listener.as_raw_fd(),
        address: std::ptr::null_mut(),
        address_len: std::ptr::null_mut(),
        timeout_ms: -1,
    };
    context.submit(0, 1, io(accept)).unwrap();
    // SAFETY: socket(2) has no requirements.
    let client = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    let to = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes([127, 0, 0, 1]),
        },
        sin_zero: [0; 8],
    };
    let connect = IoCall::Connect {
        fd: client,
        address: (&raw const to).cast(),
        address_len: size_of::<libc::sockaddr_in>() as u32,
        timeout_ms: -1,
    };
    context.submit(0, 2, io(connect)).unwrap();
    let mut accepted = -1;
    for info in fetch(&context, 2) {
        assert_eq!(info.error, 0, "{info:?}");
        if info.tag == 1 {
            accepted = info.result as i32;
        }
    }
    let mut room = [0u8; 8];
    let receive = IoCall::Receive {
        fd: accepted,
        memory: room.as_mut_ptr(),
        len: 8,
        flags: libc::MSG_DONTWAIT,
        timeout_ms: -1,
    };
    let id = context.submit(0, 3, io(receive)).unwrap();
    std::thread::sleep(Duration::from_millis(2));
    assert_ne!(
        status(&context, id),
        Status::Complete,
        "it waits, whatever the flag says"
    );
    let data = b"hello";
    let send = IoCall::Send {
        fd: client,
        memory: data.as_ptr(),
        len: 5,
        flags: 0,
        timeout_ms: -1,
    };
    context.submit(0, 4, io(send)).unwrap();
    for info in fetch(&context, 2) {
        assert_eq!(end(&info), (5, 0));
    }
    assert_eq!(&room[..5], data);
    // SAFETY: both are ours and not used again.
    unsafe { (libc::close(client), libc::close(accepted)) };
}

pub fn a_socket_that_does_not_block_is_waited_for(backend: Backend) {
    let context = wide(backend);
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    mine.set_nonblocking(true).unwrap();
    let mut room = [0u8; 4];
    let receive = IoCall::Receive {
        fd: mine.as_raw_fd(),
        memory: room.as_mut_ptr(),
        len: 4,
        flags: 0,
        timeout_ms: -1,
    };
    let id = context.submit(0, 0, io(receive)).unwrap();
    std::thread::sleep(Duration::from_millis(2));
    assert_ne!(status(&context, id), Status::Complete);
    theirs.write_all(b"abc").unwrap();
    assert_eq!(end(&fetch(&context, 1)[0]), (3, 0));
    // A plain read does not wait, as read(2) does not.
    let (fd, memory, len) = (mine.as_raw_fd(), room.as_mut_ptr(), 4);
    assert_eq!(
        call(&context, IoCall::Read { fd, memory, len }),
        (-1, libc::EAGAIN)
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let accept = IoCall::Accept {
        fd: listener.as_raw_fd(),
        address: std::ptr::null_mut(),
        address_len: std::ptr::null_mut(),
        timeout_ms: -1,
    };
    context.submit(0, 0, io(accept)).unwrap();
    let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let accepted = end(&fetch(&context, 1)[0]);
    assert!(accepted.0 >= 0 && accepted.1 == 0, "{accepted:?}");
    // SAFETY: it is ours and not used again.
    unsafe { libc::close(accepted.0 as i32) };
}

pub fn the_time_of_a_socket_call_runs_out(backend: Backend) {
    let context = wide(backend);
    let (mine, _theirs) = UnixStream::pair().unwrap();
    let mut room = [0u8; 4];
    let memory = room.as_mut_ptr();
    let receive = |timeout_ms| IoCall::Receive {
        fd: mine.as_raw_fd(),
        memory,
        len: 4,
        flags: 0,
        timeout_ms,
    };
    let (now, later) = (receive(0), receive(20));
    assert_eq!(call(&context, now), (-1, libc::ETIMEDOUT));
    let start = Instant::now();
    assert_eq!(call(&context, later), (-1, libc::ETIMEDOUT));
    assert!(start.elapsed() >= Duration::from_millis(20));
}

pub fn a_pipe_without_readers_is_epipe_and_no_signal(backend: Backend) {
    // Rust's runtime ignores the signal; a program of C would die of it.
    // SAFETY: the default action, for this process; nothing else here writes to a dead pipe.
    let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let context = wide(backend);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    context
        .submit(0, 0, write(writer.as_raw_fd(), b"x"))
        .unwrap();
    assert_eq!(end(&fetch(&context, 1)[0]), (-1, libc::EPIPE));
    // SAFETY: the action that there was.
    unsafe { libc::signal(libc::SIGPIPE, before) };
}

pub fn closing_a_descriptor_in_flight_harms_nobody(backend: Backend) {
    let Blocked {
        context,
        mut writer,
        id,
        _reader: reader,
        _byte: byte,
    } = blocked(backend);
    // The call that runs keeps the pipe; the next one finds no descriptor.
    let fd = reader.as_raw_fd();
    let mut other = 0u8;
    let waits = context.submit(0, 1, read(fd, &raw mut other, 1)).unwrap();
    drop(reader);
    writer.write_all(b"x").unwrap();
    let infos = fetch(&context, 2);
    let of = |id| end(infos.iter().find(|info| info.id == id).unwrap());
    assert_eq!((of(id), of(waits)), ((1, 0), (-1, libc::EBADF)));
    assert_eq!(*byte, b'x');
}
