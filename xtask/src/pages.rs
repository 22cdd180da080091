//! `cargo xtask man [DIR]` and `cargo xtask completions [DIR]`: files made from the command tree of
//! ugeom, so that they cannot differ from what the program takes.
//!
//! The command tree is part of the program, which the checks must not wait for: without the feature
//! `pages` this module only starts xtask again with it.

use crate::{Outcome, run};
use anyhow::Result;
use std::path::PathBuf;

/// What is made.
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
}

/// Makes the files in `dir`, seen from the directory of the caller, or below the target directory.
pub fn run(pages: Pages, dir: Option<&str>) -> Result<Outcome> {
    let dir = match dir {
        Some(dir) => std::env::current_dir()?.join(dir),
        None => run::target_dir().join(pages.word()),
    };
    make(pages, dir)
}

#[cfg(not(feature = "pages"))]
fn make(pages: Pages, dir: PathBuf) -> Result<Outcome> {
    let made = run::cargo()
        .args([
            "run",
            "--quiet",
            "--package",
            "ugeom-xtask",
            "--features",
            "pages",
            "--",
        ])
        .arg(pages.word())
        .arg(dir)
        .status()?;
    Ok(if made.success() {
        Outcome::Passed
    } else {
        Outcome::Failed
    })
}

#[cfg(feature = "pages")]
fn make(pages: Pages, dir: PathBuf) -> Result<Outcome> {
    use anyhow::Context;
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    match pages {
        Pages::Man => made::man(&dir)?,
        Pages::Completions => made::completions(&dir)?,
    }
    println!("{} in {}", pages.word(), dir.display());
    Ok(Outcome::Passed)
}

#[cfg(feature = "pages")]
mod made {
    use anyhow::{Context, Result};
    use clap_complete::Shell;
    use std::path::Path;

    /// `ugeom.1`, and `ugeom-NAME.1` for each command below it.
    pub fn man(dir: &Path) -> Result<()> {
        clap_mangen::generate_to(ugeom::command(), dir)
            .with_context(|| format!("writing manual pages to {}", dir.display()))
    }

    /// One file a shell, named as the shell expects it.
    pub fn completions(dir: &Path) -> Result<()> {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(shell, &mut ugeom::command(), "ugeom", dir)
                .with_context(|| format!("writing {shell} completions to {}", dir.display()))?;
        }
        Ok(())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// The names of the pages of `command` and of all commands below it.
        fn pages_of(command: &clap::Command, prefix: &str, names: &mut Vec<String>) {
            let name = format!("{prefix}{}", command.get_name());
            names.push(format!("{name}.1"));
            for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
                pages_of(below, &format!("{name}-"), names);
            }
        }

        #[test]
        fn every_command_has_a_manual_page_that_says_what_it_does() -> Result<()> {
            let dir = tempfile::tempdir()?;
            man(dir.path())?;
            let mut names = Vec::new();
            pages_of(&ugeom::command(), "", &mut names);
            assert!(names.len() > 1, "no command below ugeom");
            for name in names {
                let page = std::fs::read_to_string(dir.path().join(&name)).context(name.clone())?;
                // clap writes `name \- about`, and the name alone where a command has no about.
                assert!(
                    page.contains(" \\- "),
                    "{name} does not say what the command is for"
                );
            }
            Ok(())
        }

        #[test]
        fn completions_of_each_shell_know_every_command() -> Result<()> {
            let dir = tempfile::tempdir()?;
            completions(dir.path())?;
            for file in ["ugeom.bash", "_ugeom", "ugeom.fish"] {
                let text = std::fs::read_to_string(dir.path().join(file)).context(file)?;
                for command in ugeom::command()
                    .get_subcommands()
                    .filter(|c| !c.is_hide_set())
                {
                    assert!(
                        text.contains(command.get_name()),
                        "{file}: {}",
                        command.get_name()
                    );
                }
            }
            Ok(())
        }
    }
}
