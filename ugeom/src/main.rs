//! The program; everything it does is in the library, for the manual pages and the tests.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    ugeom::run()
}
