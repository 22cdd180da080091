//! Writes that are lost: they cannot be written to the layer below.

/// Bytes that are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Number of bytes that are lost.
    pub bytes: u64,
    /// Where the first of them was to be written.
    pub first_offset: Option<u64>,
    /// Where the last of them ends.
    pub end: u64,
}

impl Lost {
    pub(in crate::cache) fn add(&mut self, offset: u64, bytes: u64) {
        if bytes > 0 {
            self.bytes += bytes;
            let first = self.first_offset.get_or_insert(offset);
            *first = offset.min(*first);
            self.end = self.end.max(offset.saturating_add(bytes));
        }
    }
}
