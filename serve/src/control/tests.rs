//! A server that is looked at: by a client that keeps the rules, and by some that do not.

use super::message::QUESTION_BYTES_MAX;
use super::*;
use crate::shown::Shown;
use proptest::prelude::*;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_stack::{Command, Delta, Statistics};

/// A stack with a control socket.
struct Watched {
    control: Control,
    target: Target,
    path: PathBuf,
    _folder: TempDir,
}

fn settings(path: &Path) -> ControlSettings {
    ControlSettings {
        path: path.to_owned(),
        version: "1.2.3".to_owned(),
        target: "md:1m | nop".to_owned(),
        passages: None,
        log: Arc::new(|_| {}),
    }
}

fn watched() -> Watched {
    let target = open_target("md:1m | nop", &TargetOptions::default()).expect("a target");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("control");
    let control = Control::start(&target.stack, &Shown::all(&*target.name), &settings(&path))
        .expect("a control socket");
    Watched {
        control,
        target,
        path,
        _folder: folder,
    }
}

impl Watched {
    fn reads(&self, count: u64) {
        let stack = &self.target.stack;
        let top = stack.find("md0.nop").expect("the top");
        let opened = stack.open(top, Delta::READ).expect("open");
        let mut channel = stack.channel(1).expect("a channel");
        for _ in 0..count {
            channel.read(&opened, 0, &mut [0; 4096]).expect("read");
        }
    }

    /// Whether the statistics become as they should.
    fn counts_as(&self, wanted: impl Fn(Statistics) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !wanted(self.target.stack.options().statistics) {
            assert!(Instant::now() < end, "it never counts as it should");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn answers(&self) {
        let mut client = Client::connect(&self.path).expect("a client");
        assert_eq!(client.figures(false).expect("figures").providers.len(), 2);
    }
}

fn raw(path: &Path) -> BufReader<UnixStream> {
    let stream = UnixStream::connect(path).expect("a connection");
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).expect("a limit");
    BufReader::new(stream)
}

fn ask(stream: &mut BufReader<UnixStream>, question: &[u8]) -> String {
    stream.get_mut().write_all(question).expect("asked");
    let mut line = String::new();
    stream.read_line(&mut line).expect("an answer");
    line
}

#[test]
fn the_figures_are_those_of_the_stack() {
    let watched = watched();
    // Classes have tasted already.
    let done = |name: &str| {
        let stack = &watched.target.stack;
        let id = stack.find(name).expect(name);
        let totals = stack.statistics(id).expect("statistics");
        let read = Command::Read as usize;
        (totals.operations[read], totals.bytes[read])
    };
    let before = ["md0", "md0.nop"].map(done);
    watched.reads(3);
    let mut client = Client::connect(&watched.path).expect("a client");
    let facts = client.facts().clone();
    assert_eq!((facts.protocol, facts.pid), (PROTOCOL, std::process::id()));
    assert_eq!(
        (facts.version.as_str(), facts.target.as_str()),
        ("1.2.3", "md:1m | nop")
    );
    let figures = client.figures(false).expect("figures");
    let [md, nop] = &figures.providers[..] else {
        panic!("{figures:?}");
    };
    assert_eq!(
        (md.name.as_str(), md.class.as_str(), md.rank),
        ("md0", "MD", 1)
    );
    assert_eq!(
        (nop.name.as_str(), nop.class.as_str(), nop.rank),
        ("md0.nop", "NOP", 2)
    );
    assert_eq!((&nop.below, md.media_bytes), (&vec![md.id], 1 << 20));
    for (layer, (operations, bytes)) in [md, nop].into_iter().zip(before) {
        let read = OperationTotals {
            operations: operations + 3,
            bytes: bytes + 3 * 4096,
        };
        assert_eq!(layer.counted.read, read);
        assert_eq!(layer.counted.write, OperationTotals::default());
        // The server was not watched while they were read.
        assert_eq!(layer.times, Times::default());
    }
    assert!(figures.consumers.is_empty() && figures.timing.counts);
    assert!(figures.timing.clock_ns > 0.0 && figures.timing.one_in > 0);
    let consumers = client.figures(true).expect("figures").consumers;
    let below: Vec<_> = consumers
        .iter()
        .map(|it| (it.class.as_str(), it.provider))
        .collect();
    assert_eq!(below, [("NOP", md.id)]);
    assert_eq!(consumers[0].counted.read.operations, before[1].0 + 3);
}

#[test]
fn a_question_without_an_answer_is_no_error() {
    let watched = watched();
    let stack = &watched.target.stack;
    let top = stack.find("md0.nop").expect("the top");
    let opened = stack.open(top, Delta::READ).expect("open");
    let mut channel = stack.channel(1).expect("a channel");
    let told = channel.attribute(&opened, "GEOM::ident");
    assert_eq!(told.expect("no error"), None);
    let mut client = Client::connect(&watched.path).expect("a client");
    let figures = client.figures(false).expect("figures");
    for layer in &figures.providers {
        assert_eq!((layer.counted.errors, layer.counted.in_flight), (0, 0));
        assert!(layer.counted.other.operations > 0, "{}", layer.name);
    }
}

#[test]
fn time_is_taken_only_while_somebody_looks() {
    let watched = watched();
    let counts = |statistics| statistics == Statistics::Counts;
    watched.counts_as(counts);
    let (mut first, mut second) = (
        Client::connect(&watched.path).expect("a client"),
        Client::connect(&watched.path).expect("a client"),
    );
    // Asking for the name is not looking.
    watched.counts_as(counts);
    first.figures(false).expect("figures");
    watched.counts_as(|it| matches!(it, Statistics::Time { .. }));
    second.figures(false).expect("figures");
    watched.reads(1000);
    drop(first);
    let end = Instant::now() + Duration::from_secs(60);
    let figures = loop {
        // Looks that are closer together are one.
        std::thread::sleep(Duration::from_millis(25));
        let figures = second.figures(true).expect("figures");
        if figures.providers[0].times.read.samples > 0 || Instant::now() > end {
            break figures;
        }
        watched.reads(100);
    };
    for layer in &figures.providers {
        let read = &layer.times.read;
        assert!(read.samples > 0 && read.sum_ns >= read.samples, "{layer:?}");
        assert!(!read.buckets.is_empty() && layer.times.busy_ns > 0);
        assert!(layer.times.exclusive_ns <= read.sum_ns);
    }
    let [md, nop] = &figures.providers[..] else {
        panic!("{figures:?}");
    };
    let below = nop.times.read.sum_ns - nop.times.exclusive_ns;
    // The time that is not nop's is md's, but for the loss by whole ns.
    let lost = below.abs_diff(md.times.read.sum_ns);
    assert!(lost <= nop.times.read.samples, "{figures:?}");
    drop(second);
    watched.counts_as(counts);
}

#[test]
fn what_the_user_has_chosen_to_count_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("control");
    for chosen in [Statistics::Off, Statistics::Time { one_in: 7 }] {
        let target = open_target("md:1m", &TargetOptions::default()).expect("a target");
        target.stack.set_statistics(chosen);
        let control = Control::start(&target.stack, &Shown::all(&*target.name), &settings(&path))
            .expect("a socket");
        let mut client = Client::connect(control.path()).expect("a client");
        let timing = client.figures(false).expect("figures").timing;
        assert_eq!(timing.counts, chosen != Statistics::Off);
        assert_eq!(timing.one_in, if timing.counts { 7 } else { 0 });
        assert_eq!(target.stack.options().statistics, chosen);
    }
}

#[test]
fn clients_that_keep_no_rule_are_told_and_disturb_nobody() {
    let watched = watched();
    let path = &watched.path;
    for wrong in [
        &b"\n"[..],
        b"GET / HTTP/1.1\r\n",
        b"{}\n",
        b"{\"ask\":\"tea\"}\n",
        b"{\"ask\":\"figures\",\"sugar\":2}\n",
        b"\xff\xfe\0\n",
        b"[[[[[[[[[[[[[[[[[[[[[[\n",
    ] {
        let mut stream = raw(path);
        let said = ask(&mut stream, wrong);
        assert!(
            said.starts_with("{\"error\":\"a question that cannot"),
            "{said}"
        );
        // The connection goes on.
        let said = ask(&mut stream, b"{\"ask\":\"server\"}\r\n");
        assert!(said.starts_with("{\"server\":"), "{said}");
    }
    let mut long = raw(path);
    let said = ask(&mut long, &[b'x'; QUESTION_BYTES_MAX]);
    assert!(said.contains("at most 4096 bytes"), "{said}");
    assert_eq!(long.read(&mut [0]).expect("the end"), 0);
    // Half a question and the end; half a question and silence; an answer that is not received.
    drop(raw(path).get_mut().write_all(b"{\"ask\":"));
    let mut silent = raw(path);
    silent.get_mut().write_all(b"{\"ask\":").expect("written");
    let mut deaf = raw(path);
    deaf.get_mut().set_nonblocking(true).expect("a mode");
    let many = b"{\"ask\":\"figures\",\"consumers\":true}\n".repeat(1000);
    // Until neither side takes any more.
    while matches!(deaf.get_mut().write(&many), Ok(written) if written > 0) {}
    watched.answers();
}

#[test]
fn questions_that_come_together_are_answered_one_by_one() {
    let watched = watched();
    let mut stream = raw(&watched.path);
    let mut asked = stream.get_ref().try_clone().expect("a second handle");
    let writer = std::thread::spawn(move || {
        asked.write_all(&b"{\"ask\":\"server\"}\n{\"ask\":\"figures\"}\n".repeat(500))
    });
    for _ in 0..500 {
        for wanted in ["{\"server\":", "{\"figures\":"] {
            let mut line = String::new();
            stream.read_line(&mut line).expect("an answer");
            assert!(line.starts_with(wanted), "{line}");
            Answer::parse(line.as_bytes()).expect("an answer");
        }
    }
    writer.join().expect("a writer").expect("written");
}

#[test]
fn more_clients_than_there_is_room_for_are_sent_away_with_the_reason() {
    let watched = watched();
    let mut served: Vec<_> = (0..16).map(|_| raw(&watched.path)).collect();
    for stream in &mut served {
        assert!(ask(stream, b"{\"ask\":\"server\"}\n").starts_with("{\"server\":"));
    }
    let error = Client::connect(&watched.path).err().expect("no room");
    assert!(error.to_string().contains("too many clients"), "{error}");
    drop(served);
    let end = Instant::now() + Duration::from_secs(60);
    while Client::connect(&watched.path).is_err() {
        assert!(Instant::now() < end, "there is never room again");
        std::thread::sleep(Duration::from_millis(5));
    }
    watched.answers();
}

#[test]
fn a_server_that_goes_or_is_none_is_an_error_in_plain_words() {
    let watched = watched();
    let mut client = Client::connect(&watched.path).expect("a client");
    client.figures(false).expect("figures");
    let Watched { control, path, .. } = watched;
    drop(control);
    let error = client.figures(false).expect_err("it has gone");
    assert!(matches!(error, ControlError::Gone { .. }), "{error}");
    // Another user's server: sends something, or half of something.
    for (said, wanted) in [
        (&b"hello\n"[..], "cannot be understood"),
        (b"{\"figures\":", "broke off after 11 bytes"),
        (b"", "has ended"),
        (
            b"{\"server\":{\"protocol\":9,\"version\":\"9\",\"pid\":1,\"target\":\"x\"}}\n",
            "speaks version 9",
        ),
    ] {
        let listener = UnixListener::bind(&path).expect("a socket");
        let other = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.write_all(said).expect("said");
            BufReader::new(stream)
                .read_line(&mut String::new())
                .map(drop)
        });
        let error = Client::connect(&path).err().expect("an error").to_string();
        assert!(error.contains(wanted), "{error}");
        other.join().expect("a server").expect("it ends");
        fs::remove_file(&path).expect("removed");
    }
}

fn spread() -> impl Strategy<Value = Spread> {
    prop::collection::btree_map(any::<u64>(), 1_u64..1 << 50, 0..6).prop_map(|buckets| Spread {
        samples: buckets.values().sum(),
        sum_ns: buckets
            .keys()
            .fold(0, |sum: u64, it| sum.saturating_add(*it)),
        buckets: buckets.into_iter().collect(),
    })
}

fn layer() -> impl Strategy<Value = Layer> {
    let numbers = (
        any::<u64>(),
        any::<u32>(),
        prop::collection::vec(any::<u64>(), 0..3),
    );
    (numbers, ".*", spread(), spread(), any::<[u64; 4]>()).prop_map(
        |((id, rank, below), name, read, other, [operations, bytes, errors, busy_ns])| Layer {
            id,
            rank,
            below,
            error: (errors > 1 << 63).then(|| name.clone()),
            name,
            counted: Counted {
                errors,
                write: OperationTotals { operations, bytes },
                ..Counted::default()
            },
            times: Times {
                read,
                other,
                busy_ns,
                ..Times::default()
            },
            ..Layer::default()
        },
    )
}

proptest! {
    #[test]
    fn what_is_said_is_understood_as_it_was_meant(
        layers in prop::collection::btree_map(any::<u64>(), layer(), 0..5),
        at_ns in any::<u64>(),
    ) {
        let providers = layers.into_iter().map(|(id, layer)| Layer { id, ..layer });
        let figures = Figures {
            at_ns,
            providers: providers.collect(),
            ..Figures::default()
        };
        let answer = Answer::Figures(Box::new(figures));
        let line = answer.line();
        prop_assert_eq!(line.find('\n'), Some(line.len() - 1));
        prop_assert_eq!(Answer::parse(line.as_bytes()).expect("an answer"), answer);
    }

    #[test]
    fn no_line_is_too_strange(
        line in prop::collection::vec(any::<u8>(), 0..200),
        cut in 0..80_usize,
    ) {
        // The end without a panic is what counts.
        let _ = Question::parse(&line);
        let _ = Answer::parse(&line);
        let question = Question::Figures { consumers: true }.line();
        let cut = cut.min(question.len());
        let mixed = [&question.as_bytes()[..cut], &line].concat();
        if let Ok(understood) = Question::parse(&mixed) {
            let again = Question::parse(understood.line().as_bytes());
            prop_assert_eq!(again.expect("a question"), understood);
        }
    }
}

#[test]
fn figures_that_contradict_themselves_are_refused() {
    let layer = |id: u64, buckets: &str, samples: u64| {
        let text = Answer::Figures(Box::new(Figures {
            providers: vec![Layer {
                id,
                ..Layer::default()
            }],
            ..Figures::default()
        }))
        .line();
        let spread = format!(r#"{{"samples":{samples},"sum_ns":9,"buckets":{buckets}}}"#);
        let text = text.replacen(r#"{"samples":0,"sum_ns":0}"#, &spread, 1);
        let (_, text) = text.split_once("\"providers\":[").expect("a list");
        text.trim_end().trim_end_matches("]}}").to_owned()
    };
    let figures = |layers: &[String]| {
        let none = Answer::Figures(Box::default()).line();
        let text = none.replacen("[]", &format!("[{}]", layers.join(",")), 1);
        Answer::parse(text.as_bytes()).map_err(|error| error.to_string())
    };
    assert!(figures(&[layer(1, "[[3,1],[4,1]]", 2), layer(2, "[]", 7)]).is_ok());
    for (layers, reason) in [
        (vec![layer(1, "[]", 0), layer(1, "[]", 0)], "the number 1"),
        (
            vec![layer(1, "[[4,1],[3,1]]", 2)],
            "bucket 3 does not ascend",
        ),
        (
            vec![layer(1, "[[3,1],[3,1]]", 2)],
            "bucket 3 does not ascend",
        ),
        (vec![layer(1, "[[3,0]]", 0)], "do not hold 0 samples"),
        (vec![layer(1, "[[3,1]]", 2)], "do not hold 2 samples"),
        (
            vec![layer(1, "[[3,18446744073709551615],[4,1]]", 0)],
            "do not hold 0",
        ),
    ] {
        let error = figures(&layers).expect_err(reason);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_file_beside_the_socket_is_left_as_it_is() {
    let target = open_target("md:1m", &TargetOptions::default()).expect("a target");
    let folder = tempfile::tempdir().expect("a folder");
    let beside = folder.path().join(".control.new");
    fs::write(&beside, "a user's file").expect("a file");
    let path = folder.path().join("control");
    let control = Control::start(&target.stack, &Shown::all(&*target.name), &settings(&path))
        .expect("a control socket");
    assert_eq!(fs::read(&beside).expect("the file"), b"a user's file");
    let names = fs::read_dir(folder.path()).expect("the folder");
    assert_eq!(names.count(), 2);
    drop(control);
}
