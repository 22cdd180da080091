//! The program with its manual pages, completions and systemd units.

use super::build::Built;
use super::tree::Tree;
use crate::pages::Pages;
use crate::run;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

pub fn install(tree: &Tree, built: &Built) -> Result<()> {
    let ugeom = built.file("ugeom")?;
    tree.copy_binary(ugeom, "bin/ugeom", 0o755, "--strip-all")?;
    let pages = run::target_dir().join("install");
    Pages::Man.make(ugeom, &pages.join("man"))?;
    Pages::Completions.make(ugeom, &pages.join("completions"))?;
    for page in fs::read_dir(pages.join("man")).context("the manual pages")? {
        let page = page?;
        let name = page.file_name().to_string_lossy().into_owned();
        tree.copy(&page.path(), tree.page(1, &name), 0o644)?;
    }
    units(tree, "lib/systemd/system", &tree.prefix)?;
    completions(tree, &pages.join("completions"), "site-functions")
}

/// Puts the completions in `from` where the shells look for them. Debian's zsh looks for those of
/// packages in `vendor-completions`, all others in `site-functions`.
pub fn completions(tree: &Tree, from: &Path, zsh: &str) -> Result<()> {
    let zsh = format!("share/zsh/{zsh}/_ugeom");
    for (name, to) in [
        ("ugeom.bash", "share/bash-completion/completions/ugeom"),
        ("_ugeom", zsh.as_str()),
        ("ugeom.fish", "share/fish/vendor_completions.d/ugeom.fish"),
    ] {
        tree.copy(&from.join(name), to, 0o644)?;
    }
    Ok(())
}

/// The program that the units of the repository start.
const STARTED: &str = "ExecStart=/usr/bin/ugeom ";

/// Puts the systemd units into `folder`; they start the program of `prefix`.
pub fn units(tree: &Tree, folder: &str, prefix: &Path) -> Result<()> {
    for name in ["ugeom@.service", "ugeom@.socket"] {
        let from = run::root().join("dist/systemd").join(name);
        let text = fs::read_to_string(&from).with_context(|| from.display().to_string())?;
        let program = quoted(&prefix.join("bin/ugeom"));
        let text = text.replace(STARTED, &format!("ExecStart={program} "));
        tree.write(format!("{folder}/{name}"), &text)?;
    }
    Ok(())
}

/// A path as a word of a command line in a unit (systemd.service(5), systemd.syntax(7)).
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let text = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%");
    match text.contains([' ', '\t', '\\', '\'', ';']) {
        true => format!("\"{text}\""),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_start_the_program_of_their_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::at(folder.path().to_owned());
        for (prefix, program) in [
            ("/usr", "ExecStart=/usr/bin/ugeom serve"),
            ("/opt/u", "ExecStart=/opt/u/bin/ugeom serve"),
            ("/opt/50% p", "ExecStart=\"/opt/50%% p/bin/ugeom\" serve"),
        ] {
            units(&tree, "lib", Path::new(prefix)).unwrap();
            let service = tree.path("lib/ugeom@.service");
            let service = fs::read_to_string(service).unwrap();
            assert!(service.contains(program), "{service}");
        }
        assert!(tree.path("lib/ugeom@.socket").is_file());
    }
}
