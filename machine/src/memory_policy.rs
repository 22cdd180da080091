//! The NUMA nodes of a thread's memory (set_mempolicy(2)).

use crate::call::done;
use std::io;

/// The most nodes of a kernel (`MAX_NUMNODES`).
const NODES_MAX: usize = 1024;

/// Bits of a word of the kernel's node masks.
const WORD_BITS: usize = u64::BITS as usize;

/// Where pages come from that a thread touches first; numbers are those of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// The node of the processor that the thread runs on.
    Local,
    /// This node as long as it has free memory.
    Prefer(usize),
    /// These nodes and no others.
    Bind(Vec<usize>),
    /// These nodes in turn.
    Interleave(Vec<usize>),
}

/// Sets the policy of the calling thread.
///
/// # Errors
/// EINVAL: a node does not exist, or has no memory that the process may use.
pub fn set_memory_policy(policy: &MemoryPolicy) -> io::Result<()> {
    let (mode, nodes) = match policy {
        MemoryPolicy::Local => (libc::MPOL_LOCAL, &[][..]),
        MemoryPolicy::Prefer(node) => (libc::MPOL_PREFERRED, std::slice::from_ref(node)),
        MemoryPolicy::Bind(nodes) => (libc::MPOL_BIND, &nodes[..]),
        MemoryPolicy::Interleave(nodes) => (libc::MPOL_INTERLEAVE, &nodes[..]),
    };
    let mut mask = [0u64; NODES_MAX / WORD_BITS];
    for &node in nodes {
        let word = mask.get_mut(node / WORD_BITS);
        let word = word.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        *word |= 1 << (node % WORD_BITS);
    }
    // The kernel reads one bit less than it is told.
    let bits = NODES_MAX + 1;
    // SAFETY: the mask has as many bits as the kernel reads, and lives until the call returns.
    done(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask.as_ptr(), bits) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mode and the first nodes of the calling thread's policy.
    fn policy() -> (i32, u64) {
        let (mut mode, mut mask) = (-1, [0u64; NODES_MAX / WORD_BITS]);
        let (address, flags) = (std::ptr::null::<u8>(), 0);
        // SAFETY: the kernel writes one number and as many bits as the mask has.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                &raw mut mode,
                mask.as_mut_ptr(),
                NODES_MAX,
                address,
                flags,
            )
        };
        assert_eq!(answer, 0, "{}", io::Error::last_os_error());
        (mode, mask[0])
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no set_mempolicy(2)")]
    fn a_thread_has_the_policy_that_it_was_given() {
        for (wanted, mode, nodes) in [
            (MemoryPolicy::Prefer(0), libc::MPOL_PREFERRED, 1),
            (MemoryPolicy::Bind(vec![0]), libc::MPOL_BIND, 1),
            (MemoryPolicy::Interleave(vec![0]), libc::MPOL_INTERLEAVE, 1),
            (MemoryPolicy::Local, libc::MPOL_LOCAL, 0),
        ] {
            let found = std::thread::spawn(move || {
                set_memory_policy(&wanted).expect("node 0 has memory");
                policy()
            });
            assert_eq!(found.join().expect("the thread"), (mode, nodes));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no set_mempolicy(2)")]
    fn a_node_that_does_not_exist_is_an_error() {
        for node in [1023, 1024, usize::MAX] {
            let error = set_memory_policy(&MemoryPolicy::Bind(vec![node])).expect_err("no node");
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{node}");
        }
    }
}
