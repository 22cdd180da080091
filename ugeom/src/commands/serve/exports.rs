//! The targets of `ugeom serve`, and the names under which clients find them.

use crate::failure::Usage;
use crate::opening::{self, OpeningArgs, word};
use crate::output;
use anyhow::Result;
use clap::{Args, ValueHint};
use serde::Serialize;
use ugeom_classes::{Target, TargetOptions, path_of};
use ugeom_serve::shown::{Extent, Shown, ShownTarget};
use ugeom_stack::Stack;

/// Behind a name that is given to a target: clients only read it.
const READ_ONLY_SUFFIX: &str = ":ro";

#[derive(Args)]
pub struct ExportArgs {
    /// A path, `md:64m`, layers joined by `|`, or `disk.img@s1a` for a partition (see ugeom
    /// --help). NAME=TARGET serves the top of TARGET only, as NAME; NAME:ro=TARGET without
    /// writing, also with --rw
    #[arg(value_name = "[NAME=]TARGET", value_hint = ValueHint::FilePath, required = true,
          value_parser = word())]
    targets: Vec<String>,

    #[command(flatten)]
    opening: OpeningArgs,
}

/// The targets, in one stack.
pub struct Exports {
    pub stack: Stack,
    pub shown: Shown,
}

/// An export as it is announced.
#[derive(Serialize)]
pub struct Export {
    pub name: String,
    default: bool,
    size_bytes: u64,
    pub writable: bool,
}

/// A target as it is written.
#[derive(Debug, PartialEq, Eq)]
struct Written<'a> {
    /// The name of its only export.
    name: Option<&'a str>,
    read_only: bool,
    target: &'a str,
}

impl<'a> Written<'a> {
    /// `TARGET`, `NAME=TARGET` or `NAME:ro=TARGET`. A file with the whole name comes first.
    fn parse(text: &'a str) -> Self {
        let unnamed = Self {
            name: None,
            read_only: false,
            target: text,
        };
        let Some((name, target)) = text.split_once('=') else { return unnamed };
        let (name, read_only) = match name.strip_suffix(READ_ONLY_SUFFIX) {
            Some(name) => (name, true),
            None => (name, false),
        };
        // Options of layers and paths stand behind other signs: `disk.img?sectorsize=4096`.
        let is_sign = |sign: char| sign.is_alphanumeric() || matches!(sign, '.' | '_' | '-');
        if name.is_empty() || !name.chars().all(is_sign) || path_of(text).exists() {
            return unnamed;
        }
        Self {
            name: Some(name),
            read_only,
            target,
        }
    }

    /// The shown part of it, once it is open.
    fn shown(&self, target: &Target) -> ShownTarget {
        let extent = match self.name {
            Some(name) => Extent::Named(name.to_owned()),
            None if target.addressed => Extent::Top,
            None => Extent::Above(target.bottom),
        };
        ShownTarget {
            read_only: self.read_only,
            ..ShownTarget::new(&*target.name, extent)
        }
    }
}

impl ExportArgs {
    /// The targets, as they were written.
    pub fn text(&self) -> String {
        self.targets.join(" ")
    }

    /// Opens all of them.
    ///
    /// # Errors
    /// One cannot be opened, or two would have the same name.
    pub fn open(&self, writable: bool) -> Result<Exports> {
        let written: Vec<Written<'_>> = self.targets.iter().map(|it| Written::parse(it)).collect();
        let options = |it: &Written<'_>| TargetOptions {
            writable: writable && !it.read_only,
            ..self.opening.options()
        };
        let wanted = written.iter().map(|it| (it.target, options(it)));
        let targets = opening::open_together(&wanted.collect::<Vec<_>>())?;
        let shown = written.iter().zip(&targets);
        let shown: Vec<ShownTarget> = shown.map(|(it, target)| it.shown(target)).collect();
        for (at, target) in shown.iter().enumerate() {
            let name = target.name();
            if shown[..at].iter().any(|other| other.name() == name) {
                let message = format!("two targets would be the export `{name}`");
                return Err(Usage(message).into());
            }
        }
        let stack = targets.into_iter().next().map(|target| target.stack);
        Ok(Exports {
            stack: stack.ok_or_else(|| Usage("a target is missing".to_owned()))?,
            shown: Shown::of(shown),
        })
    }
}

impl Exports {
    /// The exports as they are now, the default one first.
    pub fn list(&self, writable: bool) -> Vec<Export> {
        let seen = self.shown.of_tree(&self.stack.tree()).into_iter();
        let seen = seen.filter(|it| it.view.error.is_none());
        let list = seen.enumerate().map(|(at, it)| Export {
            default: at == 0,
            size_bytes: it.view.content_bytes(),
            writable: writable && !it.read_only,
            name: it.view.name,
        });
        list.collect()
    }
}

/// One line: which exports can be written to, and which cannot.
pub fn in_words(exports: &[Export]) -> String {
    let [writable, others] = [true, false].map(|writable| {
        let names = exports.iter().filter(|it| it.writable == writable);
        let names: Vec<String> = names.map(|it| output::printable(&it.name)).collect();
        names.join(", ")
    });
    match (writable.as_str(), others.as_str()) {
        (names, "") => format!("{names} read-write"),
        ("", names) => format!("{names} read-only"),
        (writable, others) => format!("{writable} read-write, {others} read-only"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_target_and_options_stay_with_it() {
        let parsed = |text| {
            let Written {
                name,
                read_only,
                target,
            } = Written::parse(text);
            (name, read_only, target)
        };
        assert_eq!(parsed("a=x/b.img"), (Some("a"), false, "x/b.img"));
        assert_eq!(parsed("a-1:ro=md:1m"), (Some("a-1"), true, "md:1m"));
        assert_eq!(
            parsed("a=b.img?sectorsize=4096 | nop:delay=1ms"),
            (Some("a"), false, "b.img?sectorsize=4096 | nop:delay=1ms")
        );
        for unnamed in [
            "b.img",
            "b.img?sectorsize=4096",
            "md:1m,name=a",
            "b.img | nop:delay=1ms",
            "x/a=b.img",
            "=b.img",
            ":ro=b.img",
        ] {
            assert_eq!(parsed(unnamed), (None, false, unnamed));
        }
    }
}
