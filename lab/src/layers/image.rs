//! A sparse image of 1 TiB with 128 GPT partitions, made by our own writer: how long it takes to
//! open it, taste it and list its providers, and how much is read for that.

use super::names;
use super::stacks::{self, Mode, made};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use ugeom_classes::Target;
use ugeom_format::Media;
use ugeom_format::plan::{Create, NewPart, Scheme, Table};
use ugeom_harness::HarnessError;
use ugeom_harness::figure::{Figure, Goal, Unit};
use ugeom_harness::{Case, RunResult};
use ugeom_machine::clock;
use ugeom_measure::Interval;
use ugeom_stack::{Command, Statistics};

const IMAGE_BYTES: u64 = 1 << 40;
const PARTITIONS: u64 = 128;
const SECTOR_BYTES: u64 = 512;

/// Most bytes that tasting may read.
const READ_BYTES_GOAL: f64 = (1 << 20) as f64;

/// The image, in memory and without a name, so that nothing is left behind.
pub(super) struct Image {
    file: File,
}

impl Image {
    pub fn new() -> Result<Self, HarnessError> {
        let os = |operation| HarnessError::os("an image in memory", operation);
        let file: File = memfd_create("ugeom-image", MemfdFlags::CLOEXEC)
            .map_err(|errno| os("making it")(errno.into()))?
            .into();
        file.set_len(IMAGE_BYTES)
            .map_err(os("making it 1 TiB large"))?;
        for write in table()?.encode() {
            let offset = write.lba * SECTOR_BYTES;
            file.write_all_at(&write.data, offset)
                .map_err(os("writing its table"))?;
        }
        Ok(Self { file })
    }

    /// Opens and tastes it.
    fn open(&self) -> Result<Target, HarnessError> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let target = stacks::open(&path, Mode::direct(Statistics::Counts))?;
        let found = target.stack.tree().providers().count() as u64;
        if found != PARTITIONS + 1 {
            let problem = format!("of {PARTITIONS} partitions and the image {found} were found");
            return Err(made(&problem));
        }
        Ok(target)
    }

    /// How much tasting reads.
    pub fn read_bytes(&self) -> Result<Figure, HarnessError> {
        let target = self.open()?;
        let totals = target
            .stack
            .statistics(target.bottom)
            .map_err(HarnessError::stack)?;
        let read = totals.bytes[Command::Read as usize] as f64;
        let what = "bytes read for that list";
        let figure = Figure::plain("show.bytes", what, Unit::Bytes, Interval::exact(read, 0.95));
        Ok(figure.with_goal(Goal::Under(READ_BYTES_GOAL)))
    }

    /// The case: one iteration opens, tastes, lists and closes.
    pub fn case(self) -> Case<'static> {
        Case::new(names::SHOW, move |iterations| {
            let start_ns = clock::now_ns();
            for _ in 0..iterations {
                self.open()?;
            }
            Ok(RunResult::taking(clock::now_ns() - start_ns))
        })
    }
}

fn table() -> Result<Table, HarnessError> {
    let refused = |error: ugeom_format::plan::Error| made(&error.to_string());
    let media = Media {
        sector_size_bytes: SECTOR_BYTES as u32,
        sectors: IMAGE_BYTES / SECTOR_BYTES,
    };
    let create = Create {
        random: [0x5A; 16],
        ..Create::default()
    };
    let mut table = Table::create(Scheme::Gpt, media, &create).map_err(refused)?;
    // A little less than a 128th each, because the two copies of the table need room.
    let sectors = (media.sectors - 4096) / PARTITIONS;
    for number in 0..PARTITIONS {
        let part = NewPart {
            sectors: Some(sectors),
            kind: "freebsd-ufs".to_owned(),
            random: [number as u8 + 1; 16],
            ..NewPart::default()
        };
        table.add(&part).map_err(refused)?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_image_is_listed_from_a_small_part_of_it() {
        let image = Image::new().unwrap();
        let read = image.read_bytes().unwrap();
        assert!(
            (17_408.0..READ_BYTES_GOAL).contains(&read.interval.estimate),
            "{read:?}"
        );
        assert!((image.case().run)(1).unwrap().ns_total > 0);
    }
}
