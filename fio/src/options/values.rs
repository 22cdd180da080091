//! Values that only one option has: patterns of access, splits of sizes, distributions, patterns of
//! bytes, criteria of a steady state.

use std::io::{self, Read};

use crate::settings::{Distribution, Pattern, Piece, Sizes, Steady, SteadyOf};
use crate::value;

/// Checks that a value is one of those that are known.
pub fn one_of(text: &str, known: &[&str]) -> Result<(), String> {
    match known.contains(&text) {
        true => Ok(()),
        false => Err(format!("`{text}` is none of {}", known.join(", "))),
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

/// `rw=`.
pub fn rw(text: &str) -> Result<Pattern, String> {
    let (name, modifier) = match text.split_once(':') {
        Some((name, modifier)) => (name, Some(modifier)),
        None => (text, None),
    };
    let known = PATTERNS.iter().find(|pattern| pattern.name == name);
    let mut pattern = *known.ok_or_else(|| {
        let names: Vec<&str> = PATTERNS.iter().map(|pattern| pattern.name).collect();
        format!("`{name}` is none of {}", names.join(", "))
    })?;
    if let Some(modifier) = modifier {
        let (sign, digits) = match modifier.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, modifier),
        };
        let size = value::bytes(digits)?;
        let size = i64::try_from(size).map_err(|_| format!("`{modifier}` is too large"))?;
        if pattern.random && (sign < 0 || size == 0) {
            return Err("the number of requests behind a random pattern is 1 or more".to_owned());
        }
        pattern.modifier = sign * size;
    }
    Ok(pattern)
}

/// A size of requests, and what is wrong with it.
fn request_bytes(text: &str) -> Result<u64, String> {
    const LARGEST_BYTES: u64 = 1 << 30;
    match value::bytes(text)? {
        0 => Err("a request of no bytes is none".to_owned()),
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

/// `bssplit=4k/10:64k/50:32k/`: shares that are not given divide what is left.
pub fn split(text: &str) -> Result<Sizes, String> {
    const PARTS_MAX: usize = 64;
    let mut parts = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share = match share {
            "" => None,
            share => Some(value::percentage(share)?),
        };
        parts.push((request_bytes(size)?, share));
    }
    if parts.len() > PARTS_MAX {
        return Err(format!("at most {PARTS_MAX} sizes can be named"));
    }
    let given: u32 = parts.iter().filter_map(|part| part.1).map(u32::from).sum();
    let open = parts.iter().filter(|part| part.1.is_none()).count() as u32;
    if given > 100 || (open == 0 && given != 100) {
        return Err(format!(
            "the shares add up to {given} and not to 100 percent"
        ));
    }
    let each = (100 - given).checked_div(open).unwrap_or(0);
    let mut left = (100 - given) - each * open;
    let mut split = Vec::new();
    for (size, share) in parts {
        let share = share.unwrap_or_else(|| {
            let extra = u32::from(left > 0);
            left -= extra;
            (each + extra) as u8
        });
        split.push((size, share));
    }
    let sizes = split.iter().map(|(size, _)| *size);
    Ok(Sizes {
        min: sizes.clone().min().unwrap_or(4096),
        max: sizes.max().unwrap_or(4096),
        split,
    })
}

/// `random_distribution=zipf:1.2`.
pub fn distribution(text: &str) -> Result<Distribution, String> {
    let (name, rest) = match text.split_once(':') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text, None),
    };
    let number = |default: f64| rest.map_or(Ok(default), value::float);
    match name {
        "random" => Ok(Distribution::Uniform),
        "zipf" => {
            let theta = number(1.1)?;
            if theta <= 0.0 || theta == 1.0 {
                return Err("zipf needs a theta above 0 that is not 1".to_owned());
            }
            Ok(Distribution::Zipf(theta))
        }
        "pareto" => {
            let power = number(0.2)?;
            if power <= 0.0 || power >= 1.0 {
                return Err("pareto needs a power between 0 and 1".to_owned());
            }
            Ok(Distribution::Pareto(power))
        }
        "normal" | "gauss" => {
            let deviation = number(0.0)?;
            if !(0.0..=100.0).contains(&deviation) {
                return Err("normal needs a deviation from 0 to 100 percent".to_owned());
            }
            Ok(Distribution::Normal(deviation))
        }
        "zoned" => zones(rest.unwrap_or("")).map(Distribution::Zoned),
        _ => Err(format!(
            "`{name}` is none of random, zipf, pareto, normal, zoned"
        )),
    }
}

/// `60/10:30/20:10/`: percent of the accesses, percent of the file. Sizes that are not given divide
/// what is left.
fn zones(text: &str) -> Result<Vec<(f64, f64)>, String> {
    const ZONES_MAX: usize = 256;
    let mut zones = Vec::new();
    for zone in text.split(':').filter(|zone| !zone.is_empty()) {
        let (accesses, share) = zone
            .split_once('/')
            .ok_or_else(|| format!("`{zone}` is not ACCESSES/SIZE"))?;
        let share = match share {
            "" => None,
            share => Some(f64::from(value::percentage(share)?)),
        };
        zones.push((f64::from(value::percentage(accesses)?), share));
    }
    if zones.is_empty() || zones.len() > ZONES_MAX {
        return Err("zoned needs zones, as in zoned:60/10:40/90".to_owned());
    }
    let given: f64 = zones.iter().filter_map(|zone| zone.1).sum();
    let open = zones.iter().filter(|zone| zone.1.is_none()).count();
    let each = (100.0 - given).max(0.0) / open.max(1) as f64;
    let zones: Vec<(f64, f64)> = zones
        .into_iter()
        .map(|(accesses, share)| (accesses, share.unwrap_or(each)))
        .collect();
    let sum = |part: fn(&(f64, f64)) -> f64| zones.iter().map(part).sum::<f64>();
    // Shares that were divided need not add up exactly.
    let is_all = |sum: f64| (sum - 100.0).abs() < 1e-6;
    if !is_all(sum(|zone| zone.0)) || !is_all(sum(|zone| zone.1)) {
        return Err("the accesses and the sizes of the zones must add up to 100 each".to_owned());
    }
    Ok(zones)
}

/// The longest pattern (fio's `MAX_PATTERN_SIZE`), bytes.
const PATTERN_BYTES_MAX: usize = 512;

/// `0xdeadbeef`, `"text"`, `-12`, `%o`, `'file'`, and what is put together from them.
pub fn bytes_pattern(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text.trim();
    let mut length = 0;
    while !rest.is_empty() {
        let (piece, behind) = next_piece(rest)?;
        length += match &piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Offset => 8,
        };
        pieces.push(piece);
        rest = behind;
    }
    if length == 0 || length > PATTERN_BYTES_MAX {
        return Err(format!("a pattern has 1 to {PATTERN_BYTES_MAX} bytes"));
    }
    Ok(pieces)
}

fn next_piece(text: &str) -> Result<(Piece, &str), String> {
    if let Some(rest) = text.strip_prefix("%o") {
        return Ok((Piece::Offset, rest));
    }
    if let Some(rest) = text.strip_prefix('"') {
        let (inside, rest) = rest
            .split_once('"')
            .ok_or_else(|| format!("`{text}` has no closing quotation mark"))?;
        return Ok((Piece::Bytes(inside.as_bytes().to_vec()), rest));
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let (path, rest) = rest
            .split_once('\'')
            .ok_or_else(|| format!("`{text}` has no closing quotation mark"))?;
        let bytes = pattern_file(path).map_err(|error| format!("reading {path}: {error}"))?;
        return Ok((Piece::Bytes(bytes), rest));
    }
    if let Some(rest) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = rest
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(rest.len());
        return Ok((Piece::Bytes(hex_bytes(&rest[..end])?), &rest[end..]));
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let whole = &text[..text.len() - digits.len() + end];
    let number: i64 = whole.parse().map_err(|_| {
        format!("`{text}` is no pattern: write 0xdeadbeef, \"text\", a number, %o, or 'file'")
    })?;
    let bytes = (number as i32).to_le_bytes();
    let used = match u32::try_from(number) {
        Ok(number) if number < 1 << 8 => 1,
        Ok(number) if number < 1 << 16 => 2,
        Ok(number) if number < 1 << 24 => 3,
        _ => 4,
    };
    Ok((Piece::Bytes(bytes[..used].to_vec()), &text[whole.len()..]))
}

/// The beginning of a file: as much as a pattern may have, as fio takes it.
fn pattern_file(path: &str) -> io::Result<Vec<u8>> {
    // Reading a pipe could wait for ever.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(PATTERN_BYTES_MAX as u64)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Two digits a byte, in the order in which they are written.
fn hex_bytes(digits: &str) -> Result<Vec<u8>, String> {
    if digits.is_empty() {
        return Err("0x without digits is no pattern".to_owned());
    }
    let padded = if digits.len() % 2 == 1 {
        format!("0{digits}")
    } else {
        digits.to_owned()
    };
    let pairs = (0..padded.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&padded[at..at + 2], 16).map_err(|error| error.to_string()))
        .collect()
}

/// `steadystate=iops_slope:0.3%`.
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
                "`{name}` is none of iops, iops_slope, bw, bw_slope"
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

/// `percentile_list=50:99:99.9`.
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
        return Err(format!("at most {LIST_MAX} percentiles can be asked for"));
    }
    list.sort_by(f64::total_cmp);
    Ok(list)
}
