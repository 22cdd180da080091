//! The slow path: threads for work that would block a worker.
//!
//! One of them opens and closes providers, which may make classes taste, with I/O; it also answers
//! what is asked about files while something is being closed, so that a program that has closed a
//! disk and then looks for its partitions sees them. The others do what takes several steps and is
//! rare: writes to parts of sectors, or to a range that is claimed elsewhere; holes and zeroes;
//! looking for data. They have channels of their own, and wait as long as it takes.

use super::Shared;
use super::error::FuseError;
use super::handles::{Handle, Tables};
use super::link::{Responder, Ticket};
use super::new_channel;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use ugeom_format::wire::fuse::{
    Fallocate, Lseek, OpenReply, SetAttributes, Transfer, open_flag, written_reply,
};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::mutex::Mutex;
use ugeom_stack::{Channel, Delta, Unaligned};

/// Threads for operations of several steps.
const HELPERS: usize = 4;

/// The flags of opening a file: past the page cache, with writes side by side.
const OPENED: u32 = open_flag::DIRECT_IO | open_flag::PARALLEL_DIRECT_WRITES;

/// The requests to the opening thread.
pub(super) enum OpenerRequest {
    Open { node: u64, flags: u32 },
    Release(u64),
    LookUp(Vec<u8>),
    Attributes(u64),
    SetAttributes(u64, SetAttributes),
    List(u64, Transfer),
    FileSystem,
}

/// The requests to a helper.
pub(super) enum HelperRequest {
    /// Writes the first bytes of the buffer.
    Write {
        offset: u64,
        length: usize,
        buffer: Buffer,
        /// The data is to be durable before the answer.
        durable: bool,
    },
    Fallocate(Fallocate),
    Lseek(Lseek),
    /// The attributes of a node that is open.
    Attributes(u64),
}

/// Something to do, and where the answer goes.
struct SlowJob<T> {
    what: T,
    ticket: Ticket,
    to: Arc<dyn Responder>,
}

type HelperJob = SlowJob<(Arc<Handle>, HelperRequest)>;

/// How work gets to the slow path.
#[derive(Clone)]
pub(super) struct SlowPath {
    opener_requests: Sender<SlowJob<OpenerRequest>>,
    helper_requests: Sender<HelperJob>,
}

impl SlowPath {
    pub fn ask(&self, what: OpenerRequest, ticket: Ticket, to: &Arc<dyn Responder>) {
        let to = Arc::clone(to);
        if let Err(lost) = self.opener_requests.send(SlowJob { what, ticket, to }) {
            // The thread is gone, by a panic: a defect, which has been reported as such.
            lost.0.to.answer(lost.0.ticket, None, Err(Errno::IO));
        }
    }

    pub fn help(
        &self,
        handle: &Arc<Handle>,
        request: HelperRequest,
        ticket: Ticket,
        to: &Arc<dyn Responder>,
    ) {
        let (what, to) = ((Arc::clone(handle), request), Arc::clone(to));
        if let Err(lost) = self.helper_requests.send(SlowJob { what, ticket, to }) {
            let SlowJob { what, ticket, to } = lost.0;
            to.answer(ticket, memory_of(what.1), Err(Errno::IO));
        }
    }
}

/// The memory that comes with a request, which goes back with the answer.
fn memory_of(request: HelperRequest) -> Option<Buffer> {
    match request {
        HelperRequest::Write { buffer, .. } => Some(buffer),
        HelperRequest::Fallocate(_) | HelperRequest::Lseek(_) | HelperRequest::Attributes(_) => {
            None
        }
    }
}

/// Starts the slow path's threads. They end when the last [`SlowPath`] is gone; the opener then
/// closes open files.
pub(super) fn start(
    shared: &Arc<Shared>,
    tables: Tables,
) -> Result<(SlowPath, Vec<JoinHandle<()>>), FuseError> {
    let (opener_requests, opener_list) = channel();
    let (helper_requests, helper_list) = channel();
    let helper_list = Arc::new(Mutex::new(helper_list));
    let starting = |source| FuseError::system("starting a thread", source);
    let mut threads = Vec::new();
    let opener = Opener {
        channel: new_channel(shared, 1)?,
        shared: Arc::clone(shared),
        tables,
    };
    let thread = std::thread::Builder::new().name("ugeom-fuse-open".to_owned());
    threads.push(
        thread
            .spawn(move || opener.run(&opener_list))
            .map_err(starting)?,
    );
    for number in 0..HELPERS {
        let helper = Helper {
            shared: Arc::clone(shared),
            channel: new_channel(shared, 1)?,
        };
        let list = Arc::clone(&helper_list);
        let thread = std::thread::Builder::new().name(format!("ugeom-fuse-help{number}"));
        threads.push(thread.spawn(move || helper.run(&list)).map_err(starting)?);
    }
    Ok((
        SlowPath {
            opener_requests,
            helper_requests,
        },
        threads,
    ))
}

struct Opener {
    shared: Arc<Shared>,
    tables: Tables,
    channel: Channel,
}

impl Opener {
    fn run(mut self, opener_requests: &Receiver<SlowJob<OpenerRequest>>) {
        while let Ok(SlowJob { what, ticket, to }) = opener_requests.recv() {
            let files = &self.shared.files;
            let answer = match what {
                OpenerRequest::Open { node, flags } => self.open(node, flags),
                OpenerRequest::Release(number) => {
                    if let Some(handle) = self.tables.remove(number) {
                        self.close(handle);
                    }
                    self.shared.closing.fetch_sub(1, Ordering::AcqRel);
                    Ok(Vec::new())
                }
                OpenerRequest::LookUp(name) => {
                    files.stack.notice_growth();
                    files.look_up(&name)
                }
                OpenerRequest::Attributes(node) => self.attributes(node),
                OpenerRequest::SetAttributes(node, set) => self.set_attributes(node, &set),
                OpenerRequest::List(node, from) => files.list(node, &from),
                OpenerRequest::FileSystem => Ok(files.file_system()),
            };
            to.answer(ticket, None, answer);
        }
        for handle in self.tables.remove_all() {
            self.close(handle);
        }
    }

    fn open(&mut self, node: u64, flags: u32) -> Result<Vec<u8>, Errno> {
        let handle = Arc::new(self.handle(node, flags)?);
        let reply = OpenReply {
            handle: self.tables.add(&handle),
            // The close of a descriptor that cannot write is no message.
            flags: match handle.writable {
                true => OPENED,
                false => OPENED | open_flag::NOFLUSH,
            },
        };
        Ok(reply.encode())
    }

    /// Opens the provider of a node.
    fn handle(&self, node: u64, flags: u32) -> Result<Handle, Errno> {
        let files = &self.shared.files;
        files.stack.notice_growth();
        let seen = files.provider(node)?;
        let writes = flags & ACCESS_MODE != 0;
        if writes && !files.is_writable(&seen) {
            return Err(Errno::ROFS);
        }
        let view = seen.view;
        if writes && let Some(lost) = files.stack.lost_to_writer(view.id) {
            let name = &view.name;
            self.shared.say(&format!(
                "{name} cannot be opened for writing: that would destroy {lost} above it"
            ));
            return Err(Errno::BUSY);
        }
        // A write of a part of a sector reads the rest first.
        let delta = Delta::of_user(writes);
        let opened = files.stack.open(view.id, delta).map_err(|error| {
            self.shared
                .say(&format!("{} cannot be opened: {error}", view.name));
            error.errno()
        })?;
        Ok(Handle {
            opened,
            size_bytes: view.content_bytes(),
            sector_bytes: u64::from(view.sectorsize_bytes.max(1)),
            writable: writes,
            durable: flags & OFlags::DSYNC.bits() != 0,
            ranges: files.ranges.of(view.id),
            dirty: false.into(),
            name: view.name,
        })
    }

    /// SETATTR. Programs that truncate a file to nothing take it for zeroes and write only data
    /// over them, as cp(1) does: that is right where no data is, and would mix old and new data
    /// where some is.
    fn set_attributes(&mut self, node: u64, set: &SetAttributes) -> Result<Vec<u8>, Errno> {
        let files = &self.shared.files;
        let reply = files.set_attributes(node, set)?;
        let Some(name) = files.name(node).filter(|_| set.empties()) else { return Ok(reply) };
        let is_empty = match self.tables.of_provider(&name) {
            Some(handle) => super::holes::is_empty(&mut self.channel, &handle)?,
            None => {
                let handle = self.handle(node, 0)?;
                let is_empty = super::holes::is_empty(&mut self.channel, &handle);
                self.close(Arc::new(handle));
                is_empty?
            }
        };
        if !is_empty {
            self.shared.say(&format!(
                "{name} holds data and cannot be truncated: open it without O_TRUNC \
                 (dd conv=notrunc), or make a hole of it first (fallocate --punch-hole)"
            ));
            return Err(Errno::INVAL);
        }
        Ok(reply)
    }

    fn attributes(&mut self, node: u64) -> Result<Vec<u8>, Errno> {
        let files = &self.shared.files;
        let name = files.name(node);
        match name.and_then(|name| self.tables.of_provider(&name)) {
            Some(handle) => {
                let allocated_bytes = super::holes::allocated(&mut self.channel, &handle);
                files.attributes_with(node, allocated_bytes)
            }
            None => files.attributes(node),
        }
    }

    /// Makes the writes through a handle durable, and closes the provider.
    fn close(&mut self, handle: Arc<Handle>) {
        if handle.dirty.swap(false, Ordering::AcqRel)
            // release(2) has no result: the next open of the file reports the loss.
            && let Err(error) = self.channel.last_flush(&handle.opened)
        {
            self.shared.say(&format!("{}: {error}", handle.name));
        }
        let name = handle.name.clone();
        if let Some(handle) = Arc::into_inner(handle)
            && let Err(error) = handle.opened.close()
        {
            self.shared.say(&format!("closing {name}: {error}"));
        }
    }
}

/// The part of open(2)'s flags that says whether one reads or writes; 0 is reading.
const ACCESS_MODE: u32 = 3;

struct Helper {
    shared: Arc<Shared>,
    channel: Channel,
}

impl Helper {
    fn run(mut self, helper_requests: &Mutex<Receiver<HelperJob>>) {
        loop {
            let next = helper_requests.lock().recv();
            let Ok(SlowJob { what, ticket, to }) = next else { return };
            let (handle, mut request) = what;
            let answer = self.work(&handle, &mut request);
            drop(handle);
            to.answer(ticket, memory_of(request), answer);
        }
    }

    /// Makes the change of a request durable. Its error says nothing of the writes before it.
    fn flush(&mut self, handle: &Handle) -> Result<(), Errno> {
        let flushed = self.channel.flush_for_request(&handle.opened);
        flushed.map_err(|error| error.errno)
    }

    fn work(&mut self, handle: &Handle, request: &mut HelperRequest) -> Result<Vec<u8>, Errno> {
        let mut unaligned =
            Unaligned::new(&handle.opened, &handle.ranges).map_err(|_| Errno::NXIO)?;
        match request {
            HelperRequest::Write {
                offset,
                length,
                buffer,
                durable,
            } => {
                let bytes = &buffer[..*length];
                let channel = &mut self.channel;
                let written = unaligned.write(channel, &handle.opened, *offset, bytes);
                let written = written.map_err(|error| error.errno)?;
                if *durable {
                    self.flush(handle)?;
                }
                Ok(written_reply(written as u32).to_vec())
            }
            HelperRequest::Fallocate(what) => {
                super::holes::fallocate(&mut self.channel, &mut unaligned, handle, what)?;
                if handle.durable {
                    self.flush(handle)?;
                }
                Ok(Vec::new())
            }
            HelperRequest::Lseek(what) => super::holes::seek(&mut self.channel, handle, what),
            HelperRequest::Attributes(node) => {
                let allocated_bytes = super::holes::allocated(&mut self.channel, handle);
                self.shared.files.attributes_with(*node, allocated_bytes)
            }
        }
    }
}
