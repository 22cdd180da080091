//! The `format` file of an event, and the event as it lies in the ring.
//!
//! Source: Documentation/trace/events.rst, "Event formats".

use crate::event::{Event, EventKind, FAILED, Op};

/// Where a field lies in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    bytes: usize,
}

/// The fields of a kind of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The number by which the ring names it.
    pub id: u16,
    kind: EventKind,
    thread: Field,
    device: Option<Field>,
    sector: Option<Field>,
    sectors: Option<Field>,
    flags: Option<Field>,
    id_field: Option<Field>,
    other: Option<Field>,
    extra: Option<Field>,
}

impl Format {
    /// Reads the text of a `format` file. None when it lacks a field that the kind cannot do
    /// without.
    pub fn parse(kind: EventKind, text: &str) -> Option<Self> {
        let number = text.lines().find_map(|line| line.strip_prefix("ID:"))?;
        let field = |name: &str| text.lines().find_map(|line| field(line, name));
        let is_block = kind.tracepoint().0 == "block";
        let of_kind = |wanted: bool, name: &str| match wanted {
            true => field(name),
            false => None,
        };
        let is_fuse = matches!(kind, EventKind::FuseSend | EventKind::FuseEnd);
        let is_work = matches!(
            kind,
            EventKind::WorkQueue | EventKind::WorkStart | EventKind::WorkEnd
        );
        let format = Self {
            id: number.trim().parse().ok()?,
            kind,
            thread: match kind {
                EventKind::Run => field("next_pid")?,
                _ => field("common_pid")?,
            },
            device: match is_fuse {
                true => field("connection"),
                false => of_kind(is_block, "dev"),
            },
            sector: of_kind(is_block, "sector"),
            sectors: of_kind(is_block, "nr_sector"),
            flags: match is_fuse {
                true => field("opcode"),
                false => of_kind(is_block, "rwbs"),
            },
            id_field: match is_fuse {
                true => field("unique"),
                false => of_kind(is_work, "work"),
            },
            other: of_kind(kind == EventKind::Remap, "old_dev"),
            extra: match kind {
                EventKind::Split => field("new_sector"),
                EventKind::Complete | EventKind::BioComplete => field("error"),
                _ => of_kind(kind == EventKind::Remap, "old_sector"),
            },
        };
        let placed = format.device.is_some() && format.sector.is_some();
        let linked = format.other.is_some() && format.extra.is_some();
        let whole = match kind {
            // Their bios could be told apart by order only.
            EventKind::UringSubmit | EventKind::UringWork | EventKind::UringComplete => false,
            EventKind::Remap => placed && linked,
            EventKind::Split => placed && format.extra.is_some(),
            EventKind::Run => true,
            _ if is_block => placed,
            _ => format.id_field.is_some() && (!is_fuse || format.device.is_some()),
        };
        whole.then_some(format)
    }

    /// The event in these bytes; none when they are too short.
    pub fn event(&self, time_ns: u64, cpu: u16, data: &[u8]) -> Option<Event> {
        let value = |field: Option<Field>| match field {
            Some(field) => number(data, field),
            None => Some(0),
        };
        let sectors = value(self.sectors)? as u32;
        let extra = value(self.extra)?;
        let failed = if extra == 0 { 0 } else { FAILED };
        let extra = match self.kind {
            EventKind::Complete => (u64::from(sectors) * 512) | failed,
            EventKind::BioComplete => failed,
            _ => extra,
        };
        let op = match self.flags {
            Some(field) if matches!(self.kind, EventKind::FuseSend | EventKind::FuseEnd) => {
                Op::of_opcode(number(data, field)? as u32)
            }
            Some(field) => operation(data.get(field.offset..field.offset + field.bytes)?),
            None => Op::Read,
        };
        Some(Event {
            time_ns,
            kind: self.kind,
            cpu,
            op,
            tid: number(data, self.thread)? as u32,
            pid: 0,
            dev: value(self.device)? as u32,
            sector: value(self.sector)?,
            sectors,
            id: value(self.id_field)?,
            other: value(self.other)?,
            extra,
        })
    }
}

/// `field:TYPE NAME; offset:N; size:N; signed:N;`, if it has that name.
fn field(line: &str, wanted: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declared = parts.next()?.strip_prefix("field:")?;
    let name = declared.split_ascii_whitespace().next_back()?;
    if name.split('[').next() != Some(wanted) {
        return None;
    }
    let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
    let bytes = parts.next()?.strip_prefix("size:")?.parse().ok()?;
    // An event is at most a page of the ring long.
    let fits = offset <= 1 << 16 && bytes <= 1 << 16;
    fits.then_some(Field { offset, bytes })
}

/// A number of up to 8 bytes.
fn number(data: &[u8], field: Field) -> Option<u64> {
    let bytes = data.get(field.offset..field.offset + field.bytes)?;
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

/// The operation in `rwbs`, as `blk_fill_rwbs` of kernel/trace/blktrace.c writes it: an F of a
/// flush before it, the operation's letter, then flags.
fn operation(rwbs: &[u8]) -> Op {
    let letter = match rwbs {
        [b'F', next @ (b'W' | b'D' | b'F' | b'R' | b'N' | b'Z'), ..] => *next,
        [first, ..] => *first,
        [] => 0,
    };
    match letter {
        b'R' => Op::Read,
        b'W' => Op::Write,
        b'F' => Op::Flush,
        b'D' => Op::Discard,
        _ => Op::Other,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `events/block/block_bio_remap/format` of Linux 6.18.
    pub(in super::super) const REMAP: &str = "name: block_bio_remap\nID: 2091\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:dev_t old_dev;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t old_sector;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:40;\tsize:10;\tsigned:0;\n\
        \nprint fmt: \"%d\", REC->dev\n";

    pub(in super::super) fn remap() -> Vec<u8> {
        let mut data = vec![0; 52];
        data[0..2].copy_from_slice(&2091_u16.to_le_bytes());
        data[4..8].copy_from_slice(&77_u32.to_le_bytes());
        data[8..12].copy_from_slice(&(7_u32 << 20).to_le_bytes());
        data[16..24].copy_from_slice(&43_008_u64.to_le_bytes());
        data[24..28].copy_from_slice(&8_u32.to_le_bytes());
        data[28..32].copy_from_slice(&(259_u32 << 20).to_le_bytes());
        data[32..40].copy_from_slice(&40_960_u64.to_le_bytes());
        data[40..43].copy_from_slice(b"FWS");
        data
    }

    #[test]
    fn fields_are_found_where_the_kernel_says_they_are() {
        let format = Format::parse(EventKind::Remap, REMAP).unwrap();
        let event = format.event(5, 1, &remap()).unwrap();
        assert_eq!((event.dev, event.other), (7 << 20, 259 << 20));
        assert_eq!((event.sector, event.extra), (43_008, 40_960));
        assert_eq!((event.tid, event.sectors, event.op), (77, 8, Op::Write));
        assert_eq!(format.event(5, 1, &remap()[..40]), None);
        // The same text lacks what other kinds need.
        assert_eq!(Format::parse(EventKind::Split, REMAP), None);
        assert_eq!(Format::parse(EventKind::FuseSend, REMAP), None);
        assert_eq!(Format::parse(EventKind::Remap, "format:\n"), None);
    }

    #[test]
    fn an_operation_may_have_a_flush_before_it_and_flags_behind() {
        let of = |text: &[u8]| operation(text);
        assert_eq!((of(b"RA\0"), of(b"WFS\0")), (Op::Read, Op::Write));
        assert_eq!((of(b"FWFSM"), of(b"FF\0")), (Op::Write, Op::Flush));
        assert_eq!(
            (of(b"DE"), of(b"N\0"), of(b"")),
            (Op::Discard, Op::Other, Op::Other)
        );
    }

    proptest! {
        #[test]
        fn any_text_and_bytes_are_an_event_or_none(
            text in "(\tfield:[a-z_ ]{0,9}(dev|sector|rwbs\\[9\\]|common_pid);\toffset:[0-9]{1,21};\
                     \tsize:[0-9]{1,3};\n|ID: [0-9]{1,6}\n){0,8}",
            data: Vec<u8>,
        ) {
            for kind in EventKind::ALL {
                if let Some(format) = Format::parse(kind, &text) {
                    let _ = format.event(0, 0, &data);
                }
            }
        }
    }
}
