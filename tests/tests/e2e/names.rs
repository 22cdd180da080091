//! Paths that are not UTF-8, and names and labels that would speak to the terminal or pass for
//! others: every command takes the first, and shows all of them escaped.

use crate::run::{Ended, has, json_of, ugeom, ugeom_with};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use tempfile::TempDir;

/// A byte that is no UTF-8, a line feed, a colour, and characters that turn the direction.
const NAME: &[u8] = b"d\xff\n\x1b[31m\xe2\x80\xae.img";
const SHOWN: &str = "d\\xff\\n\\x1b[31m\\u{202e}.img";
const LABEL: &str = "a\nb\u{1b}[1m\u{2066}c";
const LABEL_SHOWN: &str = "a\\nb\\x1b[1m\\u{2066}c";

/// A file whose name reads as something else in a target: the advice can be pasted.
#[test]
fn an_error_tells_how_to_write_the_name_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, written) in [
        ("we ird|x@y.img", "\"we ird|x@y.img\""),
        ("a?b=c.img", "\"a?b=c.img\""),
        ("md", "./md"),
    ] {
        let file = std::fs::File::create(folder.path().join(name)).expect("a file");
        file.set_len(1 << 20).expect("its size");
        let show = |target: &str| {
            let mut command = crate::run::command(crate::run::UGEOM, &["show", target]);
            command.current_dir(folder.path());
            crate::run::run(command, b"")
        };
        let help = format!("the file of this name is written as '{written}'");
        has(&show(name).failed(2), &help);
        has(&show(written).quiet(), name);
        std::fs::remove_file(folder.path().join(name)).expect("removed");
        assert!(!show(name).stderr.contains("the file of this name"));
    }
}

struct Bench {
    _folder: TempDir,
    path: PathBuf,
}

impl Bench {
    /// An image of that name with a GPT and a partition of that label.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(OsStr::from_bytes(NAME));
        let file = std::fs::File::create(&path).expect("an image");
        file.set_len(8 << 20).expect("its size");
        let bench = Self {
            _folder: folder,
            path,
        };
        for change in [
            &["part", "create", "-s", "gpt"][..],
            &["part", "add", "-t", "linux-data", "-l", LABEL],
        ] {
            let changed = bench.run(change, "");
            assert_eq!(changed.code, 0, "{}", changed.stderr);
            harmless(&changed, change);
        }
        bench
    }

    /// Runs a command on the image, with `after` behind its path.
    fn run(&self, words: &[&str], after: &str) -> Ended {
        let mut target = self.path.clone().into_os_string();
        target.push(after);
        let words = words.iter().map(OsString::from).chain([target]);
        ugeom(&words.collect::<Vec<_>>())
    }
}

/// Nothing that was printed is hidden, and nothing was replaced.
fn harmless(ended: &Ended, what: &[&str]) {
    for text in [&ended.text(), &ended.stderr] {
        let bad = |c: char| {
            (c.is_control() && !matches!(c, '\n' | '\t'))
                || matches!(c, '\u{202e}' | '\u{2066}' | '\u{fffd}')
        };
        assert!(!text.contains(bad), "{what:?}: {text:?}");
    }
}

#[test]
fn every_command_takes_such_a_path_and_shows_it_escaped() {
    let bench = Bench::new();
    for words in [
        &["show"][..],
        &["show", "-v"],
        &["part", "show", "-p"],
        &["part", "show", "-l"],
        &["part", "backup"],
        &["part", "search", "--quick"],
        &["part", "recover", "--dry-run"],
        &["diskinfo"],
        &["diskinfo", "-v"],
        &["geli", "dump"],
        &["part", "delete", "-i", "9"],
        &["part", "destroy"],
        &["write", "--length", "0"],
        &["serve", "--nbd", "unix:/dev/null/none"],
        &["iostat", "--no-such-option"],
    ] {
        let ended = bench.run(words, "");
        harmless(&ended, words);
        let printed = ended.text() + &ended.stderr;
        assert!(!printed.contains("UTF-8"), "{words:?}: {printed}");
        let names_it = ended.code == 0 && !words.contains(&"backup") && !words.contains(&"search");
        assert!(!names_it || printed.contains(SHOWN), "{words:?}: {printed}");
    }
    let shown = bench.run(&["part", "show", "-l"], "").quiet();
    has(&shown, LABEL_SHOWN);
    let shown = bench.run(&["show"], "").quiet();
    has(&shown, &format!("{SHOWN}p1"));
    has(&shown, LABEL_SHOWN);
    let missing = bench.run(&["show"], ".absent").failed(1);
    has(&missing, SHOWN);
    let absent = bench.run(&["show"], "@p7").failed(2);
    let name = format!("there is no provider `p7` or `{SHOWN}p7`");
    has(&absent, &name);
}

#[test]
fn a_partition_of_such_a_path_is_read_and_written() {
    let bench = Bench::new();
    let mut target = bench.path.clone().into_os_string();
    target.push("@p1");
    let written = ugeom_with(
        &[
            OsStr::new("write"),
            OsStr::new("--length"),
            OsStr::new("512"),
            &target,
        ],
        &[7; 512],
    );
    assert_eq!(written.code, 0, "{}", written.stderr);
    // The name that `show` prints in JSON, given back as it is.
    let json = bench.run(&["show", "--json"], "");
    harmless_json(&json.stdout);
    let whole = std::fs::read(&bench.path).expect("the image");
    let read = ugeom(&[OsStr::new("read"), &target]);
    assert!(
        read.code == 0 && read.stdout[..512] == [7; 512] && whole[1 << 20..][..512] == [7; 512]
    );
}

/// JSON that a parser takes, and that has the name as text.
fn harmless_json(bytes: &[u8]) {
    let value = json_of(bytes);
    let text = value.to_string();
    has(&text, "\\n\\u001b[31m");
    has(&text, "a\\nb\\u001b[1m");
}

#[test]
fn documents_stay_valid() {
    let bench = Bench::new();
    for words in [
        &["show", "--json"][..],
        &["part", "search", "--json"],
        &["diskinfo", "--json"],
    ] {
        let printed = bench.run(words, "");
        harmless(&printed, words);
        if printed.code == 0 {
            let parsed = serde_json::from_slice::<serde_json::Value>(&printed.stdout);
            parsed.unwrap_or_else(|error| panic!("{words:?}: {error}"));
        }
    }
    let xml = bench.run(&["show", "--xml"], "");
    assert_eq!(xml.code, 0, "{}", xml.stderr);
    assert!(
        !xml.text().contains(['\u{1b}', '\u{202e}']),
        "{}",
        xml.text()
    );
    let Some(xmllint) = ugeom_testkit::program("xmllint") else { return };
    let checked = crate::run::run(crate::run::command(xmllint, &["--noout", "-"]), &xml.stdout);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
}

#[test]
fn a_label_comes_back_from_a_backup_byte_for_byte() {
    let bench = Bench::new();
    let saved = bench.run(&["part", "backup"], "");
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    harmless(&saved, &["part", "backup"]);
    let copy = bench.path.with_extension("copy");
    std::fs::File::create(&copy)
        .and_then(|file| file.set_len(8 << 20))
        .expect("an image");
    let words = ["part", "restore", "-l"].map(OsString::from).into_iter();
    let words: Vec<_> = words.chain([copy.clone().into_os_string()]).collect();
    let restored = ugeom_with(&words, &saved.stdout);
    assert_eq!(restored.code, 0, "{}", restored.stderr);
    let label: Vec<u8> = LABEL.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bytes = std::fs::read(copy).expect("the copy");
    assert!(bytes[1024 + 56..].starts_with(&label));
}

#[test]
fn a_file_of_a_mount_has_the_bytes_of_the_name() {
    let bench = Bench::new();
    let mount = bench.path.with_file_name("mnt");
    std::fs::create_dir(&mount).expect("a mount point");
    let find = "find \"$mnt\" -type f -printf '%f\\0'";
    let words = ["serve", "--fuse"].map(OsString::from).into_iter();
    let words = words.chain([
        mount.into(),
        "--run".into(),
        find.into(),
        bench.path.clone().into(),
    ]);
    let listed = ugeom(&words.collect::<Vec<_>>());
    if listed.code != 0 && crate::files::lacks_mounts(&listed.stderr) {
        return ugeom_testkit::skip(listed.stderr.trim());
    }
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    let mut names: Vec<&[u8]> = listed.stdout.split(|byte| *byte == 0).collect();
    names.sort_unstable();
    assert_eq!(names, [b"", NAME, &[NAME, b"p1"].concat()]);
}
