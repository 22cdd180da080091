//! Programs for the kernel's BPF machine, and memory that they share with this process.
//!
//! Only the parts that tracing needs: an array that is one mapped piece of memory, programs for raw
//! tracepoints whose arguments have types (`tp_btf`), and their attachment.
//!
//! Sources: bpf(2), include/uapi/linux/bpf.h,
//! Documentation/bpf/standardization/instruction-set.rst.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

const MAP_CREATE: libc::c_long = 0;
const PROG_LOAD: libc::c_long = 5;
const OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const RAW_TRACEPOINT_OPEN: libc::c_long = 17;

const MAP_TYPE_ARRAY: u32 = 2;
const PROG_TYPE_TRACING: u32 = 26;
const ATTACH_TRACE_RAW_TP: u32 = 23;
/// `BPF_F_MMAPABLE`: the program maps the array into its memory.
const MMAPABLE: u32 = 1 << 10;

/// `struct bpf_prog_info` as far as it is read, and where `recursion_misses` is in it (5.12).
const INFO_BYTES: usize = 216;
const INFO_MISSES_AT: usize = 208;

/// The text of the verifier is read so far.
const LOG_BYTES: usize = 1 << 16;

/// One instruction, as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation (`code` of `struct bpf_insn`).
    pub code: u8,
    /// Destination in the low half, source in the high half.
    pub registers: u8,
    /// Offset of a jump or of memory.
    pub offset: i16,
    /// A constant of 32 bits (`imm` of `struct bpf_insn`).
    pub immediate: i32,
}

/// An array with one element that this process and programs of the kernel both reach.
pub struct SharedArray {
    descriptor: OwnedFd,
    memory: NonNull<u8>,
    mapped_bytes: usize,
}

// SAFETY: the memory is reached through atomic words and the copies of `read_into` only, and lives
// as long as the value.
unsafe impl Send for SharedArray {}

impl SharedArray {
    /// Makes one of so many bytes, all 0.
    ///
    /// # Errors
    /// EPERM without the right to use BPF, ENOMEM, EINVAL and ENOSYS of kernels without it.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let mut attributes = [0_u8; 72];
        put(&mut attributes, 0, MAP_TYPE_ARRAY);
        put(&mut attributes, 4, 4);
        let length = u32::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        put(&mut attributes, 8, length);
        put(&mut attributes, 12, 1);
        put(&mut attributes, 16, MMAPABLE);
        let descriptor = call(MAP_CREATE, &attributes)?;
        let page = rustix::param::page_size();
        let mapped_bytes = bytes.next_multiple_of(page);
        // SAFETY: a new mapping at an address of the kernel's choice, of a length that the array
        // has, since arrays are whole pages.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                descriptor.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            descriptor,
            memory,
            mapped_bytes,
        })
    }

    /// The word at an offset that is a multiple of 8; none past the end.
    pub fn word(&self, offset: usize) -> Option<&AtomicU64> {
        let fits = offset.is_multiple_of(8) && offset.checked_add(8)? <= self.mapped_bytes;
        // SAFETY: the eight bytes lie in the mapping, are aligned, live as long as the borrow, and
        // are changed by atomic operations of the kernel's programs and of this process only.
        fits.then(|| unsafe { &*self.memory.as_ptr().add(offset).cast::<AtomicU64>() })
    }

    /// Copies words from an offset that is a multiple of 8, each as it is at some moment; false
    /// when they do not all lie in the array.
    pub fn read_into(&self, offset: usize, words: &mut [u64]) -> bool {
        for (at, word) in words.iter_mut().enumerate() {
            let Some(place) = at
                .checked_mul(8)
                .and_then(|at| self.word(at.checked_add(offset)?))
            else {
                return false;
            };
            *word = place.load(Ordering::Relaxed);
        }
        true
    }
}

impl AsFd for SharedArray {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for SharedArray {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and no reference to it outlives
        // the value.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// A program that runs at each event until this is dropped.
pub struct Attached {
    program: OwnedFd,
    attachment: Option<OwnedFd>,
}

impl Attached {
    /// Detaches the program, or attaches it again.
    ///
    /// # Errors
    /// The error of the kernel; it is detached then.
    pub fn attach(&mut self, attached: bool) -> io::Result<()> {
        match (attached, self.attachment.is_some()) {
            (true, false) => self.attachment = Some(open(&self.program)?),
            (false, true) => self.attachment = None,
            _ => {}
        }
        Ok(())
    }

    /// Events at which the program did not run, because it was running on that processor already.
    ///
    /// # Errors
    /// The error of the kernel; kernels before 5.12 do not count them: EINVAL.
    pub fn misses(&self) -> io::Result<u64> {
        let mut info = [0_u8; INFO_BYTES];
        let mut attributes = [0_u8; 16];
        put(&mut attributes, 0, self.program.as_raw_fd() as u32);
        put(&mut attributes, 4, INFO_BYTES as u32);
        put_address(&mut attributes, 8, info.as_mut_ptr());
        raw_call(OBJ_GET_INFO_BY_FD, &attributes)?;
        let misses = info[INFO_MISSES_AT..INFO_MISSES_AT + 8].try_into();
        misses.map(u64::from_ne_bytes).map_err(io::Error::other)
    }
}

/// Loads a program for a raw tracepoint, whose type in the kernel's BTF is `btf_id`, and attaches
/// it.
///
/// # Errors
/// EPERM without CAP_BPF and CAP_PERFMON; EACCES and EINVAL when the verifier refuses it, with the
/// end of its text.
pub fn attach(instructions: &[Instruction], btf_id: u32) -> io::Result<Attached> {
    let program = load(instructions, btf_id)?;
    Ok(Attached {
        attachment: Some(open(&program)?),
        program,
    })
}

/// Attaches a program to the tracepoint that it was loaded for.
fn open(program: &OwnedFd) -> io::Result<OwnedFd> {
    let mut attributes = [0_u8; 16];
    put(&mut attributes, 8, program.as_raw_fd() as u32);
    call(RAW_TRACEPOINT_OPEN, &attributes)
}

fn load(instructions: &[Instruction], btf_id: u32) -> io::Result<OwnedFd> {
    let license = CString::from(c"GPL");
    let count = u32::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut attributes = [0_u8; 120];
    put(&mut attributes, 0, PROG_TYPE_TRACING);
    put(&mut attributes, 4, count);
    put_address(&mut attributes, 8, instructions.as_ptr().cast());
    put_address(&mut attributes, 16, license.as_ptr().cast());
    put(&mut attributes, 68, ATTACH_TRACE_RAW_TP);
    put(&mut attributes, 108, btf_id);
    let first = match call(PROG_LOAD, &attributes) {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    if first.raw_os_error() == Some(libc::EPERM) {
        return Err(first);
    }
    // Again, to learn why.
    let mut log = vec![0_u8; LOG_BYTES];
    put(&mut attributes, 24, 1);
    put(&mut attributes, 28, LOG_BYTES as u32);
    put_address(&mut attributes, 32, log.as_mut_ptr());
    match call(PROG_LOAD, &attributes) {
        Ok(program) => Ok(program),
        Err(_) => {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(LOG_BYTES);
            let text = String::from_utf8_lossy(&log[..end]).into_owned();
            let reason = text
                .lines()
                .rev()
                .find(|line| !line.starts_with("processed"));
            let reason = reason.unwrap_or("no reason given").to_owned();
            Err(io::Error::new(first.kind(), format!("{first}: {reason}")))
        }
    }
}

/// bpf(2) that makes a descriptor.
fn call(command: libc::c_long, attributes: &[u8]) -> io::Result<OwnedFd> {
    let descriptor = raw_call(command, attributes)?;
    // SAFETY: a descriptor that the kernel made for this call, and that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// bpf(2) with attributes that name valid memory.
fn raw_call(command: libc::c_long, attributes: &[u8]) -> io::Result<i32> {
    // SAFETY: the attributes are as long as said. The addresses in them are of buffers that the
    // callers keep until the call returns, with their lengths beside them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            attributes.as_ptr(),
            attributes.len(),
        )
    };
    match i32::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

fn put(attributes: &mut [u8], at: usize, value: u32) {
    attributes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

fn put_address(attributes: &mut [u8], at: usize, address: *const u8) {
    attributes[at..at + 8].copy_from_slice(&(address.addr() as u64).to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no bpf(2)")]
    fn an_array_is_shared_memory_of_its_size() {
        let Ok(array) = SharedArray::new(8192) else {
            eprintln!("SKIP an_array_is_shared_memory_of_its_size: bpf(2) is not allowed");
            return;
        };
        array.word(8).unwrap().store(7, Ordering::Relaxed);
        let mut words = [1; 2];
        assert!(array.read_into(0, &mut words));
        assert_eq!(words, [0, 7]);
        assert!(array.word(8184).is_some());
        assert!(array.word(8192).is_none() && array.word(4).is_none());
        assert!(!array.read_into(8184, &mut words));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no bpf(2)")]
    fn a_program_that_is_none_is_an_error() {
        assert!(attach(&[], 0).is_err());
    }
}
