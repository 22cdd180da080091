//! The program as the tests of this crate start it: cargo tells a test only where the programs of
//! its own crate are.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    ugeom::run()
}
