//! The report of a source about one moment in the life of a request, the same for all sources.
//!
//! Sources: include/trace/events/block.h, fuse.h, sched.h and workqueue.h of Linux.

use serde::{Deserialize, Serialize};

/// A device as the kernel numbers it inside: `major << 20 | minor`.
pub type Dev = u32;

/// Kind of an event: which step of a request it reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum EventKind {
    /// A bio enters a device (`block_bio_queue`). `id` is the bio; `other` the inode of the file
    /// that it is for, `extra` the number of that file system; both 0 where they are not known.
    Queue = 1,
    /// A bio was mapped to the device below, and enters it next (`block_bio_remap`). `id` is the
    /// bio, `other` the device above, `extra` the sector there.
    Remap = 2,
    /// A bio was too large: its first part ends at `extra` (`block_split`). `id` is the part.
    Split = 3,
    /// A request was allocated for a bio (`block_getrq`). `id` is the bio.
    GetRequest = 4,
    /// A bio joined the end of an open request (`block_bio_backmerge`). `id` is the bio.
    BackMerge = 5,
    /// A bio joined the front of an open request (`block_bio_frontmerge`). `id` is the bio.
    FrontMerge = 6,
    /// A request joined another (`block_rq_merge`). `id` is the request that ends here.
    RequestMerge = 7,
    /// A request waits in a scheduler or a list (`block_rq_insert`). `id` is the request, `other`
    /// its first bio.
    Insert = 8,
    /// A request is given to the driver (`block_rq_issue`). Ids as for `Insert`.
    Issue = 9,
    /// The driver was busy (`block_rq_requeue`).
    Requeue = 10,
    /// The driver reports a part or all of a request (`block_rq_complete`); `extra` is the number
    /// of bytes, with [`FAILED`] if it failed.
    Complete = 11,
    /// The request is accounted (`block_io_done`).
    Done = 12,
    /// A bio of a device without requests ends (`block_bio_complete`). `id` is the bio; `extra` is
    /// [`FAILED`] if it failed.
    BioComplete = 13,
    /// Work was queued (`workqueue_queue_work`). `id` is the work.
    WorkQueue = 14,
    /// A worker begins (`workqueue_execute_start`).
    WorkStart = 15,
    /// A worker ends (`workqueue_execute_end`).
    WorkEnd = 16,
    /// A request goes to a FUSE server (`fuse_request_send`). `id` is its unique number, `dev` the
    /// connection, `other` the file's node.
    FuseSend = 17,
    /// The server has answered (`fuse_request_end`).
    FuseEnd = 18,
    /// A thread that has asked for I/O runs again (`sched_switch`). `tid` is the thread.
    Run = 19,
    /// A FUSE server that tells of itself has begun its reply; `extra` is when it had taken the
    /// request. No tracepoint fires it. Numbers as for `FuseSend`.
    Served = 20,
    /// A sample begins or ends; no tracepoint fires it. `extra`: 1 requests that begin from now on
    /// belong to it, 0 those do not, 2 nothing is recorded from now on.
    Window = 21,
    /// A thread begins with a request of its io_uring (`io_uring_submit_req`). `id` is the request.
    UringSubmit = 22,
    /// It waits for a worker of the ring (`io_uring_queue_async_work`). `id` as before.
    UringWork = 23,
    /// Its result is posted (`io_uring_complete`). `id` as before.
    UringComplete = 24,
    /// The end of a recording; no tracepoint fires it. `extra` is the number of lost events.
    Lost = 25,
}

/// In `extra` of ends: the request failed.
pub(crate) const FAILED: u64 = 1 << 32;
/// `extra` of [`EventKind::Window`]: requests that begin belong to the sample.
pub(crate) const WINDOW_OPEN: u64 = 1;
/// `extra` of [`EventKind::Window`]: requests that begin do not.
pub(crate) const WINDOW_CLOSING: u64 = 0;
/// `extra` of [`EventKind::Window`]: nothing is recorded.
pub(crate) const WINDOW_CLOSED: u64 = 2;

impl EventKind {
    /// Every kind, also those that no tracepoint fires.
    pub const ALL: [Self; 25] = [
        Self::Queue,
        Self::Remap,
        Self::Split,
        Self::GetRequest,
        Self::BackMerge,
        Self::FrontMerge,
        Self::RequestMerge,
        Self::Insert,
        Self::Issue,
        Self::Requeue,
        Self::Complete,
        Self::Done,
        Self::BioComplete,
        Self::WorkQueue,
        Self::WorkStart,
        Self::WorkEnd,
        Self::FuseSend,
        Self::FuseEnd,
        Self::Run,
        Self::Served,
        Self::Window,
        Self::UringSubmit,
        Self::UringWork,
        Self::UringComplete,
        Self::Lost,
    ];

    /// The kind with that number.
    pub fn numbered(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// The tracepoint that fires it: its group and its name.
    pub(crate) fn tracepoint(self) -> (&'static str, &'static str) {
        match self {
            Self::Served | Self::Window | Self::Lost => ("", ""),
            Self::Queue => ("block", "block_bio_queue"),
            Self::Remap => ("block", "block_bio_remap"),
            Self::Split => ("block", "block_split"),
            Self::GetRequest => ("block", "block_getrq"),
            Self::BackMerge => ("block", "block_bio_backmerge"),
            Self::FrontMerge => ("block", "block_bio_frontmerge"),
            Self::RequestMerge => ("block", "block_rq_merge"),
            Self::Insert => ("block", "block_rq_insert"),
            Self::Issue => ("block", "block_rq_issue"),
            Self::Requeue => ("block", "block_rq_requeue"),
            Self::Complete => ("block", "block_rq_complete"),
            Self::Done => ("block", "block_io_done"),
            Self::BioComplete => ("block", "block_bio_complete"),
            Self::WorkQueue => ("workqueue", "workqueue_queue_work"),
            Self::WorkStart => ("workqueue", "workqueue_execute_start"),
            Self::WorkEnd => ("workqueue", "workqueue_execute_end"),
            Self::FuseSend => ("fuse", "fuse_request_send"),
            Self::FuseEnd => ("fuse", "fuse_request_end"),
            Self::Run => ("sched", "sched_switch"),
            Self::UringSubmit => ("io_uring", "io_uring_submit_req"),
            Self::UringWork => ("io_uring", "io_uring_queue_async_work"),
            Self::UringComplete => ("io_uring", "io_uring_complete"),
        }
    }
}

/// The operation of a request.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum Op {
    /// A request that reads.
    #[default]
    Read,
    /// A request that writes.
    Write,
    /// It makes written data durable.
    Flush,
    /// It gives space back.
    Discard,
    /// A request of any other kind.
    Other,
}

impl Op {
    /// From the low byte of `bi_opf` or `cmd_flags`: `enum req_op` of include/linux/blk_types.h.
    pub(crate) fn of_flags(flags: u32) -> Self {
        match flags & 0xff {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Flush,
            3 | 5 => Self::Discard,
            _ => Self::Other,
        }
    }

    /// From a FUSE request's opcode: `enum fuse_opcode` of include/uapi/linux/fuse.h. Those that
    /// fit no other word are `Other`.
    pub(crate) fn of_opcode(opcode: u32) -> Self {
        match opcode {
            15 => Self::Read,
            16 => Self::Write,
            18 | 20 | 25 => Self::Flush,
            43 => Self::Discard,
            _ => Self::Other,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::Other => "other",
        }
    }
}

/// One moment. Fields that a kind does not have are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it happened: CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// The step of the request.
    pub kind: EventKind,
    /// Number of the processor on which it happened.
    pub cpu: u16,
    /// The operation of the request.
    pub op: Op,
    /// The thread that was running; any thread for completions.
    pub tid: u32,
    /// Process id of the thread in which it happened.
    pub pid: u32,
    /// The whole disk, also for a bio that was sent to a partition.
    pub dev: Dev,
    /// The first sector, of 512 bytes.
    pub sector: u64,
    /// The length in sectors.
    pub sectors: u32,
    /// The address of the bio, request or work, or a FUSE request's number; 0 where the source does
    /// not tell it.
    pub id: u64,
    /// Another number of the event; its meaning depends on [`EventKind`].
    pub other: u64,
    /// A further number of the event; its meaning depends on [`EventKind`].
    pub extra: u64,
}

impl Event {
    /// The fixed first event of a recording, and the other fields of an event.
    pub(crate) const ZERO: Self = Self {
        time_ns: 0,
        kind: EventKind::Queue,
        cpu: 0,
        op: Op::Read,
        tid: 0,
        pid: 0,
        dev: 0,
        sector: 0,
        sectors: 0,
        id: 0,
        other: 0,
        extra: 0,
    };
}
