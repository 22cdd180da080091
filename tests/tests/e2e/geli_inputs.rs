//! Wrong input of `ugeom geli`, and `attach -C`.

use crate::disks;
use crate::geli::{Files, files, geli, refused};
use crate::run::{has, other, part, ugeom, ugeom_with, words_of};
use std::fs;

/// `attach -C` tries a key and changes nothing; without -C it names the target that does the same.
#[test]
fn attach_tries_a_key_or_names_a_target() {
    let files = files(1 << 20);
    let (image, k, p) = (&files.image, &files.keyfile, &files.passfile);
    geli(&["init", "-Bnone", "-P", "-K", k, image]);
    let second = [
        "setkey", "-Bnone", "-n", "1", "-i", "9", "-p", "-k", k, "-J",
    ];
    geli(&[&second[..], &[p, image]].concat());
    let before = fs::read(image).expect("reads");
    geli(&["attach", "-C", "-p", "-k", k, image]);
    let said = geli(&["attach", "-C", "-v", "-j", p, image]);
    assert_eq!(said, format!("The key opens slot 1 of {image}.\n"));
    #[rustfmt::skip]
    let wrong = [
        (vec!["-n", "1", "-p", "-k", k], "Wrong key for disk.img."),
        (vec!["-n", "2", "-p", "-k", k], "Invalid 'keyno' argument."),
        (vec!["-p"], "No key components given."),
        (vec!["-p", "-j", p], "Options -j and -p are mutually exclusive."),
        (vec!["-d", "-r", "-j", p], "Options -d and -r are mutually exclusive."),
        (vec!["-k", "/dev/null/none", "-p"], "Cannot open keyfile /dev/null/none"),
    ];
    for (options, words) in wrong {
        let error = refused(&[&["attach", "-C"], &options[..], &[image]].concat());
        has(&error, words);
    }
    let error = refused(&["attach", "-C", "-p", "-k", k, image, "/dev/null/none"]);
    has(&error, "at least one provider");
    let error = refused(&["attach", "-p", "-k", k, "-n", "0", "-r", image]);
    let named = format!("'{image} | eli:keyfile={k},nopassphrase=1,slot=0,readonly=1'");
    assert!(error.contains(&named) && !error.contains("--rw"), "{error}");
    let error = refused(&["onetime", "-e", "aes-cbc", "-l", "256", "-s", "4096", image]);
    let named = "eli:onetime=1,ealgo=aes-cbc,keylen=256,sectorsize=4096";
    has(&error, named);
    assert!(fs::read(image).expect("reads") == before);
}

/// A provider, and its bytes, which none of the commands may change.
struct Unchanged {
    files: Files,
    before: Vec<u8>,
}

impl Unchanged {
    fn new() -> Self {
        let files = files(1 << 20);
        geli(&["init", "-Bnone", "-P", "-K", &files.keyfile, &files.image]);
        let before = fs::read(&files.image).expect("reads");
        Self { files, before }
    }

    /// A command for the provider, its exit code and words of its message.
    fn refuses(&self, arguments: &[&str], code: i32, words: &str) {
        let all = [&["geli"], arguments, &[&self.files.image]].concat();
        let error = ugeom(&all).failed(code);
        assert!(error.contains(words), "{arguments:?}: {error}");
        assert!(!error.contains("panicked"), "{error}");
        let after = fs::read(&self.files.image).expect("reads");
        assert!(after == self.before, "{arguments:?}");
    }
}

#[test]
fn init_refuses_what_makes_no_provider() {
    let it = Unchanged::new();
    let (key, pass) = (&it.files.keyfile, &it.files.passfile);
    let init = |more: &[&str], words: &str| {
        let all = [&["init", "--destroy", "-Bnone", "-P", "-K", key], more].concat();
        it.refuses(&all, 1, words);
    };
    init(&["-V", "8"], "should be between 0 and 7");
    init(&["-V", "0", "-a", "hmac/sha1"], "starting from version 1.");
    init(
        &["-V", "4", "-e", "aes-xts"],
        "supported starting from version 5.",
    );
    init(
        &["-V", "3", "-e", "camellia-cbc"],
        "supported starting from version 4.",
    );
    init(&["-a", "hmac/crc"], "Invalid authentication algorithm.");
    init(&["-e", "rot13"], "Invalid encryption algorithm.");
    init(&["-l", "192"], "Invalid key length.");
    init(&["-s", "1000"], "Invalid sector size.");
    init(&["-s", "768"], "Invalid sector size.");
    init(&["-i", "5"], "Options -i and -P are mutually exclusive.");
    init(&["-J", pass], "Options -J and -P are mutually exclusive.");
    init(&["-e", "3des-cbc"], "--legacy");
    init(&["-a", "hmac/md5"], "--legacy");
    it.refuses(
        &["init", "--destroy", "-Bnone", "-P"],
        1,
        "No key components given.",
    );
}

#[test]
fn keys_are_changed_by_the_key_only() {
    let it = Unchanged::new();
    let (key, pass) = (&it.files.keyfile, &it.files.passfile);
    let setkey = |more: &[&str], words: &str| {
        let all = [&["setkey", "-Bnone", "-p", "-k", key], more].concat();
        it.refuses(&all, 1, words);
    };
    setkey(&["-P"], "No key components given.");
    setkey(&["-n", "2", "-P", "-K", key], "Invalid 'keyno' argument.");
    setkey(
        &["-P", "-K", "/dev/null/none"],
        "Cannot open keyfile /dev/null/none",
    );
    setkey(
        &["-J", "/dev/null/none"],
        "Cannot open passfile /dev/null/none",
    );
    it.refuses(
        &["setkey", "-Bnone", "-p", "-k", pass, "-P", "-K", key],
        1,
        "Wrong key",
    );
    it.refuses(
        &["setkey", "-Bnone", "-k", key, "-P", "-K", key],
        1,
        "Missing -p flag.",
    );
    it.refuses(&["delkey"], 1, "Key number has to be specified.");
    it.refuses(&["delkey", "-n", "1"], 1, "Master Key 1 is not set.");
    it.refuses(&["delkey", "-n", "0"], 1, "This is the last Master Key.");
    it.refuses(&["delkey", "-n", "2"], 1, "Invalid 'keyno' argument.");
    it.refuses(&["delkey", "-a"], 1, "--destroy");
}

#[test]
fn wrong_input_of_the_other_verbs_is_refused() {
    let it = Unchanged::new();
    let (image, key) = (&it.files.image, &it.files.keyfile);
    it.refuses(&["configure"], 2, "No option given.");
    it.refuses(&["frobnicate"], 2, "frobnicate");
    for pair in [["-d", "-D"], ["-g", "-G"], ["-r", "-R"], ["-t", "-T"]] {
        it.refuses(&["configure", pair[0], pair[1]], 1, "mutually exclusive.");
    }
    let resize = |size, words| it.refuses(&["resize", "-Bnone", "-s", size], 1, words);
    resize("1m", "Size hasn't changed.");
    resize("2m", "Invalid oldsize: Out of range.");
    resize("100", "Invalid oldsize: Out of range.");
    resize("512k", "Cannot read metadata from");
    it.refuses(
        &["restore", "-Bnone", "/dev/null/none"],
        1,
        "Cannot open /dev/null/none",
    );
    it.refuses(&["restore", "-Bnone", key], 1, "Cannot read metadata from");
    let error = refused(&["backup", image, "/dev/null/none/b"]);
    has(&error, "Unable to write to /dev/null/none/b");
    for verb in ["dump", "version", "kill", "clear"] {
        assert!(refused(&[verb, "/dev/null/none"]).contains("/dev/null/none"));
    }
    refused(&["dump", key]);
    #[rustfmt::skip]
    let verbs = [
        "backup", "restore", "resize", "setkey", "delkey", "kill", "clear", "init", "attach",
    ];
    for verb in verbs {
        let error = ugeom(&["geli", verb]).failed(2);
        has(&error, "Usage:");
    }
}

/// A partition of 20 MiB with GELI, whose metadata is also in a backup, resized to `size`.
fn resized(size: &str) -> (Files, String, String) {
    let files = files(40 << 20);
    part(&["create", "-s", "gpt", &files.image]);
    part(&["add", "-t", "freebsd-zfs", "-s", "20m", &files.image]);
    let (target, backup) = (
        format!("{}@p1", files.image),
        format!("{}.eli", files.image),
    );
    geli(&["init", "-B", &backup, "-P", "-K", &files.keyfile, &target]);
    part(&["resize", "--destroy", "-i", "1", "-s", size, &files.image]);
    (files, target, backup)
}

#[test]
fn metadata_of_a_partition_that_shrank_is_found_behind_it() {
    let (files, target, backup) = resized("10m");
    let recover = |more: &[&str]| {
        let all = [&["recover", "-p", "-k", &files.keyfile], more, &[&target]].concat();
        geli(&all)
    };
    assert!(refused(&["recover", &target]).contains("no GELI metadata was found"));
    let line = "byte 20971008 (past the current end): version 7, AES-XTS 128, \
                for 20971520 bytes, slots 0x01, the key opens slot 0\n";
    for more in [&["-s", "20m"][..], &["--scan"]] {
        assert_eq!(recover(more), line);
    }
    let found = recover(&["--from-backup", &backup]);
    assert!(
        found.starts_with(line) && found.lines().count() == 2,
        "{found}"
    );
    let written = recover(&["--scan", "--write", "-B", "none"]);
    has(&written, "Metadata written");
    geli(&["attach", "-C", "-p", "-k", &files.keyfile, &target]);
}

/// The size that a backup names is a place to look at, and stdin is read once for all copies.
#[test]
fn one_key_is_tried_on_every_copy_that_a_backup_leads_to() {
    let (files, target, backup) = resized("30m");
    let arguments = ["geli", "recover", "--from-backup", &backup, "-k", "-"];
    let key = fs::read(&files.keyfile).expect("a key");
    let found = ugeom_with(&[&arguments[..], &["-p", &target]].concat(), &key).quiet();
    assert!(found.starts_with("byte 20971008: "), "{found}");
    let opened = found
        .lines()
        .filter(|line| line.ends_with(", the key opens slot 0"));
    assert_eq!(opened.count(), 2, "{found}");
    // A copy that takes no passphrase does not end the search.
    let passfile = ["-j", &files.passfile, &target];
    let found = ugeom_with(&[&arguments[..], &passfile].concat(), &key).quiet();
    let skipped = found.lines().filter(|line| line.ends_with("-p tries it"));
    assert_eq!(skipped.count(), 2, "{found}");
}

/// `/dev/zero` has no end: no more of it is read than a backup is long.
#[test]
fn a_backup_without_an_end_is_refused() {
    let it = Unchanged::new();
    it.refuses(&["restore", "/dev/zero"], 1, "no GELI metadata");
    it.refuses(&["recover", "--from-backup", "/dev/zero"], 1, "/dev/zero");
    let target = format!("{} | eli:metadata=/dev/zero", it.files.image);
    has(&ugeom(&["show", &target]).failed(1), "/dev/zero");
}

/// A key or a passphrase without an end is refused, and what has one is taken from a pipe.
#[test]
fn keys_without_an_end_are_refused() {
    let it = Unchanged::new();
    let key = &it.files.keyfile;
    let zero = "/dev/zero";
    let endless = |arguments: &[&str]| it.refuses(arguments, 1, "more than 16 MiB");
    endless(&["init", "--destroy", "-Bnone", "-P", "-K", zero]);
    endless(&["attach", "-C", "-p", "-k", zero]);
    endless(&["setkey", "-Bnone", "-p", "-k", zero, "-P", "-K", key]);
    endless(&["setkey", "-Bnone", "-p", "-k", key, "-P", "-K", zero]);
    let long = |arguments: &[&str]| it.refuses(arguments, 1, "longer than 1023 bytes");
    long(&["init", "--destroy", "-Bnone", "-J", zero]);
    long(&["setkey", "-Bnone", "-p", "-k", key, "-J", zero]);
    for (option, words) in [
        ("keyfile=/dev/zero,nopassphrase=1", "more than 16 MiB"),
        ("passfile=/dev/zero", "longer than 1023 bytes"),
    ] {
        let target = format!("{} | eli:{option}", it.files.image);
        has(&ugeom(&["show", &target]).failed(1), words);
    }
    let attach = ["geli", "attach", "-C", "-p", "-k", "-", &it.files.image];
    let bytes = fs::read(key).expect("a key");
    ugeom_with(&attach, &bytes).quiet();
    let error = ugeom_with(&attach, &vec![0; (16 << 20) + 1]).failed(1);
    has(&error, "Cannot read keyfile -: more than 16 MiB");
    let wrong = ugeom_with(&attach, &vec![0; 16 << 20]).failed(1);
    has(&wrong, "Wrong key for");
}

/// Puts content on an image.
type Make<'a> = &'a dyn Fn(&str);

/// A disk that GELI does not own is not written to by the verbs that need no metadata on it.
#[test]
fn the_verbs_write_over_no_other_content() {
    let old = files(1 << 20);
    let (key, backup) = (&old.keyfile, disks::at(&old.folder, "backup"));
    geli(&["init", "-B", &backup, "-P", "-K", key, &old.image]);
    let gpt = |image: &str| drop(part(&["create", "-s", "gpt", image]));
    let ext4 = |image: &str| drop(other("mkfs.ext4", &["-q", "-F", image]));
    let mut made: Vec<(&str, Make<'_>)> = vec![("a GPT", &gpt)];
    if ugeom_testkit::program("mkfs.ext4").is_some() {
        made.push(("an ext4 file system", &ext4));
    }
    let backup = backup.as_str();
    let recover = [
        "recover",
        "-Bnone",
        "--from-backup",
        backup,
        "-p",
        "-k",
        key,
    ];
    for (title, make) in made {
        let new = files(8 << 20);
        let image = &new.image;
        make(image);
        let before = fs::read(image).expect("reads");
        let refuses = |arguments: &[&str], words: &str| {
            let error = refused(&[arguments, &[image]].concat());
            assert!(error.contains(title) && error.contains(words), "{error}");
            assert!(fs::read(image).expect("reads") == before, "{arguments:?}");
        };
        refuses(&["kill", "--destroy"], "has no GELI metadata");
        refuses(&["restore", "-f", "-Bnone", backup], "--destroy");
        refuses(&[&recover[..], &["--write"]].concat(), "--destroy");
        has(&geli(&[&recover[..], &[image]].concat()), "opens slot 0");
        geli(&[&recover[..], &["--write", "--destroy", image]].concat());
        has(&geli(&["dump", image]), "version: 7");
        // With metadata it is GELI's, whatever is left over from before.
        geli(&["restore", "-f", "-Bnone", backup, image]);
        geli(&["kill", "--destroy", image]);
    }
}

/// Metadata that is damaged, and a last sector of noise, may hold the rest of a key.
#[test]
fn damaged_metadata_is_killed() {
    let one = files(1 << 20);
    for damaged in [100, 0] {
        geli(&words_of(&format!(
            "init --destroy -Bnone -P -K {} {}",
            one.keyfile, one.image
        )));
        let mut bytes = fs::read(&one.image).expect("reads");
        let place = bytes.len() - 512;
        bytes[place + damaged] ^= 1;
        fs::write(&one.image, &bytes).expect("writes");
        let killed = ugeom(&["geli", "kill", "--destroy", &one.image]);
        assert_eq!(killed.code, 0, "{}", killed.stderr);
        let bytes = fs::read(&one.image).expect("reads");
        assert!(bytes[place..].iter().all(|byte| *byte == 0));
    }
}
