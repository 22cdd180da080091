//! `cargo xtask install`: builds what users need and puts it where they look for it.
//!
//! ```text
//!   PREFIX/bin/ugeom                       PREFIX/lib/libguasi.so.0.25, .so.0, .so, .a
//!   PREFIX/share/man/man1, man3            PREFIX/lib/pkgconfig/guasi.pc
//!   PREFIX/share/ (completions)            PREFIX/include/guasi.h, guasi_syscalls.h
//! ```
//!
//! The library's file carries the version of the interface, 0.25; programs ask for its soname.

use crate::pages::Pages;
use crate::{Outcome, run};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// The version of libguasi whose interface the library has.
const INTERFACE: &str = "0.25";

/// What a program that links the static library needs besides, as
/// `rustc --print native-static-libs` lists it.
const LIBS_PRIVATE: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    /// Where it will be used.
    prefix: PathBuf,
    /// What stands before that while it is put together, as packages want it.
    destdir: Option<PathBuf>,
    /// The build without optimisation.
    debug: bool,
    program: bool,
    library: bool,
}

/// Builds and installs; `words` are the arguments.
pub fn run(words: &[&str]) -> Result<Outcome> {
    let request = parse(words)?;
    let built = build(&request)?;
    let tree = Tree::new(&request)?;
    if request.library {
        library(&tree, &built)?;
    }
    if request.program {
        program(&tree, &built)?;
    }
    println!("installed in {}", tree.root.display());
    Ok(Outcome::Passed)
}

fn parse(words: &[&str]) -> Result<Request> {
    let (mut prefix, mut destdir, mut debug) = (None, None, false);
    let (mut program, mut library) = (false, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .with_context(|| format!("install: {word} needs a DIR"))
        };
        match *word {
            "--prefix" => prefix = Some(absolute(value()?)?),
            "--destdir" => destdir = Some(absolute(value()?)?),
            "--debug" => debug = true,
            "ugeom" => program = true,
            "libguasi" => library = true,
            other => {
                bail!(
                    "install: {other:?} is not one of --prefix, --destdir, --debug, ugeom, libguasi"
                )
            }
        }
    }
    let Some(prefix) = prefix else {
        bail!("install: --prefix DIR says where to");
    };
    let all = !program && !library;
    Ok(Request {
        prefix,
        destdir,
        debug,
        program: program || all,
        library: library || all,
    })
}

/// Seen from the directory of the caller.
fn absolute(dir: &str) -> Result<PathBuf> {
    std::path::absolute(dir).with_context(|| format!("install: {dir:?}"))
}

/// Builds the parts. Returns the directory where they are.
fn build(request: &Request) -> Result<PathBuf> {
    let mut cargo = run::cargo();
    cargo.args(["build", "--quiet"]);
    if !request.debug {
        cargo.arg("--release");
    }
    for (wanted, package) in [
        (request.program, "ugeom"),
        (request.library, "ugeom-guasi-capi"),
    ] {
        if wanted {
            cargo.args(["--package", package]);
        }
    }
    if !cargo.status().context("starting cargo")?.success() {
        bail!("install: the build failed");
    }
    let profile = if request.debug { "debug" } else { "release" };
    Ok(run::target_dir().join(profile))
}

/// The tree that is filled.
pub struct Tree {
    root: PathBuf,
    /// Where its files will be used.
    prefix: PathBuf,
}

impl Tree {
    fn new(request: &Request) -> Result<Tree> {
        let inside = request
            .prefix
            .strip_prefix("/")
            .context("install: the prefix")?;
        let root = match &request.destdir {
            Some(dir) => dir.join(inside),
            None => request.prefix.clone(),
        };
        Ok(Tree {
            root,
            prefix: request.prefix.clone(),
        })
    }

    /// A tree at `root` that a package is made of.
    pub fn at(root: PathBuf) -> Tree {
        let prefix = PathBuf::from("/usr");
        Tree { root, prefix }
    }

    /// The path of a file.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The path of a file whose directory is made if need be.
    fn place(&self, path: &str) -> Result<PathBuf> {
        let to = self.path(path);
        let dir = to.parent().unwrap_or(&self.root);
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        Ok(to)
    }

    /// Copies a file and sets its mode. A running program or a library in use keeps its old one.
    pub fn copy(&self, from: &Path, path: &str, mode: u32) -> Result<()> {
        let to = self.place(path)?;
        remove(&to)?;
        let copied = fs::copy(from, &to);
        copied.with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
        let allowed = fs::set_permissions(&to, fs::Permissions::from_mode(mode));
        allowed.with_context(|| format!("the mode of {}", to.display()))
    }

    /// A symbolic link beside what it leads to.
    fn link(&self, target: &str, path: &str) -> Result<()> {
        let to = self.place(path)?;
        remove(&to)?;
        symlink(target, &to).with_context(|| format!("linking {}", to.display()))
    }

    pub fn write(&self, path: &str, text: &str) -> Result<()> {
        let to = self.place(path)?;
        fs::write(&to, text).with_context(|| format!("writing {}", to.display()))
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("replacing {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn library(tree: &Tree, built: &Path) -> Result<()> {
    let sources = run::root().join("guasi-capi");
    let file = format!("libguasi.so.{INTERFACE}");
    tree.copy(&built.join("libguasi.so"), &format!("lib/{file}"), 0o755)?;
    tree.link(&file, "lib/libguasi.so.0")?;
    tree.link("libguasi.so.0", "lib/libguasi.so")?;
    tree.copy(&built.join("libguasi.a"), "lib/libguasi.a", 0o644)?;
    for header in ["guasi.h", "guasi_syscalls.h"] {
        let from = sources.join("include").join(header);
        tree.copy(&from, &format!("include/{header}"), 0o644)?;
    }
    tree.copy(
        &sources.join("man/guasi.3"),
        "share/man/man3/guasi.3",
        0o644,
    )?;
    tree.write("lib/pkgconfig/guasi.pc", &package(&tree.prefix))
}

/// The file that pkg-config(1) reads.
fn package(prefix: &Path) -> String {
    format!(
        "prefix={}\n\
         libdir=${{prefix}}/lib\n\
         includedir=${{prefix}}/include\n\n\
         Name: guasi\n\
         Description: Any system call or function, made asynchronous\n\
         Version: {INTERFACE}\n\
         Libs: -L${{libdir}} -lguasi\n\
         Libs.private: {LIBS_PRIVATE}\n\
         Cflags: -I${{includedir}}\n",
        prefix.display()
    )
}

fn program(tree: &Tree, built: &Path) -> Result<()> {
    tree.copy(&built.join("ugeom"), "bin/ugeom", 0o755)?;
    let pages = run::target_dir().join("install");
    let ugeom = built.join("ugeom");
    Pages::Man.make(&ugeom, &pages.join("man"))?;
    Pages::Completions.make(&ugeom, &pages.join("completions"))?;
    for page in fs::read_dir(pages.join("man")).context("the manual pages")? {
        let page = page?.path();
        let name = page
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        tree.copy(&page, &format!("share/man/man1/{name}"), 0o644)?;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_and_nonsense_is_refused_by_name() {
        let request = parse(&["--prefix", "/usr", "--destdir", "/tmp/x", "libguasi"]).unwrap();
        assert_eq!(request.prefix, Path::new("/usr"));
        assert!(request.library && !request.program && !request.debug);
        let all = parse(&["--prefix", "here"]).unwrap();
        assert!(all.library && all.program && all.prefix.is_absolute());
        for (words, reason) in [
            (&["--prefix"][..], "--prefix needs a DIR"),
            (&["libguasi"], "--prefix DIR says where to"),
            (&["--prefix", "/usr", "guasi"], "\"guasi\" is not one of"),
        ] {
            let error = parse(words).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn the_place_for_packages_is_not_told_to_users() {
        let words = ["--prefix", "/usr", "--destdir", "/tmp/x"];
        let tree = Tree::new(&parse(&words).unwrap()).unwrap();
        assert_eq!(tree.root, Path::new("/tmp/x/usr"));
        let package = package(&tree.prefix);
        assert!(package.starts_with("prefix=/usr\n"), "{package}");
        assert!(!package.contains("/tmp"), "{package}");
    }
}
