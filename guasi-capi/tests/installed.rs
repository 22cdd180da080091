//! The library as `cargo xtask install` puts it, found by pkg-config, linked both ways.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// Runs a command to its end, which has to be a good one.
fn succeed(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {said}");
    String::from_utf8(stdout).unwrap()
}

/// Installs in a process whose umask takes all rights from others.
fn install(prefix: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut cargo = Command::new("sh");
    cargo.args(["-c", "umask 077; exec \"$0\" \"$@\"", env!("CARGO")]);
    cargo.current_dir(root);
    // The same build as that of the tests, which is there already.
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    cargo.env("CARGO_TARGET_DIR", profile.parent().unwrap());
    cargo.args(["run", "--quiet", "--package", "ugeom-xtask", "--"]);
    cargo.args(["install", "--debug", "libguasi", "--prefix"]);
    succeed(cargo.arg(prefix));
}

/// The modes of install(1).
fn check_modes(prefix: &Path) {
    for (file, mode) in [
        ("", 0o755),
        ("lib/pkgconfig", 0o755),
        ("lib/libguasi.so.0.25", 0o755),
        ("lib/libguasi.a", 0o644),
        ("lib/pkgconfig/guasi.pc", 0o644),
        ("share/doc/guasi/LICENSE-MIT", 0o644),
        ("share/doc/guasi/NOTICES", 0o644),
    ] {
        let data = std::fs::metadata(prefix.join(file)).unwrap();
        assert_eq!(data.permissions().mode() & 0o7777, mode, "{file}");
    }
}

/// The names by which linkers and programs find the library.
fn check_links(lib: &Path) {
    for (name, target) in [
        ("libguasi.so", "libguasi.so.0"),
        ("libguasi.so.0", "libguasi.so.0.25"),
    ] {
        assert_eq!(
            std::fs::read_link(lib.join(name)).unwrap(),
            Path::new(target)
        );
    }
}

#[test]
fn c_and_cpp_programs_find_the_installed_library_and_run() {
    let programs = ["gcc", "g++", "pkg-config"].map(ugeom_testkit::program);
    let [Some(gcc), Some(gpp), Some(pkg_config)] = programs else { return };
    let folder = tempfile::tempdir().unwrap();
    // A shell and pkg-config read a blank as the end of a word.
    let prefix = folder.path().join("op t");
    install(&prefix);
    check_modes(&prefix);
    let lib = prefix.join("lib");
    check_links(&lib);
    assert!(prefix.join("share/man/man3/guasi.3").is_file());

    let asked = |words: &[&str]| {
        let mut command = Command::new(&pkg_config);
        command.env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
        let said = succeed(command.args(words).arg("guasi"));
        // The words as the shell of a makefile reads them.
        let script = format!("printf '%s\\n' {}", said.trim());
        let words = succeed(Command::new("sh").args(["-c", &script]));
        words.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(asked(&["--modversion"]), ["0.25"]);
    let flags = asked(&["--cflags", "--libs"]);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let strict = ["-Wall", "-Wextra", "-Werror", "-pedantic"];
    for (compiler, standard, source, output) in [
        (&gcc, "-std=c99", "everything.c", "all as promised\n"),
        (&gpp, "-std=c++11", "headers.cpp", ""),
    ] {
        let program = folder.path().join("program");
        let mut compile = Command::new(compiler);
        compile
            .arg(standard)
            .args(strict)
            .arg(sources.join(source))
            .arg("-o")
            .arg(&program);
        succeed(compile.args(&flags));
        let ran = succeed(Command::new(&program).env("LD_LIBRARY_PATH", &lib));
        assert_eq!(ran, output);
    }

    let program = folder.path().join("static");
    let mut compile = Command::new(&gcc);
    compile
        .arg("-std=c99")
        .args(strict)
        .args(asked(&["--cflags"]));
    compile
        .arg(sources.join("everything.c"))
        .arg("-o")
        .arg(&program);
    compile.arg(lib.join("libguasi.a"));
    let private = asked(&["--static", "--libs"]);
    compile.args(private.iter().filter(|flag| *flag != "-lguasi"));
    succeed(&mut compile);
    assert_eq!(succeed(&mut Command::new(&program)), "all as promised\n");

    let program = folder.path().join("wholly-static");
    let mut compile = Command::new(&gcc);
    compile.args(["-std=c99", "-static"]).args(strict);
    compile
        .arg(sources.join("everything.c"))
        .arg("-o")
        .arg(&program);
    compile.args(asked(&["--static", "--cflags", "--libs"]));
    succeed(&mut compile);
    assert_eq!(succeed(&mut Command::new(&program)), "all as promised\n");
}
