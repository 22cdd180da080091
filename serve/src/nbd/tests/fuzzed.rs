//! Handshakes and requests that were changed at random, sent to a server that runs: it neither ends
//! nor hangs, and serves the next client.

use super::*;
use proptest::prelude::*;
use std::sync::OnceLock;

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
