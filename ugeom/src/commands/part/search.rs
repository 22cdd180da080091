//! `ugeom part search`: lost partitions, by their remains.

use crate::commands::part::logical::{self, FoundGroup};
use crate::failure::{Interrupted, Reported};
use crate::opening::{self, TargetArgs};
use crate::output::{self, Paint, Table};
use crate::progress::Progress;
use crate::transfer::Geometry;
use crate::transfer::stretches::Stretches;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::ops::Range;
use std::sync::atomic::Ordering;
use ugeom_format::content::{self, Content};
use ugeom_format::ddrescue::{Map, Status};
use ugeom_format::plan::human_size;
use ugeom_format::search::{Lost, ScriptScheme, Search, gpart_script, sfdisk_script};
use ugeom_machine::interrupt;
use ugeom_stack::{Channel, Delta, IoError, Opened};

/// The largest single read.
const PIECE_BYTES: u64 = 1 << 20;
/// The size of a sample, bytes: a structure there, up to its superblock.
const SAMPLE_BYTES: u64 = 128 << 10;
/// Most samples: each may cost a seek.
const MOST_SAMPLES: usize = 2048;

const LONG_ABOUT: &str = "\
Searches a medium for partitions, listed in a table or not: by superblocks of file systems (ext, \
XFS, btrfs, F2FS, UFS, HFS+, NTFS, FAT, exFAT and others) and by the copies of these elsewhere, by \
swap space, LUKS, LVM2, MD RAID, and by copies of GPTs. Nothing is written.

It reads the usual first sectors of partitions first (multiples of 1 MiB and of a cylinder, the \
ends of what was found), then every sector, at the speed of the device. Ctrl-C ends the search and \
prints what was found. The exit code is 1 if sectors could not be read: partitions may be missing.

The logical volumes of a physical volume of LVM2 are listed with their places, if they are linear: \
`disk.img | nop:offset=OFFSET,size=BYTES` is such a volume.

The partitions that do not overlap form a table, which --format prints as text for sfdisk or for \
`ugeom part restore`, with the names, GUIDs and attributes of GPT entries. Check it, and write it \
to a copy of the disk first.";

const EXAMPLES: &str = "\
Examples:
  ugeom part search disk.img
  ugeom part search --quick /dev/sdb          # usual first sectors only
  ugeom part search --format gpart disk.img > table
  ugeom part restore -l --uuids copy.img < table
  ugeom part search --format sfdisk disk.img | sfdisk copy.img";

/// Search for lost partitions and offer a table
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct SearchPart {
    #[command(flatten)]
    target: TargetArgs,

    /// Search only the usual first sectors of partitions
    #[arg(long)]
    quick: bool,

    /// Print the table as text for this program
    #[arg(long, value_enum, conflicts_with = "json")]
    format: Option<Format>,

    /// Scheme of the offered table: gpt or mbr [default: gpt if its copies fit, else mbr]
    #[arg(short = 's', long, value_enum)]
    scheme: Option<Offered>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A script for sfdisk
    Sfdisk,
    /// As `gpart backup` prints it
    Gpart,
}

#[derive(Clone, Copy, ValueEnum)]
enum Offered {
    Gpt,
    Mbr,
}

/// The medium, with its unreadable ranges.
struct Medium<'a> {
    channel: Channel,
    opened: &'a Opened,
    size_bytes: u64,
    sector: u64,
    /// The unreadable sectors, as `Bad`.
    unread: Map,
    error: Option<IoError>,
    /// Not every sector is read in the end.
    quick: bool,
    piece: Vec<u8>,
}

impl Medium<'_> {
    /// Any bytes, read in whole sectors; fewer at the end of the medium.
    fn bytes(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, IoError> {
        let end = offset.saturating_add(length as u64).min(self.size_bytes);
        let first = offset / self.sector * self.sector;
        let after = end.next_multiple_of(self.sector).min(self.size_bytes);
        let mut bytes = vec![0; after.saturating_sub(first) as usize];
        let read = self.channel.read(self.opened, first, &mut bytes);
        if read.is_err() && self.quick {
            self.find_unread(first..after);
        }
        let read = read?;
        bytes.truncate(read);
        let skip = ((offset - first) as usize).min(bytes.len());
        let mut bytes = bytes.split_off(skip);
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Examines a range of whole sectors; unreadable ones are left out.
    fn look(&mut self, search: &mut Search, offset: u64, length: u64) {
        // One buffer for all: a new one for each piece costs more than the search.
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(PIECE_BYTES as usize, 0);
        let read = self
            .channel
            .read(self.opened, offset, &mut piece[..length as usize]);
        if let Ok(read) = read {
            search.look(offset, &piece[..read], &mut |at, length| {
                self.bytes(at, length).map_err(|error| error.to_string())
            });
        }
        self.piece = piece;
        match read {
            Ok(_) => {}
            Err(_) if length > self.sector => {
                let half = (length / 2).next_multiple_of(self.sector);
                self.look(search, offset, half);
                self.look(search, offset + half, length - half);
            }
            Err(error) => self.is_unread(offset..offset + length, error),
        }
    }

    /// Finds the sectors of a range that cannot be read, unless some of it are known.
    fn find_unread(&mut self, place: Range<u64>) {
        let mut known = self.unread.with(Status::Bad).into_iter();
        if known.any(|bad| bad.start < place.end && place.start < bad.end) {
            return;
        }
        let mut sector = vec![0; self.sector as usize];
        for offset in place.step_by(sector.len()) {
            if let Err(error) = self.channel.read(self.opened, offset, &mut sector) {
                self.is_unread(offset..offset + self.sector, error);
            }
        }
    }

    fn is_unread(&mut self, place: Range<u64>, error: IoError) {
        self.unread.set(place, Status::Bad);
        self.error.get_or_insert(error);
    }

    fn unread_bytes(&self) -> u64 {
        self.unread.bytes(Status::Bad)
    }

    /// Names the gaps of the list.
    ///
    /// # Errors
    /// `Interrupted`, or `Reported` if sectors could not be read.
    fn judge(&self, name: &str, complete: bool, search: &Search) -> Result<()> {
        let name = output::printable(name);
        for (holds, sectors) in search.unexamined() {
            output::warn(&format!(
                "{name} repeats the magic number of {}: {sectors} sectors with it were not \
                 examined, so the list may be incomplete",
                holds.name()
            ));
        }
        if search.overflowed() {
            output::warn(&format!(
                "{name} has too many superblocks: the list is incomplete"
            ));
        }
        if let Some(error) = &self.error {
            let unread = self.unread_bytes();
            let error = output::printable(&error.to_string());
            output::complain(&format!(
                "{unread} bytes of {name} could not be read, so the list may be incomplete: {error}"
            ));
        }
        match (complete, &self.error) {
            (false, _) => Err(Interrupted("the search ended early".to_owned()).into()),
            (true, Some(_)) => Err(Reported.into()),
            (true, None) => Ok(()),
        }
    }
}

/// The output of --json.
#[derive(Serialize)]
struct Report<'a> {
    provider: &'a str,
    sectorsize_bytes: u32,
    sectors: u64,
    /// The search went over the whole medium.
    complete: bool,
    unread_bytes: u64,
    /// Sectors with the magic number of a structure that were not examined: there are too many.
    unexamined_sectors: u64,
    partitions: Vec<Found<'a>>,
}

#[derive(Serialize)]
struct Found<'a> {
    start_sector: u64,
    sectors: u64,
    /// The evidence: `ext`, `GPT entry`.
    holds: &'static str,
    /// The content recognised there now.
    content: Option<String>,
    /// UUID or serial number of the first of that.
    uuid: Option<&'a str>,
    label: Option<&'a str>,
    type_guid: Option<String>,
    /// GUID of the entry of a GPT.
    part_guid: Option<String>,
    /// The end is that of the free space.
    guessed_end: bool,
    /// It reaches past the end of the medium.
    cut: bool,
    /// First sector of the offered partition that it lies over.
    over: Option<u64>,
    signs: Vec<FoundSign>,
    sign_count: usize,
    /// The volume group of a physical volume of LVM2.
    group: Option<&'a FoundGroup>,
}

#[derive(Serialize)]
struct FoundSign {
    what: &'static str,
    offset_bytes: u64,
}

impl SearchPart {
    pub fn run(&self) -> Result<()> {
        let target = self.target.open()?;
        let provider = opening::top(&target)?;
        let opened = target.stack.open(target.top, Delta::READ)?;
        let sector = provider.sectorsize_bytes;
        let mut medium = Medium {
            channel: target.stack.channel(1)?,
            opened: &opened,
            size_bytes: provider.mediasize_bytes,
            sector: u64::from(sector.max(1)),
            unread: Map::new(0..provider.mediasize_bytes),
            error: None,
            quick: self.quick,
            piece: Vec::new(),
        };
        let mut search = Search::new(provider.mediasize_bytes, sector);
        let geometry = Geometry::of(&provider);
        let mut stretches = Stretches::new(target.stack.channel(1)?, &opened, geometry);
        let complete = self.go_over(&mut medium, &mut stretches, &mut search)?;
        search.read_groups(&mut |offset, length| {
            let read = medium.bytes(offset, length);
            read.map_err(|error| error.to_string())
        });
        let mut lost = search.partitions();
        let sectors = provider.mediasize_bytes / medium.sector;
        let scheme = match self.scheme {
            Some(Offered::Gpt) => ScriptScheme::Gpt,
            Some(Offered::Mbr) => ScriptScheme::Mbr,
            None => ScriptScheme::fitting(&lost, sectors, sector),
        };
        scheme.shorten(&mut lost, sectors, sector);
        let contents: Vec<Vec<Content>> = lost
            .iter()
            .map(|one| content_of(&mut medium, one))
            .collect();
        let groups = logical::groups(search.physical_volumes(), &mut |offset, length| {
            let read = medium.bytes(offset, length);
            read.map_err(|error| error.to_string())
        });
        self.warn_of_left_out(scheme, &lost);
        if self.json {
            output::print_json(&Report {
                provider: &provider.name,
                sectorsize_bytes: sector,
                sectors,
                complete: complete && !self.quick,
                unread_bytes: medium.unread_bytes(),
                unexamined_sectors: search.unexamined().map(|(_, sectors)| sectors).sum(),
                partitions: lost
                    .iter()
                    .zip(&contents)
                    .map(|(one, contents)| found(one, contents, &groups))
                    .collect(),
            })?;
        } else {
            output::print(&match self.format {
                Some(Format::Sfdisk) => sfdisk_script(&lost, scheme, sector),
                Some(Format::Gpart) => gpart_script(&lost, scheme),
                None => {
                    let table = listing(&lost, &contents, medium.sector);
                    table + &logical::listing(&groups)
                }
            })?;
            self.remark_next_steps(&lost, medium.sector);
        }
        medium.judge(&provider.name, complete, &search)
    }

    /// The commands that copy the finds, or make the table.
    fn remark_next_steps(&self, lost: &[Lost], sector_bytes: u64) {
        let Some(first) = lost.first().filter(|_| self.format.is_none()) else { return };
        let (offset, size) = (first.place.start_bytes, first.sectors * sector_bytes);
        output::remark(&output::printable(&format!(
            "ugeom read '{} | nop:offset={offset},size={size}' copies the first one; \
             --format gpart prints the table for `ugeom part restore`",
            self.target.target
        )));
    }

    /// A table that lacks partitions is not taken for the whole.
    fn warn_of_left_out(&self, scheme: ScriptScheme, lost: &[Lost]) {
        let Some(format) = self.format else { return };
        let left_out = scheme.left_out(lost, format == Format::Sfdisk);
        if left_out > 0 {
            let help = match (scheme, format) {
                (ScriptScheme::Mbr, Format::Gpart) => {
                    ": an MBR has four; --format sfdisk makes logical ones, -s gpt has more"
                }
                (ScriptScheme::Mbr, Format::Sfdisk) => {
                    ": without a free sector before them they cannot be logical, -s gpt has more"
                }
                (ScriptScheme::Gpt, _) => "",
            };
            output::warn(&format!(
                "the table has no place for {left_out} of the found partitions{help}"
            ));
        }
    }

    /// Samples first, then everything; false when Ctrl-C ended it.
    fn go_over(
        &self,
        medium: &mut Medium<'_>,
        stretches: &mut Stretches<'_>,
        search: &mut Search,
    ) -> Result<bool> {
        let stop = interrupt::catch().context("listening for Ctrl-C")?;
        let mut looked = std::collections::BTreeSet::new();
        let mut samples = search.samples(MOST_SAMPLES);
        while !samples.is_empty() {
            for offset in samples {
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                let length = SAMPLE_BYTES.min(medium.size_bytes - offset);
                medium.look(search, offset, length);
                looked.insert(offset);
            }
            samples = search.ends();
            samples.retain(|end| !looked.contains(end));
            if looked.len() > 2 * MOST_SAMPLES {
                break;
            }
        }
        if self.quick {
            return Ok(true);
        }
        // The samples are read again.
        let all = Map::new(0..medium.size_bytes);
        let of_samples = std::mem::replace(&mut medium.unread, all);
        let mut progress = Progress::new(Some(medium.size_bytes));
        let mut offset = 0;
        while offset < medium.size_bytes {
            if stop.load(Ordering::Relaxed) {
                for bad in of_samples.with(Status::Bad) {
                    medium.unread.set(bad, Status::Bad);
                }
                return Ok(false);
            }
            let (hole, end) = stretches.at(&(offset..medium.size_bytes));
            if hole {
                offset = end;
                continue;
            }
            let length = PIECE_BYTES.min(medium.size_bytes - offset);
            medium.look(search, offset, length);
            offset += length;
            progress.at(offset);
        }
        Ok(true)
    }
}

/// The content recognised at the start of a partition.
fn content_of(medium: &mut Medium<'_>, lost: &Lost) -> Vec<Content> {
    let start = lost.place.start_bytes;
    let length = lost.sectors * medium.sector;
    let identified = content::identify(length, &mut |offset, wanted| {
        let read = medium.bytes(start + offset, wanted);
        read.map_err(|error| error.to_string())
    });
    identified.contents
}

fn found<'a>(lost: &'a Lost, contents: &'a [Content], groups: &'a [FoundGroup]) -> Found<'a> {
    let place = &lost.place;
    let label = place.entry.as_ref().map(|entry| entry.label.as_str());
    Found {
        start_sector: lost.first,
        sectors: lost.sectors,
        holds: place.holds.name(),
        content: crate::contents::cell(contents),
        uuid: contents.iter().find_map(|content| content.uuid.as_deref()),
        label: label.filter(|label| !label.is_empty()),
        type_guid: place.entry.as_ref().map(|entry| entry.kind.to_string()),
        part_guid: place.entry.as_ref().map(|entry| entry.uuid.to_string()),
        guessed_end: lost.guessed_end,
        cut: lost.cut,
        over: lost.over,
        signs: place
            .signs
            .iter()
            .map(|sign| FoundSign {
                what: sign.what,
                offset_bytes: sign.offset_bytes,
            })
            .collect(),
        sign_count: place.sign_count,
        group: groups.iter().find(|one| one.is_on(lost)),
    }
}

fn listing(lost: &[Lost], contents: &[Vec<Content>], sector: u64) -> String {
    const HEADINGS: [&str; 6] = ["START", "SECTORS", "SIZE", "CONTENT", "FOUND BY", "NOTE"];
    let mut table = Table::new(&HEADINGS, &[true, true, true, false, false, false]);
    for (one, content) in lost.iter().zip(contents) {
        let place = &one.place;
        let signs = match (place.signs.first(), place.sign_count) {
            (Some(sign), 1) => sign.what.to_owned(),
            (_, count) => format!("{count} structures"),
        };
        let note = match one {
            Lost {
                over: Some(other), ..
            } => format!("overlaps the one at {other}: omitted"),
            Lost { cut: true, .. } => "reaches past the end".to_owned(),
            Lost {
                guessed_end: true, ..
            } => "its end is estimated".to_owned(),
            _ => String::new(),
        };
        let content =
            crate::contents::cell(content).unwrap_or_else(|| place.holds.name().to_owned());
        table.row(vec![
            one.first.to_string(),
            one.sectors.to_string(),
            human_size(one.sectors.saturating_mul(sector)),
            output::printable(&content),
            signs,
            note,
        ]);
    }
    match lost.is_empty() {
        true => "nothing was found\n".to_owned(),
        false => table.render(Paint::of_stdout()),
    }
}
