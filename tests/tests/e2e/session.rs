//! The session of docs/tour.md: an image is partitioned, served, listed, copied, read through files
//! and watched. The tour shows the output of the commands.

use crate::run::{UGEOM, command, run};
use crate::step::{Step, transcripts};
use std::fmt::Write;
use std::path::Path;
use ugeom_testkit::{program, skip};

const TOUR: &str = include_str!("../../../docs/tour.md");

/// The steps of the tour from the paragraph on serving to the one after watching, with their paths
/// in `folder`.
fn steps(folder: &str) -> Vec<Step> {
    let (_, text) = TOUR
        .split_once("**Serve any provider over NBD")
        .expect("serving");
    let (text, _) = text
        .split_once("**Make any call")
        .expect("what comes behind");
    let text = text.replace("/home/you", folder);
    let text = text.replace("/tmp/u.sock", &format!("{folder}/u.sock"));
    transcripts(&text, &["$ "]).into_iter().flatten().collect()
}

/// Separates what the steps print.
const MARK: &str = "=== next ===";

/// A script for bash that does the steps. A person waits until a server has said its last word, and
/// until a program that he has ended is gone; so does this.
fn script(steps: &[Step]) -> String {
    let mut text = "set -m\n".to_owned();
    for (number, step) in steps.iter().enumerate() {
        let behind = step.command.strip_suffix(" &");
        let served = behind.filter(|command| command.starts_with("ugeom serve"));
        if let (Some(command), Some(last)) = (served, step.expected.last()) {
            let out = format!("out.{number}");
            let _ = write!(
                text,
                "{command} > {out} 2>&1 &\n\
                 until grep -qxF '{last}' {out}; do kill -0 $! || break; sleep 0.01; done\n\
                 cat {out}\n"
            );
        } else {
            let _ = writeln!(text, "{}", step.command);
        }
        if step.command.starts_with("kill ") {
            let _ = writeln!(text, "{}", step.command.replace("kill", "wait"));
        }
        let _ = writeln!(text, "echo '{MARK}'");
    }
    text + "kill %3 %1; wait\n"
}

/// Figures differ each time, and so does the place of the columns: only the words count.
fn words(line: &str) -> Vec<String> {
    let is_figure = |word: &&str| {
        let digits = word.trim_matches(|c: char| !c.is_ascii_digit());
        !word.starts_with("demo.") && (!digits.is_empty() || *word == "-")
    };
    let all = line.split_whitespace().filter(|word| !is_figure(word));
    all.map(str::to_owned).collect()
}

fn check(step: &Step, printed: &str) {
    let looks = step.command.starts_with("ugeom stat");
    // The transport of files depends on the kernel.
    let travels = |line: &&str| !line.starts_with("ugeom: FUSE over");
    let found = printed.lines().filter(travels);
    let expected = step.expected.iter().map(String::as_str).filter(travels);
    if looks {
        // How often requests are timed follows their number.
        let (found, expected): (Vec<_>, Vec<_>) = (
            found.skip(1).map(words).collect(),
            expected.skip(1).map(words).collect(),
        );
        assert_eq!(found, expected, "{printed}");
    } else {
        let (found, expected): (Vec<_>, Vec<_>) = (found.collect(), expected.collect());
        assert_eq!(found, expected, "{}", step.command);
    }
}

#[test]
fn the_session_of_the_readme_prints_what_it_says() {
    for needed in ["bash", "nbdinfo", "nbdcopy", "fio"] {
        if program(needed).is_none() {
            return;
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("bin")).expect("a place for the program");
    std::os::unix::fs::symlink(UGEOM, at("bin/ugeom")).expect("a link");
    let steps = steps(folder.path().to_str().expect("UTF-8"));
    let mut bash = command("bash", &["-c", &script(&steps)]);
    let path = std::env::var("PATH").unwrap_or_default();
    bash.current_dir(folder.path())
        .env("PATH", format!("{}:{path}", at("bin").display()))
        .env("XDG_RUNTIME_DIR", folder.path())
        .env("TMPDIR", folder.path());
    let ended = run(bash, b"");
    leave(&at("mnt"));
    let said = format!("{}{}", ended.text(), ended.stderr);
    if ["is not available", "mounting ", "/dev/fuse"]
        .iter()
        .any(|it| said.contains(it))
    {
        return skip("no files can be mounted here");
    }
    let text = ended.text();
    let printed: Vec<&str> = text.split(&format!("{MARK}\n")).collect();
    assert_eq!(printed.len(), steps.len() + 1, "{said}");
    for (step, printed) in steps.iter().zip(printed) {
        check(step, printed);
    }
}

/// After any failure no mount is left behind.
fn leave(mount: &Path) {
    run(
        command("umount", &["-l", &mount.display().to_string()]),
        b"",
    );
}
