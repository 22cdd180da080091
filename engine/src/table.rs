//! The operations in flight: slots that are used again and again, and lists threaded through them,
//! so that nothing is allocated once as many operations have been in flight as ever will be.

use crate::op::{Errno, Op, Ticket};
use crate::progress::Progress;

/// The end of a list.
const NONE: u32 = u32::MAX;

/// Where an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationState {
    /// Nowhere: the slot is free.
    Free,
    /// Waiting in the engine to be started.
    Queued,
    /// In the hands of the kernel.
    Kernel,
    /// Ended, waiting to be reaped.
    Ready(Result<u64, Errno>),
}

/// One operation in flight.
pub(crate) struct Slot<M> {
    pub memory: Option<M>,
    pub op: Op,
    pub progress: Progress,
    pub place: OperationState,
    /// The operation was counted in at its file.
    pub holds_file: bool,
    /// The caller wishes an early end.
    pub cancelled: bool,
    serial: u32,
    next: u32,
    previous: u32,
}

/// All operations in flight of an engine.
pub(crate) struct Table<M> {
    slots: Vec<Slot<M>>,
    /// The slots that are free; the one freed last is used first, while it is in the cache.
    free: Vec<u32>,
    live: usize,
}

/// A queue of slots, first in first out.
pub(crate) struct List {
    head: u32,
    tail: u32,
}

impl List {
    pub const fn new() -> List {
        List {
            head: NONE,
            tail: NONE,
        }
    }

    /// The slot at the front.
    pub fn front(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }
}

impl<M> Table<M> {
    pub fn new() -> Table<M> {
        Table {
            slots: Vec::new(),
            free: Vec::new(),
            live: 0,
        }
    }

    /// Number of operations in flight.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Takes an operation in. The slot is in no list.
    pub fn insert(&mut self, op: Op, memory: M) -> u32 {
        self.live += 1;
        if let Some(index) = self.free.pop() {
            let slot = self.slot(index);
            slot.memory = Some(memory);
            slot.op = op;
            slot.progress.reset();
            slot.place = OperationState::Queued;
            slot.holds_file = false;
            slot.cancelled = false;
            slot.serial = slot.serial.wrapping_add(1);
            return index;
        }
        let index = u32::try_from(self.slots.len()).unwrap_or(NONE);
        assert!(index < NONE, "more than 2^32 operations in flight");
        self.slots.push(Slot {
            memory: Some(memory),
            op,
            progress: Progress::default(),
            place: OperationState::Queued,
            holds_file: false,
            cancelled: false,
            serial: 0,
            next: NONE,
            previous: NONE,
        });
        index
    }

    /// Frees a slot that is in no list, and gives its memory back.
    pub fn remove(&mut self, index: u32) -> Option<M> {
        self.live -= 1;
        self.free.push(index);
        let slot = self.slot(index);
        slot.place = OperationState::Free;
        slot.memory.take()
    }

    pub fn slot(&mut self, index: u32) -> &mut Slot<M> {
        &mut self.slots[index as usize]
    }

    pub fn ticket(&self, index: u32) -> Ticket {
        Ticket {
            index,
            serial: self.slots[index as usize].serial,
        }
    }

    /// The slot of an operation that is still in flight.
    pub fn find(&self, ticket: Ticket) -> Option<u32> {
        let slot = self.slots.get(ticket.index as usize)?;
        (slot.serial == ticket.serial && slot.place != OperationState::Free).then_some(ticket.index)
    }

    /// The slots in the hands of the kernel.
    pub fn in_kernel(&self) -> impl Iterator<Item = u32> {
        let numbered = (0u32..).zip(&self.slots);
        numbered
            .filter(|(_, slot)| slot.place == OperationState::Kernel)
            .map(|(index, _)| index)
    }

    /// Appends a slot that is in no list.
    pub fn push(&mut self, list: &mut List, index: u32) {
        let last = list.tail;
        self.link(list, index, last, NONE);
    }

    /// Puts a slot that is in no list before all others.
    pub fn push_front(&mut self, list: &mut List, index: u32) {
        let first = list.head;
        self.link(list, index, NONE, first);
    }

    /// Takes the slot at the front.
    pub fn pop(&mut self, list: &mut List) -> Option<u32> {
        let index = list.front()?;
        self.unlink(list, index);
        Some(index)
    }

    /// Takes a slot out of the list in which it is.
    pub fn unlink(&mut self, list: &mut List, index: u32) {
        let (next, previous) = (self.slot(index).next, self.slot(index).previous);
        self.follow(list, previous, next);
        self.precede(list, next, previous);
    }

    /// Puts a slot between two neighbours. Inlined: each caller knows one of them to be `NONE`.
    #[inline(always)]
    fn link(&mut self, list: &mut List, index: u32, previous: u32, next: u32) {
        let slot = self.slot(index);
        slot.next = next;
        slot.previous = previous;
        self.follow(list, previous, index);
        self.precede(list, next, index);
    }

    /// Sets the successor of a slot; the list's head where there is no slot.
    #[inline(always)]
    fn follow(&mut self, list: &mut List, index: u32, next: u32) {
        match index {
            NONE => list.head = next,
            index => self.slot(index).next = next,
        }
    }

    /// Sets the predecessor of a slot; the list's tail where there is no slot.
    #[inline(always)]
    fn precede(&mut self, list: &mut List, index: u32, previous: u32) {
        match index {
            NONE => list.tail = previous,
            index => self.slot(index).previous = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{FileId, OpKind};

    fn op() -> Op {
        let file = FileId {
            index: 0,
            serial: 0,
        };
        Op {
            kind: OpKind::Read,
            file,
            offset: 0,
            length: 0,
        }
    }

    #[test]
    fn a_list_hands_back_in_order_and_lets_go_of_any_slot() {
        let mut table = Table::new();
        let mut list = List::new();
        for value in 0..5 {
            let index = table.insert(op(), value);
            table.push(&mut list, index);
        }
        table.unlink(&mut list, 2);
        table.unlink(&mut list, 0);
        table.unlink(&mut list, 4);
        assert_eq!(
            [table.pop(&mut list), table.pop(&mut list)],
            [Some(1), Some(3)]
        );
        assert_eq!(list.front(), None);
        assert_eq!(table.pop(&mut list), None);
    }

    #[test]
    fn a_freed_slot_is_used_again_under_another_ticket() {
        let mut table = Table::new();
        let indexes: Vec<u32> = (0..3).map(|value| table.insert(op(), value)).collect();
        let old = table.ticket(indexes[1]);
        assert_eq!(table.remove(indexes[1]), Some(1));
        assert_eq!(table.find(old), None);
        assert_eq!(table.remove(indexes[2]), Some(2));
        assert_eq!(table.insert(op(), 12), indexes[2]);
        assert_eq!(table.insert(op(), 11), indexes[1]);
        assert_eq!(table.insert(op(), 13), 3);
        assert_eq!(table.find(old), None);
        assert_eq!(table.find(table.ticket(indexes[1])), Some(indexes[1]));
        assert_eq!(table.live(), 4);
    }
}
