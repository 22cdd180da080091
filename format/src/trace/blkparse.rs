//! The lines of blkparse(1). Its default format, `%D %2c %8s %5T.%9t %5p %2a %3d `, has columns;
//! where a line keeps to them, its numbers are read in place, eight columns at a time.

use super::Kind;
use super::fields::{Fields, eight_digits, leading_number, right_aligned};

/// Columns of the device, `%3d,%-3d`, and of the blank behind them.
const DEVICE_COLUMNS: usize = 8;
/// Columns of device, processor, event and time.
const TIME_COLUMNS: usize = 36;
/// Columns of process, event and kind.
const EVENT_COLUMNS: usize = 13;

/// A request that was queued: a line with the event Q.
pub(super) struct Queued<'a> {
    /// Its device; `None` for that of the request before.
    pub(super) device: Option<&'a [u8]>,
    /// Since the beginning of the trace.
    pub(super) at_ns: u64,
    /// The kind of request; a flush has neither sectors nor data.
    pub(super) kind: Kind,
    pub(super) sector: u64,
    pub(super) sectors: u64,
}

/// The device of the last request, as it stands in its columns, if it keeps to them.
#[derive(Default)]
pub(super) struct Columns([u8; DEVICE_COLUMNS], bool);

impl Columns {
    /// The event of a line. Only requests that are queued (Q) count: what becomes of them comes
    /// later. Other lines, and the summary at the end, say nothing of requests.
    #[inline]
    pub(super) fn queued<'a>(
        &mut self,
        line: &'a [u8],
    ) -> Result<Option<Queued<'a>>, &'static str> {
        let (device, at_ns, rest) = match self.time(line) {
            Some(at_ns) => (None, at_ns, &line[TIME_COLUMNS..]),
            None => {
                let mut fields = Fields::spaced(line);
                let device = fields.text("the device is missing")?;
                if !is_device(device) {
                    return Ok(None);
                }
                fields.skip_number("the processor is missing")?;
                fields.skip_number("the number of the event is missing")?;
                let at_ns = nanoseconds(fields.text("the time is missing")?)?;
                (Some(device), at_ns, fields.rest())
            }
        };
        let request = match transfer(rest) {
            Some(kind) => extent(kind, false, Fields::spaced(&rest[EVENT_COLUMNS..]))?,
            None => request(Fields::spaced(rest))?,
        };
        let Some((kind, sector, sectors)) = request else {
            return Ok(None);
        };
        if let Some(device) = device {
            self.keep(line, device);
        }
        Ok(Some(Queued {
            device,
            at_ns,
            kind,
            sector,
            sectors,
        }))
    }

    /// The time of a line that keeps to the columns and is of the device of the line before, in ns.
    #[inline]
    fn time(&self, line: &[u8]) -> Option<u64> {
        let Self(device, true) = self else {
            return None;
        };
        let line = line.first_chunk::<TIME_COLUMNS>()?;
        let is_blank = |column: usize| line[column] == b' ';
        let digit = |column: usize| {
            let digit = line[column].wrapping_sub(b'0');
            (digit <= 9).then_some(digit)
        };
        if line[..DEVICE_COLUMNS] != *device
            || !(is_blank(10) && is_blank(19) && line[25] == b'.' && is_blank(35))
            || !(is_blank(8) || digit(8).is_some())
        {
            return None;
        }
        digit(9)?;
        right_aligned(chunk(line, 11))?;
        let [_, _, _, columns @ ..] = chunk(line, 17);
        let seconds = right_aligned_five(columns)?;
        let nanoseconds = 10 * eight_digits(chunk(line, 26))? + u64::from(digit(34)?);
        Some(seconds * 1_000_000_000 + nanoseconds)
    }

    fn keep(&mut self, line: &[u8], device: &[u8]) {
        let columns = line.first_chunk::<DEVICE_COLUMNS>();
        let columns = columns
            .filter(|columns| columns.last() == Some(&b' ') && columns.trim_ascii() == device);
        *self = columns.map_or_else(Self::default, |columns| Self(*columns, true));
    }
}

/// The fields from the process on: kind, sector and number of sectors of a queued request.
fn request(mut fields: Fields<'_>) -> Result<Option<(Kind, u64, u64)>, &'static str> {
    fields.skip_number("the process is missing")?;
    let queued = fields.text("the event is missing")? == b"Q";
    let (Ok(letters), true) = (fields.text(""), queued) else {
        return Ok(None);
    };
    match kind_of(letters) {
        Some(kind) => extent(kind, letters.contains(&b'F'), fields),
        None => Ok(None),
    }
}

/// The fields from the sector on.
#[inline]
fn extent(
    kind: Kind,
    flushes: bool,
    mut fields: Fields<'_>,
) -> Result<Option<(Kind, u64, u64)>, &'static str> {
    if kind == Kind::Sync || fields.next_is(b'[') {
        // A flush before a write without data.
        return Ok(flushes.then_some((Kind::Sync, 0, 0)));
    }
    let sector = fields.number("the sector is missing")?;
    if !fields.skips(b"+") && fields.text("the length is missing")? != b"+" {
        // A command of SCSI, whose bytes stand there.
        return Ok(None);
    }
    let sectors = fields.number("the length is missing")?;
    Ok(Some((kind, sector, sectors)))
}

/// The eight bytes at a column, which has to be a constant.
#[inline]
fn chunk(line: &[u8; TIME_COLUMNS], column: usize) -> [u8; 8] {
    std::array::from_fn(|byte| line[column + byte])
}

/// A number that fills five columns to the right.
#[inline]
fn right_aligned_five(columns: [u8; 5]) -> Option<u64> {
    let [a, b, c, d, e] = columns;
    right_aligned([b' ', b' ', b' ', a, b, c, d, e])
}

/// The kind of a queued read or write, if process, event and kind keep to the columns.
#[inline]
fn transfer(rest: &[u8]) -> Option<Kind> {
    let [p, r, o, c, s, event @ .., k, i, n, d] = *rest.first_chunk::<EVENT_COLUMNS>()?;
    if event != *b"  Q " {
        return None;
    }
    right_aligned_five([p, r, o, c, s])?;
    let word = u32::from_le_bytes([k, i, n, d]);
    let is = |letters: &[u8; 4]| word == u32::from_le_bytes(*letters);
    // Reads and writes mix at random: no branch between them.
    let reads = is(b"  R ") | is(b" RA ") | is(b" RM ") | is(b"RSM ");
    let writes = is(b"  W ") | is(b" WS ") | is(b" WM ") | is(b"WSM ");
    (reads | writes).then_some(if reads { Kind::Read } else { Kind::Write })
}

/// The kind of a request, by the letters of blkparse (RWBS).
fn kind_of(letters: &[u8]) -> Option<Kind> {
    let has = |letter: u8| letters.contains(&letter);
    match () {
        () if has(b'D') => Some(Kind::Trim),
        () if has(b'R') => Some(Kind::Read),
        () if has(b'W') => Some(Kind::Write),
        () if has(b'F') => Some(Kind::Sync),
        () => None,
    }
}

/// Whether a field is a device: its major and its minor number.
pub(super) fn is_device(field: &[u8]) -> bool {
    let mut parts = field.split(|byte| *byte == b',');
    let number = |part: Option<&[u8]>| {
        part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
    };
    number(parts.next()) && number(parts.next()) && parts.next().is_none()
}

/// Seconds with nine digits behind the point.
pub(super) fn nanoseconds(field: &[u8]) -> Result<u64, &'static str> {
    const WRONG: &str = "the time is not seconds with nine digits behind the point";
    let (seconds, digits) = leading_number(field);
    let [b'.', fraction @ ..] = &field[digits..] else {
        return Err(WRONG);
    };
    let (nanoseconds, nine) = leading_number(fraction);
    if !(1..=19).contains(&digits) || nine != 9 || fraction.len() != 9 {
        return Err(WRONG);
    }
    let ns = seconds.checked_mul(1_000_000_000);
    ns.and_then(|ns| ns.checked_add(nanoseconds)).ok_or(WRONG)
}
