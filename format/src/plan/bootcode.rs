//! Boot code in the sectors that a scheme keeps for it.

use super::{Error, Scheme, Table};
use crate::bytes;
use crate::media::{Media, SectorWrite};

/// Bytes of boot code in front of a table of the PC.
const PC_CODE_BYTES: usize = 446;
/// The NT disk signature within them.
const SERIAL: std::ops::Range<usize> = 440..444;
const SECTOR_BYTES: usize = 512;
/// Boot area of a disklabel and of a PC-98.
const AREA_BYTES: usize = 8192;

impl Table {
    /// The largest boot code that the scheme takes, in bytes.
    ///
    /// # Errors
    /// [`Error::NoBootCode`]: it takes none.
    pub(crate) fn boot_code_bytes(&self) -> Result<usize, Error> {
        match self.scheme() {
            Scheme::Mbr | Scheme::Gpt => Ok(SECTOR_BYTES),
            Scheme::Bsd | Scheme::Pc98 => Ok(AREA_BYTES),
            scheme => Err(Error::NoBootCode(scheme)),
        }
    }

    /// The writes that put boot code in front of a table, which stays as it is.
    /// An MBR keeps its NT disk signature if `keep_serial`.
    ///
    /// # Errors
    /// The scheme takes none, the code is too large, or the table is damaged.
    pub fn boot_code(&self, code: &[u8], keep_serial: bool) -> Result<Vec<SectorWrite>, Error> {
        self.refuse_damaged()?;
        let most = self.boot_code_bytes()?;
        if code.len() > most {
            let found = code.len();
            return Err(Error::BootCodeSize { found, most });
        }
        Ok(match self {
            Table::Gpt(table) => vec![pc(table.sector0(), code, false)],
            Table::Mbr(table) => vec![pc(table.sector0(), code, keep_serial)],
            Table::Bsd(table) => table.boot_area(&padded(code))?,
            // Without the name the table would be taken for none.
            _ if !crate::pc98::names_a_loader(code) => return Err(Error::BootCodeName),
            _ => self.pc98_area(code),
        })
    }

    /// The boot sector keeps its signature, and the table is between the two
    /// parts of the code.
    fn pc98_area(&self, code: &[u8]) -> Vec<SectorWrite> {
        let mut area = padded(code);
        for write in self.encode() {
            let at = write.lba as usize * SECTOR_BYTES;
            let from = if write.lba == 0 { SECTOR_BYTES - 2 } else { 0 };
            bytes::put(&mut area, at + from, &write.data[from..]);
        }
        let used = if code.len() > 2 * SECTOR_BYTES {
            AREA_BYTES
        } else {
            SECTOR_BYTES
        };
        let sectors = (0..).zip(area[..used].chunks(SECTOR_BYTES));
        sectors
            .map(|(lba, data)| SectorWrite {
                lba,
                data: data.to_vec(),
            })
            .collect()
    }
}

/// Sector 0 of a PC with other code.
fn pc(sector0: &[u8], code: &[u8], keep_serial: bool) -> SectorWrite {
    let mut data = sector0.to_vec();
    let mut area = [0; PC_CODE_BYTES];
    bytes::put(&mut area, 0, &code[..code.len().min(PC_CODE_BYTES)]);
    // A number of zero is none: those bytes are the code's, as in gpart (boot0 has flags there).
    if keep_serial && sector0[SERIAL] != [0; 4] {
        area[SERIAL].copy_from_slice(&sector0[SERIAL]);
    }
    bytes::put(&mut data, 0, &area);
    SectorWrite { lba: 0, data }
}

fn padded(code: &[u8]) -> Vec<u8> {
    let mut area = code.to_vec();
    area.resize(AREA_BYTES, 0);
    area
}

/// An area of bytes as one write a sector.
pub(super) fn sectors(media: Media, area: &[u8]) -> Vec<SectorWrite> {
    let pieces = (0..).zip(area.chunks(media.sector_len()));
    pieces
        .map(|(lba, data)| SectorWrite {
            lba,
            data: data.to_vec(),
        })
        .collect()
}
