//! Exports that a client does not see.

use super::*;

/// The bytes of the answer to an option, with the name in it made the same for all.
fn answer(running: &Running, number: u32, name: &str) -> Vec<(u32, String)> {
    let mut peer = Peer::greeted(running.connect());
    peer.option(option::STRUCTURED_REPLY, &[]);
    peer.replies();
    let data = match number {
        option::INFO | option::GO => InfoRequest {
            name: name.to_owned(),
            wanted: vec![info::NAME],
        }
        .encode(),
        _ => MetaRequest {
            name: name.to_owned(),
            queries: vec!["base:allocation".to_owned()],
        }
        .encode(),
    };
    peer.option(number, &data);
    let text = |data: Vec<u8>| String::from_utf8(data).expect("text").replace(name, "NAME");
    let replies = peer.replies().into_iter();
    replies.map(|(reply, data)| (reply, text(data))).collect()
}

#[test]
fn a_hidden_export_is_answered_like_an_unknown_one() {
    let own = rustix::process::geteuid().as_raw();
    let running = serve("md:1m | nop", |settings| {
        settings.allow = vec![
            format!("md0=uid:{own}").parse().expect("a rule"),
            format!("md0.nop=uid:{}", own ^ 1).parse().expect("a rule"),
            "gone=any".parse().expect("a rule"),
        ];
    });
    assert!(running.logged("the export `gone`"));
    assert!(!running.logged("the export `md0`") && !running.logged("the export `md0.nop`"));
    let options = [
        option::INFO,
        option::GO,
        option::LIST_META_CONTEXT,
        option::SET_META_CONTEXT,
    ];
    for number in options {
        let hidden = answer(&running, number, "md0.nop");
        assert_eq!(
            hidden,
            answer(&running, number, "nobody"),
            "option {number}"
        );
        assert_eq!(hidden[0].0, option_reply::ERR_UNKNOWN);
        // Nor for reading.
        let hidden = answer(&running, number, "md0.nop:ro");
        assert_eq!(hidden, answer(&running, number, "nobody:ro"));
    }
    // The default export is the hidden one: not even its name is known.
    let mut peer = Peer::greeted(running.connect());
    for number in [option::INFO, option::GO] {
        let wanted = vec![info::NAME];
        let name = String::new();
        peer.option(number, &InfoRequest { name, wanted }.encode());
        let (reply, text) = peer.refusal();
        assert_eq!(reply, option_reply::ERR_UNKNOWN);
        assert!(!text.contains("nop") && text.contains("md0"), "{text}");
    }
    peer.option(option::LIST, &[]);
    let listed = peer.replies();
    assert_eq!(listed.len(), 2, "one, and the end: {listed:?}");
    assert_eq!(Listed::decode(&listed[0].1).expect("one").name, "md0");
    for name in ["", "md0.nop", "nobody"] {
        let mut peer = Peer::greeted(running.connect());
        peer.option(option::EXPORT_NAME, name.as_bytes());
        assert_eq!(peer.0.read(&mut [0]).expect("the end"), 0, "{name}");
    }
    let mut client = running.client("md0", true);
    assert_eq!(client.read(0, 512).len(), 512);
}

#[test]
fn a_rule_about_certificates_needs_verified_ones() {
    let target = open_target("md:1m", &TargetOptions::default()).expect("a target");
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings {
        addresses: vec![Address::Unix(folder.path().join("s"))],
        allow: vec!["md0=cn:laptop".parse().expect("a rule")],
        ..Settings::default()
    };
    let refused = Server::start(&target.stack, &Shown::all(target.name), &settings);
    let refused = refused.err().expect("refused").to_string();
    assert!(refused.contains("--tls-verify-peer"), "{refused}");
}
