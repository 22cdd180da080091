//! The target of a job: files and block devices, a stack, or nothing; found and measured.

use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ugeom_classes::spec::{self, FILE_CLASS, OptionDefault, OptionDoc};
use ugeom_classes::{Role, Target, TargetOptions, open_target, path_of, registry};
use ugeom_load::places::Below as _;
use ugeom_measure::units::Size;
use ugeom_stack::{Delta, Errno};

use super::draws::{Draws, Purpose, Seeds};
use super::layout::Layout;
use super::places::Region;
use ugeom_job::error::JobError;
use ugeom_job::settings::{FileOperation, Job, READ};

/// The kinds of `filename`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Files or block devices.
    Paths(Vec<PathBuf>),
    /// A stack, or a provider in one.
    Stack(String),
    /// `ioengine=null` and `cpuio`: nothing is touched.
    Nothing,
}

/// The target of the job's `clone`-th copy (`numjobs`).
pub fn meaning(job: &Job, clone: u32) -> Meaning {
    if job.ioengine == "null" || !job.makes_requests() {
        return Meaning::Nothing;
    }
    match &job.filename {
        Some(filename) if is_stack(filename) => Meaning::Stack(filename.clone()),
        _ => Meaning::Paths(paths(job, clone)),
    }
}

/// The files of a copy of a job.
fn paths(job: &Job, clone: u32) -> Vec<PathBuf> {
    let folders = job.directory.as_deref().map_or(Vec::new(), split_names);
    let folder = |copy: usize| {
        folders
            .get(copy % folders.len().max(1))
            .map_or("", String::as_str)
    };
    let Some(filename) = &job.filename else {
        let folder = folder(clone as usize);
        if job.nrfiles == 1 && names_target(job) {
            return vec![below(folder, &job.section)];
        }
        let names = (0..job.nrfiles).map(|file| below(folder, &own_name(job, clone, file)));
        return names.collect();
    };
    let names = split_names(filename);
    let folder = folder(0);
    names.iter().map(|name| below(folder, name)).collect()
}

/// Whether the name of a job is that of its target: of a device (`[/dev/sdx]`) or a symbolic link,
/// or, as by fio, that of a directory here, when the file itself is to be in another one.
fn names_target(job: &Job) -> bool {
    let about = std::fs::symlink_metadata(&job.section);
    let (has_directory, kind) = (
        job.directory.is_some(),
        about.map(|about| about.file_type()),
    );
    kind.is_ok_and(|kind| !kind.is_file() && (has_directory || !kind.is_dir()))
}

/// A name in a folder, as by fio also when it begins with a slash.
fn below(folder: &str, name: &str) -> PathBuf {
    match folder {
        "" => path_of(name),
        folder => path_of(folder).join(path_of(name.trim_start_matches('/'))),
    }
}

/// The name of a file of a job without a filename (`filename_format`).
fn own_name(job: &Job, clone: u32, file: u32) -> String {
    let names = [
        ("$jobname", job.section.clone()),
        ("$jobnum", clone.to_string()),
        ("$filenum", file.to_string()),
        ("$clientuid", "localhost".to_owned()),
    ];
    names
        .iter()
        .fold(job.filename_format.clone(), |text, (name, value)| {
            text.replace(name, value)
        })
}

/// A class, layers, options or an address; a path alone, or several joined by `:`, is none.
fn is_stack(text: &str) -> bool {
    if text.contains('|') {
        return true;
    }
    let exists = split_names(text).iter().any(|name| path_of(name).exists());
    let names = registry::names();
    let class = text.split_once(':').map_or(text, |(class, _)| class);
    match spec::parse(text, &names) {
        // A name alone that is no stack is a file, whatever classes there are: `filename=cache`.
        Err(_) if text == class => false,
        Ok(_) if names.contains(&text) && !stands_alone(text) => false,
        Err(_) => names.contains(&class) && !exists,
        Ok(target) if !exists => {
            let plain =
                |layer: &spec::Layer| layer.class.value == FILE_CLASS && layer.options.is_empty();
            target.stack.is_some() || target.provider.is_some() || !target.layers.iter().all(plain)
        }
        _ => false,
    }
}

/// Whether the name of a class alone is a stack.
fn stands_alone(class: &str) -> bool {
    let needs = |doc: &OptionDoc| matches!(doc.default, OptionDefault::Required);
    registry::find(class)
        .is_some_and(|entry| entry.role == Role::Bottom && !entry.options.docs().iter().any(needs))
}

/// Names joined by `:`; `\:` is a colon in a name.
pub fn split_names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let last = names.len() - 1;
        match c {
            ':' => names.push(String::new()),
            '\\' => names[last].extend(chars.next()),
            c => names[last].push(c),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// A target that is ready for a worker.
#[derive(Clone)]
pub enum Ready {
    /// Open files, in the order in which the job names them.
    Files(Vec<Arc<File>>),
    /// A stack that several workers may share.
    Stack(Arc<Target>),
    /// No target, since no data is moved (`ioengine=null`).
    Nothing,
}

/// Opens a stack, for writing where the job changes data.
///
/// # Errors
/// The reason why it cannot be opened.
pub fn open_stack(job: &Job, text: &str) -> Result<Arc<Target>, JobError> {
    let options = TargetOptions {
        writable: job.changes_data(),
        direct: job.direct,
        ..TargetOptions::default()
    };
    let target = open_target(text, &options)
        .map_err(|error| JobError::caused(&job.name, format!("the target `{text}`"), error))?;
    Ok(Arc::new(target))
}

/// The part of a stack's provider that the job works on.
///
/// # Errors
/// When it does not fit.
pub fn stack_region(job: &Job, clone: u32, target: &Target) -> Result<Region, JobError> {
    let refused =
        |error| JobError::caused(&job.name, format!("the provider {}", target.name), error);
    let opened = target
        .stack
        .open(target.top, Delta::READ)
        .map_err(refused)?;
    let view = opened
        .view()
        .ok_or_else(|| JobError::target(&job.name, format!("{} is destroyed", target.name)))?;
    region(job, clone, &target.name, Some(view.mediasize_bytes), 1)
}

/// The regions of the job's files, and the files to be made before.
///
/// # Errors
/// A file that cannot be looked at; a size that is missing, or larger than the device.
pub fn file_regions(
    job: &Job,
    clone: u32,
    paths: &[PathBuf],
    seeds: &Seeds,
) -> Result<(Vec<Region>, Vec<Layout>), JobError> {
    let mut regions = Vec::new();
    let mut layouts = Vec::new();
    let mut numbers = seeds.draws(Purpose::FileSizes);
    let creates = job.file_operation() == Some(FileOperation::Create);
    for path in paths {
        let name = path.display().to_string();
        let found = match job.file_operation() {
            None => found(job, path)?,
            Some(operation) => found_for(job, path, operation)?,
        };
        if matches!(found, TargetKind::Missing) && path.parent() == Some(Path::new("/dev")) {
            // fio makes a file, which takes memory until the next boot.
            return Err(JobError::target(
                &job.name,
                format!("there is no device {name}"),
            ));
        }
        if matches!(found, TargetKind::Missing) && !job.allow_file_create {
            let message = format!("{name} does not exist, and allow_file_create=0");
            return Err(JobError::target(&job.name, message));
        }
        let fixed = fixed_size(job, &found, &mut numbers);
        let mut region = match (&found, fixed) {
            (TargetKind::Device(bytes), _) => region(job, clone, &name, Some(*bytes), paths.len())?,
            (TargetKind::File(bytes), None) if job.size.is_none() && !job.fill_device => {
                region(job, clone, &name, Some(*bytes), paths.len())?
            }
            (_, fixed) => file_region(job, clone, &name, fixed, paths.len(), &found)?,
        };
        if matches!(found, TargetKind::Device(_))
            && let Some(bytes) = fixed
        {
            region.length = region.length.min(bytes);
        }
        region.start = appended(job, &found).unwrap_or(region.start);
        let end = region.start.saturating_add(region.length);
        region.file_bytes = region.file_bytes.max(end);
        let length = match found {
            TargetKind::Device(_) | TargetKind::Character => u64::MAX,
            TargetKind::File(bytes) => bytes,
            TargetKind::Missing => 0,
        };
        // Made when it is opened, or as far as there is space; what is read must be there before.
        let fills = job.fill_device && !(job.rw.does[READ] && job.size.is_some());
        let grows = job.create_on_open || fills || creates;
        if !grows && (length < end || matches!(found, TargetKind::Missing)) {
            if job.keeps_files && matches!(found, TargetKind::Missing) {
                let message = format!("{name}, which --readonly does not make");
                let missing = std::io::Error::from_raw_os_error(Errno::NOENT.raw_os_error());
                return Err(JobError::caused(&job.name, message, missing));
            }
            layouts.push(Layout {
                path: path.clone(),
                bytes: end,
                filled: job.rw.does[READ] || job.overwrite,
            });
        }
        regions.push(region);
    }
    let whole: u64 = regions.iter().map(|region| region.length).sum();
    if creates && whole >= job.smallest_bytes() {
        // Each file has a request, as by fio.
        let grow = |region: &mut Region| region.length = region.length.max(job.smallest_bytes());
        regions.iter_mut().for_each(grow);
    }
    Ok((regions, layouts))
}

/// The regions of the null engine's files, which have the sizes that the job wants.
///
/// # Errors
/// When it wants none, or begins behind it.
pub fn null_regions(job: &Job, clone: u32, seeds: &Seeds) -> Result<Vec<Region>, JobError> {
    // Nothing is there, but seeds and logs have the names.
    let names = paths(job, clone);
    let files = names.len() as u64;
    let mut numbers = seeds.draws(Purpose::FileSizes);
    // As by fio, they have their part of `size` before `filesize` is looked at.
    let found = match job.size {
        Some(Size::Bytes(bytes)) => TargetKind::File(bytes / files),
        _ => TargetKind::Missing,
    };
    let region = |name: &PathBuf| {
        let fixed = fixed_size(job, &found, &mut numbers);
        null_region(job, clone, fixed, files).map(|region| Region {
            name: name.display().to_string(),
            ..region
        })
    };
    names.iter().map(region).collect()
}

fn past_the_end(job: &Job, start: u64, name: &str, bytes: u64) -> JobError {
    let message = format!("offset {start} is past the end of {name}: {bytes} bytes");
    JobError::no_room(&job.name, job.origin_of("offset"), message)
}

/// One of the `files` of the null engine, without its name; `fixed`: the size that `filesize` gives
/// it.
fn null_region(job: &Job, clone: u32, fixed: Option<u64>, files: u64) -> Result<Region, JobError> {
    let whole = match (fixed, job.size) {
        (Some(bytes), _) => bytes,
        (None, Some(Size::Bytes(bytes))) => bytes / files,
        _ => {
            let message = "the null engine needs size=SIZE or filesize=SIZE";
            return Err(JobError::language(job.origin_of("ioengine"), message));
        }
    };
    let start = start(job, clone, whole);
    let left = whole.checked_sub(start).filter(|left| *left > 0);
    let length = match (fixed, left, job.size) {
        (None, ..) => whole,
        (Some(_), Some(left), Some(share @ Size::Percent(_))) => part(job, share, whole, left),
        (Some(_), Some(left), _) => left,
        (Some(_), None, _) => {
            return Err(past_the_end(job, start, "null", whole));
        }
    };
    Ok(Region {
        name: String::new(),
        start,
        length,
        file_bytes: whole.max(start.saturating_add(length)),
    })
}

/// The size of a file with `filesize`: that of a file whose size is within the range, else one that
/// is drawn, a multiple of the smallest request.
fn fixed_size(job: &Job, found: &TargetKind, numbers: &mut Draws) -> Option<u64> {
    let (low, high) = job.filesize?;
    if let TargetKind::File(bytes) = found
        && (low..=high).contains(bytes)
    {
        return Some(*bytes);
    }
    let drawn = low + numbers.below(high.saturating_sub(low));
    let rounded = drawn - drawn % job.smallest_bytes().max(1);
    Some(if low == high || rounded == 0 {
        drawn
    } else {
        rounded
    })
}

enum TargetKind {
    Device(u64),
    /// `/dev/null` and the like, which have no size.
    Character,
    File(u64),
    Missing,
}

fn found(job: &Job, path: &Path) -> Result<TargetKind, JobError> {
    let name = path.display();
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(TargetKind::Missing);
        }
        Err(error) => return Err(JobError::caused(&job.name, name.to_string(), error)),
    };
    let kind = about.file_type();
    if kind.is_file() {
        return Ok(TargetKind::File(about.len()));
    }
    if kind.is_char_device() {
        return Ok(TargetKind::Character);
    }
    if kind.is_dir() {
        let is_folder = std::io::Error::from_raw_os_error(Errno::ISDIR.raw_os_error());
        return Err(JobError::caused(&job.name, name.to_string(), is_folder));
    }
    if !kind.is_block_device() {
        let message = format!("{name} is neither a file nor a device");
        return Err(JobError::target(&job.name, message));
    }
    let size = File::open(path).and_then(|mut file| {
        use std::io::{Seek, SeekFrom};
        file.seek(SeekFrom::End(0))
    });
    size.map(TargetKind::Device)
        .map_err(|error| JobError::caused(&job.name, format!("{name}: finding its size"), error))
}

/// The target of an engine that works on whole files. A file of `filecreate` has one block, as by
/// fio, if no size is given; `filestat` takes directories, too.
fn found_for(job: &Job, path: &Path, operation: FileOperation) -> Result<TargetKind, JobError> {
    let about = std::fs::metadata(path);
    let kind = about.as_ref().map(std::fs::Metadata::file_type);
    let name = path.display();
    match (kind, operation) {
        (Ok(kind), _) if kind.is_block_device() || kind.is_char_device() => {
            let message = format!("{} works on files: {name} is a device", job.ioengine);
            Err(JobError::language(job.origin_of("ioengine"), message))
        }
        (_, FileOperation::Create) => Ok(TargetKind::File(job.smallest_bytes())),
        (Ok(kind), FileOperation::Stat(_)) if kind.is_dir() => {
            Ok(TargetKind::File(about.map_or(0, |about| about.len())))
        }
        _ => found(job, path),
    }
}

/// The region of a file that may grow.
fn file_region(
    job: &Job,
    clone: u32,
    name: &str,
    fixed: Option<u64>,
    files: usize,
    found: &TargetKind,
) -> Result<Region, JobError> {
    let existing = match found {
        TargetKind::File(bytes) => Some(*bytes),
        _ => None,
    };
    let start = appended(job, found).unwrap_or_else(|| start(job, clone, existing.unwrap_or(0)));
    let length = match (fixed, job.size) {
        (Some(bytes), share) => {
            let Some(left) = bytes.checked_sub(start).filter(|left| *left > 0) else {
                return Err(past_the_end(job, start, name, bytes));
            };
            match share {
                Some(share @ Size::Percent(_)) => part(job, share, bytes, left),
                _ => left,
            }
        }
        (None, Some(Size::Bytes(bytes))) => bytes / files as u64,
        (None, Some(_)) if existing.is_some() => {
            return region(job, clone, name, existing, files);
        }
        (None, None) if job.fill_device => free_bytes(job, name)? / files as u64,
        (None, _) => {
            let message =
                format!("{name} does not exist: a new file needs a size above 0, size=SIZE");
            return Err(JobError::language(job.origin_of("size"), message));
        }
    };
    Ok(Region {
        name: name.to_owned(),
        start,
        length,
        file_bytes: match found {
            TargetKind::Character => u64::MAX,
            _ => existing.unwrap_or(0),
        },
    })
}

/// Where requests begin with `file_append`: at the end of the file, as by fio whatever `offset` is.
fn appended(job: &Job, found: &TargetKind) -> Option<u64> {
    match found {
        TargetKind::File(bytes) if job.file_append => Some(*bytes),
        TargetKind::Missing if job.file_append => Some(0),
        _ => None,
    }
}

/// The free space for a file.
fn free_bytes(job: &Job, name: &str) -> Result<u64, JobError> {
    let folder = Path::new(name)
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let about = rustix::fs::statvfs(folder.unwrap_or_else(|| Path::new(".")));
    about
        .map(|about| about.f_bavail.saturating_mul(about.f_frsize))
        .map_err(|error| {
            JobError::caused(&job.name, format!("{name}: finding the free space"), error)
        })
}

/// A share of a file, of which so much is left behind the offset: whole blocks, as by fio.
fn part(job: &Job, share: Size, whole: u64, left: u64) -> u64 {
    let bytes = share.of(whole);
    match bytes < whole {
        true => bytes.min(left) / block(job) * block(job),
        false => left,
    }
}

/// The smallest request of any kind, whether the job has it or not, bytes.
fn block(job: &Job) -> u64 {
    let smallest = job.sizes.iter().map(|sizes| sizes.min).min();
    smallest.unwrap_or(1).max(1)
}

fn start(job: &Job, clone: u32, whole: u64) -> u64 {
    let increment = job
        .offset_increment
        .of(whole)
        .saturating_mul(u64::from(clone));
    let start = job.offset.of(whole).saturating_add(increment);
    // As by fio, what follows from a share begins at a block.
    let is_share = |size: &Size| matches!(size, Size::Percent(_)) && size.of(whole) > 0;
    if !is_share(&job.offset) && !is_share(&job.offset_increment) {
        return start;
    }
    let align = match job.offset_align_bytes {
        0 => block(job),
        align => align,
    };
    start.checked_next_multiple_of(align).unwrap_or(start)
}

/// The region of something whose size is fixed.
fn region(
    job: &Job,
    clone: u32,
    name: &str,
    whole: Option<u64>,
    files: usize,
) -> Result<Region, JobError> {
    let whole = whole.unwrap_or(0);
    let start = start(job, clone, whole);
    let left = whole.saturating_sub(start);
    let length = match job.size {
        Some(Size::Bytes(bytes)) => bytes / files as u64,
        Some(share) => part(job, share, whole, left),
        None => left,
    };
    if start.checked_add(length).is_none_or(|end| end > whole) || start >= whole {
        let message = format!(
            "offset {start} and size {length} reach past the end of {name}, which has {whole} bytes"
        );
        let option = if job.was_set("size") {
            "size"
        } else {
            "offset"
        };
        return Err(JobError::no_room(&job.name, job.origin_of(option), message));
    }
    Ok(Region {
        name: name.to_owned(),
        start,
        length,
        file_bytes: whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_job::error::Origin;
    use ugeom_job::options::{Setting, apply};

    fn job(filename: Option<&str>) -> Job {
        let mut job = Job::new("a", Origin::Default);
        job.filename = filename.map(ToOwned::to_owned);
        job
    }

    fn paths(names: &[&str]) -> Meaning {
        Meaning::Paths(names.iter().map(PathBuf::from).collect())
    }

    #[test]
    fn a_filename_is_paths_or_a_stack() {
        let of = |text: &str| meaning(&job(Some(text)), 0);
        assert_eq!(of("/tmp/x"), paths(&["/tmp/x"]));
        assert_eq!(of("a:b\\:c"), paths(&["a", "b:c"]));
        for stack in [
            "md:64m",
            "md:64m | nop",
            "zero:clear=0",
            "x.img@s1",
            "md:64mm",
        ] {
            assert_eq!(of(stack), Meaning::Stack(stack.to_owned()), "{stack}");
        }
    }

    #[test]
    fn without_a_filename_each_copy_has_its_own() {
        let mut job = job(None);
        job.nrfiles = 2;
        job.directory = Some("/d".to_owned());
        assert_eq!(meaning(&job, 3), paths(&["/d/a.3.0", "/d/a.3.1"]));
        job.directory = Some("/d:/e".to_owned());
        job.nrfiles = 1;
        assert_eq!(meaning(&job, 0), paths(&["/d/a.0.0"]));
        assert_eq!(meaning(&job, 3), paths(&["/e/a.3.0"]));
        job.name = "other".to_owned();
        assert_eq!(meaning(&job, 2), paths(&["/d/a.2.0"]));
        job.filename = Some("f".to_owned());
        assert_eq!(meaning(&job, 1), paths(&["/d/f"]));
        job.ioengine = "null".to_owned();
        assert_eq!(meaning(&job, 0), Meaning::Nothing);
    }

    #[test]
    fn a_job_named_after_a_device_works_on_it() {
        let mut job = Job::new("/dev/null", Origin::Default);
        assert_eq!(meaning(&job, 1), paths(&["/dev/null"]));
        job.nrfiles = 2;
        assert_eq!(meaning(&job, 0), paths(&["/dev/null.0.0", "/dev/null.0.1"]));
        let named = |name| meaning(&Job::new(name, Origin::Default), 0);
        assert_eq!(named("/dev"), paths(&["/dev.0.0"]));
        assert_eq!(named("a/b"), paths(&["a/b.0.0"]));
    }

    #[test]
    fn an_offset_that_is_a_share_begins_at_a_block() {
        let of = |settings: &[&str], clone| {
            let mut job = job(None);
            for setting in settings {
                let (name, value) = setting.split_once('=').expect("a setting");
                let setting = Setting::new(name, Some(value.to_owned()), Origin::Default);
                apply(&mut job, &setting).expect("a setting");
            }
            start(&job, clone, 1_000_000)
        };
        assert_eq!(of(&["offset=10%"], 0), 102_400);
        assert_eq!(of(&["offset=10%", "bs=64k"], 0), 131_072);
        assert_eq!(of(&["offset=10%", "offset_align=1000"], 0), 100_000);
        assert_eq!(of(&["offset=512", "offset_increment=10%"], 1), 102_400);
        assert_eq!(of(&["offset=10001", "offset_increment=700"], 2), 11_401);
    }

    #[test]
    fn a_directory_stands_before_every_path() {
        let mut job = job(Some("/dev/null:x/y"));
        job.directory = Some("/d".to_owned());
        assert_eq!(meaning(&job, 0), paths(&["/d/dev/null", "/d/x/y"]));
    }
}
