//! FreeBSD's own scripts that test GELI, run as they are on `ugeom geli` and the layer `eli`.
//!
//! Only the places of devices are changed in them. The programs that they call are those of
//! `freebsd/tools.sh`. Cases that cannot apply: `attach_d_test.sh` and `detach_l_test.sh` (7
//! checks) detach when a program closes the device, which takes a topology that is running.
//!
//! `UGEOM_FREEBSD_GELI=1` runs all combinations of ciphers and sector sizes; otherwise some.

use crate::disks::text;
use crate::run::{PATIENCE, UGEOM, command, end_within};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const TOOLS: &str = include_str!("freebsd/tools.sh");
const PROGRAMS: [&str; 12] = [
    "geli",
    "mdconfig",
    "dd",
    "diskinfo",
    "gpart",
    "disklabel",
    "newfs",
    "growfs",
    "fsck",
    "md5",
    "id",
    "kldstat",
];
/// `for_each_geli_config` calls its function by this.
const SAMPLED: &str = "
sampled() {
	number=$((${number:-0} + 1))
	if [ $((number % EVERY)) -eq 0 ]; then \"$@\"; fi
}
";

/// The folder with the scripts, changed, and one of programs.
fn prepared(scripts: &Path, every: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    for name in ["eli", "bin", "disks", "work"] {
        fs::create_dir(place(name)).expect("a folder");
    }
    fs::write(place("tools"), format!("#!/bin/sh\n{TOOLS}")).expect("writes");
    fs::set_permissions(place("tools"), fs::Permissions::from_mode(0o755)).expect("a mode");
    for name in PROGRAMS {
        std::os::unix::fs::symlink(place("tools"), place("bin").join(name)).expect("a link");
    }
    let disks = text(&place("disks"));
    let mut all: Vec<PathBuf> = vec![scripts.join("../geom_subr.sh")];
    let found = fs::read_dir(scripts).expect("scripts");
    all.extend(found.map(|entry| entry.expect("an entry").path()));
    for path in all {
        let script = fs::read_to_string(&path).expect("a script");
        let name = path.file_name().expect("a name");
        let mut script = script
            .replace("/dev/md", &format!("{disks}/md"))
            .replace("[ -c ", "[ -e ")
            .replace("[ ! -c ", "[ ! -e ")
            .replace("${func} $cipher", "sampled ${func} $cipher");
        if name == "conf.sh" {
            script = script.replacen("class=", &format!("EVERY={every}{SAMPLED}class="), 1);
        }
        let into = match name == "geom_subr.sh" {
            true => place("geom_subr.sh"),
            false => place("eli").join(name),
        };
        fs::write(into, script).expect("writes");
    }
    folder
}

/// Runs one script with every so many combinations; its checks that were passed.
fn passes(name: &str, every: u32) -> Option<usize> {
    let scripts = ugeom_testkit::shared("fixtures/freebsd-geom-tests/eli")?;
    let all = std::env::var_os("UGEOM_FREEBSD_GELI").is_some();
    let folder = prepared(&scripts, if all { 1 } else { every });
    let place = |name: &str| text(&folder.path().join(name));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = command("sh", &[format!("{}/{name}.sh", place("eli"))]);
    shell
        .current_dir(place("work"))
        .env("PATH", format!("{}:{path}", place("bin")))
        .env("D", place("disks"))
        .env("UGEOM", UGEOM)
        .env("TMPDIR", place("work"));
    let limit = if all { 20 * PATIENCE } else { PATIENCE };
    let ended = end_within(shell.spawn().expect("sh"), limit);
    let out = ended.text();
    assert!(!out.contains("not ok"), "{out}\n{}", ended.stderr);
    Some(out.lines().filter(|line| line.starts_with("ok ")).count())
}

#[test]
fn freebsd_nokey_and_setkey() {
    let Some(nokey) = passes("nokey_test", 1) else { return };
    assert_eq!((nokey, passes("setkey_test", 1)), (8, Some(16)));
}

#[test]
fn freebsd_resize() {
    let Some(resize) = passes("resize_test", 1) else { return };
    assert_eq!(resize, 27);
}

#[test]
fn freebsd_init() {
    let Some(init) = passes("init_test", 33) else { return };
    assert!(init == 6 || init == 200, "{init} checks");
}

#[test]
fn freebsd_integrity_data() {
    let Some(integrity) = passes("integrity_data_test", 120) else { return };
    assert!(integrity == 5 || integrity == 600, "{integrity} checks");
}

#[test]
fn freebsd_onetime() {
    if ugeom_testkit::program("fusermount3").is_none() {
        return;
    }
    let Some(onetime) = passes("onetime_test", 49) else { return };
    assert!(onetime == 4 || onetime == 200, "{onetime} checks");
}
