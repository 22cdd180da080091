//! What a job is, once its text has been understood. The defaults are fio's.

use ugeom_engine::GuasiOptions;

use super::error::Origin;
use ugeom_measure::units::Size;

/// The kinds of requests, as indexes of the arrays below.
pub const READ: usize = 0;
/// See [`READ`].
pub const WRITE: usize = 1;
/// See [`READ`].
pub const TRIM: usize = 2;
/// The names of the kinds, as fio prints them.
pub const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// `rw=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// As the user wrote it.
    pub name: &'static str,
    /// Which kinds of requests there are.
    pub does: [bool; 3],
    /// Places are drawn at random.
    pub random: bool,
    /// Each trim is followed by a write of the same range.
    pub trim_then_write: bool,
    /// `rw=randread:N`: so many requests follow one another before a place is drawn; with
    /// `rw=read:SIZE` the gap between requests, bytes.
    pub modifier: i64,
}

/// The sizes of requests of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The smallest, bytes.
    pub min: u64,
    /// The largest, bytes.
    pub max: u64,
    /// `bssplit`: sizes with their share in percent; empty: any multiple of `min` up to `max`.
    pub split: Vec<(u64, u8)>,
}

impl Sizes {
    /// Always the same.
    #[must_use]
    pub fn fixed(bytes: u64) -> Self {
        Self {
            min: bytes,
            max: bytes,
            split: Vec::new(),
        }
    }
}

/// `random_distribution=`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Every place is as likely as any other.
    #[default]
    Uniform,
    /// Zipf's law with this theta.
    Zipf(f64),
    /// Pareto's with this h.
    Pareto(f64),
    /// The normal distribution around the middle, with this deviation in percent.
    Normal(f64),
    /// Shares of the accesses (percent) go to shares of the file (percent).
    Zoned(Vec<(f64, f64)>),
}

/// `verify=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// No.
    #[default]
    No,
    /// A header in each block, with a CRC-32C of what follows.
    Crc32c,
    /// `verify_pattern` and nothing else.
    Pattern,
}

/// One piece of a `verify_pattern` or `buffer_pattern`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The offset of the block, eight bytes, the lowest first (`%o`).
    Offset,
}

/// What fills the buffers of writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Random bytes, the same for all, a few of them new in each (fio's `scramble_buffers`).
    #[default]
    Random,
    /// New random bytes for each request.
    Refill,
    /// Zeroes.
    Zero,
    /// A pattern.
    Pattern(Vec<Piece>),
}

/// What the kernel is told about the order of requests (`fadvise_hint=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FadviseHint {
    /// Nothing.
    None,
    /// What the job does.
    #[default]
    Pattern,
    /// POSIX_FADV_RANDOM: no readahead.
    Random,
    /// POSIX_FADV_SEQUENTIAL: more readahead.
    Sequential,
}

/// What is not measured (`disable_slat=` and so on; `gtod_reduce=` is all of them).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmeasured {
    /// Submission latencies.
    pub slat: bool,
    /// Completion latencies.
    pub clat: bool,
    /// Total latencies.
    pub lat: bool,
    /// The log of bandwidths.
    pub bw: bool,
}

/// When a write is complete (`sync=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteSync {
    /// When it is in the cache of the system.
    #[default]
    None,
    /// When data and metadata are durable (O_SYNC).
    Sync,
    /// When data is durable (O_DSYNC).
    Dsync,
}

/// What `steadystate=` looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyOf {
    /// Requests a second.
    Iops,
    /// Bytes a second.
    Bandwidth,
}

/// `steadystate=`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// The figure.
    pub of: SteadyOf,
    /// Its slope by least squares, instead of the largest deviation from the mean.
    pub slope: bool,
    /// The limit.
    pub limit: f64,
    /// The limit is in percent of the mean.
    pub percent: bool,
}

/// Which latencies get percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Submission.
    pub slat: bool,
    /// Completion.
    pub clat: bool,
    /// Both together.
    pub lat: bool,
}

/// A job.
#[derive(Clone, Debug, Default)]
#[expect(
    missing_docs,
    reason = "a field is the option of its name: see the table of options"
)]
pub struct Job {
    pub name: String,
    pub origin: Origin,
    /// What was set for this job by itself, and what for all, as written: for the report.
    pub own: Vec<(String, String)>,
    pub global: Vec<(String, String)>,
    /// Where each option was set, the last one counts.
    pub origins: Vec<(&'static str, Origin)>,

    pub description: Option<String>,
    pub rw: Pattern,
    pub sizes: [Sizes; 3],
    pub size: Option<Size>,
    pub io_size: Option<Size>,
    pub offset: Size,
    pub offset_increment: Size,
    pub filename: Option<String>,
    pub directory: Option<String>,
    pub nrfiles: u32,
    pub filesize: Option<(u64, u64)>,
    pub number_ios: u64,
    pub loops: u64,

    pub ioengine: String,
    /// How `guasi` makes its calls.
    pub guasi: GuasiOptions,
    pub direct: bool,
    pub iodepth: u32,
    pub iodepth_low: u32,
    /// 0: whatever was reaped together is submitted together.
    pub iodepth_batch: u32,
    pub iodepth_batch_complete_min: u32,
    pub iodepth_batch_complete_max: u32,

    pub numjobs: u32,
    pub thread: bool,
    pub group_reporting: bool,
    pub new_group: bool,
    pub stonewall: bool,
    pub exitall: bool,
    pub startdelay_ns: (u64, u64),
    pub ramp_time_ns: u64,
    pub runtime_ns: u64,
    pub time_based: bool,
    pub cpus_allowed: Vec<usize>,
    pub cpus_split: bool,

    /// Share of reads in a mix, percent.
    pub rwmixread: u8,
    pub rate: [u64; 3],
    pub rate_iops: [u64; 3],
    pub rate_poisson: bool,
    pub thinktime_ns: u64,
    pub thinktime_blocks: u32,
    pub fsync: u32,
    pub fdatasync: u32,
    pub end_fsync: bool,
    pub invalidate: bool,
    pub fadvise_hint: FadviseHint,
    pub sync: WriteSync,
    pub overwrite: bool,
    pub create_serialize: bool,
    pub unlink: bool,
    pub fallocate: bool,

    pub distribution: [Distribution; 3],
    pub norandommap: bool,
    pub randrepeat: bool,
    pub randseed: u64,

    pub verify: Verify,
    pub do_verify: bool,
    pub verify_pattern: Vec<Piece>,
    pub fill: Fill,

    pub unmeasured: Unmeasured,
    pub percentiles: Percentiles,
    pub percentile_list: Vec<f64>,
    pub bw_log: Option<String>,
    pub lat_log: Option<String>,
    pub iops_log: Option<String>,
    pub log_avg_ns: u64,
    pub steady: Option<Steady>,
    pub steady_duration_ns: u64,
    pub steady_ramp_ns: u64,
}

/// The header of a block to verify with its checksum, bytes.
pub const VERIFY_HEADER_BYTES: u64 = 44;

/// fio's `percentile_list`.
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Job {
    /// A job with the defaults of fio.
    #[must_use]
    pub fn new(name: &str, origin: Origin) -> Self {
        Self {
            name: name.to_owned(),
            origin,
            rw: Pattern {
                name: "read",
                does: [true, false, false],
                ..Pattern::default()
            },
            sizes: [const { 4096 }; 3].map(Sizes::fixed),
            nrfiles: 1,
            loops: 1,
            ioengine: "psync".to_owned(),
            iodepth: 1,
            iodepth_batch_complete_min: 1,
            numjobs: 1,
            thread: true,
            rwmixread: 50,
            thinktime_blocks: 1,
            invalidate: true,
            create_serialize: true,
            fallocate: true,
            randrepeat: true,
            do_verify: true,
            percentiles: Percentiles {
                clat: true,
                ..Percentiles::default()
            },
            percentile_list: PERCENTILES.to_vec(),
            ..Self::default()
        }
    }

    /// Where an option was set for this job; the job itself, if it was not.
    #[must_use]
    pub fn origin_of(&self, option: &str) -> &Origin {
        let found = self.origins.iter().rev().find(|(name, _)| *name == option);
        found.map_or(&self.origin, |(_, origin)| origin)
    }

    /// True when the user set the option.
    #[must_use]
    pub fn was_set(&self, option: &str) -> bool {
        self.origins.iter().any(|(name, _)| *name == option)
    }

    /// The largest request, bytes.
    #[must_use]
    pub fn largest_bytes(&self) -> u64 {
        let sizes = self.sizes.iter().zip(self.rw.does);
        let used = sizes.filter(|(_, does)| *does).map(|(sizes, _)| sizes.max);
        used.max().unwrap_or(0)
    }

    /// The smallest request, bytes: what the file is divided into.
    #[must_use]
    pub fn smallest_bytes(&self) -> u64 {
        let sizes = self.sizes.iter().zip(self.rw.does);
        let used = sizes.filter(|(_, does)| *does).map(|(sizes, _)| sizes.min);
        used.min().unwrap_or(512)
    }

    /// Whether the content of the target changes.
    #[must_use]
    pub fn changes_data(&self) -> bool {
        self.rw.does[WRITE] || self.rw.does[TRIM]
    }

    /// Whether requests can be in flight beside each other: not with a blocking engine.
    #[must_use]
    pub fn is_sync(&self) -> bool {
        matches!(
            self.ioengine.as_str(),
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "mmap"
        )
    }
}
