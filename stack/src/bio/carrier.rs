//! [`Carrier`]: a bio on its way through an I/O engine, with a bounce buffer where the device wants
//! memory that is better aligned than the caller's (direct I/O).

use super::{Bio, Command};
use ugeom_machine::buffer::{Buffer, IoMemory, Segment};

/// A bio, and the aligned memory that stands for its own if that is needed.
pub struct Carrier {
    bio: Bio,
    bounce: Option<Buffer>,
}

// SAFETY: the segments are the bio's, or those of a buffer that the carrier owns; both stay valid
// and untouched by others until the carrier is dropped or taken apart.
unsafe impl IoMemory for Carrier {
    fn segments(&self) -> &[Segment] {
        match &self.bounce {
            Some(buffer) => buffer.segments(),
            None => self.bio.segments(),
        }
    }

    fn is_watched(&self) -> bool {
        self.bounce.is_none() && self.bio.is_watched()
    }
}

impl Carrier {
    /// Takes a bio. Reads and writes whose memory is not aligned to `align_bytes` (a power of two;
    /// 1 for any) go through a buffer that is; writes are copied into it here.
    pub fn new(mut bio: Bio, align_bytes: usize) -> Self {
        let mask = align_bytes - 1;
        let aligned =
            |segment: &Segment| segment.base.addr() & mask == 0 && segment.len & mask == 0;
        let carries = matches!(bio.command(), Command::Read | Command::Write);
        if !carries || bio.segments().iter().all(aligned) {
            return Self { bio, bounce: None };
        }
        let mut buffer = Buffer::new(bio.length() as usize);
        if bio.command() == Command::Write {
            let request = bio.request();
            request.each(|at, piece| {
                let at = at as usize;
                buffer[at..at + piece.len()].copy_from_slice(piece);
            });
        }
        Self {
            bio,
            bounce: Some(buffer),
        }
    }

    /// The bio that travels in it.
    #[must_use]
    pub fn bio(&self) -> &Bio {
        &self.bio
    }

    /// Gives the bio back, with the read data in its own memory.
    #[must_use]
    pub fn into_bio(mut self) -> Bio {
        if let Some(buffer) = &self.bounce {
            // Serves READ only.
            self.bio.request().fill(|at, piece| {
                let at = at as usize;
                piece.copy_from_slice(&buffer[at..at + piece.len()]);
            });
        }
        self.bio
    }
}
