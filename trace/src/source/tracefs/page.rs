//! Pages of a ring as `trace_pipe_raw` gives them.
//!
//! ```text
//!   u64 time of the page, word with the length of its data, data
//!   each record: u32 of type_len (5 bits) and time_delta (27 bits), then
//!     type_len 0       u32 length of itself and the data, data
//!     type_len 1..28   4 * type_len bytes of data
//!     type_len 29      padding: without time_delta up to the end of the page, else as 0
//!     type_len 30      u32: the next 2^27 ns each of the time since the last record
//!     type_len 31      u32: the time itself, 59 bits with time_delta
//! ```
//!
//! Sources: events/header_page and events/header_event of tracefs; include/linux/ring_buffer.h and
//! kernel/trace/ring_buffer.c of Linux.

/// The layout of a page of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageForm {
    /// Where the length lies.
    pub commit_at: usize,
    /// Offset of the first event in a page, bytes.
    pub data_at: usize,
    /// Bytes of a page.
    pub bytes: usize,
}

/// The low bits of the length; those above tell of lost records, which are counted elsewhere.
const LENGTH: u64 = 0xf_ffff;
/// An absolute time has so many bits.
const TIME_BITS: u32 = 59;

impl PageForm {
    /// Parses `events/header_page`: where the head of a page has which field.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = |name: &str| {
            let line = text.lines().find(|line| {
                let declared = line.trim().split(';').next().unwrap_or_default();
                declared.split_ascii_whitespace().next_back() == Some(name)
            })?;
            let value = |key: &str| {
                let mut parts = line.split(';').map(str::trim);
                let found = parts.find_map(|part| part.strip_prefix(key)?.strip_prefix(':'))?;
                found.parse::<usize>().ok().filter(|it| *it <= 1 << 24)
            };
            Some((value("offset")?, value("size")?))
        };
        let (commit_at, _) = numbers("commit")?;
        let (data_at, data_bytes) = numbers("data")?;
        (commit_at >= 8 && data_at >= commit_at + 8).then_some(Self {
            commit_at,
            data_at,
            bytes: data_at + data_bytes,
        })
    }

    /// Calls `each` with the time and the data of the records of a page; false when the page is
    /// damaged, after the records before the damage.
    pub fn records<'a>(&self, page: &'a [u8], each: &mut dyn FnMut(u64, &'a [u8])) -> bool {
        let Some(mut time_ns) = word(page, 0) else { return false };
        let Some(length) = word(page, self.commit_at) else { return false };
        let end = self.data_at + (length & LENGTH) as usize;
        let Some(mut rest) = page.get(self.data_at..end) else { return false };
        while let Some((head, tail)) = rest.split_first_chunk::<4>() {
            let head = u32::from_le_bytes(*head);
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let next = tail
                .first_chunk::<4>()
                .map(|next| u32::from_le_bytes(*next));
            let (skip, length) = match (kind, next) {
                (29, _) if delta == 0 => return true,
                (0 | 29, Some(length)) if length >= 4 => (4, length as usize - 4),
                (30 | 31, Some(_)) => (4, 0),
                (1..=28, _) => (0, 4 * kind as usize),
                _ => return false,
            };
            let more = u64::from(next.unwrap_or(0)) << 27;
            time_ns = match kind {
                30 => time_ns.wrapping_add(delta.wrapping_add(more)),
                31 => time_ns >> TIME_BITS << TIME_BITS | (delta | more) & ((1 << TIME_BITS) - 1),
                _ => time_ns.wrapping_add(delta),
            };
            let (Some(data), Some(after)) =
                (tail.get(skip..skip + length), tail.get(skip + length..))
            else {
                return false;
            };
            if kind <= 28 {
                each(time_ns, data);
            }
            rest = after;
        }
        rest.is_empty()
    }
}

fn word(page: &[u8], at: usize) -> Option<u64> {
    let bytes = page.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn page(words: &[u32]) -> Vec<u8> {
        let mut page = 1_000_u64.to_le_bytes().to_vec();
        // With the bit of lost records.
        page.extend(((4 * words.len() as u64) | (1 << 31)).to_le_bytes());
        page.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        page.resize(4096, 0);
        page
    }

    fn records(page: &[u8]) -> (Vec<(u64, usize)>, bool) {
        let form = PageForm::parse(HEADER).unwrap();
        assert_eq!((form.data_at, form.bytes), (16, 4096));
        let mut found = Vec::new();
        let whole = form.records(page, &mut |time, data| found.push((time, data.len())));
        (found, whole)
    }

    #[test]
    fn times_and_lengths_follow_from_all_types_of_records() {
        let head = |kind: u32, delta: u32| kind | delta << 5;
        let words = [
            head(2, 10),
            7,
            7, // 8 bytes at 1010
            head(0, 5),
            12,
            7,
            7, // 12 - 4 bytes at 1015
            head(30, 1),
            1, // 2^27 + 1 later
            head(1, 0),
            7,
            head(29, 3),
            8,
            7, // padding
            head(31, 9),
            0, // the time is 9
            head(1, 1),
            7,
            head(29, 0),
        ];
        let later = 1015 + (1 << 27) + 1;
        let expected = vec![(1010, 8), (1015, 8), (later, 4), (10, 4)];
        assert_eq!(records(&page(&words)), (expected, true));
    }

    #[test]
    fn a_record_beyond_the_end_of_its_page_is_damage() {
        let (found, whole) = records(&page(&[1, 7, 5, 7]));
        assert_eq!((found.len(), whole), (1, false));
        assert!(!records(&[0; 12]).1);
        assert_eq!(
            PageForm::parse("field: char data; offset:16; size:4080;"),
            None
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_records_or_damage(words: Vec<u32>, cut in 0..4096_usize) {
            let page = page(&words[..words.len().min(1000)]);
            let (found, _) = records(&page[..cut]);
            prop_assert!(found.iter().map(|(_, length)| length + 4).sum::<usize>() <= 4096);
        }
    }
}
