//! Compiles the one variadic function, and gives the library its name.

use std::io::Write;

fn main() -> std::io::Result<()> {
    cc::Build::new()
        .file("src/submit.c")
        .include("include")
        .std("c99")
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("guasi_submit");
    let mut out = std::io::stdout();
    writeln!(out, "cargo::rerun-if-changed=src/submit.c")?;
    writeln!(out, "cargo::rerun-if-changed=include/guasi.h")?;
    writeln!(
        out,
        "cargo::rustc-cdylib-link-arg=-Wl,-soname,libguasi.so.0"
    )
}
