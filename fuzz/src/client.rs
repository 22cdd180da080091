//! A server that says anything to the class `nbd`.
//!
//! `classes/tests/nbd_mad.rs` calls this with random bytes, so that a machine without cargo-fuzz
//! covers it too.

use std::io::{Read, Write, copy, sink};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_format::wire::nbd::{
    BASE_ALLOCATION, ChunkHeader, Greeting, Info, MetaContext, OptionHeader, OptionReplyHeader,
    Request, SimpleReply, chunk, command, export_flag, option, option_reply,
};
use ugeom_stack::{Command, Delta, IoError};

/// The size of the export that an orderly handshake tells of.
const SIZE_BYTES: u64 = 1 << 20;

/// The context that BLOCK_STATUS answers in.
const CONTEXT: u32 = 7;

/// The bytes that decide what the server does, each used once. It leaves when they are used up.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// As many as the next byte says, or all that are left.
    fn some(&mut self) -> Option<Vec<u8>> {
        let count = usize::from(self.byte()?).min(self.0.len());
        let (first, rest) = self.0.split_at(count);
        self.0 = rest;
        Some(first.to_vec())
    }
}

/// The behaviour of the server.
#[derive(Clone, Copy)]
struct Manner(u8);

impl Manner {
    fn shakes_hands(self) -> bool {
        self.0 & 1 != 0
    }

    fn has_chunks(self) -> bool {
        self.0 & 2 != 0
    }

    fn flags(self) -> u16 {
        let mut flags = export_flag::HAS_FLAGS | export_flag::SEND_FLUSH | export_flag::SEND_TRIM;
        for (bit, flag) in [
            (4, export_flag::CAN_MULTI_CONN),
            (8, export_flag::READ_ONLY),
            (16, export_flag::SEND_FUA),
            (32, export_flag::SEND_WRITE_ZEROES),
        ] {
            if self.0 & bit != 0 {
                flags |= flag;
            }
        }
        flags
    }
}

fn receive<const N: usize>(stream: &mut UnixStream) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn pass_over(stream: &mut UnixStream, length: u32) -> Option<()> {
    let passed = copy(&mut stream.take(length.into()), &mut sink()).ok()?;
    (passed == u64::from(length)).then_some(())
}

/// An orderly handshake; `None` if the client leaves.
fn shake(stream: &mut UnixStream, manner: Manner) -> Option<()> {
    stream.write_all(&Greeting { flags: 3 }.encode()).ok()?;
    receive::<4>(stream)?;
    loop {
        let asked = OptionHeader::decode(&receive::<16>(stream)?).ok()?;
        pass_over(stream, asked.length)?;
        let context = MetaContext {
            id: CONTEXT,
            name: BASE_ALLOCATION.to_owned(),
        };
        let export = Info::Export {
            size_bytes: SIZE_BYTES,
            flags: manner.flags(),
        };
        let (ack, error) = (option_reply::ACK, option_reply::ERR_UNSUP);
        let replies = match asked.option {
            option::STRUCTURED_REPLY if manner.has_chunks() => vec![(ack, Vec::new())],
            option::SET_META_CONTEXT => vec![
                (option_reply::META_CONTEXT, context.encode()),
                (ack, Vec::new()),
            ],
            option::GO => vec![(option_reply::INFO, export.encode()), (ack, Vec::new())],
            _ => vec![(error, Vec::new())],
        };
        for (reply, data) in replies {
            let (option, length) = (asked.option, data.len() as u32);
            let head = OptionReplyHeader {
                option,
                reply,
                length,
            };
            stream
                .write_all(&[&head.encode()[..], &data].concat())
                .ok()?;
        }
        if asked.option == option::GO {
            return Some(());
        }
    }
}

fn simple(request: Request, error: u32, data: &[u8]) -> Vec<u8> {
    let cookie = request.cookie;
    [&SimpleReply { error, cookie }.encode()[..], data].concat()
}

/// A chunk with its own length, or another.
fn chunked(script: &mut Script<'_>, request: Request) -> Option<Vec<u8>> {
    let kinds = [
        chunk::NONE,
        chunk::OFFSET_DATA,
        chunk::OFFSET_HOLE,
        chunk::BLOCK_STATUS,
        chunk::ERROR,
        chunk::ERROR_OFFSET,
        u16::from(script.byte()?) << 8,
    ];
    let kind = kinds[usize::from(script.byte()?) % kinds.len()];
    let how = script.byte()?;
    let near = request.offset_bytes + u64::from(how & 0xf0) * 32;
    let rest = script.some()?;
    let body = match kind {
        chunk::OFFSET_DATA => [&near.to_be_bytes()[..], &rest].concat(),
        chunk::OFFSET_HOLE => {
            let length = u32::from_be_bytes(script.bytes()?);
            [&near.to_be_bytes()[..], &length.to_be_bytes()].concat()
        }
        chunk::BLOCK_STATUS => [&CONTEXT.to_be_bytes()[..], &rest].concat(),
        _ => rest,
    };
    let length_bytes = if how & 2 == 0 {
        body.len() as u32
    } else {
        u32::from_be_bytes(script.bytes()?)
    };
    let header = ChunkHeader {
        flags: u16::from(how & 1),
        kind,
        cookie: request.cookie,
        length_bytes,
    };
    Some([&header.encode()[..], &body].concat())
}

/// Answers requests as the script says; `None` when it or the client has ended.
fn answer(stream: &mut UnixStream, script: &mut Script<'_>) -> Option<()> {
    loop {
        let request = Request::decode(&receive(stream)?).ok()?;
        pass_over(stream, request.payload_bytes())?;
        loop {
            let how = script.byte()?;
            let message = match how % 8 {
                0..=2 => {
                    let reads = request.command == command::READ;
                    let length = if reads { request.length_bytes } else { 0 };
                    simple(request, 0, &vec![how; length as usize])
                }
                3 => simple(request, u32::from(script.byte()?), &[]),
                4..=6 => chunked(script, request)?,
                _ => script.some()?,
            };
            stream.write_all(&message).ok()?;
            // It may say more before it listens again.
            if how & 0x80 == 0 {
                break;
            }
        }
    }
}

fn serve(mut stream: UnixStream, data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let long = Some(Duration::from_secs(20));
    stream.set_read_timeout(long).expect("a time-out");
    let manner = Manner(*first);
    if manner.shakes_hands() {
        let mut script = Script(rest);
        let _ = shake(&mut stream, manner).and_then(|()| answer(&mut stream, &mut script));
    } else {
        let _ = stream.write_all(rest);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = copy(&mut stream, &mut sink());
    }
}

/// Asks for everything that a disk can do, until something fails.
fn use_it(target: &Target) -> Result<(), IoError> {
    let delta = [Delta::READ_WRITE, Delta::READ];
    let opened = delta.into_iter().find_map(|delta| target.open(delta).ok());
    let (Some(opened), Ok(mut channel)) = (opened, target.stack.channel(8)) else {
        return Ok(());
    };
    let whole = SIZE_BYTES;
    let mut bytes = [0; 137 * 512];
    channel.read(&opened, 0, &mut bytes)?;
    let found = channel.extents(&opened, 0, whole, 10)?;
    let sum: u64 = found.iter().map(|it| it.length_bytes).sum();
    assert!((1..=whole).contains(&sum), "{found:?}");
    // A server may be read-only, or not have these.
    let _ = channel.write(&opened, 0, &bytes[..4096]);
    let _ = channel.discard(&opened, Command::Delete, 0, whole);
    let _ = channel.discard(&opened, Command::Zero, 0, whole);
    channel.flush(&opened)?;
    channel.read(&opened, 0, &mut bytes).map(drop)
}

/// A place that no other call uses.
fn place() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("ugeom-mad-{}-{number}", std::process::id());
    std::env::temp_dir().join(name)
}

/// Sends the server away when the client has ended, in whatever way: it may wait for one more.
struct Over<'a> {
    flag: &'a AtomicBool,
    path: &'a Path,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Release);
        // It may as well have gone.
        let _ = UnixStream::connect(self.path);
    }
}

/// The first byte says what the server is like, the rest what it says: all of it to each of its
/// first clients; then it is gone. In each case the class ends each request.
pub fn nbd_client(data: &[u8]) {
    let path = place();
    let listener = UnixListener::bind(&path).expect("a socket");
    let flag = AtomicBool::new(false);
    let text = format!(
        "nbd+unix:///?socket={}&retry=1ms&timeout=100ms",
        path.display()
    );
    std::thread::scope(|scope| {
        let over = Over {
            flag: &flag,
            path: &path,
        };
        let (flag, gone) = (over.flag, over.path);
        scope.spawn(move || {
            for _ in 0..3 {
                let (stream, _) = listener.accept().expect("a client");
                if flag.load(Ordering::Acquire) {
                    break;
                }
                serve(stream, data);
            }
            drop(listener);
            std::fs::remove_file(gone).expect("the socket");
        });
        let options = TargetOptions::untasted().for_writing();
        if let Ok(target) = open_target(&text, &options) {
            // It may fail, and with any reason.
            let _ = use_it(&target);
        }
    });
}
