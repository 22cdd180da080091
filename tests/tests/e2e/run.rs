//! Starts programs, and keeps their output.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A program that takes longer hangs.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The program under test.
pub const UGEOM: &str = env!("CARGO_BIN_EXE_ugeom-under-test");

/// The result of a program.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; -1 when a signal ended it.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ended {
    /// The stdout of a program that succeeded with nothing on stderr.
    pub fn quiet(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
        self.text()
    }

    /// Stdout, which is UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("UTF-8 on stdout")
    }

    /// Stderr of a program that failed with `code` and printed no result.
    pub fn failed(self, code: i32) -> String {
        assert_eq!(
            (self.code, self.text().as_str()),
            (code, ""),
            "{}",
            self.stderr
        );
        self.stderr
    }
}

pub use ugeom_testkit::has;

/// The output of a program with `--json`.
pub fn json_of(text: impl AsRef<[u8]>) -> serde_json::Value {
    serde_json::from_slice(text.as_ref()).expect("JSON")
}

/// The JSON of a result of fio, which may write warnings before it.
pub fn json_in(text: &str) -> serde_json::Value {
    json_of(&text[text.find('{').expect("JSON")..])
}

/// Where a program of others is, as a word of a command; nothing: the test is skipped.
pub fn tool(name: &str) -> Option<&'static str> {
    let path = ugeom_testkit::program(name)?;
    Some(path.to_str().expect("a path in UTF-8").to_owned().leak())
}

/// Compares what is seen of `ugeom run` and of fio with each of some lines of arguments.
pub fn as_fio<T: PartialEq + Debug>(lines: &[&str], seen: impl Fn(&[&str], &str) -> T) {
    let Some(fio) = tool("fio") else { return };
    for line in lines {
        assert_eq!(seen(&[UGEOM, "run"], line), seen(&[fio], line), "{line}");
    }
}

/// The words of a line of arguments, none of which holds a blank.
pub fn words_of(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Runs ugeom without input.
pub fn ugeom<A: AsRef<OsStr>>(arguments: &[A]) -> Ended {
    ugeom_with(arguments, b"")
}

/// Runs ugeom with this on stdin.
pub fn ugeom_with<A: AsRef<OsStr>>(arguments: &[A], input: &[u8]) -> Ended {
    run(command(UGEOM, arguments), input)
}

/// Stdout of `ugeom part`, which succeeds without a word on stderr.
pub fn part(arguments: &[&str]) -> String {
    ugeom(&[&["part"], arguments].concat()).quiet()
}

/// Stderr of `ugeom part`, which fails with this code.
pub fn part_refused(arguments: &[&str], code: i32) -> String {
    ugeom(&[&["part"], arguments].concat()).failed(code)
}

/// Runs another program, which must succeed, and gives its stdout.
pub fn other<A: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[A]) -> Vec<u8> {
    let name = program.as_ref().to_string_lossy().into_owned();
    let ended = run(command(program, arguments), b"");
    assert_eq!(ended.code, 0, "{name}: {}{}", ended.text(), ended.stderr);
    ended.stdout
}

/// A job of another program that takes longer than a moment has hung.
const FOREIGN_PATIENCE: Duration = Duration::from_secs(30);

/// How often such a program is started.
const FOREIGN_TRIES: u32 = 3;

/// Runs another program whose work takes a moment, with what it leaves behind; `make` prepares its
/// folder and gives the command. It is ended and started again when it hangs: fio 3.33 does so now
/// and then on a loaded machine, which is no fault of the program under test.
pub fn foreign<T>(mut make: impl FnMut() -> (Command, T)) -> (Ended, T) {
    for _ in 1..FOREIGN_TRIES {
        let (mut command, kept) = make();
        let child = command.spawn().expect("another program");
        if let Some(ended) = ended_within(child, FOREIGN_PATIENCE) {
            return (ended, kept);
        }
    }
    let (command, kept) = make();
    (run(command, b""), kept)
}

/// A command with its pipes and a plain environment.
pub fn command<A: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[A]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a program in a folder, without input.
pub fn run_in<A: AsRef<OsStr>>(
    folder: impl AsRef<Path>,
    program: impl AsRef<OsStr>,
    arguments: &[A],
) -> Ended {
    let mut command = command(program, arguments);
    command.current_dir(folder);
    run(command, b"")
}

/// Runs a program with its first arguments, and those of some lines, in a folder.
pub fn run_lines(program: &[&str], folder: impl AsRef<Path>, lines: &[&str]) -> Ended {
    let words = lines.iter().flat_map(|line| line.split_whitespace());
    let words = program[1..].iter().copied().chain(words);
    run_in(folder, program[0], &words.collect::<Vec<_>>())
}

/// Whether a program with its first arguments, and those of a line, succeeds in a folder.
pub fn succeeds(program: &[&str], folder: &Path, line: &str) -> bool {
    run_lines(program, folder, &[line]).code == 0
}

/// Names and sizes of the files in a folder.
pub fn files_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    let mut files: Vec<String> = entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let bytes = entry.metadata().expect("its size").len();
            format!("{} {bytes}", entry.file_name().to_string_lossy())
        })
        .collect();
    files.sort();
    files
}

pub fn run(mut command: Command, input: &[u8]) -> Ended {
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdin = child.stdin.take();
    let input = input.to_vec();
    let writer = thread::spawn(move || {
        // A program need not read its input to the end.
        let _ = stdin.map(|mut stdin| stdin.write_all(&input));
    });
    let ended = end(child);
    writer.join().expect("the writer");
    ended
}

/// Waits for a program to end and collects what it prints.
pub fn end(child: Child) -> Ended {
    end_within(child, PATIENCE)
}

/// The same for a program that has its own reason to take long.
pub fn end_within(child: Child, limit: Duration) -> Ended {
    let words = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    ended_within(child, limit).unwrap_or_else(|| panic!("the program hangs: {words}"))
}

/// The result of a program; `None` when it had to be killed.
fn ended_within(mut child: Child, limit: Duration) -> Option<Ended> {
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("waiting") {
            break status;
        }
        if started.elapsed() > limit {
            child.kill().expect("killing");
            child.wait().expect("waiting");
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    };
    let bytes = |thread: JoinHandle<Vec<u8>>| thread.join().expect("the reader");
    Some(Ended {
        code: status.code().unwrap_or(-1),
        stdout: bytes(stdout),
        stderr: String::from_utf8_lossy(&bytes(stderr)).into_owned(),
    })
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).expect("reading a pipe");
        }
        bytes
    })
}

/// Waits until something has happened.
#[track_caller]
pub fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let started = Instant::now();
    while !happened() {
        assert!(started.elapsed() < PATIENCE, "waiting for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until a file is locked, by looking only: a try for the lock may take it from the one that
/// is waited for.
pub fn wait_for_lock(path: &str) {
    let inode = std::fs::metadata(path).expect("the file").ino();
    let ending = format!(":{inode} ");
    let locks = || std::fs::read_to_string("/proc/locks").expect("the kernel's list of locks");
    wait_for("a lock", || locks().contains(&ending));
}

/// Waits until a program catches Ctrl-C, as the kernel tells it: the second bit of `SigCgt`
/// (proc(5)) is SIGINT.
pub fn wait_until_it_listens(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    wait_for("a handler of Ctrl-C", || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask & 0b10 != 0)
    });
}
