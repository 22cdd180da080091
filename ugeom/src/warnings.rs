//! Warnings of layers that are no error of any one request: on stderr, a line each.

use log::{LevelFilter, Log, Metadata, Record};

struct Stderr;

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ugeom")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("ugeom: {}", record.args());
        }
    }

    fn flush(&self) {}
}

/// Prints messages up to `level` from now on.
pub fn print(level: LevelFilter) {
    static STDERR: Stderr = Stderr;
    // A logger that a test has set stays.
    if log::set_logger(&STDERR).is_ok() {
        log::set_max_level(level);
    }
}
