//! Obstacles to writing: a mount, a partition table, a file system, an image. Without `--destroy` a
//! command that writes stops here and names the content.

use anyhow::{Result, anyhow, bail};
use rustix::fs::{FileType, OFlags, SeekFrom};
use std::ops::Range;
use std::path::Path;
use ugeom_classes::eli;
use ugeom_classes::file::refuse_open_elsewhere;
use ugeom_classes::part::edit::{EditError, found};
use ugeom_classes::{Role, Target, TargetOptions, open_target, quoted_path, registry};
use ugeom_format::content::{Content, ContentUse};
use ugeom_machine::in_use::use_of;
use ugeom_stack::{Delta, GeomView, ProviderId, ProviderView, Tree};

/// The file or device that stdout is.
const STDOUT: &str = "/proc/self/fd/1";

/// Refuses a file or block device that the system has mounted, uses as swap, or has a loop device
/// over, or that another program has open. Targets are refused when they are opened for writing;
/// this is for paths that are written to without a stack.
pub fn refuse_in_use(path: &Path) -> Result<()> {
    refuse_use(path, &path.display().to_string())
}

/// The same of the file or device that stdout is.
pub fn refuse_stdout_in_use() -> Result<()> {
    refuse_use(Path::new(STDOUT), "stdout")
}

/// Refuses a file or block device on stdout with known content in the bytes that are written over.
///
/// # Errors
/// As [`refuse_content`].
pub fn refuse_content_of_stdout() -> Result<()> {
    const SECTOR_BYTES: u64 = 512;
    let stdout = std::io::stdout();
    let about = rustix::fs::fstat(&stdout)?;
    let writes_over = match FileType::from_raw_mode(about.st_mode) {
        FileType::BlockDevice => true,
        FileType::RegularFile => {
            let appends = rustix::fs::fcntl_getfl(&stdout)?.contains(OFlags::APPEND);
            let place = rustix::fs::seek(&stdout, SeekFrom::Current(0))?;
            let size = u64::try_from(about.st_size).unwrap_or_default();
            // What is shorter than a sector carries nothing.
            !appends && place < size && size >= SECTOR_BYTES
        }
        _ => false,
    };
    match std::fs::read_link(STDOUT) {
        Ok(path) if writes_over && path.exists() => refuse_content_of_path(&path),
        _ => Ok(()),
    }
}

fn refuse_use(path: &Path, name: &str) -> Result<()> {
    match use_of(path) {
        Some(found) => bail!("{name} {found}: free it first; nothing was written"),
        None => refuse_open_elsewhere(path, name)
            .map_err(|error| anyhow!("{error}; nothing was written")),
    }
}

/// Refuses a target that carries something, and one that is a window into something: every provider
/// on the way to the medium is looked at.
///
/// # Errors
/// The content, its provider and its place; or the error of reading.
pub fn refuse_content(target: &Target) -> Result<()> {
    refuse(&target.name, look(target, target.top)?)?;
    refuse_content_below(target)
}

/// The same for a path to which a command writes without a stack: of an image these are the bytes
/// of its file, not the disk inside.
pub fn refuse_content_of_path(path: &Path) -> Result<()> {
    let text = match path.is_file() {
        true => format!("{}?format=raw", quoted_path(path)),
        false => quoted_path(path),
    };
    refuse_content(&open_target(&text, &TargetOptions::default())?)
}

/// Refuses a target that shows bytes of a structure which a provider below it carries, or another
/// partition of that provider.
pub fn refuse_content_below(target: &Target) -> Result<()> {
    let tree = target.stack.tree();
    let way = below(&tree, target.top);
    let mut path: Vec<ProviderId> = way.iter().map(|(id, _)| *id).collect();
    path.push(target.top);
    let reach = Reach {
        target,
        tree: &tree,
        path: &path,
    };
    way.into_iter()
        .try_for_each(|(id, range)| reach.refuse(id, range, false))
}

/// Refuses a window into a file system or an image: a sector in it may look like a table, as the
/// second one of a FAT32 does.
pub fn refuse_table_within(target: &Target) -> Result<()> {
    let tree = target.stack.tree();
    for (id, _) in below(&tree, target.top) {
        // Beside a table it may be left over from an earlier use of the disk, unless it begins in
        // the same sector.
        let tabled = tree.above(id).any(is_table);
        let owned = |content: &Content| {
            let begins = content.stands_in(&(0..512));
            matches!(content.usage, ContentUse::FileSystem | ContentUse::Image)
                && (begins || !tabled)
        };
        let found = look(target, id)?.into_iter().find(owned);
        let provider = tree.providers().find(|provider| provider.id == id);
        if let (Some(found), Some(provider)) = (found, provider) {
            let (name, below) = (&target.name, &provider.name);
            bail!("{name} lies in {below}, which carries {found}; nothing was written");
        }
    }
    Ok(())
}

/// What a target carries and `in_the_way` is true for.
pub fn contents(target: &Target, in_the_way: impl Fn(&Content) -> bool) -> Result<Vec<Content>> {
    let mut found = look(target, target.top)?;
    found.retain(in_the_way);
    Ok(found)
}

/// The extent of a window.
struct Reach<'a> {
    target: &'a Target,
    tree: &'a Tree,
    /// The providers between the target and the medium, with both.
    path: &'a [ProviderId],
}

impl Reach<'_> {
    /// Refuses bytes of a provider that belong to its content, or to that of a partition of it.
    /// `as_parent`: it begins where its disk does, and so shows the same table.
    fn refuse(&self, id: ProviderId, range: Range<u64>, as_parent: bool) -> Result<()> {
        let Some(provider) = self.tree.providers().find(|provider| provider.id == id) else {
            return Ok(());
        };
        let tables: Vec<_> = self.tree.above(id).filter(|geom| is_table(geom)).collect();
        // A layer that was opened with the key is what its metadata is for.
        let mut above = self.tree.above(id);
        let is_decrypted = above.any(|geom| geom.class == eli::NAME && !geom.providers.is_empty());
        let contents = look(self.target, id)?;
        // Signatures beside a table are often left over from an earlier use of the disk: only their
        // own bytes are in the way. Without partitions they tell what the whole medium is, and a
        // table whose partitions are not known may have one anywhere.
        let in_the_way = |content: &Content| match content.usage {
            ContentUse::Encrypted if is_decrypted => false,
            ContentUse::Image => true,
            ContentUse::Table if as_parent => content.stands_in(&range),
            _ => tables.is_empty() || content.stands_in(&range),
        };
        refuse(
            &provider.name,
            contents.into_iter().filter(in_the_way).collect(),
        )?;
        tables
            .into_iter()
            .try_for_each(|table| self.refuse_partitions(provider, table, &range))
    }

    fn refuse_partitions(
        &self,
        provider: &ProviderView,
        table: &GeomView,
        range: &Range<u64>,
    ) -> Result<()> {
        let placed = table.providers.iter().filter_map(place);
        let placed: Vec<(ProviderId, Range<u64>)> = placed.collect();
        // The records stand in front of each partition, one of them anywhere.
        let in_gap = |(_, place): &(_, Range<u64>)| holds(place, range);
        if table.class == EXTENDED && !placed.iter().any(in_gap) {
            bail!(
                "{} carries extended boot records between its partitions; nothing was written, \
                 --destroy overwrites them",
                provider.name
            );
        }
        for (id, place) in &placed {
            let first = place.start.max(range.start);
            let end = place.end.min(range.end);
            // The raw partition shows what the disk and its partitions carry.
            let others = || placed.iter().filter(|(other, _)| other != id);
            let is_raw = place.start == 0 && others().any(|(_, other)| holds(place, other));
            if first < end && !is_raw && !self.path.contains(id) {
                let inside = first - place.start..end - place.start;
                self.refuse(*id, inside, place.start == 0)?;
            }
        }
        Ok(())
    }
}

/// The class of logical partitions.
const EXTENDED: &str = "EBR";

fn is_table(geom: &GeomView) -> bool {
    let mut classes = registry().iter();
    classes.any(|entry| entry.role == Role::Table && entry.class == geom.class)
}

/// Where a partition lies in the provider below.
fn place(partition: &ProviderView) -> Option<(ProviderId, Range<u64>)> {
    let start = partition.position_bytes?;
    let end = start.saturating_add(partition.mediasize_bytes);
    Some((partition.id, start..end))
}

fn holds(outer: &Range<u64>, inner: &Range<u64>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn look(target: &Target, provider: ProviderId) -> Result<Vec<Content>> {
    let opened = target.stack.open(provider, Delta::READ)?;
    let mut channel = target.stack.channel(1)?;
    match found::look(&mut channel, &opened) {
        // Nothing known is made for such sectors.
        Err(EditError::SectorSize { .. }) => Ok(Vec::new()),
        found => Ok(found?),
    }
}

/// The providers below one, from top to bottom, each with the range of its bytes that can be
/// reached.
fn below(tree: &Tree, top: ProviderId) -> Vec<(ProviderId, Range<u64>)> {
    let of = |id: ProviderId| tree.providers().find(|provider| provider.id == id);
    let mut found = Vec::new();
    let mut here: Vec<(ProviderId, Range<u64>)> = Vec::new();
    here.extend(of(top).map(|provider| (top, 0..provider.mediasize_bytes)));
    while let Some((id, range)) = here.pop() {
        let Some((provider, geom)) = of(id).and_then(|p| Some((p, tree.geom(p.geom)?))) else {
            continue;
        };
        for lower in geom
            .consumers
            .iter()
            .filter_map(|consumer| of(consumer.provider?))
        {
            let reached = match provider.position_bytes {
                Some(start) => start + range.start..start + range.end,
                None => 0..lower.mediasize_bytes,
            };
            if found.iter().all(|(known, _)| *known != lower.id) {
                found.push((lower.id, reached.clone()));
                here.push((lower.id, reached));
            }
        }
    }
    found
}

/// Refuses a provider with that content, if there is any.
pub fn refuse(provider: &str, contents: Vec<Content>) -> Result<()> {
    match contents.as_slice() {
        [] => Ok(()),
        found => Err(carries(provider, found)),
    }
}

/// The refusal to destroy the content of a provider.
pub fn carries(provider: &str, found: &[Content]) -> anyhow::Error {
    anyhow!(
        "{provider} carries {}; nothing was written, --destroy overwrites it",
        list(found)
    )
}

/// Contents in a sentence.
pub fn list(found: &[Content]) -> String {
    let found: Vec<String> = found.iter().map(Content::to_string).collect();
    found.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use ugeom_classes::{TargetText, path_of};

    #[test]
    fn a_quoted_path_means_the_same_file() {
        for name in [&b"a b.img"[..], b"a\"\\|?@.img", b"\xff\xfe.img"] {
            let path = Path::new(OsStr::from_bytes(name));
            let text = format!("{}?format=raw", quoted_path(path));
            let target = TargetText::parse(&text).expect("a target");
            assert_eq!(target.single_path().map(path_of).as_deref(), Some(path));
        }
    }
}
