//! A job after its text has been understood. The defaults are fio's.

mod kinds;

use ugeom_engine::GuasiOptions;
use ugeom_machine::memory_policy::MemoryPolicy;

use super::error::Origin;
use ugeom_measure::units::Size;

pub use kinds::*;

/// The kinds of requests, as indexes of the arrays below.
pub const READ: usize = 0;
/// See [`READ`].
pub const WRITE: usize = 1;
/// See [`READ`].
pub const TRIM: usize = 2;
/// The names of the kinds, as fio prints them.
pub const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// One section of a job file, or of the command line, with `[global]` put into it.
#[derive(Clone, Debug, Default)]
#[expect(
    missing_docs,
    reason = "a field is the option of its name: see the table of options"
)]
pub struct Job {
    pub name: String,
    /// The section that it is from: what its files are called, also where `name=` in the section
    /// gives the job another name.
    pub section: String,
    pub origin: Origin,
    /// The settings of this job itself, and of all jobs, as written: for the report.
    pub own: Vec<(String, String)>,
    pub global: Vec<(String, String)>,
    /// Where each option was set, the last one counts.
    pub origins: Vec<(&'static str, Origin)>,
    /// Values of which only a part was read.
    pub notes: Vec<String>,

    pub description: Option<String>,
    /// `kb_base=1000`: `k` is 1000 and `ki` 1024.
    pub decimal_units: bool,
    /// Characters of a number in the normal output, prefix and unit aside.
    pub figures: usize,
    /// Rates of the normal output are in bits.
    pub rates_in_bits: bool,
    pub rw: Pattern,
    pub sizes: [Sizes; 3],
    /// Until the job is understood: the first size is for sequential requests, the second for
    /// random ones.
    pub seq_rand_sizes: bool,
    pub size: Option<Size>,
    pub io_size: Option<Size>,
    pub offset: Size,
    pub offset_increment: Size,
    pub filename: Option<String>,
    pub directory: Option<String>,
    pub opendir: Option<String>,
    pub nrfiles: u32,
    pub filesize: Option<(u64, u64)>,
    pub number_ios: u64,
    pub loops: u64,
    pub align_bytes: [u64; 3],
    /// Sizes need not be multiples of the smallest.
    pub unaligned: bool,
    /// Share of random places in a random job, percent.
    pub random_percent: [u8; 3],
    /// `rw_sequencer=identical`: the requests of a run go to the same place.
    pub identical: bool,
    pub generator: RandomGenerator,
    pub zones: Zones,
    pub offset_align_bytes: u64,
    pub fill_device: bool,
    pub serialize_overlap: bool,
    pub create_on_open: bool,
    pub create_only: bool,
    pub create_serialize: bool,
    pub create_fsync: bool,
    pub openfiles: u32,
    pub file_order: FileOrder,
    /// Requests to a file before the next one's turn.
    pub file_run: u32,
    pub filename_format: String,
    pub allow_file_create: bool,
    /// `--readonly`: no file is made or made longer.
    pub keeps_files: bool,
    pub pre_read: bool,
    pub file_append: bool,
    pub fsync_on_close: bool,
    pub file_locking: FileLocking,

    pub ioengine: String,
    /// How `guasi` makes its calls.
    pub guasi: GuasiOptions,
    pub stat_call: StatCall,
    pub cpu: CpuLoad,
    pub direct: bool,
    pub iodepth: u32,
    pub priorities: Priorities,
    pub iodepth_low: u32,
    /// None: requests that were reaped together are submitted together. 0: `iodepth`.
    pub iodepth_batch: Option<u32>,
    pub iodepth_batch_complete_min: u32,
    pub iodepth_batch_complete_max: u32,

    pub numjobs: u32,
    pub thread: bool,
    pub group_reporting: bool,
    pub new_group: bool,
    pub stonewall: bool,
    pub exitall: bool,
    pub exit_what: ExitWhat,
    pub wait_for: Option<String>,
    pub exec_prerun: Option<String>,
    pub exec_postrun: Option<String>,
    pub nice: i32,
    /// Memory that is locked while the job runs.
    pub lockmem_bytes: u64,
    /// Nodes that the memory comes from; `None`: as the program.
    pub memory_policy: Option<MemoryPolicy>,
    /// Class and level of the I/O priority; `None`: that of the program.
    pub io_priority: Option<(u8, u8)>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub flow: u32,
    pub flow_id: u32,
    pub flow_sleep_ns: u64,
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
    /// Requests count when they are issued, not when they end (`thinktime_blocks_type`).
    pub thinktime_by_issue: bool,
    pub thinktime_spin_ns: u64,
    pub thinktime_iotime_ns: u64,
    pub rate_min: [u64; 3],
    pub rate_iops_min: [u64; 3],
    pub rate_cycle_ns: u64,
    pub max_latency_ns: u64,
    pub latency: LatencyGoal,
    pub fsync: u32,
    pub fdatasync: u32,
    pub sync_file_range: Option<RangeSync>,
    pub end_fsync: bool,
    pub invalidate: bool,
    pub fadvise_hint: FadviseHint,
    pub sync: WriteSync,
    pub overwrite: bool,
    pub unlink: bool,
    pub unlink_each_loop: bool,
    pub fallocate: Fallocate,

    pub distribution: [Distribution; 3],
    pub norandommap: bool,
    pub randrepeat: bool,
    pub allrandrepeat: bool,
    pub randseed: u64,

    pub verify: Verify,
    pub verifying: Verifying,
    pub trimming: Trimming,
    pub do_verify: bool,
    pub verify_pattern: Vec<Piece>,
    /// `--aux-path`: where `verify_dump` writes.
    pub aux_path: Option<String>,
    pub fill: Fill,
    pub scramble: bool,
    pub redundancy: Redundancy,

    pub read_iolog: Option<String>,
    pub write_iolog: Option<String>,
    pub replaying: Replaying,

    pub goes_on: GoesOn,
    /// Error numbers that count as no error, for reads, writes and checks.
    pub ignored_errors: [Vec<i32>; 3],
    pub exitall_on_error: bool,

    pub unmeasured: Unmeasured,
    pub percentiles: Percentiles,
    pub percentile_list: Vec<f64>,
    pub bw_log: Option<String>,
    pub lat_log: Option<String>,
    pub iops_log: Option<String>,
    pub hist_log: Option<String>,
    pub log_hist_ns: u64,
    pub log_hist_coarseness: u32,
    pub log_avg_ns: u64,
    pub log_offset: bool,
    pub log_prio: bool,
    pub log_max: bool,
    /// Times in logs count from the beginning of `log_clock`, a clock of clock_gettime(2).
    pub log_epoch: bool,
    pub log_clock: i32,
    /// Logs are kept compressed, as fio has them.
    pub log_packed: bool,
    pub per_job_logs: bool,
    pub unified: Unified,
    pub bw_sample_ns: u64,
    pub iops_sample_ns: u64,
    pub disk_util: bool,
    pub stats: bool,
    pub steady: Option<Steady>,
    pub steady_duration_ns: u64,
    pub steady_ramp_ns: u64,
    pub steady_interval_ns: u64,
}

/// The percentiles that fio prints without `percentile_list`.
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Job {
    /// A job with the defaults of fio.
    pub fn new(name: &str, origin: Origin) -> Self {
        Self {
            name: name.to_owned(),
            section: name.to_owned(),
            origin,
            rw: Pattern {
                name: "read",
                does: [true, false, false],
                ..Pattern::default()
            },
            sizes: [const { 4096 }; 3].map(Sizes::fixed),
            nrfiles: 1,
            steady_interval_ns: 1_000_000_000,
            loops: 1,
            ioengine: "psync".to_owned(),
            iodepth: 1,
            iodepth_batch_complete_min: 1,
            numjobs: 1,
            thread: true,
            figures: 4,
            rwmixread: 50,
            thinktime_blocks: 1,
            thinktime_by_issue: false,
            random_percent: [100; 3],
            create_fsync: true,
            create_serialize: true,
            filename_format: "$jobname.$jobnum.$filenum".to_owned(),
            file_run: 1,
            allow_file_create: true,
            keeps_files: false,
            verifying: Verifying {
                saves: true,
                in_sequence: true,
                ..Verifying::default()
            },
            rate_cycle_ns: 1_000_000_000,
            scramble: true,
            per_job_logs: true,
            bw_sample_ns: 500_000_000,
            iops_sample_ns: 500_000_000,
            disk_util: true,
            stats: true,
            invalidate: true,
            randrepeat: true,
            randseed: 0x89,
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
    pub fn origin_of(&self, option: &str) -> &Origin {
        let found = self.origins.iter().rev().find(|(name, _)| *name == option);
        found.map_or(&self.origin, |(_, origin)| origin)
    }

    /// True when the user set the option.
    pub fn was_set(&self, option: &str) -> bool {
        self.origins.iter().any(|(name, _)| *name == option)
    }

    /// Whether fewer of its `files` files may be open than there are.
    pub fn limits_open_files(&self, files: usize) -> bool {
        self.openfiles > 0 && (self.openfiles as usize) < files
    }

    /// The largest request, bytes.
    pub fn largest_bytes(&self) -> u64 {
        self.used_sizes().map(|sizes| sizes.max).max().unwrap_or(0)
    }

    /// The smallest request, bytes: what the file is divided into.
    pub fn smallest_bytes(&self) -> u64 {
        self.used_sizes()
            .map(|sizes| sizes.min)
            .min()
            .unwrap_or(512)
    }

    /// The sizes of the kinds that the job has; both with `bs_is_seq_rand`.
    fn used_sizes(&self) -> impl Iterator<Item = &Sizes> {
        let kinds = self.sizes.iter().zip(self.rw.does).enumerate();
        kinds
            .filter(|(kind, (_, does))| *does || (self.seq_rand_sizes && *kind != TRIM))
            .map(|(_, (sizes, _))| sizes)
    }

    /// Whether syncs come between the requests of the job.
    pub fn has_syncs(&self) -> bool {
        self.fsync > 0 || self.fdatasync > 0 || self.sync_file_range.is_some()
    }

    /// Whether random places come once each before any of them comes again.
    pub fn visits_once(&self) -> bool {
        let even = self
            .distribution
            .iter()
            .all(|of| *of == Distribution::Uniform);
        let mut kinds = self.align_bytes.iter().zip(&self.sizes);
        let aligned = kinds.any(|(align, sizes)| *align > 0 && *align != sizes.min);
        even && ((!aligned && !self.norandommap) || self.generator == RandomGenerator::Lfsr)
    }

    /// Whether the content of the target changes.
    pub fn changes_data(&self) -> bool {
        self.rw.does[WRITE] || self.rw.does[TRIM]
    }

    /// Whether the job goes on after some errors.
    pub fn continues(&self) -> bool {
        let listed = self.ignored_errors.iter().any(|list| !list.is_empty());
        self.goes_on != GoesOn::default() || listed
    }

    /// The operation of the engine on files instead of requests; `None` for engines that transfer
    /// data.
    pub fn file_operation(&self) -> Option<FileOperation> {
        match self.ioengine.as_str() {
            "filecreate" => Some(FileOperation::Create),
            "filestat" => Some(FileOperation::Stat(self.stat_call)),
            "filedelete" => Some(FileOperation::Delete),
            _ => None,
        }
    }

    /// The operation of the engine on ranges of files; `None` for engines that transfer data.
    pub fn range_call(&self) -> Option<RangeCall> {
        match self.ioengine.as_str() {
            "falloc" => Some(RangeCall::Allocate),
            "ftruncate" => Some(RangeCall::Truncate),
            _ => None,
        }
    }

    /// Whether the engine deletes files, or they are removed after a pass or the job.
    pub fn deletes_files(&self) -> bool {
        let removes = self.unlink || self.unlink_each_loop;
        removes || self.file_operation() == Some(FileOperation::Delete)
    }

    /// Whether it makes requests: `ioengine=cpuio` makes none.
    pub fn makes_requests(&self) -> bool {
        self.ioengine != "cpuio"
    }

    /// Whether requests can be in flight beside each other: not with a blocking engine, which
    /// fio's `null` is with a depth of one.
    pub fn is_sync(&self) -> bool {
        match self.ioengine.as_str() {
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "splice" | "mmap" => true,
            "filecreate" | "filestat" | "filedelete" | "falloc" | "ftruncate" => true,
            "cpuio" => true,
            "null" => self.iodepth == 1,
            _ => false,
        }
    }
}
