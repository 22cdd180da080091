//! SHA-256 of two messages side by side, where the processor has instructions for SHA-256.
//!
//! The rounds of one message wait for each other: the instructions could take in twice as much.
//! Two messages keep them busy. [`Pair`] exists only on such processors; callers keep a hash of one
//! message beside it.

#[cfg(target_arch = "x86_64")]
mod sha_ni;
#[cfg(test)]
mod tests;

/// Length of a block, bytes.
pub const BLOCK_BYTES: usize = 64;

/// The state of a hash.
pub type State = [u32; 8];

/// The state that every hash begins with (FIPS 180-4, section 5.3.3).
pub const INITIAL: State = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// Two hashes that grow together.
pub struct Pair {
    states: [State; 2],
}

impl Pair {
    /// Two hashes that continue from a state. `None` where the processor lacks the instructions.
    #[must_use]
    pub fn from_state(state: &State) -> Option<Self> {
        is_available().then_some(Self {
            states: [*state; 2],
        })
    }

    /// Whole blocks of both messages.
    ///
    /// # Panics
    /// When the messages differ in length, or are no whole number of blocks.
    pub fn absorb(&mut self, messages: [&[u8]; 2]) {
        let [first, second] = messages;
        assert!(
            first.len() == second.len() && first.len().is_multiple_of(BLOCK_BYTES),
            "{} and {} bytes are no whole blocks of two messages of one length",
            first.len(),
            second.len()
        );
        #[cfg(target_arch = "x86_64")]
        // SAFETY: that there is a pair says that the processor has the instructions; both messages
        // have that length.
        unsafe {
            let pointers = [first.as_ptr(), second.as_ptr()];
            sha_ni::blocks(&mut self.states, pointers, first.len());
        }
    }

    /// The states.
    #[must_use]
    pub fn states(&self) -> &[State; 2] {
        &self.states
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        crate::secret::wipe(self.states.as_flattened_mut());
    }
}

/// The bytes of a state: the hash, when it is the last state.
#[must_use]
pub fn bytes_of(state: &State) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (place, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *place = word.to_be_bytes();
    }
    bytes
}

/// True when this processor has the instructions.
#[must_use]
pub fn is_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return sha_ni::is_available();
    #[cfg(not(target_arch = "x86_64"))]
    false
}
