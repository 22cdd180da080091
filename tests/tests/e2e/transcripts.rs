//! The transcripts of the documents: their commands are run again on material that is made here,
//! and print the documented lines, with figures, dates and units masked.

use crate::run::{UGEOM, command, run};
use crate::step::{Step, transcripts};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A transcript: its document, how its first command begins, and what is there before it.
#[rustfmt::skip]
const REPEATED: [(&str, &str, &str); 21] = [
    ("README.md", "ugeom show laptop.img", LAPTOP),
    ("tour.md", "truncate -s 1G", ""),
    ("tour.md", "ugeom show 'md:64m", ""),
    ("tour.md", "ugeom raidtest", ""),
    ("tour.md", "printf '%s", ""),
    ("tour.md", "ugeom run --name=s", ""),
    ("run.md", "ugeom run typo.fio", "printf '[a]\nioengine=null\niodpeth=2\n' > typo.fio"),
    ("engines.md", "ugeom show -v", "truncate -s 64M disk.img"),
    ("stack-language.md", "ugeom show disk.img", STACKS),
    ("classes/bsd.md", "ugeom show m.img", LABEL),
    ("classes/bsd.md", "ugeom part create",
        "truncate -s 8M m.img; ugeom part create -s mbr m.img; ugeom part add -t freebsd m.img"),
    ("classes/cache.md", "ugeom show 'md", ""),
    ("classes/cache.md", "ugeom show 'disk.img", "truncate -s 64M disk.img"),
    ("classes/delayed.md", "ugeom show", ""),
    ("classes/disk.md", "ugeom show", ""),
    ("classes/gpt.md", "ugeom show g.img", GPT),
    ("classes/gpt.md", "ugeom part create", "truncate -s 64M g.img"),
    ("classes/mbr.md", "ugeom part create", "truncate -s 64M m.img"),
    ("classes/md.md", "ugeom show", ""),
    ("classes/nop.md", "ugeom show", "head -c 1M /dev/zero | tr '\\0' x > disk.img"),
    ("classes/zero.md", "ugeom diskinfo", ""),
];

/// The disk of a laptop of 2002, cut where its copy ended.
const LAPTOP: &str = "truncate -s 20003880960 laptop.img; \
    ugeom part create -s mbr laptop.img; \
    ugeom part add -t freebsd -b 63 -s 39070017 laptop.img; \
    ugeom part set -a active -i 1 laptop.img; \
    ugeom part create -s bsd laptop.imgs1; \
    ugeom part add -t freebsd-ufs -b 0 -s 2097152 laptop.imgs1; \
    ugeom part add -t freebsd-swap -b 2097152 -s 2097152 laptop.imgs1; \
    ugeom part add -i 4 -t freebsd-ufs -b 30384128 -s 8685889 laptop.imgs1; \
    ugeom part add -i 5 -t freebsd-ufs -b 4194304 -s 1048576 laptop.imgs1; \
    truncate -s 2671841280 laptop.img";

/// A BSD label in an MBR.
const LABEL: &str = "truncate -s 8M m.img; ugeom part create -s mbr m.img; \
    ugeom part add -t freebsd -b 63 -s 8192 m.img; \
    ugeom part create -s bsd m.img@s1; ugeom part add -t freebsd-ufs -s 1m m.img@s1; \
    ugeom part add -t freebsd-swap m.img@s1";

/// A GPT with names.
const GPT: &str = "truncate -s 64M g.img; ugeom part create -s gpt g.img; \
    ugeom part add -t efi -s 16m -l boot g.img; ugeom part add -t freebsd-zfs -l tank g.img";

/// Why the transcript of a class is not repeated: the disk that it shows.
const DISK: &str = "a disk that the tests of the class make";

/// The files of the examples of the stack language.
const STACKS: &str = "truncate -s 64M disk.img; \
    ugeom part create -s mbr disk.img; ugeom part add -t freebsd -a 1m disk.img; \
    ugeom part create -s bsd disk.img@s1; ugeom part add -t freebsd-ufs disk.img@s1; \
    printf '[stack.slow]\nlayers = [\"disk.img\", \"nop:delay=1ms\", \"mbr\"]\n' > stacks.toml";

/// Transcripts that are not repeated here: how the first command begins, and why.
#[rustfmt::skip]
const ELSEWHERE: [(&str, &str, &str); 34] = [
    ("tour.md", "ugeom iostat vda", "a disk of the machine that it was made on"),
    ("tour.md", "ugeom run --name=global", "needs O_DIRECT; fio_ratio.rs compares its figures"),
    ("tour.md", "truncate -s 64M", "session.rs"),
    ("tour.md", "mkdir mnt", "session.rs"),
    ("tour.md", "fio --name=x", "session.rs"),
    ("tour.md", "cargo xtask install", "installs a library; guasi-capi tests it"),
    ("rescue.md", "ugeom read /dev/sdb", "a failing disk; rescue.rs"),
    ("rescue.md", "ugeom show disk.img", "without output"),
    ("rescue.md", "ugeom part search", "without output; part_search.rs"),
    ("lab-engines.md", "ugeom lab engines", "without output; minutes"),
    ("serve.md", "ugeom serve disk.img --nbd unix", "serves until it is ended; serve.rs"),
    ("serve.md", "ugeom serve root=", "serves until it is ended; exports.rs"),
    ("serve.md", "ugeom serve disk.img --nbd tcp", "keys and other machines; tls.rs, allowed.rs"),
    ("serve.md", "mkdir -p /etc/ugeom", "changes the system; sockets.rs"),
    ("serve.md", "mkdir /tmp/geom", "serves until it is ended; session.rs"),
    ("serve.md", "ugeom serve disk.img --rw", "needs root; mounted.rs"),
    ("serve.md", "ugeom serve 'small", "a full file system; lost.rs"),
    ("classes/amiga.md", "ugeom show", DISK),
    ("classes/apm.md", "ugeom show", DISK),
    ("classes/atari.md", "ugeom show", DISK),
    ("classes/bsd.md", "ugeom show critter", DISK),
    ("classes/ebr.md", "ugeom show m2.img", DISK),
    ("classes/ebr.md", "ugeom show loop.img", DISK),
    ("classes/mbr.md", "ugeom show over.img", DISK),
    ("classes/pc98.md", "ugeom show", DISK),
    ("classes/sgi.md", "ugeom show", DISK),
    ("classes/vtoc8.md", "ugeom show", DISK),
    ("performance.md", "cargo bench", "without output; minutes"),
    ("classes/crash.md", "ugeom serve", "serves until it is ended"),
    ("classes/eli.md", "ugeom show disk.img", "without output; geli.rs"),
    ("classes/file.md", "ugeom show disk.img", "without output; a device"),
    ("classes/file.md", "ugeom show vm.qcow2", "serves until it is ended; images.rs"),
    ("classes/file.md", "ugeom show disk.img.xz", "serves until it is ended; packed.rs"),
    ("classes/nbd.md", "ugeom serve", "serves until it is ended; other machines"),
];

/// The documents with their names below `docs`.
fn documents() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md")).expect("README.md");
    let mut documents = vec![("README.md".to_owned(), readme)];
    for (folder, prefix) in [("docs", ""), ("docs/classes", "classes/")] {
        for entry in fs::read_dir(root.join(folder)).expect(folder) {
            let entry = entry.expect("a document");
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if name.ends_with(".md") {
                let text = fs::read_to_string(entry.path()).expect("a document");
                documents.push((name, text));
            }
        }
    }
    documents
}

/// A line as it is compared: figures are `#`, with what scales them; dates and units of time are
/// masked, and blanks are as many as figures leave.
fn masked(line: &str) -> String {
    const WORDS: [&str; 24] = [
        "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun",
        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "nsec", "usec", "msec", "sec", "us",
    ];
    let mut out = String::new();
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter.is_ascii_digit() {
            while letters
                .peek()
                .is_some_and(|it| it.is_ascii_digit() || *it == '.' || *it == 'k' || *it == 'M')
            {
                letters.next();
            }
            out.push('#');
        } else if letter.is_ascii_alphabetic() {
            let mut word = letter.to_string();
            while letters.peek().is_some_and(char::is_ascii_alphabetic) {
                word.extend(letters.next());
            }
            out.push_str(if WORDS.contains(&word.as_str()) {
                "@"
            } else {
                &word
            });
        } else {
            out.push(letter);
        }
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lines as they are compared, without empty ones at the end.
fn lines<'a>(of: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut lines: Vec<String> = of.map(masked).collect();
    lines.truncate(
        lines
            .iter()
            .rposition(|line| !line.is_empty())
            .map_or(0, |at| at + 1),
    );
    lines
}

#[test]
fn every_transcript_is_repeated_here_or_known() {
    for (name, text) in documents() {
        for steps in transcripts(&text, &["$ ", "# "]) {
            let first = &steps[0].command;
            let is = |one: &&(&str, &str, &str)| one.0 == name && first.starts_with(one.1);
            let known = REPEATED.iter().chain(&ELSEWHERE).find(is);
            assert!(
                known.is_some(),
                "{name}: `{first}` is a transcript that no test repeats"
            );
        }
    }
}

#[test]
fn what_documents_show_is_what_commands_print() {
    let documents = documents();
    for (name, first, before) in REPEATED {
        let forbidden = fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
        if name == "engines.md" && forbidden.is_ok_and(|it| it.trim() != "0") {
            ugeom_testkit::skip("the system forbids io_uring");
            continue;
        }
        let (_, text) = documents
            .iter()
            .find(|one| one.0 == name)
            .expect("the document");
        let all = transcripts(text, &["$ ", "# "]);
        let is = |steps: &&Vec<Step>| steps[0].command.starts_with(first);
        let steps = all
            .iter()
            .find(is)
            .unwrap_or_else(|| panic!("{name}: no `{first}`"));
        repeat(name, steps, before);
    }
}

fn repeat(document: &str, steps: &[Step], before: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    symlink(UGEOM, folder.path().join("ugeom")).expect("the program");
    let shell = |script: &str| {
        let script = format!("PATH=$PWD:$PATH; {script}");
        let mut bash = command("bash", &["-c", script.as_str()]);
        bash.current_dir(folder.path());
        run(bash, b"")
    };
    let made = shell(before);
    assert_eq!(made.code, 0, "{document}: {before}: {}", made.stderr);
    for step in steps {
        let ended = shell(&format!("{{ {}\n}} 2>&1", step.command));
        let printed = lines(ended.text().lines());
        let expected = lines(step.expected.iter().map(String::as_str));
        if expected.is_empty() {
            assert_eq!(ended.code, 0, "{document}: {}: {printed:#?}", step.command);
            continue;
        }
        let shortened = expected.iter().any(|line| line == "...");
        let mut rest = printed.iter();
        let mut shown = expected.iter().filter(|line| *line != "...");
        let same = if shortened {
            shown.all(|line| rest.any(|printed| printed == line))
        } else {
            expected == printed
        };
        assert!(
            same,
            "{document}: {}\nprints {printed:#?}\nthe document has {expected:#?}",
            step.command
        );
    }
}
