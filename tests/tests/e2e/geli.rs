//! `ugeom geli` in the manner of geli(8), with GRUB as the judge of written data.

use crate::disks;
use crate::run::{command, has, other, part, run, ugeom, ugeom_with, words_of};
use crate::serve::noise;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use ugeom_testkit::{program, skip};

pub fn geli(arguments: &[&str]) -> String {
    ugeom(&[&["geli"], arguments].concat()).quiet()
}

pub fn refused(arguments: &[&str]) -> String {
    ugeom(&[&["geli"], arguments].concat()).failed(1)
}

/// An image with a keyfile `k` and a passfile `p` beside it.
pub struct Files {
    pub folder: tempfile::TempDir,
    pub image: String,
    pub keyfile: String,
    pub passfile: String,
}

pub fn files(bytes: u64) -> Files {
    let (folder, path) = disks::empty_image(bytes);
    let place = |name: &str| disks::at(&folder, name);
    let (keyfile, passfile) = (place("k"), place("p"));
    fs::write(&keyfile, noise(1, 64)).expect("writes");
    fs::write(&passfile, "open sesame\n").expect("writes");
    Files {
        image: disks::text(&path),
        folder,
        keyfile,
        passfile,
    }
}

/// The bytes that GRUB reads from the image.
fn grub(files: &Files, bytes: usize) -> Vec<u8> {
    let out = files.folder.path().join("out");
    let blocks = format!("(crypto0)0+{}", bytes / 512);
    let passphrase = fs::File::open(&files.passfile).expect("opens");
    let ended = Command::new("grub-fstest")
        .args(["-C", &files.image, "cp", &blocks])
        .arg(&out)
        .stdin(Stdio::from(passphrase))
        .output()
        .expect("grub-fstest");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{errors}");
    fs::read(out).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

/// Version, cipher, key bits, sector size: all that GRUB can read, once each at least.
#[rustfmt::skip]
const COMBINATIONS: &[(&str, &str, &str, &str)] = &[
    ("1", "aes-cbc", "128", "512"), ("3", "aes-cbc", "192", "4096"),
    ("4", "aes-cbc", "256", "512"), ("5", "aes-cbc", "128", "4096"),
    ("6", "aes-cbc", "256", "4096"), ("7", "aes-cbc", "192", "512"),
    ("5", "aes-xts", "128", "512"), ("6", "aes-xts", "256", "512"),
    ("7", "aes-xts", "128", "4096"), ("7", "aes-xts", "256", "512"),
    ("4", "camellia-cbc", "256", "512"), ("7", "camellia-cbc", "256", "4096"),
    ("1", "3des-cbc", "192", "512"), ("7", "3des-cbc", "192", "4096"),
    ("3", "blowfish-cbc", "128", "512"), ("6", "blowfish-cbc", "128", "4096"),
];

#[test]
fn grub_reads_what_ugeom_writes() {
    if program("grub-fstest").is_none() {
        return;
    }
    for (number, (version, cipher, bits, sector)) in (0..).zip(COMBINATIONS) {
        let files = files(1 << 20);
        let plain = noise(number, 128 << 10);
        let (image, passfile) = (&files.image, &files.passfile);
        geli(&[
            "init", "--legacy", "-B", "none", "-V", version, "-e", cipher, "-l", bits, "-s",
            sector, "-J", passfile, "-i", "50", image,
        ]);
        let target = format!("{image} | eli:passfile={passfile},legacy=1");
        let written = ugeom_with(&["write", "--destroy", &target], &plain);
        assert_eq!(written.code, 0, "{}", written.stderr);
        let read = grub(&files, plain.len());
        assert!(read == plain, "version {version} {cipher} {bits} {sector}");
    }
}

#[test]
fn a_key_is_needed_and_never_shown() {
    let files = files(1 << 20);
    let (image, keyfile) = (&files.image, &files.keyfile);
    assert!(refused(&["init", "-B", "none", "-P", image]).contains("No key components given."));
    geli(&["init", "-B", "none", "-P", "-K", keyfile, image]);
    let shown = ugeom(&["show", image]).quiet();
    has(
        &shown,
        "ELI: locked; version 7, AES-XTS 128, slots 0, flags AUTORESIZE",
    );
    let wrong = format!("{image} | eli:keyfile={image},nopassphrase=1");
    let error = ugeom(&["read", &wrong]).failed(1);
    has(&error, "Wrong key for disk.img.");
    let target = format!("{image} | eli:keyfile={keyfile}");
    let listed = geli(&["list", &target]);
    for line in [
        "UsedKey: 0",
        "KeysTotal: 1",
        "State: ACTIVE",
        "KeyLength: 128",
    ] {
        assert!(listed.lines().any(|one| one == line), "{listed}");
    }
    let status = geli(&["status", image]);
    assert_eq!(
        status,
        "        Name  Status  Components\ndisk.img.eli  LOCKED  disk.img\n"
    );
}

#[test]
fn init_destroys_nothing_unasked() {
    let files = files(1 << 20);
    let (image, keyfile) = (&files.image, &files.keyfile);
    geli(&["init", "-B", "none", "-P", "-K", keyfile, image]);
    let before = fs::read(image).expect("reads");
    let error = refused(&["init", "-B", "none", "-P", "-K", keyfile, image]);
    has(&error, "GEOM::ELI");
    has(&error, "--destroy");
    let error = refused(&["kill", image]);
    has(&error, "--destroy");
    assert!(refused(&["clear", "-B", "none", image]).contains("--destroy"));
    assert!(fs::read(image).expect("reads") == before);
    let backup = disks::at(&files.folder, "backup");
    let printed = geli(&words_of(&format!(
        "init --destroy -B {backup} -P -K {keyfile} {image}"
    )));
    has(&printed, &format!("# ugeom geli restore {backup} {image}"));
    geli(&["kill", "--destroy", image]);
    assert!(refused(&["dump", image]).contains("Cannot read metadata from disk.img"));
    geli(&["restore", "-B", "none", &backup, image]);
    assert_eq!(
        geli(&["version", image, &backup]),
        format!("{image}: 7\n{backup}: 7\n")
    );
}

/// A new provider with tags is tasted in silence, though none of its sectors can be read yet; a
/// read gets the error and its offset.
#[test]
fn a_new_authenticated_provider_is_opened_without_noise() {
    let files = files(1 << 20);
    let (image, key) = (&files.image, &files.keyfile);
    geli(&words_of(&format!(
        "init -Bnone -a hmac/sha256 -P -K {key} {image}"
    )));
    let target = format!("{image} | eli:keyfile={key},nopassphrase=1");
    let shown = ugeom(&["show", &target]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    let error = ugeom(&["read", &target, "--length", "512"]).failed(1);
    has(&error, "failed its authentication");
}

#[test]
fn several_providers_get_keys_of_their_own() {
    let (one, other) = (files(1 << 20), files(1 << 20));
    let key = &one.keyfile;
    geli(&words_of(&format!(
        "init -B none -P -K {key} {} {}",
        one.image, other.image
    )));
    let salts = [&one, &other].map(|files| {
        let dump = geli(&["dump", &files.image]);
        let line = dump.lines().find(|line| line.contains("Salt: "));
        line.expect("a salt").to_owned()
    });
    assert_ne!(salts[0], salts[1]);
    let fifth = ugeom(&[
        "geli",
        "version",
        &one.image,
        "/dev/null/none",
        &other.image,
    ]);
    assert_eq!(fifth.code, 1);
    assert_eq!(
        fifth.text(),
        format!("{}: 7\n{}: 7\n", one.image, other.image)
    );
    has(&fifth.stderr, "Not fully done.");
}

/// Cases beyond `resize_test.sh` of FreeBSD: a backup and a key find the metadata of a provider
/// that has grown.
#[test]
fn a_provider_that_has_grown_is_found_by_its_backup_and_its_key() {
    let files = files(1 << 20);
    let (image, key) = (files.image.as_str(), files.keyfile.as_str());
    let place = |name: &str| disks::at(&files.folder, name);
    let saved = place("saved");
    let plain = noise(4, 100 * 512);
    let target = format!("{image} | eli:keyfile={key}");
    let works = || {
        let read = ugeom(&["read", &target, "--length", "51200"]);
        assert!(read.code == 1 || read.stdout == plain, "{}", read.stderr);
        read.code == 0
    };
    geli(&["init", "-Bnone", "-P", "-K", key, image]);
    let written = ugeom_with(&["write", &target], &plain);
    assert_eq!(written.code, 0, "{}", written.stderr);

    geli(&["backup", image, &saved]);
    let grow = |bytes| {
        let file = fs::OpenOptions::new().write(true).open(Path::new(image));
        file.and_then(|file| file.set_len(bytes)).expect("grows");
    };
    grow(2 << 20);
    assert!(!works());
    assert!(refused(&["restore", "-Bnone", &saved, image]).contains("wrong backup file?"));
    let found = geli(&["recover", "-s", "1m", "-p", "-k", key, image]);
    has(&found, "the key opens slot 0");
    let resized = place("resized");
    geli(&["resize", "-B", &resized, "-s", "1m", image]);
    assert!(refused(&["resize", "-s", "1m", image]).contains("Cannot read metadata"));
    assert!(
        fs::read(&resized).expect("a backup") == fs::read(&saved).expect("a backup"),
        "the backup is the metadata of the old size"
    );
    assert!(works());
    grow(3 << 20);
    let written = geli(&words_of(&format!(
        "recover -Bnone --from-backup {saved} -p -k {key} --write {image}"
    )));
    has(&written, "Metadata written to the last sector");
    assert!(works());
}

#[test]
fn flags_are_set_and_cleared() {
    let files = files(1 << 20);
    let (image, key) = (&files.image, &files.keyfile);
    geli(&["init", "-Bnone", "-b", "-T", "-P", "-K", key, image]);
    let flags = || {
        let dump = geli(&["dump", image]);
        let line = dump
            .lines()
            .find_map(|line| line.strip_prefix("     flags: "));
        line.expect("flags").to_owned()
    };
    assert_eq!(flags(), "0x242");
    let saved = disks::at(&files.folder, "saved");
    geli(&words_of(&format!(
        "configure --backup-file {saved} -B -g -d -t {image}"
    )));
    assert_eq!(flags(), "0x380");
    let before = geli(&["dump", &saved]);
    has(&before, "     flags: 0x242\n");
    // An action without a change saves nothing.
    fs::remove_file(&saved).expect("removes");
    geli(&["configure", "--backup-file", &saved, "-g", image]);
    assert!(!Path::new(&saved).exists());
    let error = refused(&["configure", "-b", "-B", image]);
    has(&error, "Options -b and -B are mutually exclusive.");
}

/// Each of several providers gets a backup of its own, and metadata that init replaces is saved
/// under another name than the new one.
#[test]
fn no_backup_overwrites_another() {
    let (one, other) = (files(1 << 20), files(1 << 20));
    let place = |name: &str| disks::at(&one.folder, name);
    let second = place("second.img");
    fs::rename(&other.image, &second).expect("renames");
    let (key, saved) = (&one.keyfile, place("saved"));
    let init = format!("init --destroy -B {saved} -P -K {key} {}", one.image);
    let init = words_of(&init);
    let images = [one.image.as_str(), second.as_str()];
    geli(&init);
    let dump = |path: &str| {
        let dump = geli(&["dump", path]);
        dump.lines().skip(1).collect::<Vec<_>>().join("\n")
    };
    let first = dump(&one.image);
    geli(&init);
    assert_eq!(dump(&format!("{saved}.old")), first);
    assert_eq!(dump(&saved), dump(&one.image));
    geli(&["init", "-Bnone", "-P", "-K", key, &second]);
    let dumps = images.map(dump);
    geli(&["clear", "--destroy", "-B", &saved, images[0], images[1]]);
    for (name, dumped) in ["disk.img", "second.img"].iter().zip(dumps) {
        assert_eq!(dump(&format!("{saved}-{name}")), dumped);
    }
}

#[test]
fn kill_a_destroys_every_provider_of_a_disk_and_nothing_else() {
    let (folder, path) = disks::empty_image(8 << 20);
    let image = disks::text(&path);
    let key = disks::at(&folder, "k");
    fs::write(&key, noise(1, 64)).expect("writes");
    part(&["create", "-s", "gpt", &image]);
    for _ in 0..3 {
        part(&["add", "-t", "freebsd-ufs", "-s", "2m", &image]);
    }
    let partition = |number: u8| format!("{image}@p{number}");
    let (first, second, third) = (partition(1), partition(2), partition(3));
    geli(&["init", "-Bnone", "-P", "-K", &key, &first, &third]);
    ugeom_with(&["write", "--destroy", &second], &noise(3, 4096)).quiet();
    let before = fs::read(&path).expect("reads");
    let error = refused(&["kill", "-a", &image]);
    has(&error, "--destroy");
    assert!(fs::read(&path).expect("reads") == before);
    let saved = disks::at(&folder, "PROV.saved");
    let printed = geli(&["kill", "-a", "-v", "--destroy", "-B", &saved, &image]);
    assert_eq!(
        printed,
        "disk.imgp1 has been killed.\ndisk.imgp3 has been killed.\n"
    );
    for (target, name) in [(&first, "disk.imgp1"), (&third, "disk.imgp3")] {
        assert!(refused(&["dump", target]).contains("Cannot read metadata"));
        let saved = saved.replace("PROV", name);
        geli(&["restore", "-Bnone", &saved, target]);
    }
    assert!(fs::read(&path).expect("reads") == before);
    geli(&["kill", "-a", "--destroy", &image]);
    let error = refused(&["kill", "-a", "--destroy", &image]);
    has(&error, "no GELI provider was found");
}

#[test]
fn a_passphrase_comes_from_a_descriptor() {
    let files = files(1 << 20);
    let (image, passfile) = (&files.image, &files.passfile);
    geli(&["init", "-Bnone", "-i", "10", "-J", passfile, image]);
    let shell = format!(
        "{} geli list --passphrase-fd 3 '{image} | eli' 3<{passfile}",
        crate::run::UGEOM
    );
    let listed = String::from_utf8(other("sh", &["-c", &shell])).expect("text");
    has(&listed, "UsedKey: 0");
    let target = format!("{image} | eli");
    let closed = ugeom(&["geli", "list", "--passphrase-fd", "99", &target]).failed(1);
    has(&closed, "descriptor 99: Bad file descriptor");
    let shell = format!(
        "{} show --max-kdf-time 1ns --passphrase-fd 3 '{target}' 3<{passfile}",
        crate::run::UGEOM
    );
    let ended = Command::new("sh")
        .args(["-c", &shell])
        .output()
        .expect("runs");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{errors}");
    has(&errors, "10 iterations of PBKDF2 would take about");
}

/// Runs a program on a terminal of its own and types a passphrase when it is asked for one.
const TERMINAL: &str = "
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen, answered = b'', False
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    if not part:
        break
    seen += part
    if not answered and b'Enter passphrase for disk.img: ' in seen:
        os.write(terminal, b'open sesamx\\x7fe\\n')
        answered = True
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

#[test]
fn the_terminal_is_asked_without_echo() {
    let Some(python) = program("python3") else { return };
    if run(command(&python, &["-c", "import pty"]), b"").code != 0 {
        skip("Python has no module pty (libpython3-stdlib)");
        return;
    }
    let files = files(1 << 20);
    let (image, passfile) = (&files.image, &files.passfile);
    geli(&["init", "-Bnone", "-i", "10", "-J", passfile, image]);
    let target = format!("{image} | eli");
    let list = ["-c", TERMINAL, crate::run::UGEOM, "geli", "list", &target];
    let printed = String::from_utf8(other(python, &list)).expect("text");
    has(&printed, "UsedKey: 0");
    for secret in ["sesam", "open"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[test]
fn what_needs_a_running_topology_names_what_to_do() {
    let verbs = [
        ("attach", "-dvk"),
        ("onetime", "-dRTve"),
        ("detach", "-flk"),
        ("suspend", "-vk"),
        ("resume", "-pk"),
    ];
    for (verb, options) in verbs {
        let error = refused(&[verb, options, "key", "disk.img"]);
        has(&error, &format!("geli {verb} needs a running topology"));
        has(&error, "serve");
    }
}
