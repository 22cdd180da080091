//! `ugeom stat --openmetrics` and `ugeom serve --metrics` beside the parser of Prometheus, Python's
//! HTTP client, and clients that keep no rules.

use crate::disks;
use crate::run::{UGEOM, command, has, json_of, other, run, ugeom};
use crate::serve::noise;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ChildStderr;
use std::time::{Duration, Instant};
use ugeom_testkit::{Server, program, python};

/// Reads a page with the parser of Prometheus and prints what the test compares.
const PARSE: &str = "\
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
found = {family.name: family for family in parse(sys.stdin.read())}
def value(family, name, **wanted):
    return sum(s.value for s in found[family].samples
        if s.name == name and all(s.labels[k] == v for k, v in wanted.items()))
moved = value('ugeom_moved_bytes', 'ugeom_moved_bytes_total', provider='disk.img', command='read')
flight = value('ugeom_in_flight', 'ugeom_in_flight')
errors = value('ugeom_errors', 'ugeom_errors_total')
print(int(moved))
print(int(flight), int(errors))
print(found['ugeom_server'].samples[0].labels['target'])
for name in ('ugeom_requests', 'ugeom_latency_seconds', 'ugeom_exclusive_seconds',
        'ugeom_handle_moved_bytes', 'ugeom_media_bytes'):
    print(found[name].type)
";

#[test]
fn the_parser_of_prometheus_reads_what_was_moved() {
    let python = python("prometheus_client");
    let (Some(copy), Some(python)) = (program("nbdcopy"), python) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("disk.img");
    std::fs::write(&image, noise(1, 5 << 20)).expect("an image");
    let control = disks::at(&folder, "control");
    let script = format!(
        "{} \"$uri\" null: && {UGEOM} stat --openmetrics -I 50ms --socket {control}",
        disks::text(&copy)
    );
    let target = disks::text(&image);
    let all = [
        "serve",
        &target,
        "--no-taste",
        "--control",
        &control,
        "--run",
        &script,
    ];
    let page = run(command(UGEOM, &all), b"");
    assert_eq!(page.code, 0, "{}", page.stderr);
    assert!(page.text().ends_with("# EOF\n"));
    let parsed = run(command(python, &["-c", PARSE]), &page.stdout);
    assert_eq!(parsed.code, 0, "{}", parsed.stderr);
    let expected = format!(
        "{}\n0 0\n{target}\ncounter\nhistogram\ncounter\ncounter\ngauge\n",
        5 << 20
    );
    assert_eq!(parsed.text(), expected);
}

/// A server with metrics.
struct Measured {
    _server: Server,
    /// Where the metrics are, as the server reports it.
    url: String,
    /// The lines printed before that.
    before: String,
    _stderr: BufReader<ChildStderr>,
}

impl Measured {
    fn start(folder: &Path, metrics: &str) -> Self {
        let at = |name: &str| disks::at(folder, name);
        let image = folder.join("disk.img");
        std::fs::write(&image, noise(1, 5 << 20)).expect("an image");
        let (nbd, control) = (format!("unix:{}", at("nbd")), at("control"));
        let all = ["serve", &at("disk.img"), "--no-taste", "--nbd", &nbd];
        let more = ["--control", &control, "--metrics", metrics];
        let mut child = command(UGEOM, &[&all[..], &more].concat())
            .spawn()
            .expect("a server");
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr"));
        let mut before = String::new();
        let url = loop {
            let mut line = String::new();
            stderr.read_line(&mut line).expect("a line");
            if let Some(url) = line.strip_prefix("ugeom: metrics: ") {
                break url.trim().to_owned();
            }
            assert!(!line.is_empty(), "no metrics: {before}");
            before.push_str(&line);
        };
        let mut uri = String::new();
        let stdout = child.stdout.take().expect("stdout");
        BufReader::new(stdout).read_line(&mut uri).expect("a line");
        Self {
            _server: Server(child),
            url,
            before,
            _stderr: stderr,
        }
    }
}

/// Fetches a page as Prometheus does, prints it, and checks what surrounds it.
const FETCH: &str = "\
import sys, urllib.request, urllib.error
url = sys.argv[1]
def fetch(url, method):
    request = urllib.request.Request(url, method=method)
    request.add_header('Accept', 'application/openmetrics-text;version=1.0.0')
    try:
        return urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        return error
answer = fetch(url, 'GET')
page = answer.read()
assert answer.status == 200, answer.status
kind = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
assert answer.headers['Content-Type'] == kind, answer.headers
assert int(answer.headers['Content-Length']) == len(page)
head = fetch(url, 'HEAD')
assert (head.status, head.read()) == (200, b''), head.status
assert head.headers['Content-Type'] == kind, head.headers
assert int(head.headers['Content-Length']) > 1000
assert fetch(url + '/x', 'GET').status == 404
assert fetch(url, 'POST').status == 405
sys.stdout.buffer.write(page)
";

#[test]
fn a_page_over_http_is_that_of_stat() {
    let (Some(copy), Some(python)) = (program("nbdcopy"), program("python3")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let served = Measured::start(folder.path(), "tcp:localhost:0");
    assert_eq!(served.before, "", "no warning");
    let uri = format!("nbd+unix:///?socket={}", disks::at(&folder, "nbd"));
    other(&copy, &[uri.as_str(), "null:"]);
    let control = disks::at(&folder, "control");
    let stat = ["stat", "--openmetrics", "-I", "50ms", "--socket", &control];
    let end = Instant::now() + Duration::from_secs(60);
    // The connection of the copy may still be open at first.
    let page = loop {
        let page = other(&python, &["-c", FETCH, &served.url]);
        let page = String::from_utf8(page).expect("text");
        let expected = ugeom(&stat).quiet();
        if page == expected {
            break page;
        }
        assert!(Instant::now() < end, "{page}\nis not\n{expected}");
    };
    let moved = format!("class=\"FILE\",command=\"read\"}} {}\n", 5 << 20);
    has(&page, &moved);
    // Some requests are timed although no client of the control socket watches.
    let timed = |page: &str| {
        let mut counts = page.lines().filter_map(|line| {
            let count = line.strip_prefix("ugeom_latency_seconds_count{")?;
            count.split_once("command=\"read\"} ")
        });
        counts.any(|(_, count)| count != "0")
    };
    let fetch = || other(&python, &["-c", FETCH, &served.url]);
    while !timed(&String::from_utf8(fetch()).expect("text")) {
        assert!(Instant::now() < end, "no request is timed");
        other(&copy, &[uri.as_str(), "null:"]);
    }
}

fn http(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).expect("a connection");
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).expect("a limit");
    stream
}

/// The first line of the answer to these bytes; empty when there is none.
fn status(path: &Path, bytes: &[u8]) -> String {
    let mut stream = http(path);
    // The server may have answered and closed the connection already.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn hostile_clients_of_the_metrics_lock_nobody_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metrics");
    let served = Measured::start(folder.path(), &format!("unix:{}", disks::text(&path)));
    assert_eq!(served.url, format!("unix:{}", disks::text(&path)));
    let good = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
    for (bytes, expected) in [
        (good.to_vec(), "HTTP/1.1 200 OK"),
        (
            b"GET /secret HTTP/1.0\r\n\r\n".to_vec(),
            "HTTP/1.1 404 Not Found",
        ),
        (b"\x16\x03\x01\n\n".to_vec(), "HTTP/1.1 400 Bad Request"),
        (
            vec![b'a'; 100_000],
            "HTTP/1.1 431 Request Header Fields Too Large",
        ),
        (b"GET /metrics HTTP/1.1\r\nHost".to_vec(), ""),
        (Vec::new(), ""),
    ] {
        let found = status(&path, &bytes);
        assert_eq!(found, expected, "{}", bytes.escape_ascii());
    }
    for seed in 0..50 {
        let length = fastrand::Rng::with_seed(seed).usize(0..20_000);
        status(&path, &noise(seed, length));
    }
    // Silent ones, slow ones, and ones that read no answer.
    let mut silent: Vec<UnixStream> = (0..100).map(|_| http(&path)).collect();
    for (number, stream) in silent.iter_mut().enumerate() {
        let bytes: &[u8] = if number % 2 == 0 { b"GET /me" } else { good };
        // The older ones are closed already.
        let _ = stream.write_all(bytes);
    }
    assert_eq!(status(&path, good), "HTTP/1.1 200 OK");
    drop(silent);
    assert_eq!(status(&path, good), "HTTP/1.1 200 OK");
}

#[test]
fn metrics_for_other_hosts_come_with_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Measured::start(folder.path(), "tcp:0.0.0.0:0");
    let warning = &served.before;
    has(&warning, "warning: any host");
    let serve = |metrics: &str| {
        let all = ["serve", "md:1m", "--run", "true", "--metrics", metrics];
        run(command(UGEOM, &all), b"")
    };
    let usage = serve("localhost").failed(2);
    has(&usage, "`localhost` is not an address");
    let port = served.url.rsplit(':').next().expect("a port");
    let port = port.trim_end_matches("/metrics");
    let used = serve(&format!("tcp:0.0.0.0:{port}")).failed(1);
    has(&used, "the port is in use");
}

const DASHBOARD: &str = include_str!("../../../docs/grafana-dashboard.json");

/// Every query of a dashboard, wherever it lies.
fn queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if ["expr", "definition"].contains(&name.as_str()) => {
                        found.push(text.clone());
                    }
                    _ => queries(field, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|it| queries(it, found)),
        _ => {}
    }
}

/// The selectors of a query: a metric, and the labels that braces after it, or a `by` before it,
/// name.
fn selected(query: &str) -> Vec<(String, Vec<String>)> {
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let mut found = Vec::new();
    for (at, _) in query.match_indices("ugeom_") {
        let rest = &query[at..];
        let end = rest.find(|it| !is_word(it)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let inside = rest.strip_prefix('{').and_then(|it| it.split_once('}'));
        let matchers = inside.map_or("", |(inside, _)| inside).split(',');
        let by = query[..at]
            .rfind("by (")
            .map_or("", |by| &query[by + 4..at]);
        let by = by.split(')').next().unwrap_or_default().split(',');
        let labels = matchers.map(|it| it.split('=').next().unwrap_or_default());
        let labels = labels.chain(by).map(|it| it.trim().to_owned());
        // Prometheus adds the instance to all.
        let labels = labels.filter(|it| !it.is_empty() && it != "instance");
        found.push((name.to_owned(), labels.collect()));
    }
    found
}

#[test]
fn every_metric_and_label_of_the_dashboard_is_exported() {
    let dashboard = json_of(DASHBOARD);
    let mut all = Vec::new();
    queries(&dashboard, &mut all);
    let folder = tempfile::tempdir().expect("a folder");
    let metrics = format!("unix:{}", disks::at(&folder, "metrics"));
    let _served = Measured::start(folder.path(), &metrics);
    // A client with an open export, so that its bytes are exported, too: flags, EXPORT_NAME.
    let mut client = http(&folder.path().join("nbd"));
    let handshake = b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0";
    client.write_all(handshake).expect("a handshake");
    client.read_exact(&mut [0; 28]).expect("an open export");
    let mut page = String::new();
    let mut scrape = http(&folder.path().join("metrics"));
    let request = b"GET /metrics HTTP/1.0\r\n\r\n";
    scrape.write_all(request).expect("a request");
    scrape.read_to_string(&mut page).expect("a page");
    let mut names = 0;
    for query in &all {
        let selected = selected(query);
        assert!(!selected.is_empty(), "{query}");
        for (name, labels) in selected {
            names += 1;
            let start = format!("{name}{{");
            let series = page.lines().find(|line| line.starts_with(&start));
            let series = series.unwrap_or_else(|| panic!("{name} of {query} is not in {page}"));
            for label in labels {
                let exported = series.contains(&format!("{label}=\""));
                assert!(exported, "{label} of {query} is not in {series}");
            }
        }
    }
    assert!(names >= 14, "{names} in {all:?}");
}

#[test]
fn prometheus_accepts_every_query_of_the_dashboard() {
    let Some(promtool) = program("promtool") else { return };
    let dashboard = json_of(DASHBOARD);
    let mut all = Vec::new();
    queries(&dashboard, &mut all);
    // Those of variables are Grafana's functions, and an interval is put in by Grafana.
    let panels = all
        .iter()
        .filter(|query| !query.starts_with("label_values"));
    let panels: Vec<String> = panels
        .map(|it| it.replace("$__rate_interval", "1m"))
        .collect();
    assert!(panels.len() >= 8, "{panels:?}");
    let rules = panels.iter().enumerate().map(|(number, query)| {
        let query = Value::from(query.as_str());
        format!("  - record: query:{number}\n    expr: {query}\n")
    });
    let rules: String = rules.collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rules.yml");
    let check = |rules: &str| {
        let text = format!("groups:\n- name: dashboard\n  rules:\n{rules}");
        std::fs::write(&path, text).expect("rules");
        run(
            command(&promtool, &["check", "rules", &disks::text(&path)]),
            b"",
        )
    };
    let checked = check(&rules);
    assert_eq!(checked.code, 0, "{}{}", checked.text(), checked.stderr);
    // It would notice.
    assert_ne!(check(&rules.replacen("rate(", "rate((", 1)).code, 0);
}
