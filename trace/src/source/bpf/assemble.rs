//! A few instructions of the BPF machine, with labels.
//!
//! Source: Documentation/bpf/standardization/instruction-set.rst of Linux.

use ugeom_machine::bpf::Instruction;

/// A register: 0 is the result of a call, 1 to 5 its arguments, 6 to 9 survive it, 10 is the frame.
pub(super) type Register = u8;

/// The frame pointer (r10): the stack lies below it.
pub(super) const FRAME: Register = 10;

/// How wide a load or store is.
#[derive(Clone, Copy)]
pub(super) enum Width {
    Byte = 0x10,
    Word = 0x00,
    Double = 0x18,
}

/// A place to jump to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    /// The end of the program.
    Out,
    /// The event is wanted.
    Keep,
    /// There is no room for it.
    Lost,
    /// Its thread is not to be remembered.
    Unmarked,
    /// Its thread is to be remembered.
    Mark,
    /// The bio is of direct I/O to a file.
    Direct,
    /// The page is not a part of another one.
    Whole,
    /// The inode is known.
    Inode,
    /// No file is known.
    NoFile,
}

/// A program that is being written.
#[derive(Default)]
pub(super) struct Assembler {
    code: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const STORE_CONSTANT: u8 = 0x62;
const LOAD_CONSTANT: u8 = 0x18;
/// `BPF_PSEUDO_MAP_VALUE`: the address of a byte of an array's first element.
const MAP_VALUE: u8 = 2;
/// `BPF_PSEUDO_KFUNC_CALL`: the call of a kernel function by its BTF id.
const KERNEL_CALL: u8 = 2;

impl Assembler {
    fn push(&mut self, code: u8, to: Register, from: Register, offset: i16, immediate: i32) {
        let registers = from << 4 | to;
        self.code.push(Instruction {
            code,
            registers,
            offset,
            immediate,
        });
    }

    pub(super) fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        self.push(LOAD | width as u8, to, from, offset, 0);
    }

    pub(super) fn store(&mut self, width: Width, to: Register, offset: i16, from: Register) {
        self.push(STORE | width as u8, to, from, offset, 0);
    }

    pub(super) fn store_constant(&mut self, width: Width, to: Register, offset: i16, value: i32) {
        self.push(STORE_CONSTANT | width as u8, to, 0, offset, value);
    }

    /// A whole constant of 64 bits.
    pub(super) fn constant(&mut self, to: Register, value: u64) {
        self.push(LOAD_CONSTANT, to, 0, 0, value as u32 as i32);
        self.push(0, 0, 0, 0, (value >> 32) as u32 as i32);
    }

    /// The address of a byte of an array.
    pub(super) fn array(&mut self, to: Register, descriptor: i32, offset: u32) {
        self.push(LOAD_CONSTANT, to, MAP_VALUE, 0, descriptor);
        self.push(0, 0, 0, 0, offset as i32);
    }

    pub(super) fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, to, from, 0, 0);
    }

    pub(super) fn set(&mut self, to: Register, value: i32) {
        self.push(0xb7, to, 0, 0, value);
    }

    pub(super) fn add(&mut self, to: Register, from: Register) {
        self.push(0x0f, to, from, 0, 0);
    }

    pub(super) fn subtract(&mut self, to: Register, from: Register) {
        self.push(0x1f, to, from, 0, 0);
    }

    pub(super) fn or(&mut self, to: Register, from: Register) {
        self.push(0x4f, to, from, 0, 0);
    }

    pub(super) fn and_constant(&mut self, to: Register, mask: i32) {
        self.push(0x57, to, 0, 0, mask);
    }

    pub(super) fn or_constant(&mut self, to: Register, bits: i32) {
        self.push(0x47, to, 0, 0, bits);
    }

    pub(super) fn add_constant(&mut self, to: Register, value: i32) {
        self.push(0x07, to, 0, 0, value);
    }

    pub(super) fn shift_left(&mut self, to: Register, bits: i32) {
        self.push(0x67, to, 0, 0, bits);
    }

    pub(super) fn shift_right(&mut self, to: Register, bits: i32) {
        self.push(0x77, to, 0, 0, bits);
    }

    /// `*(to + offset) += with`, and `with` becomes the value before, atomically.
    pub(super) fn fetch_add(&mut self, to: Register, offset: i16, with: Register) {
        self.push(0xdb, to, with, offset, 1);
    }

    /// A function of the kernel, by its number in include/uapi/linux/bpf.h.
    pub(super) fn call(&mut self, function: i32) {
        self.push(0x85, 0, 0, 0, function);
    }

    /// A function of the kernel that its BTF has, by its number there.
    pub(super) fn call_kernel(&mut self, function: u32) {
        self.push(0x85, 0, KERNEL_CALL, 0, function as i32);
    }

    pub(super) fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(0x05, 0, 0, 0, 0);
    }

    pub(super) fn jump_if_zero(&mut self, register: Register, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(0x15, register, 0, 0, 0);
    }

    /// Compares the low 32 bits.
    pub(super) fn jump_if_is(&mut self, register: Register, value: u32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(0x16, register, 0, 0, value as i32);
    }

    pub(super) fn jump_if_equal(&mut self, one: Register, other: Register, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(0x1d, one, other, 0, 0);
    }

    pub(super) fn jump_if_not_zero(&mut self, register: Register, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(0x55, register, 0, 0, 0);
    }

    pub(super) fn jump_if_at_least(&mut self, register: Register, value: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(0x35, register, 0, 0, value);
    }

    pub(super) fn label(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    /// The program, with `return 0` at its end.
    pub(super) fn finish(mut self) -> Vec<Instruction> {
        self.label(Label::Out);
        self.set(0, 0);
        self.push(0x95, 0, 0, 0, 0);
        for (at, label) in &self.jumps {
            let to = self.labels.iter().find(|(name, _)| name == label);
            let to = to.map_or(self.code.len() - 2, |(_, to)| *to);
            self.code[*at].offset = (to as i64 - *at as i64 - 1) as i16;
        }
        self.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_their_labels() {
        let mut program = Assembler::default();
        program.jump_if_zero(1, Label::Out);
        program.constant(2, 0x1_0000_0002);
        program.jump(Label::Keep);
        program.set(3, 1);
        program.label(Label::Keep);
        let code = program.finish();
        assert_eq!((code[0].code, code[0].offset), (0x15, 4));
        assert_eq!((code[1].immediate, code[2].immediate), (2, 1));
        assert_eq!(code[3].offset, 1);
        assert_eq!(code[5].code, 0xb7);
        assert_eq!(code[6].code, 0x95);
    }
}
