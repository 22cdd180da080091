//! One slice of reads of one layer, at queue depth 1 or more.

use super::chain::ChainLayer;
use std::fs::File;
use std::io;
use std::sync::Arc;
use ugeom_engine::{Choice, open_engine};
use ugeom_load::door::{Calls, EngineDoor, Request, file_calls};
use ugeom_load::drive::{Queue, one_by_one};
use ugeom_load::recorder::Unwatched;
use ugeom_machine::buffer::Buffer;
use ugeom_machine::{clock, cpu};

/// The mean time of a read of a slice, ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slice {
    /// Wall time of a read, nanoseconds.
    pub wall_ns: f64,
    /// CPU time of the thread that reads.
    pub caller_ns: f64,
    /// CPU time of the whole machine, in the kernel's ticks.
    pub machine_ns: f64,
}

/// Reads blocks of a layer.
pub struct Reader {
    name: String,
    offset_bytes: u64,
    block_bytes: u64,
    way: Way,
}

enum Way {
    Calls { file: File, buffer: Buffer },
    Engine(Queue<EngineDoor>),
}

impl Reader {
    /// A reader of blocks of this size, with so many requests in flight.
    ///
    /// # Errors
    /// When the engine cannot be opened.
    pub fn new(row: &ChainLayer, block_bytes: u64, depth: usize) -> io::Result<Self> {
        let file = row.file.try_clone()?;
        let buffer = || Buffer::new(block_bytes as usize);
        let way = match depth {
            1 => Way::Calls {
                file,
                buffer: buffer(),
            },
            _ => {
                let opened = open_engine(Choice::Auto, depth as u32);
                let (engine, _) = opened.map_err(io::Error::other)?;
                let buffers = (0..depth).map(|_| buffer()).collect();
                let door = EngineDoor::with(engine, buffers, [Arc::new(file)])?;
                Way::Engine(Queue::new(door, depth as u32).in_whole_batches())
            }
        };
        Ok(Self {
            name: row.name.clone(),
            offset_bytes: row.offset_bytes,
            block_bytes,
            way,
        })
    }

    /// Reads these blocks, by number, and measures the time of all of them.
    ///
    /// # Errors
    /// The error of a read, with its place.
    pub fn slice(&mut self, blocks: &[u64]) -> io::Result<Slice> {
        let machine = cpu::SystemTimes::now()?.busy_ns();
        let (start_ns, caller) = (clock::now_ns(), cpu::thread_cpu_ns());
        let (first, length) = (self.offset_bytes, self.block_bytes);
        let request = |block: &u64| Request::read(first + block * length, length as u32);
        let requests = blocks.iter().map(request);
        let read = match &mut self.way {
            Way::Calls { file, buffer } => {
                let mut door = Calls::new(&mut **buffer, file_calls(&*file));
                one_by_one(&mut door, requests, &mut Unwatched)
            }
            Way::Engine(queue) => queue.run(requests, &mut Unwatched),
        };
        read.map_err(|failure| io::Error::other(failure.in_case(&self.name)))?;
        let (end_ns, caller_end) = (clock::now_ns(), cpu::thread_cpu_ns());
        let machine_end = cpu::SystemTimes::now()?.busy_ns();
        let each = |ns: u64| ns as f64 / blocks.len().max(1) as f64;
        Ok(Slice {
            wall_ns: each(end_ns - start_ns),
            caller_ns: each(caller_end.saturating_sub(caller)),
            machine_ns: each(machine_end.saturating_sub(machine)),
        })
    }
}
