//! `ugeom stat` beside servers with real clients: its counts, its choice of a server, its end.

use crate::disks;
use crate::run::{
    Ended, UGEOM, command, end, has, json_in, json_of, other, run, wait_for, words_of,
};
use crate::serve::serve_nbd;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use ugeom_testkit::{Server, program};

/// How long something may take that happens soon.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server that runs, with a folder for its sockets.
struct Served {
    child: Server,
    uri: String,
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

impl Served {
    fn start(folder: &Path, name: &str, target: &str, arguments: &[&str]) -> Self {
        let (child, uri) = serve_nbd(folder, name, target, arguments);
        Self { child, uri }
    }

    fn control(&self, folder: &Path) -> PathBuf {
        folder.join(format!("ugeom/{}.sock", self.child.id()))
    }
}

fn stat_command(folder: &Path, arguments: &[&str]) -> std::process::Command {
    let mut stat = command(UGEOM, &[&["stat"], arguments].concat());
    stat.env("XDG_RUNTIME_DIR", folder).env("TMPDIR", folder);
    stat
}

fn stat(folder: &Path, arguments: &[&str]) -> Ended {
    run(stat_command(folder, arguments), b"")
}

/// The names in one report.
fn names(folder: &Path) -> Vec<String> {
    let report = json_of(stat(folder, &["--json", "-b", "-I", "50ms"]).quiet());
    let rows = report["rows"].as_array().expect("rows").iter();
    rows.map(|row| row["name"].as_str().expect("a name").to_owned())
        .collect()
}

/// Lines of CSV, added up: requests of each kind by name. The columns are named in the first line.
#[derive(Default)]
struct Sums {
    heading: Vec<String>,
    requests: BTreeMap<(String, String), f64>,
}

impl Sums {
    fn add(&mut self, line: &str) {
        let cells: Vec<&str> = line.trim_end().split(',').collect();
        if self.heading.is_empty() {
            self.heading = cells.into_iter().map(str::to_owned).collect();
            return;
        }
        assert_eq!(cells.len(), self.heading.len(), "{line}");
        let cell = |name: &str| {
            let at = self.heading.iter().position(|it| it == name);
            cells[at.expect(name)]
        };
        let seconds: f64 = cell("seconds").parse().expect("seconds");
        for kind in ["read/s", "write/s", "read-KiB/s", "write-KiB/s"] {
            let rate: f64 = cell(kind).parse().expect("a rate");
            let key = (cell("name").to_owned(), kind.to_owned());
            *self.requests.entry(key).or_default() += rate * seconds;
        }
    }

    fn of(&self, name: &str, kind: &str) -> f64 {
        let key = (name.to_owned(), kind.to_owned());
        self.requests.get(&key).copied().unwrap_or(0.0).round()
    }
}

/// `ugeom stat -C`, its lines, and what they add up to: nothing yet, but it looks from now on.
fn watch(folder: &Path) -> (Child, impl Iterator<Item = String>, Sums) {
    let mut watching = stat_command(folder, &["-C", "-I", "100ms"])
        .spawn()
        .expect("stat");
    let stdout = watching.stdout.take().expect("stdout");
    let lines = BufReader::new(stdout).lines();
    let mut lines = lines.map(|line| line.expect("a line"));
    let mut sums = Sums::default();
    // The heading, and one interval.
    (0..3).for_each(|_| sums.add(&lines.next().expect("a line")));
    (watching, lines, sums)
}

#[test]
fn csv_adds_up_to_the_requests_that_fio_has_sent() {
    let Some(fio) = program("fio") else { return };
    if !String::from_utf8_lossy(&other(&fio, &["--enghelp"])).contains("nbd") {
        return ugeom_testkit::skip("this fio has no engine nbd");
    }
    let folder = folder();
    let folder = folder.path();
    let served = Served::start(folder, "nbd", "md:16m | nop", &["--rw"]);
    let (watching, mut lines, mut sums) = watch(folder);
    assert_eq!(sums.of("md0", "read/s"), 0.0);
    let uri = format!("--uri={}", served.uri);
    let job = format!(
        "--name=x --ioengine=nbd {uri} --rw=randrw --rwmixread=70 --bs=4k --iodepth=8 --size=16m \
         --io_size=40m --output-format=json"
    );
    let text = other(&fio, &words_of(&job));
    let text = String::from_utf8(text).expect("UTF-8");
    let json = json_in(&text);
    let sent = |kind: &str| {
        json["jobs"][0][kind]["total_ios"]
            .as_f64()
            .expect("a number")
    };
    let (reads, writes) = (sent("read"), sent("write"));
    assert!(reads > 5000.0 && writes > 2000.0, "{reads} {writes}");
    // The server looks at md0.nop again when its last writer has left, and reads a little.
    let is_all = |sums: &Sums| sums.of("md0.nop", "write/s") >= writes;
    let started = Instant::now();
    while !is_all(&sums) && started.elapsed() < PATIENCE {
        sums.add(&lines.next().expect("a line"));
    }
    // The interval after that.
    (0..4).for_each(|_| sums.add(&lines.next().expect("a line")));
    other("kill", &["-INT", &watching.id().to_string()]);
    lines.for_each(|line| sums.add(&line));
    let ended = end(watching);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    for name in ["md0", "md0.nop"] {
        assert_eq!(sums.of(name, "write/s"), writes, "{name}");
        assert_eq!(sums.of(name, "write-KiB/s"), writes * 4.0, "{name}");
        let more = sums.of(name, "read/s") - reads;
        assert!(
            (0.0..100.0).contains(&more),
            "{name}: {more} reads too many"
        );
    }
}

#[test]
fn of_a_light_load_the_first_report_times_all_requests() {
    let Some(fio) = program("fio") else { return };
    if !String::from_utf8_lossy(&other(&fio, &["--enghelp"])).contains("nbd") {
        return;
    }
    let folder = folder();
    let served = Served::start(folder.path(), "u.sock", "md:64m | nop:delay=1ms", &[]);
    let uri = format!("--uri={}", served.uri);
    let load = [
        "--name=x",
        "--ioengine=nbd",
        &uri,
        "--rw=randread",
        "--size=64m",
        "--rate_iops=100",
        "--time_based",
        "--runtime=60",
        "--output=/dev/null",
    ];
    let mut client = command(&fio, &load).spawn().expect("fio");
    let busy = |report: &serde_json::Value| report["rows"][0]["read"]["per_s"].as_f64() > Some(9.0);
    wait_for("a load", || {
        busy(&json_of(
            stat(folder.path(), &["--json", "-b", "-I", "200ms"]).quiet(),
        ))
    });
    let report = json_of(stat(folder.path(), &["--json", "-b", "-I", "2s"]).quiet());
    let _ = client.kill();
    let _ = client.wait();
    assert_eq!(report["timed_one_in"], 1, "{report}");
    let seconds = report["seconds"].as_f64().expect("seconds");
    for row in report["rows"].as_array().expect("rows") {
        let requests = row["per_s"].as_f64().expect("a rate") * seconds;
        let samples = row["samples"].as_f64().expect("samples");
        assert!(
            (requests - samples).abs() <= 2.0,
            "{requests} {samples}: {report}"
        );
    }
}

#[test]
fn exports_come_and_go_and_stat_shows_them() {
    let (Some(copy), Some(info)) = (program("nbdcopy"), program("nbdinfo")) else { return };
    let Some(sfdisk) = program("sfdisk") else { return };
    let folder = folder();
    let folder = folder.path();
    let served = Served::start(folder, "nbd", "md:8m", &["--rw"]);
    assert_eq!(names(folder), ["md0"]);
    let image = folder.join("disk.img");
    // Not all zeroes: holes are not read.
    std::fs::write(&image, vec![7; 8 << 20]).expect("an image");
    let image = disks::text(&image);
    let script = b"label: dos\n2048,4096,a5\n8192,1024,83\n";
    assert_eq!(run(command(sfdisk, &["-q", &image]), script).code, 0);
    other(&copy, &["--flush", &image, &served.uri]);
    // The last writer has left: classes look again.
    wait_for("a partition", || names(folder) == ["md0", "md0s1", "md0s2"]);
    let list = json_of(other(&info, &["--list", "--json", &served.uri]));
    assert_eq!(list["exports"].as_array().map(Vec::len), Some(3));
    let export = served.uri.replacen("///", "///md0s2", 1);
    let before = stat_command(folder, &["-C", "-I", "100ms", "-f", "s2$"]).spawn();
    let mut before = before.expect("stat");
    let stdout = before.stdout.take().expect("stdout");
    let mut lines = BufReader::new(stdout)
        .lines()
        .map(|line| line.expect("a line"));
    let mut sums = Sums::default();
    (0..2).for_each(|_| sums.add(&lines.next().expect("a line")));
    let out = disks::at(folder, "out.img");
    other(&copy, &["--no-extents", &export, &out]);
    let started = Instant::now();
    while sums.of("md0s2", "read-KiB/s") < 512.0 && started.elapsed() < PATIENCE {
        sums.add(&lines.next().expect("a line"));
    }
    before.kill().expect("killed");
    before.wait().expect("it ends");
    // 1024 sectors, and what classes have read when the client left.
    let read = sums.of("md0s2", "read-KiB/s");
    assert!((512.0..600.0).contains(&read), "{read}");
    // Without the table they are gone again.
    std::fs::write(&image, vec![0; 8 << 20]).expect("an image");
    other(&copy, &["--flush", "--allocated", &image, &served.uri]);
    wait_for("the end of the partitions", || names(folder) == ["md0"]);
}

#[test]
fn what_is_read_from_a_file_of_the_mount_is_counted_like_any_other() {
    let folder = folder();
    let folder = folder.path();
    let mount = folder.join("mnt");
    std::fs::create_dir(&mount).expect("a directory");
    let directory = disks::text(&mount);
    let mut serve = command(UGEOM, &["serve", "md:1m | nop", "--fuse", &directory]);
    let child = serve
        .env("XDG_RUNTIME_DIR", folder)
        .env("TMPDIR", folder)
        .spawn();
    let mut served = Server(child.expect("a server"));
    let mut line = String::new();
    let stdout = served.stdout.take().expect("stdout");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    if line.is_empty() {
        let mut reason = String::new();
        let mut stderr = served.stderr.take().expect("stderr");
        stderr.read_to_string(&mut reason).expect("UTF-8");
        return ugeom_testkit::skip(reason.trim());
    }
    let (mut watching, mut lines, mut sums) = watch(folder);
    let input = format!("if={}", mount.join("md0.nop").display());
    other("dd", &[&input, "of=/dev/null", "bs=4k", "count=200"]);
    let started = Instant::now();
    // The last line of a report.
    while sums.of("md0.nop", "read/s") < 200.0 && started.elapsed() < PATIENCE {
        sums.add(&lines.next().expect("a line"));
    }
    watching.kill().expect("killed");
    watching.wait().expect("it ends");
    assert_eq!(served.signal("-TERM").code(), Some(0));
    for name in ["md0", "md0.nop"] {
        let (reads, kib) = (sums.of(name, "read/s"), sums.of(name, "read-KiB/s"));
        assert_eq!((reads, kib), (200.0, 800.0), "{name}");
    }
}

#[test]
fn the_socket_is_the_owners_and_goes_with_the_server() {
    let folder = folder();
    let folder = folder.path();
    let error = stat(folder, &["-b"]).failed(1);
    has(&error, "no server of this user runs");
    let mut first = Served::start(folder, "1", "md:1m", &[]);
    let socket = first.control(folder);
    let mode = |path: &Path| {
        let facts = std::fs::metadata(path).expect("a file").permissions();
        facts.mode() & 0o777
    };
    assert_eq!((mode(&socket), mode(&folder.join("ugeom"))), (0o600, 0o700));
    let text = stat(folder, &["-I", "50ms"]).quiet();
    assert!(text.lines().any(|line| line.ends_with("  md0")), "{text}");
    assert_eq!(
        text.lines().count(),
        3,
        "without a terminal one report is printed"
    );
    let mut second = Served::start(folder, "2", "md:2m", &[]);
    let error = stat(folder, &["-b"]).failed(2);
    for (served, target) in [(&first, "md:1m"), (&second, "md:2m")] {
        let socket = served.control(folder).display().to_string();
        let named = format!(
            "--socket {socket}   {target} (process {})",
            served.child.id()
        );
        has(&error, &named);
    }
    let one = disks::text(&socket);
    stat(folder, &["-b", "-I", "50ms", "--socket", &one]).quiet();
    // One that was killed leaves its socket behind, which counts for nothing.
    second.child.signal("-KILL");
    assert!(second.control(folder).exists());
    // The kernel may take a moment longer to close what it listened with.
    wait_for("the end of its socket", || {
        stat(folder, &["-b", "-I", "50ms"]).quiet();
        !second.control(folder).exists()
    });
    first.child.signal("-TERM");
    assert!(!socket.exists());
    let error = stat(folder, &["-b", "--socket", &one]).failed(1);
    has(&error, "no server listens to");
}

#[test]
fn the_socket_lies_where_it_was_asked_for_or_nowhere() {
    let folder = folder();
    let folder = folder.path();
    let socket = disks::at(folder, "here");
    let served = Served::start(folder, "nbd", "md:1m", &["--control", &socket]);
    assert!(!served.control(folder).exists());
    stat(folder, &["-b", "-I", "50ms", "--socket", &socket]).quiet();
    let nbd = format!("unix:{}", folder.join("other").display());
    let again = ["serve", "md:1m", "--nbd", &nbd, "--control", &socket];
    let error = run(command(UGEOM, &again), b"").failed(1);
    has(&error, "another server listens to it");
    drop(served);
    let silent = Served::start(folder, "nbd2", "md:1m", &["--control", "none"]);
    assert!(!silent.control(folder).exists());
    stat(folder, &["-b"]).failed(1);
    for (wrong, reason) in [
        (&["-I", "1"][..], "1s is seconds"),
        (&["-f", "("], "-f"),
        (&["-C", "--json"], "--json"),
    ] {
        let error = stat(folder, wrong).failed(2);
        has(&error, reason);
    }
}

#[test]
fn another_user_may_not_look() {
    let Some(setpriv) = program("setpriv") else { return };
    let folder = folder();
    let folder = folder.path();
    let socket = disks::at(folder, "here");
    let _served = Served::start(folder, "nbd", "md:1m", &["--control", &socket]);
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder, open).expect("a folder for all");
    let who = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let can = run(
        command(&setpriv, &[&who[..], &[UGEOM, "--version"]].concat()),
        b"",
    );
    if can.code != 0 {
        let reason = "only root can be another user, and the program must be readable for all";
        return ugeom_testkit::skip(reason);
    }
    let look = [&who[..], &[UGEOM, "stat", "-b", "--socket", &socket]].concat();
    let error = run(command(&setpriv, &look), b"").failed(1);
    has(&error, "belongs to another user");
    // Even with an open door.
    let open = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(&socket, open).expect("a socket for all");
    let error = run(command(&setpriv, &look), b"").failed(1);
    has(&error, "only root and the user who started the server");
}

#[test]
fn a_server_that_goes_ends_the_watching_and_what_was_shown_stays() {
    let folder = folder();
    let folder = folder.path();
    let mut served = Served::start(folder, "nbd", "md:1m", &[]);
    let mut watching = stat_command(folder, &["-B", "-I", "50ms"])
        .spawn()
        .expect("stat");
    let mut stdout = BufReader::new(watching.stdout.take().expect("stdout"));
    let mut first = String::new();
    stdout.read_line(&mut first).expect("a line");
    served.child.signal("-KILL");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("the rest");
    assert!(
        first.starts_with("dT: ") && rest.contains("  md0\n"),
        "{first}{rest}"
    );
    let ended = end(watching);
    assert_eq!(ended.code, 1);
    has(&ended.stderr, "has ended");
}

#[test]
fn clients_of_the_control_socket_disturb_no_client_of_the_server() {
    let Some(copy) = program("nbdcopy") else { return };
    let folder = folder();
    let folder = folder.path();
    let image = folder.join("disk.img");
    let data: Vec<u8> = (0..4 << 20)
        .map(|at: u32| (at * 7 + at / 251) as u8)
        .collect();
    std::fs::write(&image, &data).expect("an image");
    let served = Served::start(folder, "nbd", &disks::text(&image), &[]);
    let control = served.control(folder);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(6);
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let Ok(mut stream) = UnixStream::connect(&control) else { continue };
                let junk: Vec<u8> = (0..random.usize(..9000)).map(|_| random.u8(..)).collect();
                // It may leave us in the middle.
                let _ = stream.write_all(&junk);
                let _ = stream.write_all(&b"\n{\"ask\":\"figures\"}\n".repeat(random.usize(..50)));
            }
        });
        let out = folder.join("out.img");
        for _ in 0..5 {
            other(&copy, &[&served.uri, &disks::text(&out)]);
            assert!(std::fs::read(&out).expect("a copy") == data);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    stat(folder, &["-b", "-I", "50ms"]).quiet();
}

/// Runs `ugeom stat` on a terminal of its own, does what its arguments say, and prints what
/// happened to the terminal: a word a line, then the screen's bytes.
const ON_A_TERMINAL: &str = r#"
import fcntl, os, pty, select, signal, struct, sys, termios, time
program, socket, server, how = sys.argv[1:5]
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
before = termios.tcgetattr(slave)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in (0, 1, 2):
        os.dup2(slave, fd)
    os.execv(program, [program, "stat", "--socket", socket, "-I", "50ms"])
seen = b""
def look(wanted, after=0):
    global seen
    end = time.time() + 60
    while wanted not in seen[after:] and time.time() < end:
        if select.select([master], [], [], 0.1)[0]:
            seen += os.read(master, 65536)
    if wanted not in seen[after:]:
        print("missing", wanted)
        print(repr(seen[-3000:]))
        sys.exit(1)
    return len(seen)
at = look(b"md0.nop")
raw = termios.tcgetattr(slave)
print("raw", raw[3] & termios.ICANON == 0)
if how == "keys":
    os.write(master, b"f")
    at = look(b"Filter: _", at)
    os.write(master, b"nop$\r")
    at = look(b"filter: nop$", at)
    os.write(master, b"p")
    at = look(b"PAUSED", at)
    os.write(master, b"ps")
    at = look(b"sort: ops/s", at)
    os.write(master, b"\x1b[B?")
    at = look(b"reset the latencies", at)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 60, 0, 0))
    os.write(master, b"?")
    at = look(b"\x1b[J", at)
    os.write(master, b"q")
elif how == "interrupt":
    os.write(master, b"\x03")
elif how == "term":
    os.kill(pid, signal.SIGTERM)
elif how == "gone":
    os.kill(int(server), signal.SIGKILL)
end = time.time() + 60
code = None
while code is None and time.time() < end:
    if select.select([master], [], [], 0.05)[0]:
        seen += os.read(master, 65536)
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        code = os.waitstatus_to_exitcode(status)
while select.select([master], [], [], 0.1)[0]:
    seen += os.read(master, 65536)
print("code", code)
print("same", termios.tcgetattr(slave) == before)
print("entered", seen.count(b"\x1b[?1049h"), "left", seen.count(b"\x1b[?1049l"))
print("cursor", seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l"))
print("after", repr(seen[seen.rfind(b"\x1b[?1049l") + 8:].decode()))
"#;

fn on_a_terminal(how: &str) -> Option<String> {
    let python = program("python3")?;
    let folder = folder();
    let folder = folder.path();
    let served = Served::start(folder, "nbd", "md:1m | nop", &[]);
    let socket = disks::text(&served.control(folder));
    let pid = served.child.id().to_string();
    let arguments = ["-c", ON_A_TERMINAL, UGEOM, &socket, &pid, how];
    let ended = run(command(python, &arguments), b"");
    assert_eq!(ended.code, 0, "{}{}", ended.text(), ended.stderr);
    Some(ended.text())
}

#[test]
fn the_view_obeys_keys_and_leaves_the_terminal_as_it_was() {
    for how in ["keys", "interrupt", "term"] {
        let Some(text) = on_a_terminal(how) else { return };
        let expected = "raw True\ncode 0\nsame True\nentered 1 left 1\ncursor True\nafter ''\n";
        assert_eq!(text, expected, "{how}");
    }
}

#[test]
fn a_view_whose_server_goes_ends_with_the_reason_below_the_last_figures() {
    let Some(text) = on_a_terminal("gone") else { return };
    let expected = "raw True\ncode 1\nsame True\nentered 1 left 1\ncursor True\nafter 'dT: ";
    assert!(text.starts_with(expected), "{text}");
    let after = text.split("after").nth(1).expect("the end");
    let (table, error) = (after.find("md0.nop"), after.find("has ended"));
    assert!(table.is_some() && table < error, "{text}");
}

#[test]
fn a_server_that_counts_nothing_says_so() {
    let folder = folder();
    let folder = folder.path();
    let _served = Served::start(folder, "nbd", "md:1m", &["--set", "statistics=off"]);
    let ended = stat(folder, &["-b", "-I", "50ms"]);
    assert_eq!(ended.code, 0);
    has(&ended.stderr, "counts nothing");
}
