//! `ugeom generate`: the files that packages ship beside the program, made from its own command
//! tree so that they agree with it. Hidden: packagers use it, users do not.

use anyhow::{Context, Result};
use clap::{Args, ValueEnum, ValueHint};
use clap_complete::Shell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Write manual pages or shell completions into a folder
#[derive(Args)]
#[command(hide = true)]
pub struct Generate {
    /// What to write
    #[arg(value_name = "WHAT")]
    what: What,

    /// The folder, made if it is missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// `ugeom.1`, and `ugeom-NAME.1` for each command
    Man,
    /// One file for each of bash, zsh and fish, named as the shell expects it
    Completions,
}

impl Generate {
    pub fn run(&self) -> Result<()> {
        let dir = &self.dir;
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        match self.what {
            What::Man => man(dir),
            What::Completions => completions(dir),
        }
    }
}

fn man(dir: &Path) -> Result<()> {
    let mut all = crate::command();
    let writing = || format!("{}: writing manual pages", dir.display());
    clap_mangen::generate_to(all.clone(), dir).with_context(writing)?;
    all.build();
    typeset_below(&mut all, "ugeom", dir).with_context(writing)
}

/// Typesets the page of `command`, and those of all commands below it.
fn typeset_below(command: &mut clap::Command, name: &str, dir: &Path) -> io::Result<()> {
    let file = dir.join(format!("{name}.1"));
    if let Ok(page) = fs::read_to_string(&file) {
        let usage = command.render_usage().to_string();
        fs::write(&file, typeset(&page, name, &usage))?;
    }
    for below in command.get_subcommands_mut() {
        let name = format!("{name}-{}", below.get_name());
        typeset_below(below, &name, dir)?;
    }
    Ok(())
}

/// A page of `clap_mangen` as man-pages(7) has it: the usage line as synopsis (the other one leaves
/// out values of options), examples and exit codes under their own headings, and lines that begin
/// with a blank as they are.
fn typeset(page: &str, name: &str, usage: &str) -> String {
    let mut out = String::new();
    let mut lines = page.lines().peekable();
    let mut is_filled = true;
    while let Some(line) = lines.next() {
        if is_filled == line.starts_with(' ') {
            is_filled = !is_filled;
            out += if is_filled { ".fi\n" } else { ".nf\n" };
        }
        match line {
            ".SH SYNOPSIS" => {
                out += ".SH SYNOPSIS\n";
                lines.next();
                let usage = usage
                    .trim_start_matches("Usage:")
                    .trim()
                    .replace('-', "\\-");
                let usage: Vec<&str> = usage.lines().map(str::trim).collect();
                out += &format!("{}\n", usage.join("\n.br\n"));
            }
            ".SH EXTRA" => {}
            // A paragraph without text, and a break beside a blank line, are warnings of mandoc.
            ".PP" if lines.peek().is_none_or(|next| begins_section(next)) => {}
            ".br" if out.ends_with("\n\n") || lines.peek() == Some(&"") => {}
            "Examples:" => out += ".SH EXAMPLES\n",
            line if line.starts_with(".TH ") => {
                out += &format!(".TH {name} 1 \"\" \"ugeom {VERSION}\" \"User Commands\"\n");
            }
            line => match line.strip_prefix("Exit codes: ") {
                Some(codes) => out += &format!(".SH EXIT STATUS\n{codes}\n"),
                None => out += &format!("{line}\n"),
            },
        }
    }
    out
}

/// Whether this line of a page of `clap_mangen` begins a section of the page made of it.
fn begins_section(line: &str) -> bool {
    line.starts_with(".SH ") || line.starts_with("Exit codes: ") || line == "Examples:"
}

fn completions(dir: &Path) -> Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut crate::completed_command(), "ugeom", dir)
            .with_context(|| format!("{}: writing {shell} completions", dir.display()))?;
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
        pages_of(&crate::command(), "", &mut names);
        assert!(names.len() > 1, "no command below ugeom");
        for name in names {
            let page = fs::read_to_string(dir.path().join(&name)).context(name.clone())?;
            // clap writes `name \- about`, and the name alone where a command has no about.
            assert!(
                page.contains(" \\- "),
                "{name} does not say what the command is for"
            );
            for idle in [".SH EXTRA", ".br\n\n", "\n\n.br\n", ".PP\n.SH"] {
                assert!(!page.contains(idle), "{name}: {idle:?}: {page}");
            }
            let synopsis = page
                .split_once(".SH SYNOPSIS\n")
                .map_or("", |(_, text)| text);
            assert!(synopsis.starts_with("ugeom"), "{name}: {synopsis}");
            // Filled, the columns of examples would run into each other.
            let mut is_filled = true;
            for line in page.lines() {
                match line {
                    ".nf" => is_filled = false,
                    ".fi" => is_filled = true,
                    line => assert!(!is_filled || !line.starts_with(' '), "{name}: {line}"),
                }
            }
        }
        Ok(())
    }

    #[test]
    fn completions_of_each_shell_know_every_command() -> Result<()> {
        let dir = tempfile::tempdir()?;
        completions(dir.path())?;
        for file in ["ugeom.bash", "_ugeom", "ugeom.fish"] {
            let text = fs::read_to_string(dir.path().join(file)).context(file)?;
            for command in crate::command()
                .get_subcommands()
                .filter(|c| !c.is_hide_set())
            {
                assert!(
                    text.contains(command.get_name()),
                    "{file}: {}",
                    command.get_name()
                );
            }
            // `ugeom run` parses its options itself: those of the program, those of jobs, values.
            for option in ["showcmd", "rwmixread", "iodepth", "libaio"] {
                assert!(text.contains(option), "{file}: {option}");
            }
        }
        Ok(())
    }
}
