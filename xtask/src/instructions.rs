//! `cargo xtask instructions`: how many instructions one read takes, kept from growing.
//!
//! Instructions are exact where time is noisy: the same program on the same compiler gives the same
//! figure on a busy machine. The example `instructions` of `bench` is run under callgrind twice,
//! with N and with 2 N reads; the difference over N is the cost of one read, free of start-up and
//! set-up. The figures are compared with `lab/instructions.toml`; `--save` records them there.

use crate::{Outcome, run};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// Reads of the shorter run. Enough that a table which grows once does not show.
const READS: u64 = 10_000;

/// The C library's `memcpy` depends on the processor, and with it the count. Without these features
/// every x86-64 machine takes the same one.
const SAME_MEMCPY: &str = "glibc.cpu.hwcaps=-AVX2,-AVX512VL,-AVX512F,-ERMS,-FSRM,-AVX2_Usable";

const RECORD: &str = "lab/instructions.toml";

pub fn run(save: bool) -> Result<Outcome> {
    if run::find_program("valgrind").is_none() {
        println!("SKIP instructions: valgrind is not installed; apt-get install valgrind");
        return Ok(Outcome::Skipped);
    }
    let file = run::root().join(RECORD);
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading {RECORD}"))?;
    let record = Record::parse(&text)?;
    let program = build()?;
    let mut grown = 0;
    let mut measured = Vec::new();
    println!(
        "instructions a read, tolerance {} %",
        record.tolerance_percent
    );
    for (case, recorded) in &record.cases {
        let now = instructions_per_read(&program, case)?;
        let verdict = judge(*recorded, now, record.tolerance_percent);
        println!(
            "  {case:28} {now:10.1}  recorded {recorded:10.1}  {}",
            verdict.text()
        );
        grown += u64::from(verdict == Verdict::Grown || verdict == Verdict::Unrecorded);
        measured.push((case.as_str(), now));
    }
    if save {
        std::fs::write(&file, record.with(&measured, &text))
            .with_context(|| format!("writing {RECORD}"))?;
        println!("recorded in {RECORD}");
        return Ok(Outcome::Passed);
    }
    if grown > 0 {
        println!(
            "{grown} of {} grew or have no record: make them smaller, or record",
            measured.len()
        );
        println!(
            "the new figures with `cargo xtask instructions --save` and say why in the commit"
        );
        return Ok(Outcome::Failed);
    }
    Ok(Outcome::Passed)
}

/// The content of `lab/instructions.toml`: counts to compare with.
struct Record {
    tolerance_percent: f64,
    /// Case and instructions a read; 0 when it was never measured.
    cases: Vec<(String, f64)>,
}

impl Record {
    fn parse(text: &str) -> Result<Record> {
        let table: toml::Table = text.parse().context(RECORD)?;
        let number = |value: &toml::Value| {
            value
                .as_float()
                .or_else(|| value.as_integer().map(|whole| whole as f64))
        };
        let tolerance_percent = table
            .get("tolerance_percent")
            .and_then(number)
            .with_context(|| format!("{RECORD}: tolerance_percent is not a number"))?;
        let reads = table
            .get("instructions_per_read")
            .and_then(toml::Value::as_table)
            .with_context(|| format!("{RECORD}: no table [instructions_per_read]"))?;
        let mut cases = Vec::new();
        for (case, value) in reads {
            let value = number(value).with_context(|| format!("{RECORD}: {case}: not a number"))?;
            cases.push((case.clone(), value));
        }
        Ok(Record {
            tolerance_percent,
            cases,
        })
    }

    /// `text` with new figures; its comments and order stay.
    fn with(&self, measured: &[(&str, f64)], text: &str) -> String {
        let mut out = String::new();
        for line in text.lines() {
            let key = line
                .split_once('=')
                .map(|(key, _)| key.trim().trim_matches('"'));
            match measured.iter().find(|(case, _)| key == Some(*case)) {
                Some((case, now)) => out.push_str(&format!("{case} = {now:.1}")),
                None => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Unrecorded,
    Grown,
    Held,
    Shrunk,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Verdict::Unrecorded => "no record yet",
            Verdict::Grown => "GREW",
            Verdict::Held => "held",
            Verdict::Shrunk => "fell: record it with --save",
        }
    }
}

fn judge(recorded: f64, now: f64, tolerance_percent: f64) -> Verdict {
    let change_percent = (now - recorded) / recorded * 100.0;
    if recorded <= 0.0 {
        Verdict::Unrecorded
    } else if change_percent > tolerance_percent {
        Verdict::Grown
    } else if change_percent < -tolerance_percent {
        Verdict::Shrunk
    } else {
        Verdict::Held
    }
}

fn build() -> Result<PathBuf> {
    let source = "lab/examples/instructions.rs";
    ensure!(
        run::root().join(source).is_file(),
        "{source} is missing: there is nothing to measure"
    );
    let watched = run::watch(run::cargo().args([
        "build",
        "--release",
        "-p",
        "ugeom-lab",
        "--example",
        "instructions",
    ]))?;
    ensure!(watched.success, "building {source} failed");
    Ok(run::target_dir().join("release/examples/instructions"))
}

fn instructions_per_read(program: &Path, case: &str) -> Result<f64> {
    let short = collect(program, case, READS)?;
    let long = collect(program, case, 2 * READS)?;
    ensure!(
        long > short,
        "{case}: {READS} more reads took no instruction: the bench reads nothing"
    );
    Ok((long - short) as f64 / READS as f64)
}

fn collect(program: &Path, case: &str, reads: u64) -> Result<u64> {
    let output = run::command("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .env("GLIBC_TUNABLES", SAME_MEMCPY)
        .arg(program)
        .args([case, &reads.to_string()])
        .output()
        .context("starting valgrind")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{case}: valgrind ended with {}:\n{stderr}",
        output.status
    );
    match collected(&stderr) {
        Some(count) => Ok(count),
        None => bail!("{case}: no line `Collected : N` from callgrind:\n{stderr}"),
    }
}

/// The count in callgrind's line `==123== Collected : 456`.
fn collected(stderr: &str) -> Option<u64> {
    let line = stderr
        .lines()
        .find_map(|line| line.split_once(" Collected : "))?;
    line.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# why\ntolerance_percent = 3\n\n[instructions_per_read]\nzero = 100.0\n\
                        md = 0\n";

    #[test]
    fn the_count_is_found_in_the_words_of_callgrind() {
        let stderr = "==7== Events    : Ir\n==7== Collected : 123456\n==7==\n";
        assert_eq!(collected(stderr), Some(123_456));
        assert_eq!(collected("valgrind: no such file"), None);
    }

    #[test]
    fn growth_past_the_tolerance_fails_and_a_fall_is_told() {
        assert_eq!(judge(100.0, 102.9, 3.0), Verdict::Held);
        assert_eq!(judge(100.0, 103.1, 3.0), Verdict::Grown);
        assert_eq!(judge(100.0, 90.0, 3.0), Verdict::Shrunk);
        assert_eq!(judge(0.0, 1.0, 3.0), Verdict::Unrecorded);
    }

    #[test]
    fn saving_changes_the_figures_and_nothing_else() -> Result<()> {
        let record = Record::parse(TEXT)?;
        assert_eq!(record.cases.len(), 2);
        let saved = record.with(&[("md", 210.04)], TEXT);
        assert_eq!(saved, TEXT.replace("md = 0", "md = 210.0"));
        assert!(Record::parse("tolerance_percent = 3").is_err());
        Ok(())
    }
}
