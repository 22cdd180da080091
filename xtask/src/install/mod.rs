//! `cargo xtask install`: builds the program and libraries, and installs them in the usual folders.
//!
//! ```text
//!   PREFIX/bin/ugeom                       LIBDIR/libguasi.so.0.25, .so.0, .so, .a
//!   MANDIR/man1, man3                      LIBDIR/pkgconfig/guasi.pc
//!   PREFIX/share/ (completions)            PREFIX/include/guasi.h, guasi_syscalls.h
//!   PREFIX/lib/systemd/system/ugeom@.*     PREFIX/share/doc/ugeom, guasi (licences, notices)
//! ```

mod build;
mod library;
mod program;
mod tree;

pub use program::{completions, units};
pub use tree::Tree;

use crate::{Outcome, notices, run};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// The request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    /// Where it will be used.
    prefix: PathBuf,
    /// The prefix of that during the build, as packages want it.
    destdir: Option<PathBuf>,
    /// Of libraries and of manual pages; a relative one is below the prefix.
    libdir: PathBuf,
    mandir: PathBuf,
    /// The build without optimisation.
    debug: bool,
    strip: bool,
    /// Arguments that cargo gets as they are.
    cargo: Vec<String>,
    program: bool,
    library: bool,
}

/// Builds and installs; `words` are the arguments.
pub fn run(words: &[&str]) -> Result<Outcome> {
    let request = parse(words)?;
    let built = build::run(&request)?;
    let tree = Tree::new(&request);
    if request.library {
        library::install(&tree, &built)?;
        documents(&tree, "guasi", &["LICENSE-MIT", "LICENSE-APACHE"])?;
        let notices = notices::of(build::LIBRARY, &built.target, &request.cargo)?;
        tree.write("share/doc/guasi/NOTICES", &notices)?;
    }
    if request.program {
        program::install(&tree, &built)?;
        documents(&tree, "ugeom", &DOCUMENTS)?;
        let notices = notices::of(build::PROGRAM, &built.target, &request.cargo)?;
        tree.write("share/doc/ugeom/NOTICES", &notices)?;
    }
    println!("installed in {}", tree.path("").display());
    Ok(Outcome::Passed)
}

/// The files of the repository that come with the program.
pub const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Puts files of the repository into the folder of documents of `name`.
pub fn documents(tree: &Tree, name: &str, files: &[&str]) -> Result<()> {
    for file in files {
        let to = format!("share/doc/{name}/{file}");
        tree.copy(&run::root().join(file), to, 0o644)?;
    }
    Ok(())
}

fn parse(words: &[&str]) -> Result<Request> {
    let mut prefix = None;
    let mut request = Request {
        prefix: PathBuf::new(),
        destdir: None,
        libdir: "lib".into(),
        mandir: "share/man".into(),
        debug: false,
        strip: false,
        cargo: Vec::new(),
        program: false,
        library: false,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .with_context(|| format!("install: {word} needs a DIR"))
        };
        match *word {
            "--prefix" => prefix = Some(absolute(value()?)?),
            "--destdir" => request.destdir = Some(absolute(value()?)?),
            "--libdir" => request.libdir = value()?.into(),
            "--mandir" => request.mandir = value()?.into(),
            "--debug" => request.debug = true,
            "--strip" => request.strip = true,
            "--locked" | "--offline" | "--frozen" => request.cargo.push((*word).to_owned()),
            "ugeom" => request.program = true,
            "libguasi" => request.library = true,
            other => bail!("install: unknown argument {other:?}; cargo xtask help lists them"),
        }
    }
    request.prefix = prefix.context("install: --prefix DIR is required")?;
    if !request.program && !request.library {
        (request.program, request.library) = (true, true);
    }
    Ok(request)
}

/// Seen from the directory of the caller.
fn absolute(dir: &str) -> Result<PathBuf> {
    std::path::absolute(dir).with_context(|| format!("install: {dir:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn arguments_are_read_and_nonsense_is_refused_by_name() {
        let request = parse(&["--prefix", "/usr", "--destdir", "/tmp/x", "libguasi"]).unwrap();
        assert_eq!(request.prefix, Path::new("/usr"));
        assert!(request.library && !request.program && !request.debug && !request.strip);
        let all = parse(&["--prefix", "here", "--locked", "--offline", "--strip"]).unwrap();
        assert!(all.library && all.program && all.strip && all.prefix.is_absolute());
        assert_eq!(all.cargo, ["--locked", "--offline"]);
        for (words, reason) in [
            (&["--prefix"][..], "--prefix needs a DIR"),
            (&["--prefix", "/usr", "--libdir"], "--libdir needs a DIR"),
            (&["libguasi"], "--prefix DIR is required"),
            (&["--prefix", "/usr", "guasi"], "unknown argument \"guasi\""),
        ] {
            let error = parse(words).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
