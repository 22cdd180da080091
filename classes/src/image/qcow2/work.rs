//! The work of a worker thread on a request.

use super::Image;
use super::guard::{self, Guard};
use super::unclosed::Unclosed;
use crate::failures::Failures;
use imago::Mapping;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ugeom_machine::interrupt;
use ugeom_stack::{Bio, Command, Errno, Flags};

/// How long a request may take once the process was asked to end: a search for a free cluster
/// passes over all that are used, in an image with wrong counts for hours.
const PATIENCE: Duration = Duration::from_secs(5);

thread_local! {
    /// When the request began that this thread works on.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Looked at whenever `imago` reads from the file.
///
/// # Errors
/// The process was asked to end, and the request of this thread takes too long.
pub(super) fn go_on() -> io::Result<()> {
    let is_slow = || BEGAN.get().is_some_and(|began| began.elapsed() > PATIENCE);
    match interrupt::is_asked() && is_slow() {
        true => Err(Errno::CANCELED.into()),
        false => Ok(()),
    }
}

/// The requests of the threads.
pub(super) struct Worked {
    pub image: Arc<Image>,
    /// The size of a cluster.
    pub cluster_bytes: u64,
    pub failures: Arc<Failures>,
    /// `None` where nothing is written.
    pub unclosed: Arc<Option<Unclosed>>,
    /// `None` where nothing is written.
    pub guard: Arc<Option<Guard>>,
}

impl Worked {
    /// Does a request and completes it.
    pub fn work(&self, mut bio: Bio) {
        BEGAN.set(Some(Instant::now()));
        let (offset, end) = (bio.offset(), bio.offset() + bio.length());
        let guard = self.guard.as_ref().as_ref().filter(|_| is_change(&bio));
        if guard.is_some_and(|guard| !guard.allows_mapped(&self.image, offset, end)) {
            return bio.fail(Errno::IO, guard::OVER_A_STRUCTURE);
        }
        match self.act(&mut bio) {
            Ok(()) => {
                let length = bio.length();
                bio.complete(Ok(length));
            }
            Err(error) => {
                let why = match bio.command() {
                    _ if errno_of(&error) == Errno::CANCELED => "a signal ended it",
                    Command::Read => "the image cannot be read there",
                    Command::Flush => "the image could not be made durable",
                    _ => "the image cannot be written there",
                };
                bio.fail(errno_of(&error), why);
            }
        }
    }

    fn act(&self, bio: &mut Bio) -> io::Result<()> {
        let is_change = is_change(bio);
        let before = self.failures.count();
        if let (true, Some(unclosed)) = (is_change, self.unclosed.as_ref()) {
            unclosed.set()?;
        }
        match bio.command() {
            Command::Zero | Command::Delete => self.zero(bio.offset(), bio.length())?,
            _ => act(&self.image, &self.failures, bio)?,
        }
        if is_change && bio.flags().contains(Flags::FUA) {
            return flush(&self.image, &self.failures).and_then(|()| {
                // Another one may have failed between the write and this one.
                let is_alone = self.failures.count() == before;
                is_alone
                    .then_some(())
                    .ok_or_else(|| io::Error::other(BESIDE))
            });
        }
        if is_change {
            self.failures
                .wrote(bio.offset()..bio.offset() + bio.length(), before);
        }
        Ok(())
    }

    /// The clusters stay allocated and read as zeroes: taking them out of the map would need a map
    /// that no other thread uses meanwhile.
    ///
    /// `imago` gets whole clusters only. For a part it looks whether the rest of the cluster is
    /// zeroes, and then zeroes all of it: a write to the rest that comes in between would be lost.
    fn zero(&self, offset: u64, length: u64) -> io::Result<()> {
        let end = offset + length;
        let first = offset.next_multiple_of(self.cluster_bytes).min(end);
        let last = match end == self.image.size() {
            true => end,
            false => (end - end % self.cluster_bytes).max(first),
        };
        self.zero_part(offset, first)?;
        // For no bytes it would zero the cluster that they lie in.
        if first < last {
            self.image.write_zeroes(first, last - first)?;
        }
        self.zero_part(last, end)
    }

    /// Zeroes a part of a cluster, unless it reads as zeroes already.
    fn zero_part(&self, mut at: u64, end: u64) -> io::Result<()> {
        while at < end {
            let (mapping, length) = self.image.get_mapping(at, end - at)?;
            let length = length.clamp(1, ZEROES.len() as u64).min(end - at);
            if !matches!(mapping, Mapping::Zero { .. }) {
                self.image.write(&ZEROES[..length as usize], at)?;
            }
            at += length;
        }
        Ok(())
    }
}

fn is_change(bio: &Bio) -> bool {
    let changes = [Command::Write, Command::Zero, Command::Delete];
    changes.contains(&bio.command())
}

/// The zeroes that overwrite a part of a cluster, piece by piece.
static ZEROES: [u8; 64 << 10] = [0; 64 << 10];

/// The system's number, where there is one.
pub(super) fn errno_of(error: &io::Error) -> Errno {
    let number = error.raw_os_error();
    number.map_or(Errno::IO, Errno::from_raw_os_error)
}

fn act(image: &Image, failures: &Failures, bio: &mut Bio) -> io::Result<()> {
    let offset = bio.offset();
    let mut done = Ok(());
    match bio.command() {
        Command::Read => bio.fill(|at, piece| {
            if done.is_ok() {
                done = image.read(piece, offset + at);
            }
        }),
        Command::Write => bio.each(|at, piece| {
            if done.is_ok() {
                done = image.write(piece, offset + at);
            }
        }),
        Command::Flush => done = flush(image, failures),
        _ => done = Err(io::Error::other("no work")),
    }
    done
}

/// The error of the FLUSH after a write that was in flight during a failure.
pub(super) const BESIDE: &str =
    "the image could not be made durable before, and a write in flight then may be lost";

/// The map first, then the system's cache of both files.
fn flush(image: &Image, failures: &Failures) -> io::Result<()> {
    let why = "the image's map, or data, could not be made durable";
    failures.flush(why, || image.flush().and_then(|()| image.sync()))
}
