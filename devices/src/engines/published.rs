//! The results of 2007: GUASI 0.23 against libaio under fio, on a Pentium 4 at 3.4 GHz and a SATA
//! drive (Maxtor 7Y250M0), Linux 2.6.20. Random reads and writes of 4 KiB, 256 MiB, O_DIRECT.

/// One run of fio, as it was published.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The engine as the mail of 2007 has it: `guasi` or `libaio`.
    pub engine: &'static str,
    /// Requests at a time.
    pub depth: u32,
    /// Reads and writes a second.
    pub iops: [u64; 2],
    /// Mean time of submitting a read and a write, ms.
    pub submitting_ms: [f64; 2],
    /// Mean time of completing them, ms.
    pub completing_ms: [f64; 2],
    /// Context switches of the job.
    pub switches: u64,
    /// CPU, per cent: user and system together.
    pub cpu_percent: f64,
}

/// Requests of one of these runs: 256 MiB in blocks of 4 KiB.
pub const REQUESTS: u64 = 65_536;

/// All runs, in their order.
pub const PUBLISHED: [Published; 6] = [
    run(
        "guasi",
        100,
        [159, 199],
        [0.0, 0.0],
        [378.25, 245.75],
        391_041,
        2.96,
    ),
    run(
        "libaio",
        100,
        [157, 185],
        [0.15, 0.19],
        [374.27, 256.53],
        77_592,
        1.15,
    ),
    run(
        "guasi",
        1000,
        [148, 158],
        [0.47, 0.49],
        [3336.43, 3294.01],
        434_627,
        2.69,
    ),
    run(
        "libaio",
        1000,
        [153, 159],
        [3274.26, 1550.13],
        [613.37, 469.30],
        24_804,
        0.78,
    ),
    run(
        "guasi",
        10_000,
        [156, 165],
        [18.17, 18.53],
        [30_356.92, 32_159.18],
        321_641,
        2.33,
    ),
    run(
        "libaio",
        10_000,
        [161, 149],
        [49_388.29, 17_419.86],
        [487.09, 429.89],
        27_038,
        0.75,
    ),
];

const fn run(
    engine: &'static str,
    depth: u32,
    iops: [u64; 2],
    submitting_ms: [f64; 2],
    completing_ms: [f64; 2],
    switches: u64,
    cpu_percent: f64,
) -> Published {
    Published {
        engine,
        depth,
        iops,
        submitting_ms,
        completing_ms,
        switches,
        cpu_percent,
    }
}

/// The published conclusion, word for word.
pub(crate) const CONCLUSION: &str = "GUASI and Libaio performance matched each other pretty much \
consistently. Performance fluctuated over different measures of about +/-10% around their mean \
value.";
