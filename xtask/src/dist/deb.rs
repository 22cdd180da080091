//! The Debian package, as Debian's policy 4.6 wants it; lintian is its test.

use super::binary::Built;
use super::{Pages, VERSION, files_in, hex, tarball};
use crate::install::{Tree, units};
use crate::run;
use anyhow::{Context, Result, bail};
use md5::{Digest, Md5};
use std::fs;
use std::path::{Path, PathBuf};

const DESCRIPTION: &str = "\
FreeBSD's GEOM as a Linux program, with benchmarks
 ugeom composes block devices of layers, as GEOM of FreeBSD does, reads and
 writes partition tables, labels and disk encryption of other systems, and
 serves what it finds over NBD and FUSE, without root and without a kernel
 module.
 .
 Its bench measures what layers, disks, caches, threads and I/O engines cost,
 runs the job files of fio, and compares programs with confidence intervals.";

/// The lintian overrides of a static binary.
const OVERRIDES: &str = "\
# One binary for every release of every distribution; its crates are in Cargo.lock. It is static
# and position-independent, which looks like a library without prerequisites.
ugeom: shared-library-lacks-prerequisites [usr/bin/ugeom]
# There is no mailing list: questions and faults go to the issue tracker.
ugeom: bogus-mail-host *
ugeom: bogus-mail-host-in-debian-changelog *
";

/// Runs after the installation and after the removal: systemd reads the units anew.
const SCRIPT: &str = "\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload >/dev/null || true
fi
";

/// Makes the package in `out`.
///
/// # Errors
/// `dpkg-deb` is missing or fails.
pub fn make(built: &Built, pages: &Pages, out: &Path) -> Result<PathBuf> {
    if run::find_program("dpkg-deb").is_none() {
        bail!("dpkg-deb is not there (Debian: dpkg)");
    }
    let work = tempfile::tempdir().context("a folder for the package")?;
    let root = work.path().join("root");
    let usr = Tree::at(root.join("usr"));
    tarball::fill(&usr, built, pages, "vendor-completions")?;
    for page in files_in(&root.join("usr/share/man/man1"))? {
        compress(&page)?;
    }
    documents(&usr, &built.notices)?;
    let top = Tree::at(root.clone());
    units(&top, "lib/systemd/system", Path::new("/usr"))?;
    let (sums, bytes) = sums(&root)?;
    top.write("DEBIAN/md5sums", &sums)?;
    top.write("DEBIAN/control", &control(built, bytes))?;
    for script in ["postinst", "postrm"] {
        top.write_script(format!("DEBIAN/{script}"), SCRIPT)?;
    }
    let path = out.join(format!("ugeom_{VERSION}_{}.deb", built.architecture.debian));
    let mut pack = run::command("dpkg-deb");
    // dpkg-deb cuts the times of files to it.
    pack.env("SOURCE_DATE_EPOCH", super::changed_s()?.to_string());
    pack.args(["--root-owner-group", "-Zxz", "--build"]);
    let status = pack.arg(&root).arg(&path).status();
    let status = status.context("starting dpkg-deb")?;
    if !status.success() {
        bail!("dpkg-deb: {status}");
    }
    Ok(path)
}

fn control(built: &Built, bytes: u64) -> String {
    format!(
        "Package: ugeom\n\
         Version: {VERSION}\n\
         Architecture: {}\n\
         Maintainer: The ugeom authors <ugeom@localhost.localdomain>\n\
         Installed-Size: {}\n\
         Suggests: fuse3, nbd-client, qemu-utils\n\
         Section: admin\n\
         Priority: optional\n\
         Description: {DESCRIPTION}\n",
        built.architecture.debian,
        bytes.div_ceil(1024)
    )
}

fn documents(usr: &Tree, notices: &str) -> Result<()> {
    let mit = fs::read_to_string(run::root().join("LICENSE-MIT")).context("LICENSE-MIT")?;
    usr.write("share/doc/ugeom/copyright", &copyright(&mit))?;
    let entry = format!(
        "ugeom ({VERSION}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the sources.\n\n \
         -- The ugeom authors <ugeom@localhost.localdomain>  {}\n",
        date(super::changed_s()?)?
    );
    for (name, text) in [("changelog", entry.as_str()), ("NOTICES", notices)] {
        let name = format!("share/doc/ugeom/{name}");
        usr.write(&name, text)?;
        compress(&usr.path(&name))?;
    }
    usr.write("share/lintian/overrides/ugeom", OVERRIDES)
}

/// A time as deb-changelog(5) wants it.
fn date(at_s: u64) -> Result<String> {
    let mut date = run::command("date");
    date.env("LC_ALL", "C")
        .args(["--utc", "--rfc-email", "--date"]);
    let output = date.arg(format!("@{at_s}")).output();
    let output = output.context("starting date")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The licences in the format of
/// <https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/>.
fn copyright(mit: &str) -> String {
    let indented = |text: &str| {
        let line = |line: &str| match line.trim_end() {
            "" => " .\n".to_owned(),
            line => format!(" {line}\n"),
        };
        text.lines().map(line).collect::<String>()
    };
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: ugeom\n\
         Comment: The notices and licences of the crates that are linked into the program are in\n \
         /usr/share/doc/ugeom/NOTICES.gz.\n\n\
         Files: *\n\
         Copyright: The ugeom authors\n\
         License: MIT or Apache-2.0\n\n\
         License: MIT\n{}\n\
         License: Apache-2.0\n On Debian systems the text is in \
         /usr/share/common-licenses/Apache-2.0.\n",
        indented(mit)
    )
}

/// Replaces a file by itself compressed, without its name and time.
fn compress(file: &Path) -> Result<()> {
    let status = run::command("gzip").arg("-9n").arg(file).status();
    let status = status.context("starting gzip")?;
    if !status.success() {
        bail!("gzip {}: {status}", file.display());
    }
    Ok(())
}

/// The lines of `md5sums`, and the bytes of all files.
fn sums(root: &Path) -> Result<(String, u64)> {
    let (mut folders, mut lines, mut bytes) = (vec![root.to_owned()], Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        for path in files_in(&folder)? {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let content = fs::read(&path).with_context(|| path.display().to_string())?;
            bytes += content.len() as u64;
            let name = path.strip_prefix(root)?.display();
            lines.push(format!("{}  {name}\n", hex(&Md5::digest(&content))));
        }
    }
    lines.sort_by(|a, b| a[34..].cmp(&b[34..]));
    Ok((lines.concat(), bytes))
}

#[cfg(test)]
mod tests {
    use super::super::{ARCHITECTURES, Pages};
    use super::*;

    #[test]
    fn the_package_has_notices_a_date_and_reloads_systemd() {
        if run::find_program("dpkg-deb").is_none() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let pages = Pages {
            man: folder.path().join("man"),
            completions: folder.path().join("completions"),
        };
        for file in [
            "program",
            "man/ugeom.1",
            "completions/ugeom.bash",
            "completions/_ugeom",
            "completions/ugeom.fish",
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x\n").unwrap();
        }
        let built = Built {
            architecture: ARCHITECTURES[0],
            program: folder.path().join("program"),
            debug: folder.path().join("program.debug"),
            notices: "Copyright (c) Isis\n".into(),
        };
        let deb = make(&built, &pages, folder.path()).unwrap();
        let out = folder.path().join("out");
        let mut unpack = run::command("dpkg-deb");
        let status = unpack.arg("--raw-extract").arg(&deb).arg(&out).status();
        assert!(status.unwrap().success());
        let text = |file: &str| {
            let mut zcat = run::command("zcat");
            let output = zcat.arg("-f").arg(out.join(file)).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(text("usr/share/doc/ugeom/NOTICES.gz"), built.notices);
        let day = date(super::super::changed_s().unwrap()).unwrap();
        assert!(
            text("usr/share/doc/ugeom/changelog.gz").contains(&day),
            "{day}"
        );
        for script in ["postinst", "postrm"] {
            assert!(text(&format!("DEBIAN/{script}")).contains("daemon-reload"));
        }
        let unit = text("lib/systemd/system/ugeom@.service");
        assert!(unit.contains("ExecStart=/usr/bin/ugeom "), "{unit}");
    }

    #[test]
    fn a_date_is_that_of_a_changelog() {
        assert_eq!(date(0).unwrap(), "Thu, 01 Jan 1970 00:00:00 +0000");
    }
}
