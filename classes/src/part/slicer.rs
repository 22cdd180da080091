//! The slicer: the geom behind every partition table.
//!
//! ```text
//! provider n    |<-------- length n -------->|
//! consumer   ---+----------------------------+----------
//!            offset n
//! ```
//! A read or write of provider `n`: [`Slicer::start`] adds the slice's offset and forwards to the
//! one consumer; nothing comes back through here. DELETE, ZERO and EXTENTS go the same way, FLUSH
//! passes, GETATTR is answered for attributes that only this layer knows (`PART::type` ...) and
//! passes otherwise.
//!
//! Source for the access rule and the order of the attributes: FreeBSD `sys/geom/geom_slice.c`
//! (`g_slice_access`), `sys/geom/part/g_part.c` (`g_part_dumpconf`, `g_part_start`).

use super::{look, names};
use crate::entry::Miss;
use crate::physpath::PHYSPATH;
use std::sync::Arc;
use ugeom_machine::mutex::Mutex;
use ugeom_stack::{
    AccessChange, AttributeValue, Counts, Cx, Delta, Errno, Fact, Geom, Next, Plan, ProviderPlan,
    Request, Taster,
};

/// The part of a slice that [`Slicer::start`] needs, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    offset_bytes: u64,
    length_bytes: u64,
}

impl Slice {
    /// The place of a partition in bytes. Values beyond 64 bits are cut off, so that the sum of
    /// both cannot overflow; no media reaches there, and a request beyond its end fails below.
    fn of(part: &Part, unit_bytes: u64) -> Self {
        let whole = |bytes: u64| bytes / unit_bytes * unit_bytes;
        let offset_bytes = whole(part.first.saturating_mul(unit_bytes));
        let length_bytes = part.sectors.saturating_mul(unit_bytes);
        Self {
            offset_bytes,
            length_bytes: whole(length_bytes.min(u64::MAX - offset_bytes)),
        }
    }

    fn end_bytes(self) -> u64 {
        self.offset_bytes + self.length_bytes
    }

    fn overlaps(self, other: Self) -> bool {
        self.length_bytes != 0
            && other.length_bytes != 0
            && self.offset_bytes < other.end_bytes()
            && other.offset_bytes < self.end_bytes()
    }
}

/// A partition as a table describes it, before it is a provider.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// The provider's name, `md0s1`.
    pub name: String,
    /// Its number in the table, from 1.
    pub index: u32,
    /// First sector, in those of the provider below.
    pub first: u64,
    /// Length in the same sectors; 0 for an entry that ends before it begins.
    pub sectors: u64,
    /// Bytes a sector of the provider to be, when they are not those of the provider below.
    pub sectorsize_bytes: Option<u32>,
    /// gpart's name of the type, or `!` and the number or GUID.
    pub kind: String,
    /// The number, GUID or name of the type as it stands in the table.
    pub raw_kind: String,
    /// The name that the table gives it.
    pub label: Option<String>,
    /// The defect of the entry itself.
    pub mark: Option<String>,
    /// More facts for `show`, after the common ones.
    pub config: Vec<Fact>,
    /// Attributes that only this scheme has.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// It covers the others by convention (`c` of a disklabel).
    pub covers_others: bool,
    /// It begins inside an earlier one. [`plan`] finds out.
    pub overlaps: bool,
}

/// A partition table as the classes read it.
pub(super) struct Table {
    /// gpart's name of the scheme.
    pub scheme: &'static str,
    /// Facts about the table for `show`, after the scheme.
    pub config: Vec<Fact>,
    /// The defects of the table as a whole.
    pub damage: Vec<String>,
    pub parts: Vec<Part>,
}

/// Facts of a slicer about one of its providers beside its place.
struct Facts {
    kind: String,
    index: u32,
    mark: Option<String>,
    overlaps: bool,
    attributes: Vec<(&'static str, AttributeValue)>,
}

/// The geom of a partition table.
pub struct Slicer {
    slices: Box<[Slice]>,
    facts: Box<[Facts]>,
    scheme: &'static str,
    depth: i64,
    /// Where the provider below begins on its disk.
    disk_offset_bytes: u64,
    below: String,
    /// Changes when the provider below is resized.
    end: Mutex<End>,
    config: Vec<Fact>,
}

/// Where the media below really ends: a partition may itself reach past its disk.
struct End {
    /// The provider that ends there.
    name: String,
    /// How many bytes of the provider below there are.
    bytes: u64,
}

impl End {
    fn below(taster: &mut Taster<'_>) -> Self {
        let size = taster.mediasize_bytes();
        let bytes = look::number(taster, "PART::there").and_then(|there| u64::try_from(there).ok());
        match (bytes, look::text(taster, "PART::end")) {
            (Some(bytes), Some(name)) if bytes < size => Self { name, bytes },
            _ => Self {
                name: taster.name().to_owned(),
                bytes: size,
            },
        }
    }
}

impl Slicer {
    /// The warnings about a slice with so many bytes below.
    fn mark(&self, port: usize, end: &End) -> Option<String> {
        let (slice, facts) = (self.slices.get(port)?, self.facts.get(port)?);
        let past = slice
            .end_bytes()
            .checked_sub(end.bytes)
            .filter(|past| *past > 0);
        let past = past.map(|past| format!("reaches {past} bytes past the end of {}", end.name));
        joined([facts.mark.clone(), past])
    }

    #[cold]
    fn answer(&self, request: Request<'_>) -> Next {
        let port = usize::from(request.port());
        let (Some(slice), Some(facts)) = (self.slices.get(port), self.facts.get(port)) else {
            return request.fail(Errno::NXIO, "the table has no such partition");
        };
        let number = |value: u64| AttributeValue::Number(i64::try_from(value).unwrap_or(i64::MAX));
        let answer = match request.attribute() {
            "PART::scheme" => AttributeValue::Text(self.scheme.to_owned()),
            "PART::type" => AttributeValue::Text(facts.kind.clone()),
            "PART::offset" => number(slice.offset_bytes),
            "PART::index" => number(u64::from(facts.index)),
            "PART::depth" => AttributeValue::Number(self.depth),
            "PART::overlaps" => number(u64::from(facts.overlaps)),
            "PART::disk_offset" => {
                number(self.disk_offset_bytes.saturating_add(slice.offset_bytes))
            }
            "PART::count" => number(self.slices.len() as u64),
            "PART::there" => {
                let there = self.end.lock().bytes.saturating_sub(slice.offset_bytes);
                number(there.min(slice.length_bytes))
            }
            "PART::end" => AttributeValue::Text(self.end.lock().name.clone()),
            name => match facts.attributes.iter().find(|known| known.0 == name) {
                Some((_, value)) => value.clone(),
                None => return request.forward(0),
            },
        };
        request.answer(answer)
    }
}

impl Geom for Slicer {
    #[inline]
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let Some(slice) = self.slices.get(usize::from(request.port())) else {
            return request.fail(Errno::NXIO, "the table has no such partition");
        };
        // Cannot overflow (see `Slice::of`). For FLUSH the core sets the offset anew.
        let offset = request.offset() + slice.offset_bytes;
        request.set_offset(offset);
        request.forward(0)
    }

    fn shift(&self, port: u16) -> Option<u64> {
        let slice = self.slices.get(usize::from(port))?;
        Some(slice.offset_bytes)
    }

    fn attribute(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        self.answer(request)
    }

    /// GEOM's slice rule: what overlaps must not be written while it is held exclusively, nor held
    /// exclusively while it is written; and one exclusive count below while anything is open.
    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        let port = usize::from(change.port);
        if !change.delta.only_closes()
            && let (Some(slice), Some(now)) = (self.slices.get(port), change.providers.get(port))
        {
            let after = now.after(change.delta)?;
            let refuses = |(other, (place, held)): (usize, (&Slice, &Counts))| {
                other != port
                    && slice.overlaps(*place)
                    && (after.write > 0 && held.exclusive > 0
                        || after.exclusive > 0 && held.write > 0)
            };
            let others = self.slices.iter().zip(change.providers).enumerate();
            if others.into_iter().any(refuses) {
                return Err(Errno::PERM);
            }
        }
        Ok(change.exclusive_while_open())
    }

    fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        let mut end = self.end.lock();
        *end = End {
            name: self.below.clone(),
            bytes: mediasize_bytes,
        };
        let sizes = self.slices.iter().enumerate();
        Some(
            sizes
                .map(|(port, slice)| (slice.length_bytes, self.mark(port, &end)))
                .collect(),
        )
    }

    fn config(&self) -> Vec<Fact> {
        self.config.clone()
    }
}

/// The partitions of a provider, numbered from 1 in the order of the table.
pub(super) fn numbered<P>(
    below: &str,
    partitions: &[P],
    part: impl Fn(&str, u32, &P) -> Part,
) -> Vec<Part> {
    let numbers = (1..).zip(partitions);
    Vec::from_iter(numbers.map(|(number, partition)| part(below, number, partition)))
}

/// The geom and providers for a table with partitions.
pub(super) fn plan(taster: &mut Taster<'_>, table: Table) -> Result<Plan, Miss> {
    plan_as(taster, table, |slicer| Arc::new(slicer))
}

/// The same with a geom that `around` makes of the slicer.
pub(super) fn plan_as(
    taster: &mut Taster<'_>,
    mut table: Table,
    around: impl FnOnce(Slicer) -> Arc<dyn Geom>,
) -> Result<Plan, Miss> {
    if table.parts.is_empty() {
        return Err(Miss::absent("its table has no partitions"));
    }
    mark_overlaps(&mut table.parts);
    let unit = u64::from(taster.sectorsize_bytes());
    let slices: Box<[Slice]> = table
        .parts
        .iter()
        .map(|part| Slice::of(part, unit))
        .collect();
    append_to_physpath(taster, &mut table);
    let facts = table.parts.iter().map(|part| Facts {
        kind: part.kind.clone(),
        index: part.index,
        mark: part.mark.clone(),
        overlaps: part.overlaps,
        attributes: part.attributes.clone(),
    });
    let depth = look::number(taster, "PART::depth").map_or(0, |below| below.saturating_add(1));
    let slicer = Slicer {
        facts: facts.collect(),
        scheme: table.scheme,
        depth,
        disk_offset_bytes: look::disk_offset_bytes(taster),
        below: taster.name().to_owned(),
        end: Mutex::new(End::below(taster)),
        config: table_config(&table),
        slices,
    };
    let below = taster.provider();
    let end = slicer.end.lock();
    let provider = |(port, part): (usize, &Part)| {
        let slice = slicer.slices[port];
        let stripe = below.stripesize_bytes;
        let phase = below.stripeoffset_bytes.wrapping_add(slice.offset_bytes);
        ProviderPlan {
            name: part.name.clone(),
            mediasize_bytes: slice.length_bytes,
            sectorsize_bytes: part.sectorsize_bytes.unwrap_or(below.sectorsize_bytes),
            stripesize_bytes: stripe,
            stripeoffset_bytes: phase.checked_rem(stripe).unwrap_or(phase),
            // A table counts whole sectors.
            padding_bytes: 0,
            mark: slicer.mark(port, &end),
            config: part_config(part, slice, unit),
        }
    };
    let providers = table.parts.iter().enumerate().map(provider).collect();
    drop(end);
    let name = below.name.clone();
    Ok(Plan {
        name,
        geom: around(slicer),
        providers,
    })
}

/// Gives each partition the physical path of the provider below, with its suffix. A provider
/// without a path has partitions without one.
fn append_to_physpath(taster: &mut Taster<'_>, table: &mut Table) {
    let path = look::text(taster, PHYSPATH).filter(|path| !path.is_empty());
    let Some(path) = path else { return };
    for part in &mut table.parts {
        let suffix = match part.name.strip_prefix(taster.name()) {
            Some(suffix) if table.scheme != names::EBR => suffix.to_owned(),
            // It is named after the disk, not after the provider below.
            _ => format!("s{}", part.index),
        };
        let own = AttributeValue::Text(format!("{path}/{suffix}"));
        part.attributes.push((PHYSPATH, own));
    }
}

/// As gpart's confxml names things: `scheme`, `state`, then the scheme's own.
fn table_config(table: &Table) -> Vec<Fact> {
    let is_whole = table.damage.is_empty();
    let state = if is_whole { "OK" } else { "CORRUPT" };
    let mut config = vec![
        ("scheme", table.scheme.to_owned()),
        ("state", state.to_owned()),
    ];
    config.extend(table.config.iter().cloned());
    let damage = table.damage.iter();
    config.extend(damage.map(|damage| ("damage", damage.clone())));
    config
}

fn part_config(part: &Part, slice: Slice, unit_bytes: u64) -> Vec<Fact> {
    let end = (u128::from(part.first) + u128::from(part.sectors)).saturating_sub(1);
    // Tables can count further than the slice does.
    let length = u128::from(part.sectors) * u128::from(unit_bytes);
    let mut config = vec![
        ("start", part.first.to_string()),
        ("end", end.to_string()),
        ("index", part.index.to_string()),
        ("type", part.kind.clone()),
        ("offset", slice.offset_bytes.to_string()),
        ("length", length.to_string()),
    ];
    config.extend(part.label.clone().map(|label| ("label", label)));
    config.push(("rawtype", part.raw_kind.clone()));
    config.extend(part.config.iter().cloned());
    config
}

/// Marks each partition that begins inside an earlier one.
fn mark_overlaps(parts: &mut [Part]) {
    let counted = |part: &Part| part.sectors != 0 && !part.covers_others;
    let mut order: Vec<usize> = (0..parts.len()).filter(|&at| counted(&parts[at])).collect();
    order.sort_by_key(|&at| (parts[at].first, parts[at].index));
    let mut furthest: Option<(usize, u64)> = None;
    for at in order {
        let end = parts[at].first.saturating_add(parts[at].sectors);
        if let Some((other, reach)) = furthest
            && parts[at].first < reach
        {
            let overlap = format!("overlaps {}", parts[other].name);
            parts[at].mark = joined([parts[at].mark.take(), Some(overlap)]);
            parts[at].overlaps = true;
        }
        if furthest.is_none_or(|(_, reach)| end > reach) {
            furthest = Some((at, end));
        }
    }
}

fn joined(marks: [Option<String>; 2]) -> Option<String> {
    let marks: Vec<String> = marks.into_iter().flatten().collect();
    (!marks.is_empty()).then(|| marks.join("; "))
}
