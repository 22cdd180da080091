//! Volumes of several pieces of one disk.
//!
//! ```text
//! md0s2  |---- piece 0 ----|-- piece 1 --|
//! md0  ------|-- piece 1 --|------|---- piece 0 ----|----
//! ```
//! A read inside one piece is shifted and forwarded; one that reaches into the next is divided. All
//! else is the slicer's, which also has the volumes of one piece.

use crate::part::slicer::Slicer;
use ugeom_format::ldm::Extent;
use ugeom_stack::{
    AccessChange, Command, Cx, Delta, Errno, Extent as Filled, ExtentKind, Fact, Geom, Next,
    Request,
};

/// A piece of a volume, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Where in the volume it begins.
    at: u64,
    /// Where on the disk.
    offset: u64,
    length: u64,
}

impl Piece {
    /// The part of a range of the volume that lies in the piece: where in the volume, how long.
    fn part(self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (from, to) = (start.max(self.at), end.min(self.at + self.length));
        (from < to).then(|| (from, to - from))
    }
}

/// The geom of a disk with such volumes.
pub(super) struct Spanned {
    slicer: Slicer,
    /// For each port; empty where the slicer does the work.
    pieces: Box<[Box<[Piece]>]>,
}

impl Spanned {
    /// Around a slicer with as many ports as there are lists of pieces.
    pub(super) fn new(slicer: Slicer, pieces: &[Vec<Extent>], unit_bytes: u64) -> Self {
        let piece = |extent: &Extent| Piece {
            at: extent.volume_offset.saturating_mul(unit_bytes),
            offset: extent.start.saturating_mul(unit_bytes),
            length: extent.sectors.saturating_mul(unit_bytes),
        };
        let pieces = pieces.iter();
        let pieces = pieces.map(|list| list.iter().map(piece).collect());
        Self {
            slicer,
            pieces: pieces.collect(),
        }
    }

    fn pieces(&self, port: u16) -> Option<&[Piece]> {
        let pieces = self.pieces.get(usize::from(port))?;
        (!pieces.is_empty()).then_some(pieces)
    }
}

impl Geom for Spanned {
    fn start(&self, mut request: Request<'_>, cx: &mut Cx) -> Next {
        let Some(pieces) = self.pieces(request.port()) else {
            return self.slicer.start(request, cx);
        };
        let (start, length) = (request.offset(), request.length());
        match request.command() {
            Command::Read | Command::Write | Command::Delete | Command::Zero => {}
            Command::Extents => {
                // Holes of the disk are known by its offsets only.
                request.add_extent(Filled {
                    length_bytes: length,
                    kind: ExtentKind::Data,
                });
                return request.done_in_full();
            }
            _ => return request.forward(0),
        }
        let end = start.saturating_add(length);
        let parts = || {
            pieces
                .iter()
                .filter_map(|it| Some((it, it.part(start, end)?)))
        };
        if let Some((piece, (from, part))) = parts().next()
            && part == length
        {
            request.set_offset(piece.offset + (from - piece.at));
            return request.forward(0);
        }
        let mut clones = request.fan_out(cx);
        for (piece, (from, part)) in parts() {
            let offset = piece.offset + (from - piece.at);
            let added = clones.child(0, offset, from - start, part);
            debug_assert!(added.is_ok());
        }
        clones.finish()
    }

    fn shift(&self, port: u16) -> Option<u64> {
        match self.pieces(port) {
            Some(_) => None,
            None => self.slicer.shift(port),
        }
    }

    fn attribute(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        self.slicer.attribute(request, cx)
    }

    fn widest_fan_out(&self) -> usize {
        self.pieces
            .iter()
            .map(|pieces| pieces.len())
            .max()
            .unwrap_or(0)
    }

    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        self.slicer.access(change)
    }

    fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        self.slicer.resize(mediasize_bytes)
    }

    fn config(&self) -> Vec<Fact> {
        self.slicer.config()
    }
}
