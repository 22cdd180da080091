//! The file of a log, written by a thread of its own: requests copy into a buffer, and never wait
//! for the file while one of the buffers is free.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use ugeom_machine::own_thread::OwnThread;

/// How much is collected before the file gets it, bytes.
pub(super) const BUFFER_BYTES: usize = 1 << 20;
/// How many buffers there are beside the one that is being filled.
const BUFFERS: usize = 4;

pub(super) struct Writer {
    /// Dropped before the thread, which ends then.
    full: Sender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    failed: Arc<OnceLock<Arc<io::Error>>>,
    _thread: OwnThread,
}

impl Writer {
    pub fn start(mut file: File) -> io::Result<Self> {
        let (full, todo) = channel::<Vec<u8>>();
        let (done, empty) = channel();
        let failed = Arc::new(OnceLock::new());
        let tell = Arc::clone(&failed);
        let thread = OwnThread::start("crash-log", move || {
            for mut buffer in todo {
                // After an error the file has a gap, so nothing may follow.
                if tell.get().is_none()
                    && let Err(error) = file.write_all(&buffer)
                {
                    let _ = tell.set(Arc::new(error));
                }
                buffer.clear();
                if done.send(buffer).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self {
            full,
            empty,
            spare: vec![Vec::new(); BUFFERS],
            failed,
            _thread: thread,
        })
    }

    /// Takes the collected records, and leaves an empty buffer. Waits while all buffers are full.
    pub fn take(&mut self, buffer: &mut Vec<u8>) {
        let spare = self.spare.pop().or_else(|| self.empty.recv().ok());
        let spare = spare.unwrap_or_default();
        let full = std::mem::replace(buffer, spare);
        if self.full.send(full).is_err() {
            self.thread_is_gone();
        }
    }

    /// Waits until the file has everything.
    pub fn wait(&mut self) {
        while self.spare.len() < BUFFERS {
            let Ok(buffer) = self.empty.recv() else {
                return self.thread_is_gone();
            };
            self.spare.push(buffer);
        }
    }

    /// Why the file does not have everything, once it is known.
    pub fn failed(&self) -> Option<&Arc<io::Error>> {
        self.failed.get()
    }

    fn thread_is_gone(&self) {
        let error = io::Error::other("its thread has ended");
        let _ = self.failed.set(Arc::new(error));
    }
}
