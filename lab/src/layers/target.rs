//! The cases of the experiment with a target: its providers along the deepest chain, and where the
//! target is a file or a disk, the same bytes by plain calls.

use super::memory::{self, QUEUED};
use super::names;
use super::stacks::{self, Mode, TIME};
use super::subject::{Disk, Link, Subject, layers};
use super::{LayersOptions, Matrix, through};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ugeom_classes::spec::{self, FILE_CLASS, Opt, Span, Spanned};
use ugeom_classes::{Target, TargetOptions, open_target, path_of, registry};
use ugeom_harness::Case;
use ugeom_harness::HarnessError;
use ugeom_load::cases;
use ugeom_load::devices::KernelDevice;
use ugeom_load::start::Cores;
use ugeom_load::tst::READ_BYTES;
use ugeom_stack::{Channel, Delta, GeomView, ProviderId, ProviderView, Stack, Statistics, Tree};

/// The sizes of reads, bytes, as far as the media reaches.
const SIZES_BYTES: [u64; 3] = [4 << 10, 64 << 10, 128 << 10];

/// All cases and their subjects.
pub(super) fn matrix(text: &str, options: &LayersOptions) -> Result<Matrix, HarnessError> {
    let target = stacks::open(text, Mode::direct(Statistics::Counts))?;
    let chain = Chain::of(&target)?;
    let subject = chain.subject(text, options);
    let mut matrix = Matrix {
        cases: Vec::new(),
        subject,
        figures: Vec::new(),
    };
    for name in [names::ZERO, names::ZERO_AGAIN] {
        matrix.cases.push(cases::calling(
            name,
            Path::new("/dev/zero"),
            READ_BYTES as u64,
        )?);
    }
    chain.cases(&target, &mut matrix)?;
    beside(text, &chain, &mut matrix);
    let deepest = matrix.subject.deepest().to_owned();
    through(&mut matrix, &options.servers, &target.stack, &deepest);
    memory::floors(&mut matrix);
    Ok(matrix)
}

/// Providers from the bottom to the deepest, each with the class of its geom.
struct Chain {
    links: Vec<(ProviderView, &'static str)>,
    /// The file below, if there is one.
    file: Option<PathBuf>,
    /// Whether that is a block device, which only one stack can have for itself.
    block_device: bool,
    read_bytes: u64,
}

impl Chain {
    fn of(target: &Target) -> Result<Self, HarnessError> {
        let tree = target.stack.tree();
        let mut links = Vec::new();
        let mut trial = Trial::new(target)?;
        let mut at = Some(deepest(&tree, target.top, 0, &mut trial).1);
        while let Some((view, geom)) = at.and_then(|id| provider(&tree, id)) {
            links.push((view.clone(), geom.class));
            at = geom
                .consumers
                .first()
                .and_then(|consumer| consumer.provider);
        }
        links.reverse();
        let sectors = links
            .iter()
            .map(|(view, _)| u64::from(view.sectorsize_bytes));
        let read_bytes = sectors.max().unwrap_or(0).max(READ_BYTES as u64);
        let bottom = links
            .first()
            .ok_or_else(|| stacks::made("the target has no provider"))?;
        let file = (bottom.1 == "FILE")
            .then(|| file_below(&tree, bottom.0.id))
            .flatten();
        let block_device = bottom.0.fact("type") == Some("block device");
        Ok(Self {
            links,
            file,
            block_device,
            read_bytes,
        })
    }

    fn subject(&self, text: &str, options: &LayersOptions) -> Subject {
        let classes: Vec<&str> = self.links.iter().map(|(_, class)| *class).collect();
        let link = |(index, (view, class)): (usize, &(ProviderView, &'static str))| Link {
            provider: view.name.clone(),
            class: (*class).to_owned(),
            layers: layers(&classes[..=index]),
            plain: index == 0 && self.file.is_some(),
        };
        let reach = self
            .links
            .iter()
            .map(|(view, _)| view.mediasize_bytes)
            .min()
            .unwrap_or(0);
        let fits = |size: &u64| *size > self.read_bytes && *size <= reach;
        Subject {
            target: Some(text.to_owned()),
            chain: self.links.iter().enumerate().map(link).collect(),
            read_bytes: self.read_bytes,
            sizes_bytes: SIZES_BYTES.into_iter().filter(fits).collect(),
            depths: vec![0, 1, 2, 4, 8],
            faithful: options.faithful,
            all: options.common.full,
            disk: Disk::assumed(),
            through: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Reads along the chain, and larger ones at both ends.
    fn cases(&self, target: &Target, matrix: &mut Matrix) -> Result<(), HarnessError> {
        let stack = &target.stack;
        for (index, (view, _)) in self.links.iter().enumerate() {
            let name = names::direct(&view.name);
            matrix.reading(&name, stack, view.id, self.read_bytes)?;
            if index == 0 {
                let again = names::direct_again(&view.name);
                matrix.reading(&again, stack, view.id, self.read_bytes)?;
            }
        }
        for size in matrix.subject.sizes_bytes.clone() {
            for (view, _) in self.ends() {
                let name = names::sized(&view.name, size);
                matrix.reading(&name, stack, view.id, size)?;
            }
        }
        if let Some(file) = &self.file {
            let name = names::plain(matrix.subject.bottom());
            matrix
                .cases
                .push(cases::calling(&name, file, self.read_bytes)?);
        }
        Ok(())
    }

    /// The bottom and, if it is another, the deepest.
    fn ends(&self) -> impl Iterator<Item = &(ProviderView, &'static str)> {
        let last = (self.links.len() > 1).then(|| self.links.last()).flatten();
        self.links.first().into_iter().chain(last)
    }
}

/// The cases that need a separate stack. A device that cannot be opened twice goes without, with a
/// warning.
fn beside(text: &str, chain: &Chain, matrix: &mut Matrix) {
    let (bottom, deepest) = (
        matrix.subject.bottom().to_owned(),
        matrix.subject.deepest().to_owned(),
    );
    let read_bytes = chain.read_bytes;
    let text = &if chain.block_device {
        shared(text)
    } else {
        text.to_owned()
    };
    let reading = |name: &str, mode: TargetOptions, provider: &str| {
        let target = open_target(text, &mode).map_err(HarnessError::subject)?;
        let id = target.stack.find(provider).map_err(HarnessError::stack)?;
        Ok((
            cases::reading(name, &target.stack, id, read_bytes)?,
            target,
            id,
        ))
    };
    let mut add = |what: &str, made: Result<Vec<Case<'static>>, HarnessError>| match made {
        Ok(cases) => matrix.cases.extend(cases),
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default();
            matrix.subject.left_out.push(format!("{what} ({reason})"));
        }
    };
    let queued = reading(&names::queued(&bottom), QUEUED.options(), &bottom).and_then(|first| {
        let (case, target, _) = first;
        let id = target.stack.find(&deepest).map_err(HarnessError::stack)?;
        let two = names::queued_two(&deepest);
        let mut cases = vec![
            case,
            cases::reading_by((2, Cores::Any), &two, &target.stack, id, read_bytes)?,
        ];
        if deepest != bottom {
            let name = names::queued(&deepest);
            cases.push(cases::reading(&name, &target.stack, id, read_bytes)?);
        }
        Ok(cases)
    });
    add("queued dispatch", queued);
    for (name, level) in [
        (names::STATISTICS_OFF, Statistics::Off),
        (names::STATISTICS_TIME, TIME),
    ] {
        let case = reading(name, Mode::direct(level).options(), &deepest);
        add("a level of statistics", case.map(|(case, ..)| vec![case]));
    }
    if chain.file.is_some() {
        let direct = TargetOptions {
            direct: true,
            ..TargetOptions::default()
        };
        add(
            "the disk's own time",
            disk(text, chain, direct, &bottom).map(|case| vec![case]),
        );
    }
}

/// The bottom of the target read directly (O_DIRECT), with the counters of its device.
fn disk(
    text: &str,
    chain: &Chain,
    mode: TargetOptions,
    bottom: &str,
) -> Result<Case<'static>, HarnessError> {
    let target = open_target(text, &mode).map_err(HarnessError::subject)?;
    let id = target.stack.find(bottom).map_err(HarnessError::stack)?;
    let step = cases::DIRECT_STEP_BYTES;
    let bytes = chain.read_bytes;
    let case = cases::reading_in_steps(step, names::DISK, &target.stack, id, bytes)?;
    let device = chain.file.as_deref().and_then(KernelDevice::below);
    Ok(match device {
        Some(device) => case.observing(Arc::new(device)),
        None => case,
    })
}

/// The target once more, beside the stack that has its device for itself: that is ours.
fn shared(text: &str) -> String {
    let names = registry::names();
    let Ok(mut target) = spec::parse(text, &names) else {
        return text.to_owned();
    };
    let word = |text: &str| Spanned {
        value: text.to_owned(),
        span: Span::default(),
    };
    if let Some(bottom) = target.layers.first_mut()
        && bottom.class.value == FILE_CLASS
        && !bottom
            .options
            .iter()
            .any(|option| option.key.value == "shared")
    {
        bottom.options.push(Opt {
            key: word("shared"),
            value: word("1"),
        });
    }
    target.to_string()
}

fn provider(tree: &Tree, id: ProviderId) -> Option<(&ProviderView, &GeomView)> {
    let view = tree.providers().find(|view| view.id == id)?;
    Some((view, tree.geom(view.geom)?))
}

/// The provider at the end of the longest chain upwards, and how many steps away it is. Providers
/// whose beginning cannot be read are passed over: those that are gone, too small, or cut off.
fn deepest(tree: &Tree, from: ProviderId, steps: usize, trial: &mut Trial) -> (usize, ProviderId) {
    let mut best = (steps, from);
    for geom in tree.above(from) {
        for view in geom.providers.iter() {
            if !trial.is_readable(view) {
                continue;
            }
            let found = deepest(tree, view.id, steps + 1, trial);
            // The first of equals: `s1` rather than `s2`.
            if found.0 > best.0 {
                best = found;
            }
        }
    }
    best
}

/// Tries to read providers.
struct Trial {
    stack: Stack,
    channel: Channel,
}

impl Trial {
    fn new(target: &Target) -> Result<Self, HarnessError> {
        Ok(Self {
            stack: target.stack.clone(),
            channel: target.stack.channel(1).map_err(HarnessError::stack)?,
        })
    }

    fn is_readable(&mut self, view: &ProviderView) -> bool {
        let one_read = u64::from(view.sectorsize_bytes).max(READ_BYTES as u64);
        let mut buffer = vec![0; one_read as usize];
        self.stack.open(view.id, Delta::READ).is_ok_and(|opened| {
            let got = self.channel.read(&opened, 0, &mut buffer);
            got.is_ok_and(|got| got as u64 == one_read)
        })
    }
}

/// The path of the file that a provider of the class FILE shows.
fn file_below(tree: &Tree, id: ProviderId) -> Option<PathBuf> {
    let (view, geom) = provider(tree, id)?;
    let facts = view.config.iter().chain(&geom.config);
    let path = facts
        .into_iter()
        .find(|(key, _)| ["file", "path"].contains(key))?;
    Some(path_of(&path.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(text: &str) -> Chain {
        let target = stacks::open(text, Mode::direct(Statistics::Counts)).unwrap();
        Chain::of(&target).unwrap()
    }

    #[test]
    fn the_chain_goes_from_the_bottom_to_the_deepest_provider() {
        let names = |text: &str| {
            let chain = chain(text);
            chain
                .links
                .iter()
                .map(|(view, _)| view.name.clone())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(names("md:1m"), "md0");
        assert_eq!(names("md:1m | nop | nop"), "md0 md0.nop md0.nop.nop");
        assert_eq!(chain("md:1m,sectorsize=4096 | nop").read_bytes, 4096);
    }

    #[test]
    fn a_device_that_is_ours_is_opened_beside_us() {
        assert_eq!(shared("/dev/sda | nop"), "/dev/sda?shared=1 | nop");
        assert_eq!(
            shared("/dev/sda?direct=1@s1"),
            "/dev/sda?direct=1&shared=1@s1"
        );
        assert_eq!(shared("md:1m | nop"), "md:1m | nop");
    }

    #[test]
    fn a_provider_that_cannot_be_read_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("short.img");
        let image = stacks::image().unwrap();
        let links = |sectors: usize| {
            std::fs::write(&path, &image[..sectors * 512]).unwrap();
            chain(&path.display().to_string()).links.len()
        };
        assert_eq!(links(63), 1, "the slice begins past the end");
        assert_eq!(links(70), 3, "its beginning is there, and it is marked");
    }

    #[test]
    fn sizes_stop_where_the_media_ends() {
        let small = chain("md:64k | nop").subject("md:64k | nop", &LayersOptions::default());
        assert_eq!(small.sizes_bytes, [4 << 10, 64 << 10]);
        assert_eq!(small.chain[1].layers, "dev, nop, disk");
        assert!(!small.chain[0].plain, "memory has no file below");
    }

    #[test]
    fn a_target_that_is_none_is_refused_with_its_column() {
        let error = matrix("md:64x", &LayersOptions::default())
            .err()
            .unwrap()
            .to_string();
        ugeom_testkit::has(&error, "--> column");
    }
}
