//! The lines of FreeBSD's diskinfo for its measurements.

use super::timing::{Step, StepKind};
use std::fmt::Write;

/// Writes the steps one by one as FreeBSD prints them, with a heading before each kind.
#[derive(Default)]
pub struct Layout {
    before: Option<Step>,
}

impl Layout {
    /// The line of a step, with its heading.
    pub fn line(&mut self, step: &Step) -> String {
        let mut text = self.heading(step.kind);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", figures(step));
        if let Some(blocks) = self.before.take()
            && (blocks.kind, step.kind) == (StepKind::Overhead, StepKind::Overhead)
        {
            let overhead = per_sector_ms(step) - per_sector_ms(&blocks);
            let _ = writeln!(
                text,
                "\tcalculated command overhead\t\t\t= {overhead:8.3} msec/sector"
            );
        }
        self.before = Some(step.clone());
        text
    }

    /// The text after it: FreeBSD has an empty line behind all kinds but the last.
    pub fn end(&self) -> &'static str {
        match &self.before {
            None => "",
            Some(step) if step.kind == StepKind::Write => "",
            Some(_) => "\n",
        }
    }

    fn heading(&self, kind: StepKind) -> String {
        let before = self.before.as_ref().map(|step| step.kind);
        if before == Some(kind) {
            return String::new();
        }
        let heading = match kind {
            StepKind::Overhead => "I/O command overhead:",
            StepKind::Seek => "Seek times:",
            StepKind::Transfer => "Transfer rates:",
            StepKind::Read => "Asynchronous random reads:",
            StepKind::Write => "Synchronous random writes:",
        };
        let gap = if before.is_some() { "\n" } else { "" };
        format!("{gap}{heading}\n")
    }
}

/// The time of a 20,480th, as FreeBSD has it, ms: ten blocks are so many sectors of 512 bytes.
fn per_sector_ms(step: &Step) -> f64 {
    step.seconds() * 100.0 / 2048.0
}

fn figures(step: &Step) -> String {
    let (count, seconds) = (step.requests, step.seconds());
    let name = format!("{}:", step.name);
    match step.kind {
        StepKind::Overhead => format!(
            "\t{:<27}{seconds:10.6} sec\t= {:8.3} msec/sector",
            format!("time to {}", step.name),
            per_sector_ms(step)
        ),
        StepKind::Seek => format!(
            "\t{name}\t{count:5} iter in {seconds:10.6} sec = {:8.3} msec",
            step.seconds_each() * 1e3
        ),
        StepKind::Transfer => format!(
            "\t{name:<13}{:8} kbytes in {seconds:10.6} sec = {:8.0} kbytes/sec",
            step.bytes() / 1024,
            step.bytes_per_second() / 1024.0
        ),
        StepKind::Read => format!(
            "\t{name:<13}{count:8} ops in  {seconds:10.6} sec = {:8.0} IOPS",
            step.per_second()
        ),
        StepKind::Write => format!(
            "\t{name:>12} {:8.1} usec/IO = {:8.1} Mbytes/s",
            step.seconds_each() * 1e6,
            step.bytes_per_second() / f64::from(1 << 20)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: StepKind, name: &str, (requests, bytes_each): (u64, u64), taken_ns: u64) -> Step {
        Step {
            kind,
            name: name.to_owned(),
            requests,
            bytes_each,
            taken_ns,
        }
    }

    #[test]
    fn the_lines_are_those_of_freebsd() {
        let mega = 1 << 20;
        let steps = [
            step(
                StepKind::Overhead,
                "read 10MB block",
                (10, mega),
                40_960_000,
            ),
            step(
                StepKind::Overhead,
                "read 20480 sectors",
                (20_480, 512),
                2_088_960_000,
            ),
            step(StepKind::Seek, "Full stroke", (250, 512), 5_250_000_000),
            step(StepKind::Seek, "Quarter stroke", (500, 512), 5_250_000_000),
            step(StepKind::Transfer, "outside", (100, mega), 1_600_000_000),
            step(StepKind::Read, "sectorsize", (412, 512), 4_000_000_000),
            step(StepKind::Read, "1024 kbytes", (412, mega), 4_000_000_000),
            step(StepKind::Write, "0.5 kbytes", (250, 512), 250_000_000),
            step(
                StepKind::Write,
                "8192 kbytes",
                (250, 8 * mega),
                25_000_000_000,
            ),
        ];
        let mut layout = Layout::default();
        let text: String = steps.iter().map(|step| layout.line(step)).collect();
        let expected = "\
I/O command overhead:
\ttime to read 10MB block      0.040960 sec\t=    0.002 msec/sector
\ttime to read 20480 sectors   2.088960 sec\t=    0.102 msec/sector
\tcalculated command overhead\t\t\t=    0.100 msec/sector

Seek times:
\tFull stroke:\t  250 iter in   5.250000 sec =   21.000 msec
\tQuarter stroke:\t  500 iter in   5.250000 sec =   10.500 msec

Transfer rates:
\toutside:       102400 kbytes in   1.600000 sec =    64000 kbytes/sec

Asynchronous random reads:
\tsectorsize:       412 ops in    4.000000 sec =      103 IOPS
\t1024 kbytes:      412 ops in    4.000000 sec =      103 IOPS

Synchronous random writes:
\t 0.5 kbytes:   1000.0 usec/IO =      0.5 Mbytes/s
\t8192 kbytes: 100000.0 usec/IO =     80.0 Mbytes/s
";
        assert_eq!(text, expected);
        assert_eq!(layout.end(), "", "FreeBSD ends here");
    }
}
