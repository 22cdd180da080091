//! A server that does nothing but the unavoidable: it reads all requests that there are and answers
//! zeroes for all of them with one write. The clients' rate with it is the limit for a server.

use crate::servers::EXPORT_BYTES;
use crate::shared::Failure;
use std::io::{IoSlice, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use ugeom_format::wire::nbd::{
    Greeting, Info, OPTION_HEADER_BYTES, OptionHeader, OptionReplyHeader, REQUEST_BYTES, Request,
    SimpleReply, command, export_flag, handshake_flag, option, option_reply,
};

/// The argument with which this program is started as that server.
pub(crate) const WORD: &str = "serve-canned-replies";

/// Requests answered at once: two slices each, of 1024 that a write takes.
const BATCH: usize = 512;

/// Data of the longest READ that clients send, 4 MiB.
const ZEROES: &[u8] = &[0; 4 << 20];

/// Serves until it is killed, a thread a connection.
pub(crate) fn serve(socket: &str) -> Result<(), Failure> {
    for stream in UnixListener::bind(socket)?.incoming() {
        let stream = stream?;
        // A client that leaves, or sends what was not asked for, ends its thread and nothing else.
        std::thread::spawn(move || drop(shake(stream).and_then(transmit)));
    }
    Ok(())
}

fn shake(mut stream: UnixStream) -> std::io::Result<UnixStream> {
    let flags = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
    stream.write_all(&Greeting { flags }.encode())?;
    stream.read_exact(&mut [0; 4])?;
    loop {
        let mut header = [0; OPTION_HEADER_BYTES];
        stream.read_exact(&mut header)?;
        let header = OptionHeader::decode(&header).map_err(std::io::Error::other)?;
        let mut data = vec![0; header.length as usize];
        stream.read_exact(&mut data)?;
        let mut reply = |reply: u32, data: &[u8]| {
            let head = OptionReplyHeader {
                option: header.option,
                reply,
                length: data.len() as u32,
            };
            stream.write_all(&[&head.encode()[..], data].concat())
        };
        if header.option != option::GO && header.option != option::INFO {
            reply(option_reply::ERR_UNSUP, &[])?;
            continue;
        }
        let facts = Info::Export {
            size_bytes: EXPORT_BYTES,
            flags: export_flag::HAS_FLAGS
                | export_flag::READ_ONLY
                | export_flag::SEND_FLUSH
                | export_flag::CAN_MULTI_CONN,
        };
        reply(option_reply::INFO, &facts.encode())?;
        reply(option_reply::ACK, &[])?;
        if header.option == option::GO {
            return Ok(stream);
        }
    }
}

fn transmit(mut stream: UnixStream) -> std::io::Result<()> {
    let mut input = vec![0; BATCH * REQUEST_BYTES];
    let (mut have, mut heads) = (0, Vec::with_capacity(BATCH));
    loop {
        let count = stream.read(&mut input[have..])?;
        if count == 0 {
            return Ok(());
        }
        have += count;
        heads.clear();
        let (requests, rest) = input[..have].as_chunks::<REQUEST_BYTES>();
        for request in requests {
            let request = Request::decode(request).map_err(std::io::Error::other)?;
            if request.command == command::DISC {
                return Ok(());
            }
            let reply = SimpleReply {
                error: 0,
                cookie: request.cookie,
            };
            let reads = request.command == command::READ;
            let data = if reads { request.length_bytes } else { 0 };
            heads.push((reply.encode(), data as usize));
        }
        let whole = have - rest.len();
        let each = heads.iter();
        let slices = each.flat_map(|(head, data)| [&head[..], &ZEROES[..*data]]);
        let mut slices: Vec<IoSlice<'_>> = slices.map(IoSlice::new).collect();
        let mut left = &mut slices[..];
        while !left.is_empty() {
            let sent = stream.write_vectored(left)?;
            IoSlice::advance_slices(&mut left, sent);
        }
        input.copy_within(whole..have, 0);
        have -= whole;
    }
}
