//! Help, usage errors, exit codes, streams and colours.

use crate::run::{UGEOM, command, has, json_of, run, ugeom};
use std::process::Stdio;
use ugeom_testkit::begins;

const COMMANDS: &[&str] = &[
    "show",
    "diskinfo",
    "read",
    "write",
    "part",
    "classes",
    "serve",
    "stat",
    "lab",
    "ab",
    "compare",
    "ministat",
    "completions",
];

#[test]
fn help_goes_to_stdout_and_lists_every_command() {
    let all = ugeom(&["--help"]).quiet();
    assert!(
        COMMANDS
            .iter()
            .all(|name| all.contains(&format!("\n  {name} "))),
        "{all}"
    );
}

#[test]
fn the_help_of_help_is_that_of_the_command_above() {
    let program = ugeom(&["help"]).quiet();
    for asked in [["help", "--help"], ["help", "-h"]] {
        assert_eq!(ugeom(&asked).quiet(), program, "{asked:?}");
    }
    let part = ugeom(&["help", "part"]).quiet();
    assert_eq!(ugeom(&["part", "help", "--help"]).quiet(), part);
}

#[test]
fn a_number_out_of_range_is_answered_with_the_range() {
    for (wrong, range) in [
        (&["serve", "md:1m", "--threads", "0"][..], "1 to 256"),
        (&["ab", "md:1m", "--depth", "5000"], "1 to 4096"),
    ] {
        let text = ugeom(wrong).failed(2);
        let advice = format!(": write a number from {range}\n");
        assert!(text.contains(&advice), "{wrong:?}: {text}");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(
        ugeom(&["-V"]).quiet(),
        concat!("ugeom ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn a_mistyped_option_is_answered_with_the_one_that_was_meant() {
    for (wrong, meant) in [
        (&["serve", "md:1m", "--ndb", "unix:s"][..], "'--nbd'"),
        (&["show", "--jsno", "md:1m"], "'--json'"),
        (&["part", "create", "md:1m", "--destory"], "'--destroy'"),
        (&["show", "md:1m", "--queit"], "'--quiet'"),
    ] {
        let text = ugeom(wrong).failed(2);
        let tip = format!("tip: a similar argument exists: {meant}");
        assert!(text.contains(&tip), "{wrong:?}: {text}");
    }
    for (wrong, has) in [
        (["part", "list", "--jsno"], "'ugeom part show' has '--json'"),
        (
            ["part", "status", "--json"],
            "'ugeom part show' has '--json'",
        ),
        (
            ["geli", "status", "--json"],
            "'ugeom geli list' has '--json'",
        ),
    ] {
        let text = ugeom(&[&wrong[..], &["md:1m"]].concat()).failed(2);
        assert!(text.contains(&format!("tip: {has}")), "{wrong:?}: {text}");
    }
    for wrong in [
        &["show", "md:1m", "--xyzzy"][..],
        &["part", "list", "--xyzzy", "md:1m"],
    ] {
        let text = ugeom(wrong).failed(2);
        assert!(!text.contains("tip:"), "{text}");
    }
}

#[test]
fn wrong_usage_is_2_with_nothing_on_stdout() {
    for wrong in [
        &["shw"][..],
        &[],
        &["show"],
        &["show", "--jsno", "md:1m"],
        &["show", "--json", "--xml", "md:1m"],
        &["read", "md:1m", "--offset", "1x"],
        &["read", "md:1m", "--offset", "2m"],
        &["show", "md:1m | npo"],
        &["show", "md:1m@s1"],
        &["classes", "npo"],
        &["completions", "tcsh"],
    ] {
        let text = ugeom(wrong).failed(2);
        assert!(!text.is_empty(), "{wrong:?}");
    }
}

#[test]
fn an_error_in_a_target_points_at_the_column() {
    let expected = "\
ugeom: there is no class `npo`
--> column 9
 |
 | md:1m | npo
 |         ^^^
 = help: did you mean `nop`?
";
    assert_eq!(ugeom(&["show", "md:1m | npo"]).failed(2), expected);
}

#[test]
fn a_reader_who_leaves_is_told_by_the_exit_code_alone() {
    for arguments in [&["read", "zero"][..], &["show", "zero"], &["--help"]] {
        let mut command = command(UGEOM, arguments);
        let mut child = command.stdin(Stdio::null()).spawn().expect("it starts");
        drop(child.stdout.take());
        let ended = crate::run::end(child);
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (1, ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn colours_are_for_terminals_only() {
    let plain = ugeom(&["show", "md:1m"]).quiet();
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let mut forced = command(UGEOM, &["show", "md:1m"]);
    forced.env("CLICOLOR_FORCE", "1");
    assert!(run(forced, b"").quiet().contains("\u{1b}[1mNAME"));
    let mut forbidden = command(UGEOM, &["show", "md:1m"]);
    forbidden.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert_eq!(run(forbidden, b"").quiet(), plain);
}

#[test]
fn classes_lists_them_and_describes_one() {
    let list = ugeom(&["classes"]).quiet();
    for name in [
        "md", "zero", "file", "nop", "mbr", "ebr", "bsd", "gpt", "apm",
    ] {
        assert!(
            list.lines()
                .any(|line| line.starts_with(&format!("{name} "))),
            "{name}"
        );
    }
    let page = ugeom(&["classes", "NOP"]).quiet();
    begins(&page, "nop: ");
    has(&page, "\n  ... | nop:[offset=");
    let json = json_of(ugeom(&["classes", "md", "--json"]).quiet());
    assert_eq!(json["class"], "MD");
    let options = json["options"].as_array().expect("options");
    assert!(options.iter().any(|option| option["name"] == "size"));
    assert_eq!(json["synopsis"], "md:SIZE[,sectorsize=SIZE][,name=NAME]");
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = ugeom(&["completions", shell]).quiet();
        assert!(COMMANDS.iter().all(|name| script.contains(name)), "{shell}");
    }
}

/// Commands whose result is on stdout.
const PRINTERS: [&str; 34] = [
    "--help",
    "-h",
    "--version",
    "help",
    "help read",
    "read --help",
    "part add --help",
    "version",
    "version --json",
    "classes",
    "classes --json",
    "classes eli",
    "completions bash",
    "part types",
    "part types gpt",
    "show md:1m",
    "show --json md:1m",
    "show --kernel",
    "part show DISK",
    "part show --json DISK",
    "part backup DISK",
    "part search DISK",
    "part recover --dry-run DISK",
    "part set -a bootme -i 1 DISK",
    "diskinfo DISK",
    "diskinfo -v DISK",
    "diskinfo -c md:1m",
    "read DISK",
    "read --length 1 DISK",
    "write --json --destroy --length 0 DISK",
    "run --enghelp",
    "run --showcmd --name=x --size=4k --ioengine=null",
    "run --name=x --size=4k --ioengine=null",
    "run --output-format=json --name=x --size=4k --ioengine=null",
];

#[test]
fn a_result_that_stdout_does_not_take_is_an_error() {
    let (_folder, path) = crate::disks::empty_image(8 << 20);
    let disk = crate::disks::text(&path);
    crate::run::part(&["create", "-s", "gpt", &disk]);
    crate::run::part(&["add", "-t", "efi", &disk]);
    let words = |line: &str| -> Vec<String> {
        let words = line.split(' ');
        words.map(|word| word.replace("DISK", &disk)).collect()
    };
    for line in PRINTERS {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let mut asked = command(UGEOM, &words(line));
        asked.stdout(Stdio::from(full.expect("/dev/full")));
        let ended = crate::run::end(asked.spawn().expect("it starts"));
        assert_eq!(ended.code, 1, "{line}: {}", ended.stderr);
        let expected = "ugeom: writing to stdout: No space left on device\n";
        assert!(ended.stderr.ends_with(expected), "{line}: {}", ended.stderr);

        // A pipe without a reader, and a descriptor that is closed.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut unread = command(UGEOM, &words(line));
        unread.stdout(Stdio::from(writer));
        let closing = [
            &["-c", "exec \"$0\" \"$@\" >&-", UGEOM].map(String::from)[..],
            &words(line),
        ];
        let closed = command("sh", &closing.concat());
        for (mut asked, tells) in [(unread, false), (closed, true)] {
            let ended = crate::run::end(asked.spawn().expect("it starts"));
            assert_eq!(ended.code, 1, "{line}: {}", ended.stderr);
            // Of a debug build, a warning is.
            let is_error = |line: &str| line.starts_with("ugeom: ") && !line.contains("warning:");
            let said = &ended.stderr;
            assert_eq!(said.lines().any(is_error), tells, "{line}: {said}");
            assert_eq!(
                said.ends_with("ugeom: stdout is closed\n"),
                tells,
                "{line}: {said}"
            );
        }
    }
}

#[test]
fn options_for_nbd_clients_need_an_address_beside_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("UTF-8");
    for (option, value) in [
        ("--tls", "require"),
        ("--tls-certificates", folder),
        ("--threads", "3"),
        ("--spin", "1us"),
        ("--max-connections", "3"),
        ("--max-connections-per-peer", "3"),
        ("--max-requests", "3"),
        ("--max-bytes", "1m"),
        ("--handshake-timeout", "3s"),
        ("--stall-timeout", "3s"),
        ("--idle-timeout", "3s"),
    ] {
        let arguments = [
            "serve", "md:1m", "--fuse", folder, "--run", "true", option, value,
        ];
        let why = format!("{option} has no effect on files; add --nbd ADDRESS");
        has(&ugeom(&arguments).failed(2), &why);
    }
}

#[test]
fn values_that_a_server_cannot_use_are_refused() {
    for (option, value, why) in [
        ("--max-requests", "0", "at least 1 is needed"),
        ("--max-connections", "0", "at least 1 is needed"),
        ("--max-connections-per-peer", "0", "at least 1 is needed"),
        ("--max-bytes", "1", "at least 256k is needed"),
        ("--handshake-timeout", "0", "a time limit is more than 0"),
        ("--stall-timeout", "0", "a time limit is more than 0"),
        ("--idle-timeout", "0", "a time limit is more than 0"),
        ("--spin", "10h", "at most 1s"),
        ("--json", "--run=true", "cannot be used with"),
    ] {
        has(&ugeom(&["serve", "md:1m", option, value]).failed(2), why);
    }
}

#[test]
fn advice_and_help_are_fit_to_be_followed() {
    let minus = ugeom(&["read", "-1"]).failed(2);
    assert!(!minus.contains("tip:"), "{minus}");
    has(
        &ugeom(&["serve", "md:1m", "--max-requests", "x"]).failed(2),
        "not a whole number",
    );
    let bare = ugeom::<&str>(&[]);
    assert_eq!(bare.code, 2);
    assert!(!bare.stderr.starts_with("ugeom: "), "{}", bare.stderr);
}

#[test]
fn a_copy_that_its_reader_does_not_take_whole_fails() {
    let copy = format!("'{UGEOM}' read md:8m | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}");
    let ended = run(command("bash", &["-c", &copy]), b"");
    assert_eq!((ended.text().as_str(), ended.stderr.as_str()), ("1\n", ""));
}
