//! Handshakes and requests that were changed at random, sent to a server that runs: it neither ends
//! nor hangs, and serves the next client.

use super::*;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use ugeom_tls::{ClientTls, Records};

/// One server for all cases.
fn server() -> &'static Mutex<Running> {
    static SERVER: OnceLock<Mutex<Running>> = OnceLock::new();
    SERVER.get_or_init(|| {
        Mutex::new(serve("md:1m", |settings| {
            settings.limits.handshake = Duration::from_secs(5);
            settings.limits.stall = Duration::from_secs(5);
        }))
    })
}

/// Certificates that serve no other purpose: that of a server, which is its own authority.
fn certificates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/nbd/tests/tls")
}

/// A server that requires TLS, for all cases.
fn secure_server() -> &'static Mutex<Running> {
    static SERVER: OnceLock<Mutex<Running>> = OnceLock::new();
    SERVER.get_or_init(|| {
        Mutex::new(serve("md:1m", |settings| {
            let server = ServerTls::open(&certificates(), true).expect("certificates");
            let required = true;
            settings.tls = Some(Tls { server, required });
            settings.limits.handshake = Duration::from_secs(5);
        }))
    })
}

/// The first message of a TLS client.
fn hello() -> Vec<u8> {
    let tls = ClientTls::open(Some(&certificates()), "localhost").expect("certificates");
    let mut records = Records::client(&tls).expect("a client");
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    records.flush(&ours.into()).expect("sent");
    let mut hello = Vec::new();
    theirs.read_to_end(&mut hello).expect("a hello");
    hello
}

/// A client's flags, and STARTTLS.
fn start_tls() -> Vec<u8> {
    let (option, length) = (option::STARTTLS, 0);
    let option = OptionHeader { option, length }.encode();
    [&3_u32.to_be_bytes()[..], &option].concat()
}

/// Something that a client may say: mostly in order.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let options = prop::sample::select(vec![
        option::EXPORT_NAME,
        option::ABORT,
        option::LIST,
        option::STARTTLS,
        option::INFO,
        option::GO,
        option::STRUCTURED_REPLY,
        option::EXTENDED_HEADERS,
        option::LIST_META_CONTEXT,
        option::SET_META_CONTEXT,
        77,
    ]);
    let names = prop::sample::select(vec!["", "md0", "nothing"]);
    let option = (options, names, any::<bool>()).prop_map(|(option, name, queries)| {
        let data = match option {
            option::EXPORT_NAME => name.as_bytes().to_vec(),
            option::INFO | option::GO => InfoRequest {
                name: name.to_owned(),
                wanted: vec![info::BLOCK_SIZE],
            }
            .encode(),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => MetaRequest {
                name: name.to_owned(),
                queries: vec!["base:allocation".to_owned(); usize::from(queries)],
            }
            .encode(),
            _ => Vec::new(),
        };
        let length = data.len() as u32;
        [&OptionHeader { option, length }.encode()[..], &data].concat()
    });
    let request = (0..9_u16, 0..64_u16, 0..2_u64 << 20, 0..70_000_u32).prop_map(
        |(command, flags, offset_bytes, length_bytes)| {
            let request = Request {
                flags,
                command,
                cookie: 5,
                offset_bytes,
                length_bytes,
            };
            let data = vec![0xA5; request.payload_bytes() as usize];
            [&request.encode()[..], &data].concat()
        },
    );
    prop_oneof![4 => option, 4 => request, 1 => prop::collection::vec(any::<u8>(), 0..99)]
}

/// A byte that is changed: where, in parts of 65,536 of the whole, and how.
fn changes() -> impl Strategy<Value = Vec<(u16, u8)>> {
    prop::collection::vec((any::<u16>(), any::<u8>()), 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn no_client_ends_the_server(
        messages in prop::collection::vec(message(), 0..12),
        shakes in any::<bool>(),
        changes in changes(),
    ) {
        let running = server().lock().expect("the server");
        let mut said = 3_u32.to_be_bytes().to_vec();
        if shakes {
            let go = InfoRequest { name: String::new(), wanted: Vec::new() }.encode();
            let (option, length) = (option::GO, go.len() as u32);
            said.extend(OptionHeader { option, length }.encode());
            said.extend(go);
        }
        let kept = if shakes { said.len() } else { 0 };
        said.extend(messages.concat());
        for (place, byte) in changes {
            let at = kept + (said.len() - kept) * usize::from(place) / 65_536;
            if let Some(changed) = said.get_mut(at) {
                *changed = byte;
            }
        }
        let mut stream = running.connect();
        let mut sender = stream.try_clone().expect("a clone");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // It may be sent away before it has said everything.
                let _ = sender.write_all(&said);
                let _ = sender.shutdown(std::net::Shutdown::Write);
            });
            // The server's side ends, too, well or by a reset, before this takes a minute.
            let ended = std::io::copy(&mut stream, &mut std::io::sink());
            let slow = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
            prop_assert!(!slow, "the server keeps a client that has left");
            Ok(())
        })?;
        let mut next = running.client("", false);
        prop_assert_eq!(next.ask(command::READ, 0, 0, 512).error, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn no_client_ends_the_server_from_within_tls(
        changes in changes(),
        rest in prop::collection::vec(any::<u8>(), 0..300),
        cut in any::<u16>(),
        together in any::<bool>(),
    ) {
        let running = secure_server().lock().expect("the server");
        let mut said = hello();
        for (place, byte) in changes {
            let at = said.len() * usize::from(place) / 65_536;
            said[at] = byte;
        }
        said.truncate(said.len() * usize::from(cut) / 32_768);
        said.extend(rest);
        let mut stream = running.connect();
        stream.read_exact(&mut [0; 18]).expect("a greeting");
        stream.write_all(&start_tls()).expect("STARTTLS");
        if !together {
            stream.read_exact(&mut [0; 20]).expect("the answer");
        }
        // It may be sent away before it has said everything.
        let _ = stream.write_all(&said);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let ended = std::io::copy(&mut stream, &mut std::io::sink());
        let slow = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        prop_assert!(!slow, "the server keeps a client that has left");
        let mut next = running.connect();
        next.read_exact(&mut [0; 18]).expect("a greeting");
        next.write_all(&start_tls()).expect("STARTTLS");
        next.read_exact(&mut [0; 20]).expect("the answer");
        next.write_all(&hello()).expect("a hello");
        next.read_exact(&mut [0; 5]).expect("the server's hello");
    }
}
