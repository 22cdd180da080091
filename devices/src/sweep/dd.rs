//! The lines of 2004: the output of dd for a copy, and of csh for its time.
//!
//! Sources: bin/dd/misc.c of FreeBSD 5; `time` of tcsh(1), whose default format is
//! `%Uu %Ss %E %P %X+%Dk %I+%Oio %Fpf+%Ww`. csh counts in hundredths of a second and cuts off what
//! is less. Memory, faults and swaps are not measured here and stand as 0.

use super::findings::{Findings, Sums};
use super::subject::{Document, Role};

/// For each step of each way the two lines, below the command that they would belong to.
pub fn dd(document: &Document) -> String {
    let findings = Findings::of(document);
    let mut text = String::new();
    for (index, facts) in document.subject.cases.iter().enumerate() {
        let (Some(sums), Role::Step) = (findings.sums(index), facts.role) else { continue };
        let target = document
            .subject
            .parts
            .get(facts.part)
            .map_or("", |part| &part.target);
        let (block, run) = (facts.block_bytes, sums.run(facts.block_bytes));
        let blocks = run.bytes / block as f64;
        let paths = match document.subject.write {
            true => format!("if=/dev/random of={target}"),
            false => format!("if={target} of=/dev/null"),
        };
        let way = facts.way.word();
        text += &format!("# time dd {paths} bs={block} count={blocks:.0} ({way})\n");
        text += &lines(&run);
    }
    text
}

/// A run as dd and csh see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    pub bytes: f64,
    pub seconds: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
}

impl Sums {
    /// The typical run, of a whole number of blocks at the rate of all runs.
    fn run(&self, block_bytes: u64) -> Run {
        let mean_bytes = self.each(self.bytes);
        let bytes = (mean_bytes / block_bytes as f64).round().max(1.0) * block_bytes as f64;
        let scale = bytes / mean_bytes.max(1.0);
        let seconds = |ns: u64| self.each(ns) * scale / 1e9;
        Run {
            bytes,
            seconds: seconds(self.wall_ns),
            user_seconds: seconds(self.user_ns),
            system_seconds: seconds(self.system_ns),
        }
    }
}

/// dd's line of bytes and seconds, and the line of csh's `time`, as the mail of 2004 shows them.
pub(super) fn lines(run: &Run) -> String {
    let hundredths = |seconds: f64| (seconds * 100.0 + 1e-6).floor();
    let elapsed = hundredths(run.seconds);
    let busy = hundredths(run.user_seconds) + hundredths(run.system_seconds);
    let percent = if elapsed > 0.0 {
        (busy * 1000.0 / elapsed).floor() / 10.0
    } else {
        0.0
    };
    let minutes = (elapsed / 6000.0).floor();
    let rest = elapsed - minutes * 6000.0;
    format!(
        "{:.0} bytes transferred in {:.6} secs ({:.0} bytes/sec)\n\
         {:.3}u {:.3}s {minutes:.0}:{:02.0}.{:02.0} {percent:.1}%\t0+0k 0+0io 0pf+0w\n",
        run.bytes,
        run.seconds,
        run.bytes / run.seconds,
        run.user_seconds,
        run.system_seconds,
        (rest / 100.0).floor(),
        rest % 100.0,
    )
}

#[cfg(test)]
mod tests {
    use super::super::published;
    use super::*;

    #[test]
    fn the_published_rows_come_out_as_they_were_printed() {
        let printed = [
            (7_459_456, "0.007u 3.412s 0:08.99 37.9%"),
            (14_706_101, "0.000u 1.608s 0:04.56 35.0%"),
            (27_613_340, "0.000u 0.773s 0:02.43 31.6%"),
            (43_624_834, "0.000u 0.312s 0:01.53 20.2%"),
            (53_092_158, "0.015u 0.132s 0:01.26 11.1%"),
            (57_123_364, "0.000u 0.093s 0:01.17 7.6%"),
            (55_526_618, "0.000u 0.046s 0:01.20 3.3%"),
            (54_035_605, "0.000u 0.007s 0:01.24 0.0%"),
            (55_527_089, "0.007u 0.015s 0:01.20 0.8%"),
            (56_700_232, "0.000u 0.007s 0:01.18 0.0%"),
            (55_912_731, "0.000u 0.015s 0:01.20 0.8%"),
        ];
        for (row, (rate, times)) in published::ROWS.iter().zip(printed) {
            let text = lines(&Run {
                bytes: published::BYTES as f64,
                seconds: row.seconds,
                user_seconds: row.user_seconds,
                system_seconds: row.system_seconds,
            });
            assert!(text.starts_with("67108864 bytes transferred in "), "{text}");
            assert!(
                text.contains(&format!("\n{times}\t")),
                "{text} instead of {times}"
            );
            // dd divided before it cut its seconds to six digits.
            let words = text
                .split_once('(')
                .and_then(|(_, rest)| rest.split_once(' '));
            let bytes_per_second: u64 = words.unwrap().0.parse().unwrap();
            let rounding = (rate as f64 * 1e-6 / row.seconds) as u64 + 1;
            assert!(
                bytes_per_second.abs_diff(rate) <= rounding,
                "{text} instead of {rate}"
            );
        }
    }

    #[test]
    fn runs_of_different_lengths_are_shown_as_whole_blocks_at_their_rate() {
        let sums = Sums {
            runs: 7,
            wall_ns: 7_000_000_000,
            bytes: 10 * 512,
            transactions: 10,
            ..Sums::default()
        };
        let run = sums.run(512);
        assert_eq!(run.bytes, 512.0);
        assert!(
            (run.bytes / run.seconds - 5120.0 / 7.0).abs() < 1e-6,
            "{run:?}"
        );
    }

    #[test]
    fn long_runs_have_minutes() {
        let run = Run {
            bytes: 1e9,
            seconds: 754.256,
            user_seconds: 0.0,
            system_seconds: 1.0,
        };
        assert!(lines(&run).contains(" 12:34.25 0.1%\t"), "{}", lines(&run));
    }
}
