//! Where events come from: [`bpf`] needs CAP_BPF, CAP_PERFMON and the kernel's BTF, and its events
//! carry the addresses of bios and requests.

pub mod bpf;

use crate::event::{Event, Kind};

/// What is to be recorded.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Kinds of events; those that the kernel does not have are left out.
    pub kinds: Vec<Kind>,
    /// Devices, by their numbers; none for all.
    pub devices: Vec<u32>,
    /// Devices whose submitters are followed until they run again.
    pub tops: Vec<u32>,
    /// Addresses of the functions whose work is recorded.
    pub functions: Vec<u64>,
    /// Memory for each processor's events, bytes.
    pub ring_bytes: usize,
}

/// A source that runs until it is dropped.
pub trait Source: Send {
    /// Its name in results.
    fn name(&self) -> &'static str;

    /// The kinds of events that it gives.
    fn kinds(&self) -> &[Kind];

    /// Opens or closes it without detaching.
    fn gate(&mut self, open: bool);

    /// Reads what has happened since the last call; the events of a processor come in the order
    /// in which it took their slots.
    ///
    /// # Errors
    /// What the kernel answers.
    fn read(&mut self, events: &mut Vec<Event>) -> std::io::Result<()>;

    /// Events that were lost so far.
    fn lost(&self) -> u64;
}

/// Opens the first of the sources that works.
///
/// # Errors
/// Why each one did not.
pub fn open(wish: &Wish) -> Result<Box<dyn Source>, String> {
    match bpf::open(wish) {
        Ok(programs) => Ok(Box::new(programs)),
        Err(why) => Err(format!("bpf: {why}")),
    }
}

/// The addresses of functions of the kernel, from the text of `/proc/kallsyms`; none where it
/// hides them (sysctl kernel.kptr_restrict).
#[must_use]
pub fn addresses(kallsyms: &str, names: &[&str]) -> Vec<u64> {
    let address = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (address, name) = (words.next()?, words.nth(1)?);
        let address = u64::from_str_radix(address, 16).ok()?;
        (address != 0 && names.contains(&name)).then_some(address)
    };
    kallsyms.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_their_names_and_hidden_ones_are_not() {
        let text = "ffffffff81000000 T _text\nffffffff81a0 t loop_workfn\t[loop]\n\
                    0000000000000000 t loop_rootcg_workfn\nbad\n";
        assert_eq!(
            addresses(text, &["loop_workfn", "loop_rootcg_workfn"]),
            [0xffff_ffff_81a0]
        );
    }
}
