//! `cargo xtask man [DIR]` and `cargo xtask completions [DIR]`: files that the program makes of its
//! own command tree (`ugeom generate`).

use crate::{Outcome, run};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, Debug)]
pub enum Pages {
    /// A manual page for each command, as roff.
    Man,
    /// Completions for bash, zsh and fish.
    Completions,
}

impl Pages {
    fn word(self) -> &'static str {
        match self {
            Pages::Man => "man",
            Pages::Completions => "completions",
        }
    }

    /// Makes the files in `dir` by the program at `ugeom`, and nothing else is in `dir` afterwards.
    ///
    /// # Errors
    /// The folder cannot be emptied, or the program fails.
    pub fn make(self, ugeom: &Path, dir: &Path) -> Result<()> {
        // Pages of commands that are gone.
        if dir.exists() {
            std::fs::remove_dir_all(dir).with_context(|| format!("emptying {}", dir.display()))?;
        }
        let mut made = Command::new(ugeom);
        made.args(["generate", self.word()]).arg(dir);
        let status = made.status();
        let status = status.with_context(|| format!("starting {}", ugeom.display()))?;
        if !status.success() {
            bail!("{} generate {}: {status}", ugeom.display(), self.word());
        }
        Ok(())
    }
}

/// Makes the files in `dir`, seen from the directory of the caller, or below the target directory.
pub fn run(pages: Pages, dir: Option<&str>) -> Result<Outcome> {
    let dir: PathBuf = match dir {
        Some(dir) => std::env::current_dir()?.join(dir),
        None => run::target_dir().join(pages.word()),
    };
    // The build of the tests, which is there already as a rule.
    let mut made = run::cargo();
    made.args(["run", "--quiet", "--package", "ugeom", "--"]);
    made.args(["generate", pages.word()]).arg(&dir);
    if !made.status().context("starting cargo")?.success() {
        return Ok(Outcome::Failed);
    }
    println!("{} in {}", pages.word(), dir.display());
    Ok(Outcome::Passed)
}
