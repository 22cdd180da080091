//! I/O priorities of operations, from when they are submitted until their last step has been handed
//! to the kernel.

use crate::op::OpKind;

/// The priority of each operation, by its index; empty while there has been none but 0.
#[derive(Debug, Default)]
pub(crate) struct Priorities {
    next: u16,
    of: Vec<u16>,
}

impl Priorities {
    /// Operations that are submitted from now on have this one.
    pub(crate) fn next(&mut self, priority: u16) {
        self.next = priority;
    }

    /// An operation is submitted.
    #[inline]
    pub(crate) fn set(&mut self, index: u32, kind: OpKind) {
        if self.next != 0 || !self.of.is_empty() {
            self.keep(index as usize, kind);
        }
    }

    fn keep(&mut self, index: usize, kind: OpKind) {
        if self.of.len() <= index {
            self.of.resize(index + 1, 0);
        }
        let transfers = matches!(kind, OpKind::Read | OpKind::Write { .. });
        self.of[index] = if transfers { self.next } else { 0 };
    }

    /// The priority of an operation.
    #[inline]
    pub(crate) fn of(&self, index: u32) -> u16 {
        self.of.get(index as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_keep_the_priority_that_they_were_submitted_with() {
        let mut priorities = Priorities::default();
        priorities.set(3, OpKind::Read);
        assert_eq!((priorities.of(3), priorities.of.len()), (0, 0));
        priorities.next(1 << 13 | 2);
        priorities.set(3, OpKind::Read);
        priorities.set(1, OpKind::Write { durable: true });
        priorities.set(0, OpKind::Flush);
        priorities.next(0);
        assert_eq!(
            [0, 1, 3, 9].map(|index| priorities.of(index)),
            [0, 1 << 13 | 2, 1 << 13 | 2, 0]
        );
        priorities.set(3, OpKind::Write { durable: false });
        assert_eq!(priorities.of(3), 0);
    }
}
