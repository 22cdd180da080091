//! Editing partition tables on an opened provider, in the manner of gpart(8): create, add, delete,
//! modify, set, unset, resize, destroy, recover, show.
//!
//! ```text
//! provider, open for writing (r1w1)
//!   read     the sectors that a table may stand in
//!   plan     ugeom_format::plan: the change, in memory; refused here, nothing has happened
//!   found    create only: content that the new table would destroy, refused without force
//!   write    backup first, then primary, the protective MBR last; FLUSH after each
//! last write close: the classes taste, the new partitions appear
//! ```
//! Each write is durable before the next one begins, so that a GPT has one good copy at every
//! moment. A provider whose partitions are open cannot be opened for writing at all (GEOM's access
//! rules), so nothing here is changed under a user's feet.

mod code;
mod cut;
mod error;
pub mod found;
mod media;
mod recover;
mod saved;

pub use error::{Cut, EditError};
pub use recover::{Recovery, RecoveryWrite, check_recovery, plan_recovery, write_recovery};
pub use saved::{Restore, restore};

use super::rules::Below;
use media::Disk;
use std::io::Read;
use ugeom_format::plan::{self, Change, NewPart, Scheme, Table};
use ugeom_stack::{Channel, Opened};

/// The parameters of a new table.
#[derive(Clone, Copy, Debug)]
pub struct Create {
    /// Scheme of the table that is made.
    pub scheme: Scheme,
    /// Number of entries, where the scheme lets one choose (`gpart create -n`).
    pub entries: Option<u32>,
    /// Destroy existing content.
    pub force: bool,
}

/// A partition that was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// Its place in the table, from 1.
    pub index: u32,
    /// The provider's name, `md0p1`.
    pub provider: String,
    /// First sector on the provider, from 0.
    pub start: u64,
    /// Length on the provider, sectors.
    pub sectors: u64,
}

/// All tables that can be edited, outermost first: what `gpart show` lists, with free space and
/// damage. [`Table::show`] prints one. Nothing is written; reading access is enough.
///
/// # Errors
/// [`EditError::NoTable`] when there is none, with the reason when there is a damaged one.
pub fn show(channel: &mut Channel, opened: &Opened) -> Result<Vec<Table>, EditError> {
    let mut disk = Disk::new(channel, opened)?;
    let tables = disk.tables();
    if tables.is_empty() {
        return Err(disk.no_table());
    }
    Ok(tables)
}

/// Makes a new, empty table.
///
/// # Errors
/// [`EditError::Nested`] where no class would look for the table, [`EditError::Found`] without
/// `force` when the provider carries a table or a file system, [`EditError::Plan`] when the scheme
/// does not fit; nothing is written then. [`EditError::Io`] while writing.
pub fn create(channel: &mut Channel, opened: &Opened, wanted: &Create) -> Result<Table, EditError> {
    let mut disk = Disk::ready_for(channel, opened, wanted.scheme)?;
    let request = plan::Create {
        entries: wanted.entries,
        random: random()?,
        geometry: disk.geometry,
        ..plan::Create::default()
    };
    let media = disk.media;
    let make = |request: &plan::Create| Table::create(wanted.scheme, media, request);
    disk.replace(request, wanted.force, false, &make)
}

impl<'a> Disk<'a> {
    /// A provider on which a table of the scheme would be found.
    fn ready_for(
        channel: &'a mut Channel,
        opened: &'a Opened,
        scheme: Scheme,
    ) -> Result<Self, EditError> {
        let below = Below::ask(|name| channel.attribute(opened, name).ok().flatten());
        let disk = Disk::new(channel, opened)?;
        match below.refuses(&scheme.to_string()) {
            None => Ok(disk),
            Some(reason) => Err(EditError::Nested {
                provider: disk.name,
                scheme,
                reason,
            }),
        }
    }

    /// Writes a new table over existing content, if that is allowed. With `check_only` nothing is
    /// written.
    fn replace(
        &mut self,
        mut request: plan::Create,
        force: bool,
        check_only: bool,
        make: &dyn Fn(&plan::Create) -> Result<Table, plan::Error>,
    ) -> Result<Table, EditError> {
        let found = found::all(self)?;
        if !found.is_empty() && !force {
            return Err(EditError::Found {
                provider: self.name.clone(),
                found,
            });
        }
        // Asked first without the old boot code, so that a refusal comes before anything is wiped.
        let table = make(&request).map_err(|error| self.plan_error(error))?;
        if check_only {
            return Ok(table);
        }
        self.wipe(&found)?;
        request.sector0 = self.boot_sector(&found)?;
        let table = make(&request).map_err(|error| self.plan_error(error))?;
        self.write(&table.encode())?;
        Ok(table)
    }
}

/// A new length of a partition.
#[derive(Clone, Copy, Debug)]
pub struct Resize {
    /// Index of the partition.
    pub index: u32,
    /// Its new length in sectors; without one it extends to the next partition.
    pub sectors: Option<u64>,
    /// The length is rounded down to a multiple of so many sectors.
    pub align_sectors: Option<u64>,
    /// Cut off the content of the partition.
    pub force: bool,
}

/// A table that is changed, on its provider.
pub struct Editor<'a> {
    disk: Disk<'a>,
    table: Table,
}

impl<'a> Editor<'a> {
    /// The table of a scheme; without one the provider must carry one table only.
    ///
    /// # Errors
    /// [`EditError::NoTable`], [`EditError::Several`].
    pub fn open(
        channel: &'a mut Channel,
        opened: &'a Opened,
        scheme: Option<Scheme>,
    ) -> Result<Self, EditError> {
        let mut disk = Disk::new(channel, opened)?;
        let table = disk.table(scheme)?;
        Ok(Self { disk, table })
    }

    /// Adds a partition. The GUID is made here; [`NewPart::random`] does not count.
    ///
    /// # Errors
    /// [`EditError::Owned`], and [`EditError::Plan`] when the table does not allow it; nothing is
    /// written then. [`EditError::Io`] while writing.
    pub fn add_part(mut self, wanted: &NewPart) -> Result<Added, EditError> {
        self.disk.refuse_owned(&self.table)?;
        let wanted = NewPart {
            random: random()?,
            ..wanted.clone()
        };
        let added = self.table.add(&wanted);
        let index = added.map_err(|error| self.disk.plan_error(error))?;
        self.disk.edit(&self.table.encode())?;
        let (provider, part) = self.disk.partition(&self.table, index);
        let (start, sectors) = part.map_or((0, 0), |part| (part.start, part.sectors));
        Ok(Added {
            index,
            provider,
            start,
            sectors,
        })
    }

    /// Deletes a partition; its contents stay where they are. Answers with the provider's name.
    ///
    /// # Errors
    /// As [`Editor::add_part`].
    pub fn delete(mut self, index: u32) -> Result<String, EditError> {
        let (provider, _) = self.disk.partition(&self.table, index);
        let deleted = self.table.delete(index);
        deleted.map_err(|error| self.disk.plan_error(error))?;
        self.disk.edit(&self.table.encode())?;
        Ok(provider)
    }

    /// Changes type, label or attributes of a partition, all of them or none. Answers with the
    /// provider's name.
    ///
    /// # Errors
    /// As [`Editor::add_part`].
    pub fn change(mut self, index: u32, changes: &[Change]) -> Result<String, EditError> {
        for change in changes {
            let changed = self.table.change(index, change);
            changed.map_err(|error| self.disk.plan_error(error))?;
        }
        self.disk.edit(&self.table.encode())?;
        Ok(self.disk.partition(&self.table, index).0)
    }

    /// Sets or clears an attribute of the table itself.
    ///
    /// # Errors
    /// As [`Editor::add_part`].
    pub fn set_on_table(mut self, attribute: &str, on: bool) -> Result<(), EditError> {
        self.disk.refuse_owned(&self.table)?;
        let changed = self.table.set_on_table(attribute, on);
        changed.map_err(|error| self.disk.plan_error(error))?;
        self.disk.edit(&self.table.encode())
    }

    /// Gives a partition another length, see [`Table::resize`]. Its contents stay as they are.
    ///
    /// # Errors
    /// [`EditError::Cut`] without `force` when it carries something that would end behind it, else
    /// as [`Editor::add_part`].
    pub fn resize(mut self, wanted: &Resize) -> Result<Added, EditError> {
        let index = wanted.index;
        let (provider, before) = self.disk.partition(&self.table, index);
        let resized = (self.table).resize(index, wanted.sectors, wanted.align_sectors);
        let sectors = resized.map_err(|error| self.disk.plan_error(error))?;
        if let Some(part) = before.as_ref().filter(|_| !wanted.force) {
            self.disk.refuse_cut(&provider, part, sectors)?;
        }
        self.disk.edit(&self.table.encode())?;
        Ok(Added {
            index,
            provider,
            start: before.map_or(0, |part| part.start),
            sectors,
        })
    }

    /// Destroys the table; the data of the partitions stays in place. Answers with its scheme.
    ///
    /// # Errors
    /// [`EditError::NotEmpty`] without `force` while it has partitions, [`EditError::InTheWay`]
    /// where the magic number of something else would go with it, else as [`Editor::add_part`].
    pub fn destroy(mut self, force: bool) -> Result<Scheme, EditError> {
        let (scheme, count) = (self.table.scheme(), self.table.parts().len());
        if count > 0 && !force {
            return Err(EditError::NotEmpty {
                provider: self.disk.name,
                scheme,
                count,
            });
        }
        if !force {
            self.disk.refuse_owned(&self.table)?;
        }
        // The boot sector of a file system may hold the table, too.
        self.disk.edit(&self.table.destroy())?;
        Ok(scheme)
    }
}

/// Makes a damaged GPT whole from its good copy and returns the defects; empty, and
/// nothing written, for a healthy one.
///
/// # Errors
/// [`EditError::NoTable`] when there is no GPT or neither copy is good, [`EditError::Plan`] when a
/// partition lies where the backup has to go; nothing is written then. [`EditError::Io`] while
/// writing.
pub fn recover(channel: &mut Channel, opened: &Opened) -> Result<Vec<String>, EditError> {
    let recovery = plan_recovery(channel, opened, None)?;
    write_recovery(channel, opened, &recovery)?;
    Ok(recovery.repaired)
}

fn is_sound(table: &Table) -> bool {
    table.damage().is_empty()
}

/// Bytes for GUIDs and disk signatures, from the system.
fn random() -> Result<[u8; 16], EditError> {
    let mut bytes = [0; 16];
    let source = std::fs::File::open("/dev/urandom");
    source
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(EditError::Random)?;
    Ok(bytes)
}
