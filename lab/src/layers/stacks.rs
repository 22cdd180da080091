//! The stacks that are measured: the memory disk with an MBR and a BSD label of our own writing,
//! and equal layers on one another.

use std::sync::Arc;
use ugeom_classes::target::TIME_ONE_IN;
use ugeom_classes::{Target, TargetOptions, open_target, registry};
use ugeom_format::Media;
use ugeom_format::plan::{Create, NewPart, Scheme, Table};
use ugeom_harness::HarnessError;
use ugeom_machine::mutex::Mutex;
use ugeom_stack::{
    Class, Delta, Dispatch, Plan, ProviderId, ProviderView, Slicers, Stack, StackKnobs, Statistics,
    TasteError, Taster,
};

/// The size of the memory disk, bytes: that of 2002.
pub(super) const MD_BYTES: u64 = 1 << 20;

/// The initial content of the memory disk below its tables: like the disk of 2002, it is
/// initialised, so that a read copies bytes that are there.
const FILLING: u8 = 0x5A;

/// Counts, and the time of one request in [`TIME_ONE_IN`].
pub(super) const TIME: Statistics = Statistics::Time {
    one_in: TIME_ONE_IN,
};

/// How a stack is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    pub dispatch: Dispatch,
    pub statistics: Statistics,
    pub slicers: Slicers,
}

impl Mode {
    /// Direct dispatch with these statistics. Every layer is called: its cost is the question.
    pub const fn direct(statistics: Statistics) -> Self {
        Self {
            dispatch: Dispatch::Direct,
            statistics,
            slicers: Slicers::Called,
        }
    }

    /// The same with fused slicers.
    pub const fn fused(statistics: Statistics) -> Self {
        Self {
            slicers: Slicers::Fused,
            ..Self::direct(statistics)
        }
    }

    pub fn options(self) -> TargetOptions {
        let Self {
            dispatch,
            statistics,
            slicers,
        } = self;
        TargetOptions {
            knobs: StackKnobs {
                dispatch,
                statistics,
                slicers,
                ..StackKnobs::default()
            },
            ..TargetOptions::default()
        }
    }
}

/// Opens a target in a mode.
pub(super) fn open(text: &str, mode: Mode) -> Result<Target, HarnessError> {
    open_target(text, &mode.options()).map_err(HarnessError::subject)
}

/// A memory disk with its slice and the raw partition of the slice's label.
pub(super) struct Labelled {
    pub stack: Stack,
    /// `md0`, `md0s1`, `md0s1c`: from the bottom up.
    pub chain: [ProviderId; 3],
}

/// The names of the chain.
pub(super) const CHAIN: [&str; 3] = ["md0", "md0s1", "md0s1c"];

/// Makes the memory disk and writes [`image`] to it.
pub(super) fn labelled(mode: Mode) -> Result<Labelled, HarnessError> {
    let target = open("md:1m", mode)?;
    let stack = target.stack;
    // With the handle of the writer gone, the classes taste again.
    write(&stack, target.bottom, &image()?)?;
    let mut chain = [target.bottom; 3];
    for (provider, name) in chain.iter_mut().zip(CHAIN) {
        *provider = stack.find(name).map_err(HarnessError::stack)?;
    }
    Ok(Labelled { stack, chain })
}

/// A disk of 1 MiB after what `fdisk -I` and `disklabel -r -w auto` did in 2002: one slice for all
/// of the disk, and in it a label with its raw partition.
pub(super) fn image() -> Result<Vec<u8>, HarnessError> {
    let mut image = vec![FILLING; MD_BYTES as usize];
    let disk = Media::of_512(MD_BYTES / 512);
    let mbr = table(Scheme::Mbr, disk, "freebsd")?;
    let slice = mbr.parts().into_iter().next();
    let slice = slice.ok_or_else(|| made("an MBR without a slice"))?;
    let label = table(
        Scheme::Bsd,
        Media {
            sectors: slice.sectors,
            ..disk
        },
        "freebsd-ufs",
    )?;
    for (table, first) in [(&mbr, 0), (&label, slice.start)] {
        for write in table.encode() {
            let offset = ((first + write.lba) * 512) as usize;
            let place = image.get_mut(offset..offset + write.data.len());
            place
                .ok_or_else(|| made("a table past the end"))?
                .copy_from_slice(&write.data);
        }
    }
    Ok(image)
}

/// A new table with one partition for all of the media.
fn table(scheme: Scheme, media: Media, kind: &str) -> Result<Table, HarnessError> {
    let refused = |error: ugeom_format::plan::Error| made(&error.to_string());
    let mut table = Table::create(scheme, media, &Create::default()).map_err(refused)?;
    let part = NewPart {
        kind: kind.to_owned(),
        ..NewPart::default()
    };
    table.add(&part).map_err(refused)?;
    Ok(table)
}

/// Something of our own making that does not work.
pub(super) fn made(problem: &str) -> HarnessError {
    HarnessError::stack(ugeom_stack::StackError::Invalid(problem.to_owned()))
}

/// Writes from the beginning of a provider.
fn write(stack: &Stack, provider: ProviderId, data: &[u8]) -> Result<(), HarnessError> {
    let opened = stack
        .open(provider, Delta::READ_WRITE)
        .map_err(HarnessError::stack)?;
    let failed = |source| HarnessError::request("setting up".to_owned(), source);
    stack
        .channel(1)
        .map_err(HarnessError::stack)?
        .write(&opened, 0, data)
        .map(drop)
        .map_err(failed)
}

/// Equal layers on one another over a memory disk: the provider at index N has N layers below it.
pub(super) struct Levels {
    pub stack: Stack,
    pub levels: Vec<ProviderId>,
}

/// `nop` layers on one another; with `hook`, each has a completion hook.
pub(super) fn nops(depth: usize, hook: bool, mode: Mode) -> Result<Levels, HarnessError> {
    let layer = if hook { " | nop:hook=1" } else { " | nop" };
    let target = open(&format!("md:1m{}", layer.repeat(depth)), mode)?;
    let stack = target.stack;
    let level = |count: usize| stack.find(&format!("md0{}", ".nop".repeat(count)));
    let levels: Vec<ProviderId> = (0..=depth)
        .map(level)
        .collect::<Result<_, _>>()
        .map_err(HarnessError::stack)?;
    write(&stack, target.bottom, &vec![FILLING; MD_BYTES as usize])?;
    Ok(Levels { stack, levels })
}

/// Slicers on one another: geoms of the class MBR. Such tables do not nest by themselves, so the
/// plan of each is taken from the class and put on the one before.
pub(super) fn slicers(depth: usize, mode: Mode) -> Result<Levels, HarnessError> {
    let disk = labelled(mode)?;
    let Labelled {
        stack,
        chain: [md, slice, _],
    } = disk;
    let slice = view(&stack, slice)?;
    let media_bytes = view(&stack, md)?.mediasize_bytes;
    let base_bytes = media_bytes - slice.mediasize_bytes;
    if base_bytes * (depth as u64 + 1) >= media_bytes {
        return Err(made("so many slicers do not fit the memory disk"));
    }
    let mut levels = vec![md];
    for level in 1..=depth {
        let mut plan = captured(&stack, md)?;
        plan.name = format!("slicer{level}");
        plan.providers.truncate(1);
        let Some(provider) = plan.providers.first_mut() else {
            return Err(made("the class MBR made no provider"));
        };
        provider.name = format!("slicer{level}");
        provider.mediasize_bytes = media_bytes - level as u64 * base_bytes;
        let top = levels[level - 1];
        let made_here = stack
            .create("MBR", plan, &[top])
            .map_err(HarnessError::stack)?;
        levels.extend(made_here.first());
    }
    Ok(Levels { stack, levels })
}

fn view(stack: &Stack, provider: ProviderId) -> Result<ProviderView, HarnessError> {
    let tree = stack.tree();
    let view = tree.providers().find(|view| view.id == provider).cloned();
    view.ok_or_else(|| made("a provider that was just there is gone"))
}

/// The plan that the class MBR makes for a provider, instead of the geom that would follow.
fn captured(stack: &Stack, provider: ProviderId) -> Result<Plan, HarnessError> {
    let capture = Arc::new(Capture::default());
    let class: Arc<dyn Class> = Arc::<Capture>::clone(&capture);
    stack
        .taste_with(provider, &class)
        .map_err(HarnessError::stack)?;
    let plan = capture.plan.lock().take();
    plan.ok_or_else(|| made("the class MBR does not know its own table"))
}

/// A class that tastes like MBR and keeps the plan for itself.
#[derive(Default)]
struct Capture {
    plan: Mutex<Option<Plan>>,
}

impl Class for Capture {
    fn name(&self) -> &'static str {
        "CAPTURE"
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        let mbr = registry::find("mbr").map_or(Ok(None), |mbr| mbr.taste(taster));
        let plan = mbr?;
        *self.plan.lock() = plan;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stack: &Stack, provider: ProviderId) -> Vec<u8> {
        read_at(stack, provider, 0)
    }

    fn read_at(stack: &Stack, provider: ProviderId, offset: u64) -> Vec<u8> {
        let opened = stack.open(provider, Delta::READ).unwrap();
        let mut sector = vec![0; 512];
        let got = stack.channel(1).unwrap().read(&opened, offset, &mut sector);
        assert_eq!(got.unwrap(), 512);
        sector
    }

    #[test]
    fn the_chain_reads_what_lies_where_its_tables_say() {
        let Labelled { stack, chain } = labelled(Mode::direct(Statistics::Counts)).unwrap();
        let image = image().unwrap();
        let slice = 63 * 512;
        assert_eq!(read(&stack, chain[0]), image[..512]);
        assert_eq!(read(&stack, chain[1]), image[slice..slice + 512]);
        assert_eq!(
            read(&stack, chain[2]),
            [FILLING; 512],
            "initialised, as in 2002"
        );
        assert!(stack.taste_errors().is_empty());
    }

    #[test]
    fn each_slicer_moves_a_read_further() {
        let Levels { stack, levels } = slicers(8, Mode::direct(Statistics::Off)).unwrap();
        assert_eq!(levels.len(), 9);
        // Written through the top, it is found from each level where that level's slicers put it.
        write(&stack, levels[8], &[0xC3; 512]).unwrap();
        for (level, provider) in levels.iter().enumerate() {
            let offset = (8 - level as u64) * 63 * 512;
            assert_eq!(
                read_at(&stack, *provider, offset),
                [0xC3; 512],
                "level {level}"
            );
        }
        let tree = stack.tree();
        let is_slicer =
            |geom: &&ugeom_stack::GeomView| geom.class == "MBR" && geom.name.starts_with("slicer");
        assert_eq!(tree.geoms.iter().filter(is_slicer).count(), 8);
        assert!(
            super::slicers(40, Mode::direct(Statistics::Off)).is_err(),
            "1 MiB is too small"
        );
    }

    #[test]
    fn nops_on_one_another_reach_the_disk() {
        for hook in [false, true] {
            let nops = super::nops(3, hook, Mode::direct(Statistics::Counts)).unwrap();
            let top = *nops.levels.last().unwrap();
            assert_eq!(read(&nops.stack, top), [FILLING; 512]);
            let totals = nops.stack.statistics(nops.levels[0]).unwrap();
            assert!(totals.operations[ugeom_stack::Command::Read as usize] > 0);
        }
    }
}
