//! The tarball: the tree that `tar -x --strip-components=1 -C /usr/local` installs.

use super::binary::Built;
use super::{Pages, VERSION, files_in};
use crate::install::{DOCUMENTS, Tree, completions, documents, units};
use crate::run;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// Makes the tarball in `out`. The same tree gives the same bytes.
pub fn make(built: &Built, pages: &Pages, out: &Path) -> Result<PathBuf> {
    let name = format!("ugeom-{VERSION}-{}-linux", built.architecture.name);
    let work = tempfile::tempdir().context("a folder for the tarball")?;
    let tree = Tree::at(work.path().join(&name));
    fill(&tree, built, pages, "site-functions")?;
    documents(&tree, "ugeom", &DOCUMENTS)?;
    tree.write("share/doc/ugeom/NOTICES", &built.notices)?;
    // The prefix that README.md unpacks it in.
    units(&tree, "lib/systemd/system", Path::new("/usr/local"))?;
    let path = out.join(format!("{name}.tar.gz"));
    let mut tar = run::command("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0"]);
    tar.args(["--numeric-owner", "--use-compress-program=gzip -9n"]);
    tar.arg(format!("--mtime=@{}", super::changed_s()?));
    tar.arg("--file")
        .arg(&path)
        .arg("--directory")
        .arg(work.path());
    let status = tar.arg(&name).status().context("starting tar")?;
    if !status.success() {
        bail!("tar: {status}");
    }
    Ok(path)
}

/// Fills a tree as a prefix has it: bin/ and share/; `zsh` is the folder of zsh's completions.
pub fn fill(tree: &Tree, built: &Built, pages: &Pages, zsh: &str) -> Result<()> {
    tree.copy(&built.program, "bin/ugeom", 0o755)?;
    for page in files_in(&pages.man)? {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        tree.copy(&page, tree.page(1, &name), 0o644)?;
    }
    completions(tree, &pages.completions, zsh)
}
