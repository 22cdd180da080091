//! The library as `cargo xtask install` puts it, found by pkg-config, linked both ways.

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

fn install(prefix: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root);
    // The same build as that of the tests, which is there already.
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    cargo.env("CARGO_TARGET_DIR", profile.parent().unwrap());
    cargo.args(["run", "--quiet", "--package", "ugeom-xtask", "--"]);
    cargo.args(["install", "--debug", "libguasi", "--prefix"]);
    succeed(cargo.arg(prefix));
}

#[test]
fn c_and_cpp_programs_find_the_installed_library_and_run() {
    let programs = ["gcc", "g++", "pkg-config"].map(ugeom_testkit::program);
    let [Some(gcc), Some(gpp), Some(pkg_config)] = programs else { return };
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("opt");
    install(&prefix);
    let lib = prefix.join("lib");
    for (name, target) in [
        ("libguasi.so", "libguasi.so.0"),
        ("libguasi.so.0", "libguasi.so.0.25"),
    ] {
        assert_eq!(
            std::fs::read_link(lib.join(name)).unwrap(),
            Path::new(target)
        );
    }
    assert!(prefix.join("share/man/man3/guasi.3").is_file());

    let asked = |words: &[&str]| {
        let mut command = Command::new(&pkg_config);
        command.env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
        let said = succeed(command.args(words).arg("guasi"));
        said.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
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
}
