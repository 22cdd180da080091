//! Values that only one option has: patterns of access, splits of sizes, distributions, patterns of
//! bytes, criteria of a steady state.

use super::refused;
use crate::settings::{
    Distribution, FileOrder, GoesOn, Job, Pattern, RangeSync, Sizes, Steady, SteadyOf, Verify,
};
use crate::value;
use ugeom_classes::spec::ValueError;
use ugeom_classes::spec::values::choice;

/// At most so many jobs, or requests in one call.
const MANY: u32 = 1 << 20;

/// A number from 1 to 2^20.
pub fn count(text: &str) -> Result<u32, String> {
    match value::number32(text)? {
        count if (1..=MANY).contains(&count) => Ok(count),
        count => Err(format!("{count} is not within 1 to {MANY}")),
    }
}

/// 0 or a number up to 2^20.
pub fn count_or_none(text: &str) -> Result<u32, String> {
    match text.trim() {
        "0" => Ok(0),
        text => count(text),
    }
}

/// The engines of fio that there are here.
pub const ENGINES: &[&str] = &[
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "io_uring",
    "libaio",
    "posixaio",
    "splice",
    "mmap",
    "null",
    "filecreate",
    "filestat",
    "filedelete",
    "falloc",
    "ftruncate",
    "cpuio",
    "guasi",
    "auto",
];

/// The names of the engines, a line each, as `--enghelp` prints them.
pub fn engines() -> String {
    let mut text = "Available IO engines:\n".to_owned();
    ENGINES
        .iter()
        .for_each(|name| text.push_str(&format!("\t{name}\n")));
    text
}

/// The options that one engine has for itself; other engines take no notice of them.
pub fn engine_options(engine: &str) -> &'static [&'static str] {
    match engine {
        "guasi" => &["guasi_workers", "guasi_backend"],
        "filestat" => &["stat_type"],
        "cpuio" => &["cpuload", "cpuchunks", "cpumode", "exit_on_io_done"],
        "libaio" => &[
            "userspace_reap",
            "cmdprio_percentage",
            "cmdprio_class",
            "cmdprio",
            "cmdprio_bssplit",
            "nowait",
        ],
        "io_uring" => &[
            "hipri",
            "cmdprio_percentage",
            "cmdprio_class",
            "cmdprio",
            "cmdprio_bssplit",
            "fixedbufs",
            "registerfiles",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "nonvectored",
            "uncached",
            "nowait",
            "force_async",
        ],
        "pvsync2" => &["hipri", "uncached", "nowait"],
        _ => &[],
    }
}

/// Reads a value of `ioengine=`.
pub fn engine(text: &str) -> Result<&'static str, ValueError> {
    let text = match text {
        "aio" | "linuxaio" => "libaio",
        text => text,
    };
    match refused::engine(text) {
        Some(reason) => Err(format!("`{text}` is not supported: {reason}").into()),
        None => {
            let known: Vec<_> = ENGINES.iter().map(|name| (*name, *name)).collect();
            choice(&known, text)
        }
    }
}

const fn pattern(name: &'static str, does: [bool; 3], random: bool) -> Pattern {
    Pattern {
        name,
        does,
        random,
        trim_then_write: false,
        modifier: 0,
    }
}

const PATTERNS: [Pattern; 12] = [
    pattern("read", [true, false, false], false),
    pattern("write", [false, true, false], false),
    pattern("trim", [false, false, true], false),
    pattern("randread", [true, false, false], true),
    pattern("randwrite", [false, true, false], true),
    pattern("randtrim", [false, false, true], true),
    pattern("rw", [true, true, false], false),
    pattern("readwrite", [true, true, false], false),
    pattern("randrw", [true, true, false], true),
    pattern("randreadwrite", [true, true, false], true),
    Pattern {
        trim_then_write: true,
        ..pattern("trimwrite", [false, true, true], false)
    },
    Pattern {
        trim_then_write: true,
        ..pattern("randtrimwrite", [false, true, true], true)
    },
];

/// Reads a value of `rw=`, as `randrw:8`.
pub fn rw(text: &str) -> Result<Pattern, String> {
    let (name, modifier) = match text.split_once(':') {
        Some((name, modifier)) => (name, Some(modifier)),
        None => (text, None),
    };
    let known = PATTERNS.iter().find(|pattern| pattern.name == name);
    let mut pattern = *known.ok_or_else(|| {
        let names: Vec<&str> = PATTERNS.iter().map(|pattern| pattern.name).collect();
        format!("`{name}` is not one of {}", names.join(", "))
    })?;
    if let Some(modifier) = modifier {
        let (sign, digits) = match modifier.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, modifier),
        };
        let size = value::bytes(digits)?;
        let size = i64::try_from(size).map_err(|_| format!("`{modifier}` is too large"))?;
        if pattern.random && sign < 0 {
            return Err("the number of requests after a random pattern is 0 or more".to_owned());
        }
        pattern.modifier = match (pattern.random, size) {
            // As by fio, places follow one another as long as they can.
            (true, 0) => i64::MAX,
            _ => sign * size,
        };
    }
    Ok(pattern)
}

/// A size of requests, and its defect.
pub fn request_bytes(text: &str) -> Result<u64, String> {
    const LARGEST_BYTES: u64 = 1 << 30;
    match value::bytes(text)? {
        0 => Err("a request has at least 1 byte".to_owned()),
        bytes if bytes > LARGEST_BYTES => Err(format!("`{text}` is larger than 1g")),
        bytes => Ok(bytes),
    }
}

/// `bs=` and one part of `bsrange=`.
pub fn sizes(text: &str) -> Result<Sizes, String> {
    let (min, max) = value::range(text, request_bytes)?;
    Ok(Sizes {
        min,
        max,
        split: Vec::new(),
    })
}

/// `bssplit=4k/10:64k/50:32k/`: shares that are not given divide what is left, and the last has
/// what the division leaves.
pub fn split(text: &str) -> Result<Sizes, String> {
    const PARTS_MAX: usize = 64;
    let mut parts = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share = match share {
            // fio takes a share of 0 for none.
            "" | "0" => None,
            share => Some(value::percentage(share)?),
        };
        parts.push((request_bytes(size)?, share));
    }
    if parts.len() > PARTS_MAX {
        return Err(format!("at most {PARTS_MAX} sizes can be named"));
    }
    let given: u32 = parts.iter().filter_map(|part| part.1).map(u32::from).sum();
    let open = parts.iter().filter(|part| part.1.is_none()).count() as u32;
    let left = 100_u32.checked_sub(given);
    if left.is_none() && open > 1 {
        return Err(format!(
            "the shares add up to {given} percent, which leaves none for the others"
        ));
    }
    // As in fio, small shares come first, and one size without a share beside more than 100
    // percent has all requests.
    let each = left.map(|left| left.checked_div(open).unwrap_or(0) as u8);
    parts.sort_by_key(|(_, share)| share.or(each));
    let with_share = |(size, share): (u64, Option<u8>)| (size, share.or(each).unwrap_or(100));
    let mut split: Vec<(u64, u8)> = parts.into_iter().map(with_share).collect();
    fill_up(&mut split);
    let sizes = split.iter().map(|(size, _)| *size);
    Ok(Sizes {
        min: sizes.clone().min().unwrap_or(4096),
        max: sizes.max().unwrap_or(4096),
        split,
    })
}

/// Shares that are not 100 percent together: as in fio, the last that is not 0 has what the others
/// leave, and what goes beyond 100 counts for nothing.
fn fill_up(split: &mut [(u64, u8)]) {
    let mut left = 100_u8;
    for (_, share) in split.iter_mut() {
        *share = (*share).min(left);
        left -= *share;
    }
    if let Some((_, share)) = split.iter_mut().rfind(|(_, share)| *share > 0) {
        *share += left;
    }
}

/// `random_distribution`: one for all kinds of requests; zones may be given for each kind, as in
/// `zoned:60/10:40/90,50/50:50/50`.
pub fn distributions(text: &str) -> Result<[Distribution; 3], String> {
    let zones = |text: &str, of: fn(&str) -> Result<Distribution, String>| {
        value::by_direction(text, &Default::default(), of)
    };
    match text.split_once(':') {
        Some(("zoned", rest)) => zones(rest, |text| zoned(text).map(Distribution::Zoned)),
        Some(("zoned_abs", rest)) => {
            zones(rest, |text| zoned_bytes(text).map(Distribution::ZonedBytes))
        }
        _ => distribution(text).map(|one| [one.clone(), one.clone(), one]),
    }
}

/// The value of `random_distribution`: `zipf:1.2`, `normal:10:0.25`.
fn distribution(text: &str) -> Result<Distribution, String> {
    let (name, rest) = match text.split_once(':') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text, None),
    };
    let (parameter, center) = match rest.map(|rest| rest.split_once(':').unwrap_or((rest, ""))) {
        None => (None, None),
        Some((parameter, "")) => (Some(parameter), None),
        Some((parameter, center)) => (Some(parameter), Some(center_of(center)?)),
    };
    let number = |default: f64| parameter.map_or(Ok(default), value::float);
    match name {
        "random" => Ok(Distribution::Uniform),
        "zipf" => {
            let theta = number(1.1)?;
            if theta <= 0.0 || theta == 1.0 {
                return Err("zipf needs a theta above 0 that is not 1".to_owned());
            }
            Ok(Distribution::Zipf(theta, center))
        }
        "pareto" => {
            let power = number(0.2)?;
            if power <= 0.0 || power >= 1.0 {
                return Err("pareto needs a power between 0 and 1".to_owned());
            }
            Ok(Distribution::Pareto(power, center))
        }
        "normal" | "gauss" => {
            let deviation = number(0.0)?;
            if !(0.0..=100.0).contains(&deviation) {
                return Err("normal needs a deviation from 0 to 100 percent".to_owned());
            }
            Ok(Distribution::Normal(deviation, center))
        }
        _ => Err(format!(
            "`{name}` is not one of random, zipf, pareto, normal, zoned, zoned_abs"
        )),
    }
}

/// The centre of a distribution.
fn center_of(text: &str) -> Result<f64, String> {
    match value::float(text)? {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("the centre {text} is not from 0 to 1")),
    }
}

/// `60/10:30/20:10/`: percent of the accesses, percent of the file. Sizes that are not given divide
/// what is left, in whole percent.
fn zoned(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let zones = zones(text, whole_share)?;
    let given: f64 = zones.iter().filter_map(|zone| zone.1).sum();
    let open = zones.iter().filter(|zone| zone.1.is_none()).count();
    if given > 100.0 {
        return Err("the sizes of the zones add up to more than 100".to_owned());
    }
    let each = ((100.0 - given) / open.max(1) as f64).floor();
    let sized = zones.into_iter();
    Ok(sized
        .map(|(accesses, share)| (accesses, share.unwrap_or(each)))
        .collect())
}

/// The share of a zone in whole percent: fio ignores fractions, and takes 0 as not given.
fn whole_share(text: &str) -> Result<Option<f64>, String> {
    let whole = ugeom_measure::units::percent(text)
        .map_err(|_| format!("`{text}` is not a percentage from 0 to 100"))?
        .trunc();
    Ok((whole > 0.0).then_some(whole))
}

/// `60/20g:40/100g`: percent of the accesses, bytes.
fn zoned_bytes(text: &str) -> Result<Vec<(f64, u64)>, String> {
    let zones = zones(text, |bytes| value::bytes(bytes).map(Some))?;
    let sized = zones
        .into_iter()
        .map(|(accesses, bytes)| Some((accesses, bytes?)));
    let sized: Option<Vec<(f64, u64)>> = sized.collect();
    sized.ok_or_else(|| "each zone needs its size, as in zoned_abs:60/1g:40/9g".to_owned())
}

/// Percent of the accesses and a size for each zone, where one is given.
fn zones<T>(
    text: &str,
    size: fn(&str) -> Result<Option<T>, String>,
) -> Result<Vec<(f64, Option<T>)>, String> {
    const ZONES_MAX: usize = 256;
    let mut zones = Vec::new();
    for zone in text.split(':').filter(|zone| !zone.is_empty()) {
        let (accesses, share) = zone
            .split_once('/')
            .ok_or_else(|| format!("`{zone}` is not ACCESSES/SIZE"))?;
        let share = match share {
            "" => None,
            share => size(share)?,
        };
        zones.push((f64::from(value::percentage(accesses)?), share));
    }
    if zones.is_empty() || zones.len() > ZONES_MAX {
        return Err("zoned needs zones, as in zoned:60/10:40/90".to_owned());
    }
    match is_all(zones.iter().map(|zone| zone.0)) {
        true => Ok(zones),
        false => Err("the accesses of the zones must add up to 100".to_owned()),
    }
}

/// Whether percentages add up to 100; those that were divided need not do so exactly.
fn is_all(percentages: impl Iterator<Item = f64>) -> bool {
    (percentages.sum::<f64>() - 100.0).abs() < 1e-6
}

/// Reads a value of `steadystate=`, as `iops_slope:0.3%`.
pub fn steady(text: &str) -> Result<Steady, String> {
    let (name, limit) = text
        .split_once(':')
        .ok_or_else(|| format!("`{text}` is not CRITERION:LIMIT, as in iops_slope:0.3%"))?;
    let (of, slope) = match name {
        "iops" => (SteadyOf::Iops, false),
        "iops_slope" => (SteadyOf::Iops, true),
        "bw" => (SteadyOf::Bandwidth, false),
        "bw_slope" => (SteadyOf::Bandwidth, true),
        _ => {
            return Err(format!(
                "`{name}` is not one of iops, iops_slope, bw, bw_slope"
            ));
        }
    };
    let percent = limit.ends_with('%');
    let limit = value::float(limit.trim_end_matches('%'))?;
    if limit <= 0.0 {
        return Err("the limit of a steady state is above 0".to_owned());
    }
    Ok(Steady {
        of,
        slope,
        limit,
        percent,
    })
}

/// Reads a value of `percentile_list=`, as `50:99:99.9`.
pub fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    const LIST_MAX: usize = 20;
    let mut list = Vec::new();
    for part in text.split([':', ',']) {
        let percent = value::float(part)?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(format!("`{part}` is not a percentage"));
        }
        list.push(percent);
    }
    if list.len() > LIST_MAX {
        return Err(format!("at most {LIST_MAX} percentiles are allowed"));
    }
    list.sort_by(f64::total_cmp);
    Ok(list)
}

/// Reads a value of `verify=`, as `crc32c`.
pub fn verify(text: &str) -> Result<Verify, ValueError> {
    const KNOWN: [(&str, Verify); 20] = [
        ("none", Verify::No),
        ("meta", Verify::Header),
        ("md5", Verify::Md5),
        ("crc64", Verify::Crc64),
        ("crc32", Verify::Crc32),
        ("crc32c", Verify::Crc32c),
        ("crc32c-intel", Verify::Crc32c),
        ("crc16", Verify::Crc16),
        ("crc7", Verify::Crc7),
        ("sha256", Verify::Sha256),
        ("sha512", Verify::Sha512),
        ("sha3-224", Verify::Sha3(224)),
        ("sha3-256", Verify::Sha3(256)),
        ("sha3-384", Verify::Sha3(384)),
        ("sha3-512", Verify::Sha3(512)),
        ("xxhash", Verify::Xxhash),
        ("sha1", Verify::Sha1),
        ("pattern", Verify::Pattern),
        ("null", Verify::Null),
        ("0", Verify::No),
    ];
    choice(&KNOWN, text)
}

/// `file_service_type=random:8`: the order, and how many requests a file gets at a time.
pub fn file_order(text: &str) -> Result<(FileOrder, u32), String> {
    let (name, run) = match text.split_once(':') {
        Some((name, run)) => (name, Some(run)),
        None => (text, None),
    };
    let order = match name {
        "roundrobin" => FileOrder::RoundRobin,
        "sequential" => FileOrder::Sequential,
        "random" => FileOrder::Random,
        "zipf" | "pareto" | "normal" | "gauss" => {
            let order = match distribution(text)? {
                Distribution::Zipf(theta, center) => FileOrder::Zipf(theta, center),
                Distribution::Pareto(power, center) => FileOrder::Pareto(power, center),
                Distribution::Normal(deviation, center) => FileOrder::Normal(deviation, center),
                Distribution::Uniform | Distribution::Zoned(_) | Distribution::ZonedBytes(_) => {
                    FileOrder::Random
                }
            };
            return Ok((order, 1));
        }
        _ => {
            return Err(format!(
                "`{name}` is not one of roundrobin, sequential, random, zipf, pareto, normal"
            ));
        }
    };
    Ok((order, run.map_or(Ok(1), count)?))
}

/// `replay_skip=`: reads, writes, trims, syncs.
pub fn skipped(text: &str) -> Result<[bool; 4], String> {
    let mut skip = [false; 4];
    for name in text.split(',').map(str::trim) {
        let known = ["read", "write", "trim", "sync"];
        let at = known.iter().position(|known| *known == name);
        skip[at.ok_or_else(|| format!("`{name}` is not one of {}", known.join(", ")))?] = true;
    }
    Ok(skip)
}

/// Reads a value of `continue_on_error=`.
pub fn goes_on(text: &str) -> Result<GoesOn, ValueError> {
    let of = |read, write, verify| GoesOn {
        requests: [read, write, write],
        verify,
    };
    let known = [
        ("none", of(false, false, false)),
        ("read", of(true, false, false)),
        ("write", of(false, true, false)),
        ("io", of(true, true, false)),
        ("verify", of(false, false, true)),
        ("all", of(true, true, true)),
        ("0", of(false, false, false)),
        ("1", of(true, true, true)),
    ];
    choice(&known, text)
}

/// Errors by their names in errno(3): those that requests on files can have.
const ERRORS: &[(&str, i32)] = &[
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EINTR", 4),
    ("EIO", 5),
    ("ENXIO", 6),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("EBUSY", 16),
    ("ENODEV", 19),
    ("EINVAL", 22),
    ("ENFILE", 23),
    ("EMFILE", 24),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("EROFS", 30),
    ("EPIPE", 32),
    ("EDOM", 33),
    ("EILSEQ", 84),
    ("EOPNOTSUPP", 95),
    ("ETIMEDOUT", 110),
    ("EREMOTEIO", 121),
    ("EDQUOT", 122),
];

/// `ignore_error=EIO:EAGAIN,ENOSPC,EILSEQ`: for reads, writes and checks; an empty place ignores
/// none. The job goes on after ignored errors.
pub fn ignored_errors(job: &mut Job, text: &str) -> Result<(), ValueError> {
    let kinds: Vec<&str> = text.split(',').collect();
    if kinds.len() > 3 {
        return Err(format!("`{text}` has more than three lists (read,write,verify)").into());
    }
    for (kind, list) in kinds.iter().enumerate() {
        let mut numbers = Vec::new();
        for name in list
            .split(':')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            let known = ERRORS.iter().find(|(known, _)| *known == name);
            let number = known.map(|(_, number)| *number);
            let number = number.or_else(|| name.parse::<i32>().ok().map(i32::abs));
            let number = number.filter(|number| (1..4096).contains(number));
            numbers.push(
                number.ok_or_else(|| format!("unknown error name `{name}`: use its number"))?,
            );
        }
        job.ignored_errors[kind] = numbers;
    }
    Ok(())
}

/// `sync_file_range=write:8`: flags, and the number of writes from one call to the next.
pub fn range_sync(text: &str) -> Result<RangeSync, ValueError> {
    let (flags, every) = match text.split_once(':') {
        Some((flags, every)) => (flags, count(every)?),
        None => (text, 1),
    };
    let mut sync = RangeSync {
        every,
        ..RangeSync::default()
    };
    for flag in flags.split(',') {
        match choice(&[("wait_before", 0), ("write", 1), ("wait_after", 2)], flag)? {
            0 => sync.waits_before = true,
            1 => sync.writes = true,
            _ => sync.waits_after = true,
        }
    }
    Ok(sync)
}

/// `cpumask=`: a bit for each processor.
pub fn mask(text: &str) -> Result<Vec<usize>, String> {
    let bits = value::number(text)?;
    let cores: Vec<usize> = (0..64).filter(|core| bits >> core & 1 == 1).collect();
    match cores.is_empty() {
        false => Ok(cores),
        true => Err("a mask without a bit leaves no processor".to_owned()),
    }
}
