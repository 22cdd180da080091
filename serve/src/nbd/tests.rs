//! The server from the outside: a client that can say anything, polite or not.

use super::*;
use rustix::net::{RecvFlags, SendFlags};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use tempfile::TempDir;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_format::wire::nbd::{
    CHUNK_HEADER_BYTES, ChunkHeader, ErrorChunk, Greeting, Hole, Info, InfoRequest, Listed,
    MetaRequest, OptionHeader, OptionReplyHeader, Request, SIMPLE_REPLY_BYTES, SimpleReply, Status,
    chunk, command, command_flag, decode_block_status, error, export_flag, info, option,
    option_reply,
};
use ugeom_stack::Delta;

mod allowed;
mod client;
mod extended;
mod fair;
mod fuzzed;
mod hostile;
mod limits;
mod requests;
mod soak;

/// A server, its socket and what it has logged.
struct Running {
    server: Option<Server>,
    stack: Stack,
    top: String,
    folder: TempDir,
    log: Arc<Mutex<Vec<String>>>,
}

/// Serves a target with what `change` makes of the usual settings.
fn serve(target: &str, change: impl FnOnce(&mut Settings)) -> Running {
    let folder = tempfile::tempdir().expect("a folder");
    let writable = TargetOptions::default().for_writing();
    let target = open_target(target, &writable).expect("a target");
    let log = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&log);
    let mut settings = Settings {
        addresses: vec![Address::Unix(folder.path().join("s"))],
        writable: true,
        threads: 2,
        log: Arc::new(move |line| lines.lock().expect("the log").push(line.to_owned())),
        ..Settings::default()
    };
    change(&mut settings);
    let server =
        Server::start(&target.stack, &Shown::all(&*target.name), &settings).expect("a server");
    Running {
        server: Some(server),
        stack: target.stack,
        top: target.name,
        folder,
        log,
    }
}

impl Running {
    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.folder.path().join("s")).expect("a connection");
        let long = Some(Duration::from_secs(60));
        stream.set_read_timeout(long).expect("a time-out");
        stream
    }

    /// A client in the transmission phase of an export.
    fn client(&self, name: &str, structured: bool) -> Client {
        let mut peer = Peer::greeted(self.connect());
        if structured {
            peer.option(option::STRUCTURED_REPLY, &[]);
            let replies = peer.replies();
            assert_eq!(replies, [(option_reply::ACK, Vec::new())]);
            let contexts = MetaRequest {
                name: name.to_owned(),
                queries: vec!["base:allocation".to_owned()],
            };
            peer.option(option::SET_META_CONTEXT, &contexts.encode());
            assert_eq!(peer.replies().len(), 2);
        }
        peer.go(name).expect("the export")
    }

    fn logged(&self, part: &str) -> bool {
        let log = self.log.lock().expect("the log");
        log.iter().any(|line| line.contains(part))
    }

    /// Waits until the log has such a line.
    fn wait_for(&self, part: &str) {
        while !self.logged(part) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

/// A client in the handshake.
struct Peer(UnixStream);

impl Peer {
    fn greeted(mut stream: UnixStream) -> Self {
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).expect("a greeting");
        assert_eq!(Greeting::decode(&greeting).expect("one").flags, 3);
        stream.write_all(&3_u32.to_be_bytes()).expect("flags");
        Self(stream)
    }

    fn option(&mut self, option: u32, data: &[u8]) {
        let header = OptionHeader {
            option,
            length: data.len() as u32,
        };
        let message = [&header.encode()[..], data].concat();
        self.0.write_all(&message).expect("an option");
    }

    /// Replies up to the last of an option.
    fn replies(&mut self) -> Vec<(u32, Vec<u8>)> {
        let mut replies = Vec::new();
        loop {
            let mut header = [0; 20];
            self.0.read_exact(&mut header).expect("a reply");
            let header = OptionReplyHeader::decode(&header).expect("a reply");
            let mut data = vec![0; header.length as usize];
            self.0.read_exact(&mut data).expect("its data");
            replies.push((header.reply, data));
            if header.reply == option_reply::ACK || header.is_error() {
                return replies;
            }
        }
    }

    /// The one error that an option is answered with, and its words.
    fn refusal(&mut self) -> (u32, String) {
        let mut replies = self.replies();
        assert_eq!(replies.len(), 1);
        let (reply, text) = replies.remove(0);
        (reply, String::from_utf8(text).expect("text"))
    }

    fn go(mut self, name: &str) -> Result<Client, (u32, String)> {
        let request = InfoRequest {
            name: name.to_owned(),
            wanted: vec![info::NAME, info::BLOCK_SIZE, 77],
        };
        self.option(option::GO, &request.encode());
        let mut replies = self.replies();
        let (last, text) = replies.pop().expect("a reply");
        if last != option_reply::ACK {
            return Err((last, String::from_utf8(text).expect("text")));
        }
        let facts = replies
            .iter()
            .map(|(_, data)| Info::decode(data).expect("a fact"));
        let facts: Vec<Info> = facts.collect();
        let Info::Export { size_bytes, flags } = facts[0] else {
            panic!("{facts:?}");
        };
        Ok(Client {
            stream: self.0,
            size_bytes,
            flags,
            facts,
            cookie: 0,
        })
    }
}

/// A client in the transmission phase.
struct Client {
    stream: UnixStream,
    size_bytes: u64,
    flags: u16,
    facts: Vec<Info>,
    cookie: u64,
}

/// A structured reply, or a simple one.
#[derive(Debug, Default, PartialEq)]
struct Reply {
    error: u32,
    message: String,
    /// The data of a READ, empty for other commands.
    data: Vec<u8>,
    holes: usize,
    chunks: usize,
    status: Vec<Status>,
}

impl Client {
    fn send(&mut self, command: u16, flags: u16, offset_bytes: u64, length_bytes: u32) -> u64 {
        self.cookie += 1;
        let request = Request {
            flags,
            command,
            cookie: self.cookie,
            offset_bytes,
            length_bytes,
        };
        self.stream.write_all(&request.encode()).expect("a request");
        self.cookie
    }

    /// The next reply, of whatever request; `offset` and `length` are those of a READ.
    fn receive(&mut self, offset: u64, length: u32) -> (u64, Reply) {
        let mut reply = Reply::default();
        let mut head = [0; CHUNK_HEADER_BYTES];
        loop {
            let simple = &mut head[..SIMPLE_REPLY_BYTES];
            self.stream.read_exact(simple).expect("a reply");
            if SimpleReply::begins(&head) {
                let head = head.first_chunk().expect("long enough");
                let head = SimpleReply::decode(head).expect("a reply");
                reply.error = head.error;
                if head.error == 0 {
                    reply.data = vec![0; length as usize];
                    self.stream.read_exact(&mut reply.data).expect("data");
                }
                return (head.cookie, reply);
            }
            let rest = &mut head[SIMPLE_REPLY_BYTES..];
            self.stream.read_exact(rest).expect("a chunk");
            let head = ChunkHeader::decode(&head).expect("a chunk");
            let mut data = vec![0; head.length_bytes as usize];
            self.stream.read_exact(&mut data).expect("its data");
            reply.chunks += 1;
            reply.data.resize(length as usize, 0xEE);
            match head.kind {
                chunk::OFFSET_DATA => {
                    let at = u64::from_be_bytes(*data.first_chunk().expect("an offset")) - offset;
                    reply.data[at as usize..][..data.len() - 8].copy_from_slice(&data[8..]);
                }
                chunk::OFFSET_HOLE => {
                    let hole = Hole::decode(&data).expect("a hole");
                    let at = (hole.offset_bytes - offset) as usize;
                    reply.data[at..][..hole.length_bytes as usize].fill(0);
                    reply.holes += 1;
                }
                chunk::BLOCK_STATUS => reply.status = decode_block_status(&data).expect("one").1,
                chunk::ERROR => {
                    let error = ErrorChunk::decode(&data).expect("an error");
                    reply.error = error.error;
                    reply.message = error.message;
                }
                kind => panic!("a chunk of kind {kind}"),
            }
            if head.is_last() {
                return (head.cookie, reply);
            }
        }
    }

    /// A request without data, and its reply.
    fn ask(&mut self, command: u16, flags: u16, offset: u64, length: u32) -> Reply {
        let cookie = self.send(command, flags, offset, length);
        let data = if command == command::READ { length } else { 0 };
        let (answered, reply) = self.receive(offset, data);
        assert_eq!(answered, cookie);
        reply
    }

    fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        let reply = self.ask(command::READ, 0, offset, length);
        assert_eq!(reply.error, 0, "{}", reply.message);
        reply.data
    }

    fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> Reply {
        let cookie = self.send(command::WRITE, flags, offset, data.len() as u32);
        self.stream.write_all(data).expect("data");
        let (answered, reply) = self.receive(0, 0);
        assert_eq!(answered, cookie);
        reply
    }

    /// Everything up to the end, which comes when the server has closed the connection.
    fn until_closed(mut self) -> usize {
        let mut bytes = Vec::new();
        // Bytes that were never read by the server make it a reset, which is an end, too.
        let _ = self.stream.read_to_end(&mut bytes);
        bytes.len()
    }
}
