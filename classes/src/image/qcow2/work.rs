//! What a worker thread does with a request.

use super::Image;
use super::unclosed::Unclosed;
use std::io;
use std::sync::Arc;
use ugeom_stack::{Bio, Command, Errno, Flags, Losses};

/// What the threads work on.
pub(super) struct Worked {
    pub image: Arc<Image>,
    pub losses: Arc<Losses>,
    /// `None` where nothing is written.
    pub unclosed: Arc<Option<Unclosed>>,
}

impl Worked {
    /// Does a request and completes it.
    pub fn work(&self, mut bio: Bio) {
        match self.act(&mut bio) {
            Ok(()) => {
                let length = bio.length();
                bio.complete(Ok(length));
            }
            Err(error) => {
                bio.fail(
                    errno_of(&error),
                    "the image cannot be read or written there",
                );
            }
        }
    }

    fn act(&self, bio: &mut Bio) -> io::Result<()> {
        let is_change = matches!(
            bio.command(),
            Command::Write | Command::Zero | Command::Delete
        );
        if let (true, Some(unclosed)) = (is_change, self.unclosed.as_ref()) {
            unclosed.set()?;
        }
        act(&self.image, &self.losses, bio)
    }
}

/// The system's number, where there is one.
pub(super) fn errno_of(error: &io::Error) -> Errno {
    let number = error.raw_os_error();
    number.map_or(Errno::IO, Errno::from_raw_os_error)
}

fn act(image: &Image, losses: &Losses, bio: &mut Bio) -> io::Result<()> {
    let (offset, length) = (bio.offset(), bio.length());
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
        // The clusters stay allocated and read as zeroes: taking them out of the map would need a
        // map that no other thread uses meanwhile.
        Command::Zero | Command::Delete => done = image.write_zeroes(offset, length),
        Command::Flush => return flush(image, losses),
        Command::GetAttr | Command::Extents => return Err(io::Error::other("no work")),
    }
    done?;
    if bio.flags().contains(Flags::FUA) {
        return flush(image, losses);
    }
    Ok(())
}

/// The map first, then what the system has of both files.
fn flush(image: &Image, losses: &Losses) -> io::Result<()> {
    let flushed = image.flush().and_then(|()| image.sync());
    if flushed.is_err() {
        losses.record("the image's map, or data, could not be made durable");
    }
    flushed
}
