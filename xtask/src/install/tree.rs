//! The tree that is filled: files, links and folders with the modes that install(1) gives them,
//! whatever the umask is.

use super::Request;
use crate::run;
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// The tree that is filled.
pub struct Tree {
    /// The prefix of each path during the build of the tree.
    before: PathBuf,
    /// Where its files will be used.
    pub prefix: PathBuf,
    /// Relative to the prefix, or absolute.
    libdir: PathBuf,
    mandir: PathBuf,
    strip: bool,
}

impl Tree {
    pub(super) fn new(request: &Request) -> Tree {
        Tree {
            before: request.destdir.clone().unwrap_or_else(|| "/".into()),
            prefix: request.prefix.clone(),
            libdir: request.libdir.clone(),
            mandir: request.mandir.clone(),
            strip: request.strip,
        }
    }

    /// A tree at `root` that a package is made of.
    pub fn at(root: PathBuf) -> Tree {
        Tree {
            before: root,
            prefix: PathBuf::from("/"),
            libdir: PathBuf::from("lib"),
            mandir: PathBuf::from("share/man"),
            strip: false,
        }
    }

    /// The path of a file whose path below the prefix is `path`, or that is absolute.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let used = self.prefix.join(path);
        self.before.join(used.strip_prefix("/").unwrap_or(&used))
    }

    /// Where libraries will be used.
    pub fn libdir(&self) -> PathBuf {
        self.prefix.join(&self.libdir)
    }

    /// A manual page of a section.
    pub fn page(&self, section: u8, name: &str) -> PathBuf {
        self.prefix
            .join(&self.mandir)
            .join(format!("man{section}"))
            .join(name)
    }

    /// The path of a file whose directory is made if need be.
    fn place(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        let to = self.path(path);
        make_folder(to.parent().unwrap_or(&self.before))?;
        Ok(to)
    }

    /// Copies a file and sets its mode. A running program or a library in use keeps its old one.
    pub fn copy(&self, from: &Path, path: impl AsRef<Path>, mode: u32) -> Result<()> {
        let to = self.place(path)?;
        remove(&to)?;
        let copied = fs::copy(from, &to);
        copied.with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
        set_mode(&to, mode)
    }

    /// Copies a program or library, without symbols if that was asked for; `what` is the argument
    /// of strip(1), `STRIP` another program than that.
    pub fn copy_binary(
        &self,
        from: &Path,
        path: impl AsRef<Path>,
        mode: u32,
        what: &str,
    ) -> Result<()> {
        self.copy(from, path.as_ref(), mode)?;
        if !self.strip {
            return Ok(());
        }
        let program = std::env::var("STRIP").unwrap_or_else(|_| "strip".into());
        let mut strip = run::command(&program);
        let status = strip.arg(what).arg(self.path(path)).status();
        let status = status.with_context(|| format!("starting {program}"))?;
        if !status.success() {
            bail!("{program} {what}: {status}");
        }
        Ok(())
    }

    /// A symbolic link beside what it leads to.
    pub fn link(&self, target: &str, path: impl AsRef<Path>) -> Result<()> {
        let to = self.place(path)?;
        remove(&to)?;
        symlink(target, &to).with_context(|| format!("linking {}", to.display()))
    }

    pub fn write(&self, path: impl AsRef<Path>, text: &str) -> Result<()> {
        let to = self.place(path)?;
        remove(&to)?;
        fs::write(&to, text).with_context(|| format!("writing {}", to.display()))?;
        set_mode(&to, 0o644)
    }

    /// A script, which can be run.
    pub fn write_script(&self, path: impl AsRef<Path>, text: &str) -> Result<()> {
        self.write(path.as_ref(), text)?;
        set_mode(&self.path(path), 0o755)
    }
}

/// Makes a folder and those above it. Folders that are there keep their modes.
fn make_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        make_folder(above)?;
    }
    fs::create_dir(path).with_context(|| format!("creating {}", path.display()))?;
    set_mode(path, 0o755)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    let set = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set.with_context(|| format!("the mode of {}", path.display()))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("replacing {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_stands_before_all_paths_and_is_in_none() {
        let request = super::super::parse(&[
            "--prefix",
            "/usr",
            "--destdir",
            "/tmp/x",
            "--libdir",
            "/usr/lib/multi",
            "--mandir",
            "man",
        ]);
        let tree = Tree::new(&request.unwrap());
        assert_eq!(tree.path("bin/ugeom"), Path::new("/tmp/x/usr/bin/ugeom"));
        assert_eq!(tree.libdir(), Path::new("/usr/lib/multi"));
        let library = tree.path(tree.libdir().join("libguasi.a"));
        assert_eq!(library, Path::new("/tmp/x/usr/lib/multi/libguasi.a"));
        let page = tree.path(tree.page(3, "guasi.3"));
        assert_eq!(page, Path::new("/tmp/x/usr/man/man3/guasi.3"));
        assert_eq!(tree.prefix, Path::new("/usr"));
    }
}
