//! PBKDF2 with HMAC-SHA512 (RFC 8018, section 5.2), within a time.
//!
//! The number of rounds comes from the metadata, which an attacker may have written: up to 2^31
//! take half an hour. So a few rounds are timed first, and a number that would take too long is
//! refused.

use super::error::EliKeyError;
use super::hmac_sha512::{KEY_BYTES, finish, keyed};
use std::time::{Duration, Instant};
use ugeom_machine::secret::{self, Secret};

/// How long deriving a key may take unless the user says otherwise.
pub const TIME_MAX: Duration = Duration::from_secs(60);
/// Above this the user is told how long it will take.
const SAY_ABOVE: Duration = Duration::from_secs(5);
/// Rounds between two looks at the clock and at the wish to stop.
const STEP_ROUNDS: u32 = 2048;

/// How long deriving a key may take, and whether it is still wanted.
pub struct KdfLimit<'a> {
    /// A key that takes longer by a first estimate is refused before the work begins.
    pub time_max: Duration,
    /// Asked now and then; true ends the work.
    pub is_cancelled: &'a dyn Fn() -> bool,
}

impl Default for KdfLimit<'_> {
    fn default() -> Self {
        Self {
            time_max: TIME_MAX,
            is_cancelled: &|| false,
        }
    }
}

/// The first 64 bytes of PBKDF2-HMAC-SHA512.
///
/// # Errors
/// `TooSlow`, before more than a few thousand rounds are done; `Cancelled`; `Memory`.
pub(super) fn pbkdf2(
    passphrase: &[u8],
    salt: &[u8],
    rounds: u32,
    limit: &KdfLimit<'_>,
) -> Result<Secret<[u8; KEY_BYTES]>, EliKeyError> {
    let mac = Secret::new(|| keyed(passphrase))?;
    let mut last = Secret::new(|| [0; KEY_BYTES])?;
    let mut sum = Secret::new(|| [0; KEY_BYTES])?;
    finish(mac.clone(), &[salt, &1_u32.to_be_bytes()], &mut last);
    sum.copy_from_slice(&last[..]);
    let start = Instant::now();
    let mut done = 1;
    while done < rounds {
        let step = STEP_ROUNDS.min(rounds - done);
        for _ in 0..step {
            let before = *last;
            finish(mac.clone(), &[&before], &mut last);
            for (sum, byte) in sum.iter_mut().zip(last.iter()) {
                *sum ^= byte;
            }
        }
        if done == 1 {
            within(limit, rounds, estimate(start.elapsed(), step, rounds))?;
        }
        done += step;
        if (limit.is_cancelled)() {
            return Err(EliKeyError::Cancelled);
        }
    }
    secret::scrub_stack();
    Ok(sum)
}

fn estimate(took: Duration, step: u32, rounds: u32) -> Duration {
    took.mul_f64(f64::from(rounds) / f64::from(step))
}

fn within(limit: &KdfLimit<'_>, iterations: u32, estimate: Duration) -> Result<(), EliKeyError> {
    if estimate > limit.time_max {
        return Err(EliKeyError::TooSlow {
            iterations,
            estimate,
            limit: limit.time_max,
        });
    }
    if estimate > SAY_ABOVE {
        log::warn!("{iterations} iterations of PBKDF2 take about {estimate:.0?}");
    }
    Ok(())
}

/// How many rounds take about so long here, for a new passphrase.
pub(crate) fn rounds_within(time: Duration) -> Result<u32, EliKeyError> {
    let unlimited = KdfLimit {
        time_max: Duration::MAX,
        ..KdfLimit::default()
    };
    let mut rounds = 4 * STEP_ROUNDS;
    loop {
        let start = Instant::now();
        pbkdf2(b"passphrase", &[0; 64], rounds, &unlimited)?;
        let took = start.elapsed();
        if took >= time / 8 || rounds > u32::MAX / 4 {
            let wanted = f64::from(rounds) * time.as_secs_f64() / took.as_secs_f64().max(1e-9);
            return Ok(wanted.clamp(1.0, f64::from(i32::MAX)) as u32);
        }
        rounds *= 2;
    }
}
