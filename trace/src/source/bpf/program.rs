//! The programs: one for each tracepoint, the same but for the fields read.
//!
//! ```text
//!   gate closed? out
//!   r7 = the bio, request, work or task; r9 = its device
//!   r9 none of the wanted devices? out
//!   time, thread, processor; no room in its ring? count it, out
//!   take a slot, fill it, write its number
//! ```
//!
//! Pointers are followed by plain loads: the kernel knows their types (`tp_btf`), and a load that
//! faults gives 0. That costs less than a call of a helper for each.

use super::assemble::{Assembler, FRAME, Label, Width};
use super::ring::{self, Layout};
use crate::event::EventKind;
use ugeom_format::btf::Btf;
use ugeom_machine::bpf::Instruction;

/// `bpf_ktime_get_ns`: CLOCK_MONOTONIC, in ns.
const TIME: i32 = 5;
/// `bpf_get_smp_processor_id`: the number of this processor.
const PROCESSOR: i32 = 8;
/// `bpf_get_current_pid_tgid`: process in the upper half, thread in the lower.
const THREAD: i32 = 14;

/// Devices that a program compares with, at most; beyond, all devices are recorded.
pub(super) const DEVICES_MAX: usize = 64;

/// The purpose of the programs.
pub(super) struct Wanted<'a> {
    pub(super) array: i32,
    pub(super) layout: Layout,
    /// Events of other devices are dropped by the program; empty: none are.
    pub(super) devices: &'a [u32],
    /// FUSE connections; empty: all.
    pub(super) connections: &'a [u32],
    /// Threads that submit to these are waited for.
    pub(super) tops: &'a [u32],
    /// Addresses of the functions whose work is recorded.
    pub(super) functions: &'a [u64],
    /// How the file of a bio is found; none where the kernel does not allow it.
    pub(super) files: Option<Files>,
}

/// Where the inode of a bio's file and the number of its file system are kept in the frame.
const FILE_INODE: i16 = -32;
const FILE_SYSTEM: i16 = -40;

/// How the file of a bio is found: numbers of types in the kernel's BTF.
pub(super) struct Files {
    /// `bpf_rdonly_cast` (Linux 6.2): a number becomes a pointer to a type, which the verifier lets
    /// be followed.
    function: u32,
    page: u32,
    mapping: u32,
    direct: u32,
    /// The function that ends bios of direct I/O.
    direct_end: Option<u64>,
}

impl Files {
    /// None where the kernel lacks one of them.
    pub(super) fn of(btf: &Btf<'_>, direct_end: Option<u64>) -> Option<Self> {
        let direct = btf.structure("iomap_dio");
        Some(Self {
            function: btf.function("bpf_rdonly_cast")?,
            page: btf.structure("page")?,
            mapping: btf.structure("address_space")?,
            direct: direct.unwrap_or(0),
            direct_end: direct_end.filter(|_| direct.is_some()),
        })
    }

    /// r0 = r1 as a pointer to that type.
    fn cast(&self, code: &mut Assembler, to: u32) {
        code.set(2, to as i32);
        code.call_kernel(self.function);
    }
}

/// The argument of a tracepoint.
enum Subject {
    Bio,
    Request,
    Fuse,
    Work,
    Task,
    /// A request of an io_uring, whose address is all that is read.
    Uring,
}

fn subject(kind: EventKind) -> (Subject, &'static str) {
    match kind {
        EventKind::Queue
        | EventKind::Remap
        | EventKind::Split
        | EventKind::GetRequest
        | EventKind::BackMerge
        | EventKind::FrontMerge
        | EventKind::BioComplete => (Subject::Bio, "bio"),
        EventKind::FuseSend | EventKind::FuseEnd => (Subject::Fuse, "fuse_req"),
        EventKind::WorkQueue | EventKind::WorkStart | EventKind::WorkEnd => {
            (Subject::Work, "work_struct")
        }
        EventKind::Run => (Subject::Task, "task_struct"),
        EventKind::UringSubmit | EventKind::UringWork | EventKind::UringComplete => {
            (Subject::Uring, "io_kiocb")
        }
        _ => (Subject::Request, "request"),
    }
}

/// Where members lie; an error names the first that this kernel does not have.
struct Offsets<'a> {
    btf: &'a Btf<'a>,
}

impl Offsets<'_> {
    fn of(&self, of: &str, member: &str) -> Result<i16, String> {
        let offset = self.btf.member(of, member);
        let offset = offset.and_then(|offset| i16::try_from(offset).ok());
        offset.ok_or_else(|| format!("the kernel's BTF has no {of}.{member}"))
    }
}

/// The program for a kind of events.
pub(super) fn program(
    kind: EventKind,
    btf: &Btf<'_>,
    wanted: &Wanted<'_>,
) -> Result<Vec<Instruction>, String> {
    let (subject, name) = subject(kind);
    let typedef = format!("btf_trace_{}", kind.tracepoint().1);
    let missing = || format!("the kernel's BTF has no {typedef} with a {name}");
    let argument = match kind {
        // The second of two tasks: previous, next.
        EventKind::Run => btf.argument(&typedef, name).map(|first| first + 1),
        // The request behind the ring is a pointer to void.
        EventKind::UringComplete => btf.argument(&typedef, "io_ring_ctx").map(|ring| ring + 1),
        _ => btf.argument(&typedef, name),
    };
    let argument = argument.ok_or_else(missing)? as i16;
    let offsets = Offsets { btf };
    let mut code = Assembler::default();
    code.copy(6, 1);
    code.array(1, wanted.array, 0);
    code.load(Width::Double, 1, 1, 0);
    code.jump_if_zero(1, Label::Out);
    code.load(Width::Double, 7, 6, 8 * argument);
    match subject {
        Subject::Bio => bio_device(&mut code, &offsets)?,
        Subject::Request => request_device(&mut code, &offsets)?,
        Subject::Fuse => fuse_device(&mut code, &offsets)?,
        Subject::Work => wanted_function(&mut code, &offsets, wanted.functions)?,
        Subject::Task => marked_task(&mut code, &offsets, wanted)?,
        Subject::Uring => code.set(9, 0),
    }
    match subject {
        Subject::Bio | Subject::Request => wanted_device(&mut code, wanted.devices),
        Subject::Fuse => wanted_device(&mut code, wanted.connections),
        Subject::Work | Subject::Task | Subject::Uring => {}
    }
    take_slot(&mut code, wanted);
    match subject {
        Subject::Bio => {
            if kind == EventKind::Queue {
                find_file(&mut code, &offsets, wanted.files.as_ref())?;
            }
            fill_bio(&mut code, kind, argument, &offsets)?;
        }
        Subject::Request => fill_request(&mut code, kind, argument, &offsets)?,
        Subject::Fuse => fill_fuse(&mut code, kind, &offsets)?,
        Subject::Work | Subject::Uring => {
            code.store(Width::Double, 8, 48, 7);
            fill_flags(&mut code, kind, false);
        }
        Subject::Task => {
            code.load(Width::Word, 1, 7, offsets.of("task_struct", "tgid")?);
            code.shift_left(1, 32);
            code.load(Width::Word, 2, 7, offsets.of("task_struct", "pid")?);
            code.or(1, 2);
            code.store(Width::Double, 8, 16, 1);
            fill_flags(&mut code, kind, false);
        }
    }
    code.load(Width::Double, 1, FRAME, -24);
    code.add_constant(1, 1);
    code.store(Width::Double, 8, 0, 1);
    if matches!(kind, EventKind::Queue | EventKind::FuseSend) {
        mark_thread(&mut code, kind, wanted);
    }
    code.jump(Label::Out);
    code.label(Label::Lost);
    code.set(2, 1);
    code.fetch_add(1, ring::LOST, 2);
    Ok(code.finish())
}

/// r9 = major << 20 | minor of the disk in r1.
fn disk_number(code: &mut Assembler, offsets: &Offsets<'_>) -> Result<(), String> {
    code.load(Width::Word, 9, 1, offsets.of("gendisk", "major")?);
    code.load(Width::Word, 1, 1, offsets.of("gendisk", "first_minor")?);
    code.shift_left(9, 20);
    code.or(9, 1);
    Ok(())
}

fn bio_device(code: &mut Assembler, offsets: &Offsets<'_>) -> Result<(), String> {
    code.load(Width::Double, 1, 7, offsets.of("bio", "bi_bdev")?);
    code.load(Width::Double, 1, 1, offsets.of("block_device", "bd_disk")?);
    disk_number(code, offsets)
}

fn request_device(code: &mut Assembler, offsets: &Offsets<'_>) -> Result<(), String> {
    code.load(Width::Double, 1, 7, offsets.of("request", "q")?);
    code.load(Width::Double, 1, 1, offsets.of("request_queue", "disk")?);
    disk_number(code, offsets)
}

fn fuse_device(code: &mut Assembler, offsets: &Offsets<'_>) -> Result<(), String> {
    code.load(Width::Double, 1, 7, offsets.of("fuse_req", "fm")?);
    code.load(Width::Double, 1, 1, offsets.of("fuse_mount", "fc")?);
    code.load(Width::Word, 9, 1, offsets.of("fuse_conn", "dev")?);
    Ok(())
}

fn wanted_function(
    code: &mut Assembler,
    offsets: &Offsets<'_>,
    functions: &[u64],
) -> Result<(), String> {
    code.set(9, 0);
    code.load(Width::Double, 1, 7, offsets.of("work_struct", "func")?);
    for function in functions {
        code.constant(2, *function);
        code.jump_if_equal(1, 2, Label::Keep);
    }
    code.jump(Label::Out);
    code.label(Label::Keep);
    Ok(())
}

fn marked_task(
    code: &mut Assembler,
    offsets: &Offsets<'_>,
    wanted: &Wanted<'_>,
) -> Result<(), String> {
    code.set(9, 0);
    code.load(Width::Word, 1, 7, offsets.of("task_struct", "pid")?);
    code.and_constant(1, ring::MARKS as i32 - 1);
    code.array(2, wanted.array, wanted.layout.marks_at() as u32);
    code.add(2, 1);
    code.load(Width::Byte, 1, 2, 0);
    code.jump_if_zero(1, Label::Out);
    Ok(())
}

fn wanted_device(code: &mut Assembler, devices: &[u32]) {
    if devices.is_empty() || devices.len() > DEVICES_MAX {
        return;
    }
    for device in devices {
        code.jump_if_is(9, *device, Label::Keep);
    }
    code.jump(Label::Out);
    code.label(Label::Keep);
}

/// Time at FRAME-8, thread at FRAME-16, the slot's number at FRAME-24, the slot in r8.
fn take_slot(code: &mut Assembler, wanted: &Wanted<'_>) {
    let layout = wanted.layout;
    code.call(TIME);
    code.store(Width::Double, FRAME, -8, 0);
    code.call(THREAD);
    code.store(Width::Double, FRAME, -16, 0);
    code.call(PROCESSOR);
    code.and_constant(0, layout.processors as i32 - 1);
    code.copy(3, 0);
    code.shift_left(3, ring::CONTROL_SHIFT as i32);
    code.array(1, wanted.array, ring::CONTROL_AT as u32);
    code.add(1, 3);
    code.load(Width::Double, 2, 1, ring::HEAD);
    code.load(Width::Double, 3, 1, ring::TAIL);
    code.subtract(2, 3);
    code.jump_if_at_least(2, (layout.slots - ring::SPARE_SLOTS) as i32, Label::Lost);
    code.set(2, 1);
    code.fetch_add(1, ring::HEAD, 2);
    code.store(Width::Double, FRAME, -24, 2);
    code.and_constant(2, layout.slots as i32 - 1);
    code.shift_left(2, ring::SLOT_BYTES.ilog2() as i32);
    code.shift_left(0, layout.ring_shift() as i32);
    code.add(2, 0);
    code.array(8, wanted.array, layout.rings_at() as u32);
    code.add(8, 2);
    code.load(Width::Double, 1, FRAME, -8);
    code.store(Width::Double, 8, 8, 1);
    code.load(Width::Double, 1, FRAME, -16);
    code.store(Width::Double, 8, 16, 1);
}

/// `dev << 32 | error << 16 | flags << 8 | kind`, with `error << 8 | flags` in r1, if it has some.
fn fill_flags(code: &mut Assembler, kind: EventKind, flags_in_r1: bool) {
    code.shift_left(9, 32);
    code.or_constant(9, kind as i32);
    if flags_in_r1 {
        code.and_constant(1, 0xffff);
        code.shift_left(1, 8);
        code.or(9, 1);
    }
    code.store(Width::Double, 8, 24, 9);
}

/// The sector, which the structure in r7 has at `offset`, and the address of that structure.
fn fill_place(code: &mut Assembler, offset: i16) {
    code.load(Width::Double, 1, 7, offset);
    code.store(Width::Double, 8, 32, 1);
    code.store(Width::Double, 8, 48, 7);
}

fn fill_bio(
    code: &mut Assembler,
    kind: EventKind,
    argument: i16,
    offsets: &Offsets<'_>,
) -> Result<(), String> {
    fill_place(code, offsets.of("bio", "bi_iter.bi_sector")?);
    code.load(Width::Word, 1, 7, offsets.of("bio", "bi_iter.bi_size")?);
    match kind {
        EventKind::Queue => {
            // The file system that `find_file` stored.
            code.load(Width::Double, 2, FRAME, FILE_SYSTEM);
            code.shift_left(2, 32);
            code.or(1, 2);
            code.load(Width::Double, 2, FRAME, FILE_INODE);
            code.store(Width::Double, 8, 56, 2);
        }
        EventKind::Remap => {
            code.load(Width::Double, 2, 6, 8 * (argument + 1));
            code.shift_left(2, 32);
            code.or(1, 2);
            code.load(Width::Double, 2, 6, 8 * (argument + 2));
            code.store(Width::Double, 8, 56, 2);
        }
        EventKind::Split => {
            code.load(Width::Double, 2, 6, 8 * (argument + 1));
            code.store(Width::Double, 8, 56, 2);
        }
        _ => {}
    }
    code.store(Width::Double, 8, 40, 1);
    code.load(Width::Word, 1, 7, offsets.of("bio", "bi_opf")?);
    code.and_constant(1, 0xff);
    if kind == EventKind::BioComplete {
        code.load(Width::Byte, 2, 7, offsets.of("bio", "bi_status")?);
        code.shift_left(2, 8);
        code.or(1, 2);
    }
    fill_flags(code, kind, true);
    Ok(())
}

/// Where and how long a request of FUSE is depends on its kind, and is not read.
fn fill_fuse(code: &mut Assembler, kind: EventKind, offsets: &Offsets<'_>) -> Result<(), String> {
    code.load(Width::Double, 1, 7, offsets.of("fuse_req", "in.h.unique")?);
    code.store(Width::Double, 8, 48, 1);
    code.store_constant(Width::Double, 8, 32, 0);
    code.store_constant(Width::Double, 8, 40, 0);
    code.load(Width::Double, 1, 7, offsets.of("fuse_req", "in.h.nodeid")?);
    code.store(Width::Double, 8, 56, 1);
    code.load(Width::Word, 1, 7, offsets.of("fuse_req", "in.h.opcode")?);
    code.and_constant(1, 0xff);
    fill_flags(code, kind, true);
    Ok(())
}

fn fill_request(
    code: &mut Assembler,
    kind: EventKind,
    argument: i16,
    offsets: &Offsets<'_>,
) -> Result<(), String> {
    fill_place(code, offsets.of("request", "__sector")?);
    code.load(Width::Double, 1, 7, offsets.of("request", "bio")?);
    code.store(Width::Double, 8, 56, 1);
    code.load(Width::Word, 1, 7, offsets.of("request", "__data_len")?);
    if kind == EventKind::Complete {
        code.load(Width::Double, 2, 6, 8 * (argument + 2));
        code.shift_left(2, 32);
        code.or(1, 2);
    }
    code.store(Width::Double, 8, 40, 1);
    code.load(Width::Word, 1, 7, offsets.of("request", "cmd_flags")?);
    code.and_constant(1, 0xff);
    if kind == EventKind::Complete {
        // A status, or a negative number of errno: none of them has 0 in its low byte.
        code.load(Width::Double, 2, 6, 8 * (argument + 1));
        code.and_constant(2, 0xff);
        code.shift_left(2, 8);
        code.or(1, 2);
    }
    fill_flags(code, kind, true);
    Ok(())
}

/// The inode at FILE_INODE, and the number of its file system at FILE_SYSTEM, both 0 where no file
/// is known: direct I/O names it, and pages of the page cache do.
fn find_file(
    code: &mut Assembler,
    offsets: &Offsets<'_>,
    files: Option<&Files>,
) -> Result<(), String> {
    code.set(1, 0);
    code.store(Width::Double, FRAME, FILE_INODE, 1);
    code.store(Width::Double, FRAME, FILE_SYSTEM, 1);
    let Some(files) = files else { return Ok(()) };
    // A flush has no pages.
    code.load(Width::Word, 1, 7, offsets.of("bio", "bi_iter.bi_size")?);
    code.jump_if_zero(1, Label::NoFile);
    if let Some(end) = files.direct_end {
        code.load(Width::Double, 1, 7, offsets.of("bio", "bi_end_io")?);
        code.constant(2, end);
        code.jump_if_equal(1, 2, Label::Direct);
    }
    code.load(Width::Double, 1, 7, offsets.of("bio", "bi_io_vec")?);
    code.load(Width::Double, 1, 1, offsets.of("bio_vec", "bv_page")?);
    as_number(code, 1);
    // A page inside of a larger one: the address of that, plus one.
    code.copy(6, 1);
    files.cast(code, files.page);
    code.load(Width::Double, 1, 0, offsets.of("page", "compound_head")?);
    as_number(code, 1);
    code.copy(2, 1);
    code.and_constant(2, 1);
    code.jump_if_zero(2, Label::Whole);
    code.add_constant(1, -1);
    code.copy(6, 1);
    code.label(Label::Whole);
    code.copy(1, 6);
    files.cast(code, files.page);
    code.load(Width::Double, 1, 0, offsets.of("page", "mapping")?);
    as_number(code, 1);
    // The low bits are set for memory of programs.
    code.copy(2, 1);
    code.and_constant(2, 3);
    code.jump_if_not_zero(2, Label::NoFile);
    code.copy(6, 1);
    files.cast(code, files.mapping);
    code.load(Width::Double, 1, 0, offsets.of("address_space", "host")?);
    // A page of the kernel's own memory has something else in the field.
    code.load(Width::Double, 2, 1, offsets.of("inode", "i_mapping")?);
    as_number(code, 2);
    code.jump_if_equal(2, 6, Label::Inode);
    code.jump(Label::NoFile);
    if files.direct_end.is_some() {
        code.label(Label::Direct);
        code.load(Width::Double, 1, 7, offsets.of("bio", "bi_private")?);
        files.cast(code, files.direct);
        code.load(Width::Double, 1, 0, offsets.of("iomap_dio", "iocb")?);
        code.load(Width::Double, 1, 1, offsets.of("kiocb", "ki_filp")?);
        code.load(Width::Double, 1, 1, offsets.of("file", "f_inode")?);
    }
    code.label(Label::Inode);
    code.load(Width::Double, 2, 1, offsets.of("inode", "i_ino")?);
    code.store(Width::Double, FRAME, FILE_INODE, 2);
    code.load(Width::Double, 1, 1, offsets.of("inode", "i_sb")?);
    code.load(Width::Word, 1, 1, offsets.of("super_block", "s_dev")?);
    code.store(Width::Double, FRAME, FILE_SYSTEM, 1);
    code.label(Label::NoFile);
    Ok(())
}

/// A pointer becomes a number, with which the verifier allows to calculate: through the slot.
fn as_number(code: &mut Assembler, register: u8) {
    code.store(Width::Double, 8, 56, register);
    code.load(Width::Double, register, 8, 56);
}

/// The thread that submits here will sleep: its next run is recorded.
fn mark_thread(code: &mut Assembler, kind: EventKind, wanted: &Wanted<'_>) {
    if kind == EventKind::Queue && !wanted.tops.is_empty() {
        code.shift_right(9, 32);
        for top in wanted.tops {
            code.jump_if_is(9, *top, Label::Mark);
        }
        code.jump(Label::Unmarked);
    }
    code.label(Label::Mark);
    code.load(Width::Double, 1, FRAME, -16);
    code.and_constant(1, ring::MARKS as i32 - 1);
    code.array(2, wanted.array, wanted.layout.marks_at() as u32);
    code.add(2, 1);
    code.store_constant(Width::Byte, 2, 0, 1);
    code.label(Label::Unmarked);
}
