//! Reads by the class `nbd`, so many at a time.

use crate::shared::Failure;
use std::time::{Duration, Instant};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Draft, Opened};

/// Reads in a second, of `length` bytes each and `depth` at a time, over a time; `place` gives the
/// offset of the next.
pub(crate) fn iops(
    channel: &mut Channel,
    opened: &Opened,
    (length, depth): (usize, usize),
    run: Duration,
    mut place: impl FnMut() -> u64,
) -> Result<f64, Failure> {
    let mut idle: Vec<Draft> = Vec::new();
    for _ in 0..depth {
        let bio = channel.bio().ok_or("no bio")?;
        idle.push(bio.read(0, Buffer::new(length)));
    }
    let (begin, mut done, mut in_flight) = (Instant::now(), 0, 0);
    loop {
        while begin.elapsed() < run
            && let Some(draft) = idle.pop()
        {
            channel.submit(opened, draft.at(place()));
            in_flight += 1;
        }
        if in_flight == 0 {
            return Ok(f64::from(done.max(1)) / begin.elapsed().as_secs_f64());
        }
        channel.wait(Some(Duration::from_secs(60)));
        while let Some(finished) = channel.finished() {
            let result = finished.result();
            result.map_err(|errno| format!("a read failed: {errno:?}"))?;
            (done, in_flight) = (done + 1, in_flight - 1);
            idle.push(finished.again());
        }
    }
}
