//! Requests of correct clients, compared with a plain copy of the data.

use super::*;

#[test]
fn every_provider_is_an_export_and_the_one_on_top_the_default() {
    let running = serve("md:1m | nop", |_| {});
    let mut peer = Peer::greeted(running.connect());
    peer.option(option::LIST, &[]);
    let replies = peer.replies();
    let names = replies
        .iter()
        .filter(|(reply, _)| *reply == option_reply::SERVER);
    let names: Vec<String> = names
        .map(|(_, data)| Listed::decode(data).expect("an export").name)
        .collect();
    assert_eq!(names, ["md0.nop", "md0"]);
    assert_eq!(running.top, "md0.nop");
    let client = peer.go("").expect("the default");
    assert_eq!(client.size_bytes, 1 << 20);
    assert!(client.facts.contains(&Info::Name("md0.nop".to_owned())));
    let writing = export_flag::SEND_TRIM | export_flag::SEND_WRITE_ZEROES | export_flag::SEND_FUA;
    assert_eq!(client.flags & writing, writing);
    assert_eq!(client.flags & export_flag::READ_ONLY, 0);
    assert_eq!(client.flags & export_flag::SEND_DF, 0, "it has no chunks");
}

#[test]
fn an_export_whose_writer_would_destroy_a_named_layer_is_only_read() {
    for target in ["md:4m | cache:1m", "md:4m | cache:1m | nop"] {
        let running = serve(target, |_| {});
        let refused = Peer::greeted(running.connect()).go("md0");
        let (error, why) = refused.err().expect("a refusal");
        assert_eq!(error, option_reply::ERR_POLICY);
        let expected = "writing to md0 would destroy md0.cache above it; \
                        `md0:ro` opens it for reading";
        assert_eq!(why, expected);
        drop(running.client("md0:ro", false));
        let mut top = running.client("", false);
        assert_eq!(top.write(0, 0, &[7; 4096]).error, 0, "{target}");
    }
}

#[test]
fn an_old_client_gets_its_zeroes() {
    let running = serve("md:1m", |_| {});
    let mut stream = running.connect();
    stream.read_exact(&mut [0; 18]).expect("a greeting");
    stream.write_all(&1_u32.to_be_bytes()).expect("flags");
    let mut peer = Peer(stream);
    peer.option(option::EXPORT_NAME, b"md0");
    let mut answer = [0xFF; 134];
    peer.0.read_exact(&mut answer).expect("the answer");
    assert_eq!(answer[..8], (1_u64 << 20).to_be_bytes());
    assert_eq!(answer[10..], [0; 124]);
}

/// A TRIM with FUA sends a FLUSH. Its error fails the TRIM; the client's own FLUSH reports the loss
/// of earlier writes.
#[test]
fn a_failed_trim_takes_no_report_of_lost_writes_from_the_next_flush() {
    // Its tasting counts, too.
    let failing: Vec<String> = (1..60).map(|number| format!("op{number}")).collect();
    let target = format!("md:1m | crash:flushfail={}", failing.join("+"));
    let running = serve(&target, |_| {});
    let mut client = running.client("", false);
    assert_eq!(client.write(0, 0, &[7; 4096]).error, 0);
    let trimmed = client.ask(command::TRIM, command_flag::FUA, 4096, 4096);
    assert_eq!(trimmed.error, error::EIO);
    for _ in 0..60 {
        assert_eq!(client.write(0, 8192, &[7; 4096]).error, 0);
    }
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0).error, error::EIO);
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0).error, 0);
    let trimmed = client.ask(command::TRIM, command_flag::FUA, 4096, 4096);
    assert_eq!(trimmed.error, 0);
}

/// Requests of any kind, place and length, against a plain copy.
fn random_requests(target: &str, structured: bool, seed: u64) {
    const SIZE: usize = 4 << 20;
    let running = serve(target, |_| {});
    let mut client = running.client("", structured);
    assert_eq!(client.size_bytes, SIZE as u64);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut copy = vec![0_u8; SIZE];
    for round in 0..300 {
        let longest = [16, 5000, 70_000, 2_500_000][random.usize(0..4)];
        let length = random.usize(1..=longest);
        let offset = random.usize(0..=SIZE - length);
        let (at, count) = (offset as u64, length as u32);
        let range = offset..offset + length;
        let fua = u16::from(random.bool()) * command_flag::FUA;
        let what = format!("{target}, seed {seed}, round {round}: {count} bytes at {at}");
        let reply = match random.u8(0..6) {
            0 | 1 => {
                copy[range.clone()].fill_with(|| random.u8(..));
                client.write(fua, at, &copy[range])
            }
            2 => {
                copy[range].fill(0);
                let stays = u16::from(random.bool()) * command_flag::NO_HOLE;
                client.ask(command::WRITE_ZEROES, stays | fua, at, count)
            }
            3 => client.ask(command::CACHE, 0, at, count),
            4 => client.ask(command::FLUSH, 0, 0, 0),
            _ => {
                let one = u16::from(structured && random.bool()) * command_flag::DF;
                let reply = client.ask(command::READ, one, at, count);
                assert!(reply.data == copy[range], "{what}");
                assert!(one == 0 || reply.chunks == 1, "{what}");
                reply
            }
        };
        assert_eq!((reply.error, reply.message), (0, String::new()), "{what}");
    }
    assert!(client.read(0, SIZE as u32) == copy);
    drop(client);
    drop(running);
}

#[test]
fn requests_of_any_place_and_length_do_what_they_say() {
    random_requests("md:4m", true, 1);
    random_requests("md:4m", false, 2);
    random_requests("md:4m,sectorsize=4k | nop", true, 3);
    random_requests("md:4m,sectorsize=64k | cache:size=2m,block=64k", true, 4);
}

#[test]
fn requests_to_an_image_do_what_they_say_and_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    std::fs::write(&path, vec![0; 4 << 20]).expect("an image");
    random_requests(&format!("\"{}\"", path.display()), true, 5);
    std::fs::write(&path, vec![0; 4 << 20]).expect("an image");
    random_requests(&format!("\"{}\"?engine=sync", path.display()), false, 6);
}

#[test]
fn holes_are_told_and_not_sent() {
    let running = serve("md:8m", |_| {});
    let mut client = running.client("md0", true);
    assert_ne!(client.flags & export_flag::SEND_DF, 0);
    let data = vec![7; 64 << 10];
    assert_eq!(client.write(0, 1 << 20, &data).error, 0);
    // In parts, since its client has read nothing yet; then as a whole.
    let reply = client.ask(command::READ, 0, 100, 4 << 20);
    assert_eq!((reply.error, reply.holes, reply.chunks), (0, 4, 6));
    let reply = client.ask(command::READ, 0, 100, 4 << 20);
    assert_eq!((reply.error, reply.holes, reply.chunks), (0, 2, 3));
    let mut expected = vec![0; 4 << 20];
    expected[(1 << 20) - 100..][..data.len()].fill(7);
    assert!(reply.data == expected);
    let whole = client.ask(command::READ, command_flag::DF, 100, 4 << 20);
    assert_eq!((whole.holes, whole.chunks), (0, 1));
    assert!(whole.data == expected);
    let status = |length_bytes, flags| Status {
        length_bytes,
        flags,
    };
    let asked = client.ask(command::BLOCK_STATUS, 0, 100, 2 << 20);
    let before = (1 << 20) - 100;
    let after = (1 << 20) + 100 - (64 << 10);
    let expected = [status(before, 3), status(64 << 10, 0), status(after, 3)];
    assert_eq!(asked.status, expected);
    let one = client.ask(command::BLOCK_STATUS, command_flag::REQ_ONE, 100, 2 << 20);
    assert_eq!(one.status, expected[..1]);
    // Trimmed ranges, and ranges zeroed with leave to make holes, are holes again.
    assert_eq!(client.ask(command::TRIM, 0, 1 << 20, 32 << 10).error, 0);
    let fast = command_flag::FAST_ZERO;
    let zeroed = client.ask(
        command::WRITE_ZEROES,
        fast,
        (1 << 20) + (32 << 10),
        32 << 10,
    );
    assert_eq!(zeroed.error, 0);
    let asked = client.ask(command::BLOCK_STATUS, 0, 0, 8 << 20);
    assert_eq!(asked.status, [status(8 << 20, 3)]);
    // A range that must stay allocated does.
    let stays = command_flag::NO_HOLE;
    assert_eq!(client.ask(command::WRITE_ZEROES, stays, 0, 4096).error, 0);
    let asked = client.ask(command::BLOCK_STATUS, 0, 0, 8192);
    assert_eq!(asked.status, [status(4096, 0), status(4096, 3)]);
    let both = client.ask(command::WRITE_ZEROES, stays | fast, 0, 4096);
    assert_eq!(both.error, error::ENOTSUP);
}

#[test]
fn a_small_read_that_fails_or_waits_is_answered_like_any_other() {
    let running = serve("md:1m | nop:rfail=100%", |settings| {
        settings.limits.requests = 2;
    });
    for structured in [true, false] {
        let mut client = running.client("", structured);
        for _ in 0..5 {
            let reply = client.ask(command::READ, 0, 700, 4096);
            assert_eq!(reply.error, ugeom_format::wire::nbd::error::EIO);
            assert_eq!(reply.message.contains("injected by nop"), structured);
            assert_eq!(client.write(0, 512, &[5; 512]).error, 0);
        }
        // The disk below does not fail, and its holes are zeroes.
        let mut below = running.client("md0", structured);
        assert_eq!(
            below.read(1000, 100),
            [[5; 24].as_slice(), &[0; 76]].concat()
        );
    }
    let slow = serve("md:1m | nop:delay=1ms", |_| {});
    let mut client = slow.client("", true);
    client.write(0, 0, &[6; 8192]);
    assert_eq!(client.read(4000, 200), [6; 200]);
}

#[test]
fn more_requests_than_the_stack_takes_at_once_are_all_answered() {
    let running = serve("md:64m | nop:delay=1ms", |settings| {
        settings.limits.requests = 3000;
    });
    let mut client = running.client("", false);
    let mut batch = Vec::new();
    for cookie in 0..2500_u64 {
        let request = Request {
            flags: 0,
            command: command::READ,
            cookie,
            offset_bytes: cookie * 4096,
            length_bytes: 512,
        };
        batch.extend(request.encode());
    }
    client.stream.write_all(&batch).expect("requests");
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 2500 {
        let (cookie, reply) = client.receive(0, 512);
        assert_eq!(reply.error, 0);
        assert!(seen.insert(cookie), "{cookie} is answered twice");
    }
}

#[test]
fn a_server_that_stops_answers_what_it_has_read_and_keeps_what_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    std::fs::write(&path, vec![0; 1 << 20]).expect("an image");
    let mut running = serve(&format!("\"{}\" | cache:size=1m", path.display()), |_| {});
    let mut client = running.client("", false);
    assert_eq!(client.write(0, 4096, &[9; 4096]).error, 0);
    let stopping = std::thread::spawn(move || {
        running.stop();
        running
    });
    assert_eq!(client.until_closed(), 0);
    let running = stopping.join().expect("it stops");
    assert!(
        !running.folder.path().join("s").exists(),
        "the socket is gone"
    );
    let image = std::fs::read(&path).expect("the image");
    assert!(image[4096..8192].iter().all(|&byte| byte == 9));
}

#[test]
fn pages_of_a_cache_are_sent_as_they_lie_and_stay_what_they_were() {
    let running = serve("md:1m | cache:size=256k,block=4k,readahead=off", |_| {});
    let leases = || {
        let tree = running.stack.tree();
        let geom = tree.geoms.iter().find(|geom| geom.class == "CACHE");
        let found = geom.expect("a cache").fact("leases");
        found.map_or(0, |count| count.parse::<u64>().expect("a number"))
    };
    for structured in [true, false] {
        let mut client = running.client("", structured);
        client.write(0, 8192, &[1; 4096]);
        assert_eq!(client.read(8192, 4096), [1; 4096]);
        let before = leases();
        // Whole blocks, sectors of one, and bytes that are neither.
        for (offset, length) in [(8192, 4096), (8704, 512), (9001, 77)] {
            assert_eq!(client.read(offset, length), vec![1; length as usize]);
        }
        assert_eq!(leases(), before + 3);
        client.write(0, 8192, &[0; 4096]);
    }
}

/// Sends the beginning of a WRITE of 12 MiB, and returns whether it is answered before its end.
fn answered_in_the_middle(client: &mut Client, flags: u16) -> bool {
    const PART: usize = 6 << 20;
    let cookie = client.send(command::WRITE, flags, 0, 2 * PART as u32);
    let data = vec![7; PART];
    client.stream.write_all(&data).expect("half of the data");
    let soon = Some(Duration::from_millis(300));
    client.stream.set_read_timeout(soon).expect("a time-out");
    let early = rustix::net::recv(&client.stream, &mut [0; 1][..], RecvFlags::PEEK).is_ok();
    let late = Some(Duration::from_secs(60));
    client.stream.set_read_timeout(late).expect("a time-out");
    client.stream.write_all(&data).expect("the rest");
    let (answered, reply) = client.receive(0, 0);
    assert_eq!(answered, cookie);
    assert_ne!(reply.error, 0);
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0).error, 0, "it goes on");
    early
}

#[test]
fn a_refused_write_is_answered_when_its_data_has_come() {
    for (requests, structured) in [(1024, false), (1024, true), (1, true)] {
        let running = serve("md:16m | nop:wfail=100%", |settings| {
            settings.limits.requests = requests;
        });
        let mut client = running.client("", structured);
        assert!(!answered_in_the_middle(&mut client, 0), "parts failed");
        let unknown = 1 << 9;
        assert!(!answered_in_the_middle(&mut client, unknown), "refused");
    }
}
