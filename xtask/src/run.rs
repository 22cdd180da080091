//! Running other programs from the root of the repository.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

/// The root of the repository that this program was built from.
pub fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map_or(here.clone(), Path::to_path_buf)
}

/// Where cargo puts what it builds: its configuration may name any folder.
pub fn target_dir() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    let ask = || {
        // Not through `command`, whose PATH leads below this folder.
        let mut cargo = Command::new("cargo");
        cargo.current_dir(root()).stdin(Stdio::null());
        cargo.args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ]);
        let metadata = json(&mut cargo).ok()?;
        Some(PathBuf::from(metadata["target_directory"].as_str()?))
    };
    FOUND
        .get_or_init(|| ask().unwrap_or_else(|| root().join("target")))
        .clone()
}

/// The JSON that a command prints on stdout.
///
/// # Errors
/// The command fails, or prints something else.
pub fn json(command: &mut Command) -> Result<serde_json::Value> {
    let name = shown(command);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name}: {}", output.status);
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("what {name} printed"))
}

/// Where programs that are crates are installed, below `bin`: in no place that others use.
pub fn crates_dir() -> PathBuf {
    target_dir().join("programs")
}

/// The directories that are searched for programs: `PATH`, then those of the administrator's tools,
/// which Debian leaves out of the `PATH` of other users although partitioning tools live there, and
/// that of the crates.
pub fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let sbin = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    for dir in sbin.into_iter().chain([crates_dir().join("bin")]) {
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    dirs
}

/// The file that running `program` would start, if there is one.
pub fn find_program(program: &str) -> Option<PathBuf> {
    search_path()
        .into_iter()
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// `program` prepared to run in the root, without stdin, and with the administrator's tools in its
/// `PATH`.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    if let Ok(path) = std::env::join_paths(search_path()) {
        command.env("PATH", path);
    }
    command
}

/// `cargo` with plain output, so that its lines can be read.
pub fn cargo() -> Command {
    let mut cargo = command("cargo");
    cargo.env("CARGO_TERM_COLOR", "never");
    cargo
}

/// `cargo` of the nightly toolchain. It goes through rustup, because a `cargo` that was started by
/// `cargo run` may not understand `+nightly`.
pub fn nightly_cargo() -> Command {
    let mut cargo = command("rustup");
    cargo
        .args(["run", "nightly", "cargo"])
        .env_remove("RUSTUP_TOOLCHAIN");
    cargo
}

/// True if `command` starts and succeeds; its output is thrown away.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// The output of a watched program, and whether it succeeded.
pub struct Watched {
    pub success: bool,
    /// The lines of stdout and stderr, in the order of their arrival.
    pub lines: Vec<String>,
}

/// Runs `command`, passes its output on as it comes, and keeps it.
pub fn watch(command: &mut Command) -> Result<Watched> {
    println!("$ {}", shown(command));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    let (sender, lines) = channel();
    std::thread::scope(|scope| {
        if let Some(out) = child.stdout.take() {
            scope.spawn(|| pass_on(out, &sender));
        }
        if let Some(err) = child.stderr.take() {
            scope.spawn(|| pass_on(err, &sender));
        }
    });
    drop(sender);
    let status = child
        .wait()
        .with_context(|| format!("waiting for {}", shown(command)))?;
    Ok(Watched {
        success: status.success(),
        lines: lines.into_iter().collect(),
    })
}

fn pass_on(from: impl Read, to: &Sender<String>) {
    let mut from = BufReader::new(from);
    let mut bytes = Vec::new();
    // Tests may print bytes that are not UTF-8: read by line end, then convert.
    while from.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        // A reader that went away must not fail the tests.
        let _ = writeln!(std::io::stdout(), "{line}");
        // The receiver lives as long as this.
        let _ = to.send(line);
        bytes.clear();
    }
}

fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}
