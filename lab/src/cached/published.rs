//! The publication of 2006: Bruce Evans, "Re: Cached file read performance", freebsd-performance,
//! 23 December 2006. An Athlon XP2700 at 2,025 MHz; a file read over and over from memory, buffers
//! recycled for nearly every read.

/// A published speed of cached reads of 16 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// The version of FreeBSD, as the mail writes it.
    pub kernel: &'static str,
    /// The order of reads.
    pub order: &'static str,
    /// Throughput as printed, MB/s.
    pub mb_per_s: u64,
}

/// The four speeds, as printed. Those of ~5.2 contradict the text around them, which says that its
/// splay trees are slower in the random case: perhaps the two were exchanged.
pub const SPEEDS: [Speed; 4] = [
    Speed {
        kernel: "~4.10",
        order: "random",
        mb_per_s: 580,
    },
    Speed {
        kernel: "~4.10",
        order: "sequential",
        mb_per_s: 580,
    },
    Speed {
        kernel: "~5.2",
        order: "random",
        mb_per_s: 575,
    },
    Speed {
        kernel: "~5.2",
        order: "sequential",
        mb_per_s: 466,
    },
];

/// A row of a published profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Share of all time, per cent.
    pub percent: f64,
    /// Time in the function itself, seconds.
    pub self_s: f64,
    /// Calls of the function that the profile counted.
    pub calls: u64,
    /// Time of a call in the function itself, ns.
    pub self_ns: u64,
    /// Time of a call with its callees, ns.
    pub total_ns: u64,
    /// Name of the function in the kernel.
    pub name: &'static str,
}

const fn row(
    percent: f64,
    self_s: f64,
    calls: u64,
    self_ns: u64,
    total_ns: u64,
    name: &'static str,
) -> Row {
    Row {
        percent,
        self_s,
        calls,
        self_ns,
        total_ns,
        name,
    }
}

/// The rows that this experiment has counterparts for, of -current (splay trees), reads of 16 KiB
/// at random.
pub(crate) const CURRENT_RANDOM: [Row; 4] = [
    row(49.1, 0.565, 25_643, 22_037, 22_037, "copyout"),
    row(8.8, 0.101, 87_831, 1153, 1153, "vm_page_splay"),
    row(7.0, 0.081, 112_906, 715, 715, "buf_splay"),
    row(1.1, 0.013, 21_852, 595, 3725, "getnewbuf"),
];

/// The profile of sequential reads.
pub(crate) const CURRENT_SEQUENTIAL: [Row; 4] = [
    row(57.1, 0.550, 25_643, 21_464, 21_464, "copyout"),
    row(4.2, 0.040, 102_830, 391, 391, "vm_page_splay"),
    row(1.4, 0.013, 102_588, 130, 130, "buf_splay"),
    row(1.3, 0.012, 25_603, 488, 1920, "getnewbuf"),
];

/// The same of ~4.10 (a hash), sequential and some random.
pub const OLD: [Row; 3] = [
    row(51.1, 0.547, 25_643, 21_323, 21_323, "generic_copyout"),
    row(1.9, 0.020, 51_207, 395, 395, "gbincore"),
    row(0.9, 0.009, 25_603, 359, 2127, "getnewbuf"),
];

/// A lookup among 64 buffers of a file of 1 MB in -current: the best case, ns.
pub(crate) const LOOKUP_BEST_NS: u64 = 501;

/// Hashing a string of 16 bytes on that machine, ns.
pub(crate) const HASH_16_NS: u64 = 40;

/// The whole of a profiled function's time as a share of the copying: the shape that two machines
/// can be compared by.
pub(crate) fn share_of_copy(rows: &[Row], name: &str) -> Option<f64> {
    let copy = rows.iter().find(|row| row.name.ends_with("copyout"))?;
    let row = rows.iter().find(|row| row.name == name)?;
    Some(row.self_ns as f64 * row.calls as f64 / (copy.self_ns as f64 * copy.calls as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns of the mail fit together: self seconds are calls times self ns a call, as far
    /// as three digits of seconds tell (buf_splay's line of 0.013 s and 130 ns does).
    #[test]
    fn the_published_columns_agree_with_one_another() {
        let rows = CURRENT_RANDOM.iter().chain(&CURRENT_SEQUENTIAL).chain(&OLD);
        for row in rows {
            let seconds = row.calls as f64 * row.self_ns as f64 * 1e-9;
            assert!((seconds - row.self_s).abs() < 0.0011, "{row:?}: {seconds}");
            assert!(row.total_ns >= row.self_ns);
        }
    }

    #[test]
    fn the_lookup_was_a_seventh_of_the_copy_at_random_and_a_fortieth_in_sequence() {
        let random = share_of_copy(&CURRENT_RANDOM, "buf_splay").unwrap();
        let sequential = share_of_copy(&CURRENT_SEQUENTIAL, "buf_splay").unwrap();
        assert!((random - 0.143).abs() < 0.001, "{random}");
        assert!((sequential - 0.0242).abs() < 0.001, "{sequential}");
        assert_eq!(share_of_copy(&OLD, "buf_splay"), None);
    }
}
