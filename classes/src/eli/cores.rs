//! Large requests, divided among cores ([`ugeom_machine::crew`]).

use super::crypt::{Crypt, CryptError};
use std::io;
use ugeom_machine::crew;
use ugeom_machine::lease::Lease;

/// Requests below it are done by the thread that brings them, bytes: to wake another core takes as
/// long as AES takes for half of this.
pub(super) const DIVIDED_BYTES: usize = 256 << 10;
/// The least that a core is woken for, bytes.
const CHUNK_BYTES: usize = 64 << 10;

impl Crypt {
    /// As [`Crypt::decrypt`]; large requests on several cores.
    pub(super) fn decrypt_on_cores(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        if data.len() < DIVIDED_BYTES {
            return self.decrypt(offset, data);
        }
        let unit = self.layout().sector_bytes as usize;
        crew::chunks(data, (unit, CHUNK_BYTES), |at, chunk| {
            self.decrypt(offset + at as u64, chunk)
        })
    }

    /// As [`Crypt::decrypt`], of the lease of another layer, from a place in it on.
    pub(super) fn decrypt_lent(
        &self,
        offset: u64,
        (lease, within): (&Lease, usize),
        data: &mut [u8],
    ) -> io::Result<()> {
        let unit = self.layout().sector_bytes as usize;
        crew::chunks(data, (unit, CHUNK_BYTES), |at, chunk| {
            lease.copy_out(within + at, chunk);
            self.decrypt(offset + at as u64, chunk)
        })
    }

    /// As [`Crypt::open`]; large requests on several cores.
    pub(super) fn open_on_cores(
        &self,
        offset: u64,
        from: &[u8],
        to: &mut [u8],
    ) -> Result<(), CryptError> {
        if to.len() < DIVIDED_BYTES {
            return self.open(offset, from, to);
        }
        let (unit, stride) = self.units();
        crew::chunks(to, (unit, CHUNK_BYTES), |at, chunk| {
            let start = at / unit * stride;
            let length = chunk.len() / unit * stride;
            self.open(offset + at as u64, &from[start..start + length], chunk)
        })
    }

    /// As [`Crypt::seal`]; large requests on several cores.
    pub(super) fn seal_on_cores(&self, offset: u64, from: &[u8], to: &mut [u8]) -> io::Result<()> {
        if from.len() < DIVIDED_BYTES {
            return self.seal(offset, from, to);
        }
        let (unit, stride) = self.units();
        crew::chunks(to, (stride, CHUNK_BYTES), |at, chunk| {
            let start = at / stride * unit;
            let length = chunk.len() / stride * unit;
            self.seal(offset + start as u64, &from[start..start + length], chunk)
        })
    }

    /// The size of a sector, here and below, bytes.
    fn units(&self) -> (usize, usize) {
        let layout = self.layout();
        (layout.sector_bytes as usize, layout.stride_bytes() as usize)
    }
}
