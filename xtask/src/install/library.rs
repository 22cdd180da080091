//! The C library with headers, manual page and the file of pkg-config(1).
//!
//! The library's file carries the version of the interface, 0.25; programs ask for its soname.

use super::build::Built;
use super::tree::Tree;
use crate::run;
use anyhow::Result;
use std::path::Path;

/// The version of libguasi whose interface the library has.
const INTERFACE: &str = "0.25";

/// The libraries that a program with the static library needs, as `rustc --print
/// native-static-libs` lists them. That lists `-lgcc_s`, too, which a static program cannot link:
/// the compiler driver adds it, or `-lgcc_eh`, unasked.
const LIBS_PRIVATE: &str = "-lutil -lrt -lpthread -lm -ldl -lc";

pub fn install(tree: &Tree, built: &Built) -> Result<()> {
    let lib = tree.libdir();
    let file = format!("libguasi.so.{INTERFACE}");
    let shared = built.file("libguasi.so")?;
    tree.copy_binary(shared, lib.join(&file), 0o755, "--strip-unneeded")?;
    tree.link(&file, lib.join("libguasi.so.0"))?;
    tree.link("libguasi.so.0", lib.join("libguasi.so"))?;
    let archive = built.file("libguasi.a")?;
    tree.copy_binary(archive, lib.join("libguasi.a"), 0o644, "--strip-debug")?;
    let sources = run::root().join("guasi-capi");
    for header in ["guasi.h", "guasi_syscalls.h"] {
        let from = sources.join("include").join(header);
        tree.copy(&from, format!("include/{header}"), 0o644)?;
    }
    tree.copy(&sources.join("man/guasi.3"), tree.page(3, "guasi.3"), 0o644)?;
    tree.write(lib.join("pkgconfig/guasi.pc"), &package(&tree.prefix, &lib))
}

/// The file that pkg-config(1) reads.
fn package(prefix: &Path, libdir: &Path) -> String {
    let libdir = match libdir.strip_prefix(prefix) {
        Ok(inside) => format!("${{prefix}}/{}", escaped(inside)),
        Err(_) => escaped(libdir),
    };
    format!(
        "prefix={}\n\
         libdir={libdir}\n\
         includedir=${{prefix}}/include\n\n\
         Name: guasi\n\
         Description: Any system call or function, made asynchronous\n\
         Version: {INTERFACE}\n\
         Libs: -L${{libdir}} -lguasi\n\
         Libs.private: {LIBS_PRIVATE}\n\
         Cflags: -I${{includedir}}\n",
        escaped(prefix)
    )
}

/// A path whose characters with a meaning are escaped: pkg-config(1) splits flags as a shell does.
fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for character in path.display().to_string().chars() {
        if character.is_whitespace() || "\\\"'#$&;()<>|*?`~".contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_pkg_config_names_the_folders_of_use() {
        let prefix = Path::new("/usr");
        let text = package(prefix, Path::new("/usr/lib/multi"));
        assert!(
            text.starts_with("prefix=/usr\nlibdir=${prefix}/lib/multi\n"),
            "{text}"
        );
        let text = package(prefix, Path::new("/lib"));
        assert!(text.contains("\nlibdir=/lib\n"), "{text}");
        let text = package(Path::new("/tmp/p q"), Path::new("/tmp/p q/lib"));
        assert!(
            text.starts_with("prefix=/tmp/p\\ q\nlibdir=${prefix}/lib\n"),
            "{text}"
        );
    }
}
