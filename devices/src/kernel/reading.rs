//! One slice of reads of one layer, at queue depth 1 or more.

use super::chain::Row;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use ugeom_engine::{Choice, Engine, FileId, Op, OpKind, open_engine};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::{clock, cpu};

/// What a read of a slice took on average, ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slice {
    /// Wall time.
    pub wall_ns: f64,
    /// CPU time of the thread that reads.
    pub caller_ns: f64,
    /// CPU time of the whole machine, in the kernel's ticks.
    pub machine_ns: f64,
}

/// Reads blocks of a layer.
pub struct Reader {
    name: String,
    file: Arc<std::fs::File>,
    offset_bytes: u64,
    block_bytes: u64,
    queue: Option<Queue>,
    buffer: Buffer,
}

struct Queue {
    engine: Box<dyn Engine<Buffer>>,
    file: FileId,
    spare: Vec<Buffer>,
    depth: usize,
}

impl Reader {
    /// A reader of blocks of this size, with so many requests in flight.
    ///
    /// # Errors
    /// When the engine cannot be opened.
    pub fn new(row: &Row, block_bytes: u64, depth: usize) -> io::Result<Self> {
        let file = Arc::new(row.file.try_clone()?);
        let queue = match depth {
            1 => None,
            _ => Some(Queue::new(&file, block_bytes, depth)?),
        };
        Ok(Self {
            name: row.name.clone(),
            file,
            offset_bytes: row.offset_bytes,
            block_bytes,
            queue,
            buffer: Buffer::new(block_bytes as usize),
        })
    }

    /// Reads these blocks.
    ///
    /// # Errors
    /// What a read fails with, with its place.
    pub fn slice(&mut self, blocks: &[u64]) -> io::Result<Slice> {
        let machine = cpu::SystemTimes::now()?.busy_ns();
        let (start_ns, caller) = (clock::now_ns(), cpu::thread_cpu_ns());
        match &mut self.queue {
            None => {
                for block in blocks {
                    let at = self.offset_bytes + block * self.block_bytes;
                    self.file
                        .read_exact_at(&mut self.buffer, at)
                        .map_err(|error| {
                            io::Error::new(error.kind(), format!("{} at {at}: {error}", self.name))
                        })?;
                }
            }
            Some(queue) => queue.read(&self.name, self.offset_bytes, self.block_bytes, blocks)?,
        }
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

impl Queue {
    fn new(file: &Arc<std::fs::File>, block_bytes: u64, depth: usize) -> io::Result<Self> {
        let opened = open_engine::<Buffer>(Choice::Auto, depth as u32);
        let (mut engine, _) = opened.map_err(io::Error::other)?;
        let file = engine.register(file.clone())?;
        let spare = (0..depth)
            .map(|_| Buffer::new(block_bytes as usize))
            .collect();
        Ok(Self {
            engine,
            file,
            spare,
            depth,
        })
    }

    fn read(&mut self, name: &str, offset: u64, bytes: u64, blocks: &[u64]) -> io::Result<()> {
        let mut blocks = blocks.iter();
        let mut failed = None;
        loop {
            while let Some(memory) = self.spare.pop() {
                let Some(block) = blocks.next() else {
                    self.spare.push(memory);
                    break;
                };
                let at = offset + block * bytes;
                let op = Op {
                    kind: OpKind::Read,
                    file: self.file,
                    offset: at,
                    length: bytes,
                };
                self.engine.submit(op, memory);
            }
            if self.engine.in_flight() == 0 {
                break;
            }
            self.engine.flush_submissions();
            let before = self.spare.len();
            let spare = &mut self.spare;
            self.engine.reap(&mut |done| {
                match done.result {
                    Ok(count) if count == bytes => {}
                    Ok(count) => failed = Some(format!("{name}: a read ended after {count} bytes")),
                    Err(error) => failed = Some(format!("{name}: {error}")),
                }
                spare.push(done.memory);
            });
            if self.spare.len() == before {
                self.engine.wait(None)?;
            }
        }
        debug_assert_eq!(self.spare.len(), self.depth);
        failed.map_or(Ok(()), |why| Err(io::Error::other(why)))
    }
}
