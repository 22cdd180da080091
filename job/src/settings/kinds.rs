//! The values that fields of a job can have where a number or a text is not enough.

/// The value of `rw`: kinds of requests and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// As the user wrote it.
    pub name: &'static str,
    /// The kinds of requests.
    pub does: [bool; 3],
    /// Places are drawn at random.
    pub random: bool,
    /// Each trim is followed by a write of the same range.
    pub trim_then_write: bool,
    /// `rw=randread:N`: so many requests follow one another before a place is drawn; with
    /// `rw=read:SIZE` the gap between requests, bytes.
    pub modifier: i64,
}

/// The operation of an engine on a file before its first request. The requests themselves do
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOperation {
    /// open(2) with O_CREAT (`filecreate`).
    Create,
    /// The inode is read (`filestat`).
    Stat(StatCall),
    /// The file is removed by unlink(2) (`filedelete`).
    Delete,
}

/// The operation of an engine on the range of a request instead of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeCall {
    /// fallocate(2) of the range (`falloc`).
    Allocate,
    /// ftruncate(2) to its offset (`ftruncate`).
    Truncate,
}

/// `stat_type=`: the call of `filestat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatCall {
    /// stat(2), which follows symbolic links.
    #[default]
    Stat,
    /// lstat(2): of a symbolic link, not of its target.
    Lstat,
    /// statx(2) of the canonical path, with all fields.
    Statx,
}

/// `lockfile=`: requests that one in flight keeps away from its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileLocking {
    /// No locks are taken.
    #[default]
    No,
    /// Requests of other jobs.
    Exclusive,
    /// A write or trim: requests of other jobs. A read: their writes and trims.
    ReadWrite,
}

/// The sizes of requests of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The smallest length, bytes.
    pub min: u64,
    /// The largest length, bytes.
    pub max: u64,
    /// `bssplit`: sizes with their share in percent; empty: any multiple of `min` up to `max`.
    pub split: Vec<(u64, u8)>,
}

impl Sizes {
    /// All requests have the same length.
    pub fn fixed(bytes: u64) -> Self {
        Self {
            min: bytes,
            max: bytes,
            split: Vec::new(),
        }
    }

    /// Whether all requests have the same length.
    pub fn is_fixed(&self) -> bool {
        self.min == self.max && self.split.is_empty()
    }
}

/// Where the centre of a distribution is, as a share of the file, if not where the law has it.
pub type Center = Option<f64>;

/// The value of `random_generator`: which numbers the offsets come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RandomGenerator {
    /// Numbers of 32 bits.
    #[default]
    Tausworthe,
    /// Numbers of 64 bits.
    Tausworthe64,
    /// No place comes twice, also without a map.
    Lfsr,
}

/// The value of `random_distribution`: which offsets are likely.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Every place is as likely as any other.
    #[default]
    Uniform,
    /// Zipf's law with this theta.
    Zipf(f64, Center),
    /// Pareto's with this h.
    Pareto(f64, Center),
    /// The normal distribution around the middle, with this deviation in percent.
    Normal(f64, Center),
    /// Shares of the accesses (percent) go to shares of the file (percent).
    Zoned(Vec<(f64, f64)>),
    /// Shares of the accesses (percent) go to so many bytes, one zone behind the other.
    ZonedBytes(Vec<(f64, u64)>),
}

/// `verify=`: the header of each block, or of each part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// No header is written, nothing is verified.
    #[default]
    No,
    /// A header without a digest, and `verify_pattern` behind it if there is one (`meta`).
    Header,
    /// A header with an MD5 of the data after it.
    Md5,
    /// A header with a CRC-64.
    Crc64,
    /// A header with a CRC-32.
    Crc32,
    /// A header with a CRC-32C.
    Crc32c,
    /// A header with a CRC-16.
    Crc16,
    /// A header with a CRC-7.
    Crc7,
    /// A header with fio's SHA-256.
    Sha256,
    /// A header with fio's SHA-512.
    Sha512,
    /// A header with a SHA-3 of so many bits: 224, 256, 384 or 512.
    Sha3(u16),
    /// A header with a 32 bit xxHash.
    Xxhash,
    /// A header with a SHA-1.
    Sha1,
    /// A header and `verify_pattern`, which is set without `verify`.
    PatternHeader,
    /// `verify_pattern` and nothing else.
    Pattern,
    /// Nothing is written for it, and nothing is checked.
    Null,
}

impl Verify {
    /// The bytes of the header with its digest; `None` when there is no header.
    pub fn header_bytes(self) -> Option<usize> {
        let digest = match self {
            Self::No | Self::Pattern | Self::Null => return None,
            Self::Header | Self::PatternHeader => 0,
            Self::Md5 => 16,
            Self::Crc64 => 8,
            Self::Crc32 | Self::Crc32c | Self::Xxhash => 4,
            Self::Crc16 => 2,
            Self::Crc7 => 1,
            Self::Sha256 => 64,
            Self::Sha512 => 128,
            Self::Sha3(bits) => usize::from(bits) / 8,
            Self::Sha1 => 20,
        };
        Some(VERIFY_HEADER_BYTES + digest)
    }
}

/// The header of a block to verify without its digest, bytes.
pub const VERIFY_HEADER_BYTES: usize = 40;

/// How blocks are checked, besides `verify=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verifying {
    /// A header for each so many bytes; 0: for each request.
    pub interval_bytes: u64,
    /// Where in such a part the header is, bytes.
    pub offset_bytes: u64,
    /// The number in a header must be that of the last write of the block.
    pub in_sequence: bool,
    /// Write the wrong block and the expected one to files.
    pub dump: bool,
    /// Read back after so many writes; 0: at the end.
    pub backlog: u64,
    /// How many are read back then; 0: all.
    pub backlog_batch: u64,
    /// Read back the writes of an earlier run of the job.
    pub only: bool,
    /// Reads that check count as requests of the job, as in fio's `experimental_verify`.
    pub counted: bool,
    /// Leave the writes that ended last in a file for a later job.
    pub saves: bool,
    /// Check no more than an earlier job has left in such a file.
    pub loads: bool,
}

/// The written blocks that a verifying job trims again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimming {
    /// How many of them, percent.
    pub percent: u8,
    /// Trim whenever the number of blocks to be verified is a multiple of this; 0: never.
    pub backlog: u64,
    /// How many are trimmed then; 0: as many as `backlog`.
    pub batch: u64,
    /// Verifies that trimmed blocks are zero; else they are not verified.
    pub verifies_zero: bool,
}

/// `sync_file_range`: a call of sync_file_range(2) after so many writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSync {
    /// Writes from one call to the next.
    pub every: u32,
    /// `wait_before`: wait for pages of the range that are being written.
    pub waits_before: bool,
    /// `write`: begin to write its dirty pages.
    pub writes: bool,
    /// `wait_after`: wait until they are written.
    pub waits_after: bool,
}

/// One piece of a `verify_pattern` or `buffer_pattern`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes as they are: a string, a number or hexadecimal digits of the option.
    Bytes(Vec<u8>),
    /// The offset of the block, eight bytes, the lowest first (`%o`).
    Offset,
}

/// The content of the buffers of writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Random bytes, the same for all, a few of them new in each (fio's `scramble_buffers`).
    #[default]
    Random,
    /// New random bytes for each request.
    Refill,
    /// Zeroes in every block (`zero_buffers`).
    Zero,
    /// `buffer_pattern`, repeated from the start of each block.
    Pattern(Vec<Piece>),
}

/// The advice to the kernel about the order of requests (`fadvise_hint=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FadviseHint {
    /// The kernel gets no hint.
    None,
    /// The order of the job.
    #[default]
    Pattern,
    /// POSIX_FADV_RANDOM: the kernel reads nothing ahead.
    Random,
    /// POSIX_FADV_SEQUENTIAL: the kernel reads further ahead.
    Sequential,
}

/// The times that are not measured (`disable_slat=` and so on; `gtod_reduce=` is all of them).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmeasured {
    /// Submission latencies are not measured (`disable_slat`).
    pub slat: bool,
    /// Completion latencies are not measured (`disable_clat`).
    pub clat: bool,
    /// Total latencies are not measured (`disable_lat`).
    pub lat: bool,
    /// The log of bandwidths.
    pub bw: bool,
}

impl Unmeasured {
    /// Neither latencies nor bandwidths are measured (`gtod_reduce`).
    pub const ALL: Self = Self {
        slat: true,
        clat: true,
        lat: true,
        bw: true,
    };
}

/// How the space of new files that are only written is reserved (`fallocate=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallocate {
    /// It is not: files grow as they are written.
    None,
    /// fallocate(2), and files have their length before.
    #[default]
    Native,
    /// The same, and files grow as they are written.
    Keep,
    /// Files have their length before, and no space.
    Truncate,
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

/// The quantity of `steadystate=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyOf {
    /// IOPS of the job (`iops`).
    Iops,
    /// Throughput of the job (`bw`).
    Bandwidth,
}

/// The value of `steadystate`: when the job ends early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// The figure that has to become steady.
    pub of: SteadyOf,
    /// Its slope by least squares, instead of the largest deviation from the mean.
    pub slope: bool,
    /// The job is steady at or below this, in the unit of the figure.
    pub limit: f64,
    /// The limit is in percent of the mean.
    pub percent: bool,
}

/// The latencies with percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Percentiles of submission latencies (`slat_percentiles`).
    pub slat: bool,
    /// Percentiles of completion latencies (`clat_percentiles`).
    pub clat: bool,
    /// Percentiles of total latencies (`lat_percentiles`).
    pub lat: bool,
}

/// The choice of the next request's file (`file_service_type=`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FileOrder {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Each to its end.
    Sequential,
    /// A file at random for each request.
    Random,
    /// The first ones most of the time: Zipf's law with this theta.
    Zipf(f64, Center),
    /// The same with Pareto's, and this h.
    Pareto(f64, Center),
    /// Those in the middle most of the time, with this deviation in percent.
    Normal(f64, Center),
}

impl FileOrder {
    /// Whether some files have more requests than others, so that none of them is ever done.
    pub fn is_uneven(&self) -> bool {
        matches!(self, Self::Zipf(..) | Self::Pareto(..) | Self::Normal(..))
    }
}

/// Zones of a file that are worked on one after the other (`zonemode=strided`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// After so many bytes the next zone begins; 0: there are none.
    pub bytes: u64,
    /// The length of a zone; 0: as `bytes`.
    pub range_bytes: u64,
    /// The gap between two zones.
    pub skip_bytes: u64,
    /// `zonemode=strided`: they are used.
    pub strided: bool,
}

impl Zones {
    /// The length of a zone, bytes; `None` without zones.
    pub fn range(&self) -> Option<u64> {
        let range = if self.range_bytes > 0 {
            self.range_bytes
        } else {
            self.bytes
        };
        (self.bytes > 0 && self.strided).then_some(range)
    }
}

/// The kinds of errors after which a job goes on (`continue_on_error=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoesOn {
    /// Of reads, writes and trims (trims count as writes, as in fio).
    pub requests: [bool; 3],
    /// Blocks with wrong content.
    pub verify: bool,
}

/// How a job without requests loads a processor (`ioengine=cpuio`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLoad {
    /// The share of the time, from 1; 0: it was not set.
    pub load_percent: u8,
    /// How long it is busy before each pause.
    pub busy_ns: u64,
    /// It sorts numbers meanwhile.
    pub sorts: bool,
    /// It ends when no other job makes requests any more.
    pub ends_with_others: bool,
}

impl Default for CpuLoad {
    fn default() -> Self {
        Self {
            load_percent: 0,
            busy_ns: 50_000_000,
            sorts: false,
            ends_with_others: false,
        }
    }
}

/// The depth that keeps a latency is searched (`latency_target=`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyGoal {
    /// The latency; 0: no search.
    pub target_ns: u64,
    /// How long each depth is tried.
    pub window_ns: u64,
    /// How many percent of the requests must keep it.
    pub percentile: f64,
    /// Go on with the search after the depth was found.
    pub runs_on: bool,
}

impl Default for LatencyGoal {
    fn default() -> Self {
        Self {
            target_ns: 0,
            window_ns: 0,
            percentile: 100.0,
            runs_on: false,
        }
    }
}

/// How reads, writes and trims are reported (`unified_rw_reporting=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unified {
    /// Reads, writes and trims by themselves.
    #[default]
    No,
    /// One sum of reads, writes and trims.
    Mixed,
    /// The sum, and each by itself.
    Both,
}

/// The jobs that end when one with `exitall` has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// Those of its group.
    #[default]
    Group,
    /// Those that run beside it.
    Stonewall,
    /// All, also those that have not begun.
    All,
}

/// The treatment of a trace's requests (`replay_*=`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaying {
    /// All go to this target.
    pub redirect: Option<String>,
    /// Offsets are divided by this.
    pub scale: u64,
    /// And rounded down to multiples of this; 0: they are not.
    pub align_bytes: u64,
    /// How fast time passes, percent.
    pub time_percent: u64,
    /// Reads, writes, trims and syncs that are left out.
    pub skip: [bool; 4],
    /// Times are not kept.
    pub no_stall: bool,
}

impl Default for Replaying {
    fn default() -> Self {
        Self {
            redirect: None,
            scale: 1,
            align_bytes: 0,
            time_percent: 100,
            skip: [false; 4],
            no_stall: false,
        }
    }
}

/// The repetition in the content of writes (`dedupe_percentage=`, `buffer_compress_percentage=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redundancy {
    /// Share of blocks that an earlier one repeats, percent.
    pub dedupe_percent: u8,
    /// They repeat one of a set instead of the one before.
    pub working_set: bool,
    /// The size of that set, percent of the job's size.
    pub working_set_percent: u8,
    /// Share of each chunk that is zeroes, or the pattern, percent.
    pub compress_percent: u8,
    /// The length of a chunk, bytes.
    pub chunk_bytes: u64,
}

impl Default for Redundancy {
    fn default() -> Self {
        Self {
            dedupe_percent: 0,
            working_set: false,
            working_set_percent: 5,
            compress_percent: 0,
            chunk_bytes: 512,
        }
    }
}

/// `cmdprio_percentage`, `cmdprio_class`, `cmdprio` and `cmdprio_bssplit`: I/O priorities of some
/// of the reads, and of some of the writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priorities {
    /// How many have one, percent.
    pub percent: [u8; 2],
    /// The class of the priority, 0 to 3.
    pub class: [u8; 2],
    /// The level in the class, 0 to 7.
    pub level: [u8; 2],
    /// Shares of the requests of one size.
    pub split: [Vec<PriorityShare>; 2],
}

/// A part of `cmdprio_bssplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityShare {
    /// Of requests of this size, bytes,
    pub bytes: u64,
    /// so many per cent, 0 to 100,
    pub percent: u8,
    /// have this class and level; `None`: those of `cmdprio_class` and `cmdprio`.
    pub priority: Option<(u8, u8)>,
}

impl Default for Priorities {
    fn default() -> Self {
        Self {
            percent: [0; 2],
            class: [1; 2],
            level: [0; 2],
            split: [const { Vec::new() }; 2],
        }
    }
}

impl Priorities {
    /// Whether there are any.
    pub fn any(&self) -> bool {
        self.percent != [0; 2] || self.split.iter().any(|split| !split.is_empty())
    }
}
