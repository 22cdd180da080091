//! Options of hyperfine 1.20 that `ugeom ab` has in another form. Those with the same meaning are
//! aliases of its own options.

/// The options, and what to write instead.
const OPTIONS: &[(&[&str], &str)] = &[
    (
        &["-m", "--min-runs", "-M", "--max-runs"],
        "--rounds N fixes the number of rounds, --budget TIME limits their time",
    ),
    (
        &["-P", "--parameter-scan", "-D", "--parameter-step-size"],
        "--scan NAME=FROM..TO:STEP, or --scan NAME=VALUE,VALUE,...",
    ),
    (
        &["--show-output", "--output"],
        "output is discarded; write a command that keeps it: 'sort a.txt > b.txt'",
    ),
    (
        &["--input"],
        "commands run without input; write a command that has one: 'sort < a.txt'",
    ),
    (
        &["-u", "--time-unit"],
        "the page has the unit that fits each time; --csv FILE and --json FILE have ns",
    ),
    (
        &["--style"],
        "--quiet leaves out progress and warnings, --color sets the colours",
    ),
    (
        &["--sort"],
        "candidates are printed in the order in which they are given",
    ),
    (
        &["--reference", "--reference-name"],
        "the first candidate is the reference",
    ),
    (
        &["--export-asciidoc", "--export-orgmode"],
        "--markdown FILE, --csv FILE or --json FILE",
    ),
    (
        &["--min-benchmarking-time"],
        "--budget TIME limits the whole measurement",
    ),
];

/// What `ugeom ab` has instead of an option of hyperfine.
pub fn instead_of(option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or(option);
    let known = OPTIONS.iter().find(|(names, _)| names.contains(&name));
    known.map(|(_, instead)| *instead)
}
