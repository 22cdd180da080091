//! The cost of the bench itself, and the lower bound of a layer's cost: measured in the same rounds
//! as everything else, so that both hold for this machine and this moment.

use crate::rounds::{Case, RunResult};
use std::hint::black_box;
use ugeom_machine::clock;

/// A loop that does nothing: the share of the loop in each figure.
pub fn empty_loop(name: &str) -> Case<'static> {
    repeated(name, |_| {})
}

/// Reading the clock that runs are timed with.
pub fn clock_reading(name: &str) -> Case<'static> {
    repeated(name, |_| {
        black_box(clock::now_ns());
    })
}

/// Reading the ticks that sampled times are taken with.
pub fn ticks_reading(name: &str) -> Case<'static> {
    repeated(name, |_| {
        black_box(clock::ticks());
    })
}

/// A request on its way through bare indirect calls.
struct Passing {
    offset: u64,
    length: u64,
}

/// The least that a slicer can do: check the end, move the offset, and be called through a table.
trait Step {
    fn pass(&self, request: &mut Passing) -> bool;
}

struct Slice {
    base: u64,
    size: u64,
}

impl Step for Slice {
    fn pass(&self, request: &mut Passing) -> bool {
        if request.offset + request.length > self.size {
            return false;
        }
        request.offset += self.base;
        true
    }
}

/// A request through `depth` slicers that are nothing but an indirect call each: the reachable
/// limit for layers that are not compiled into one.
pub fn indirect_calls(name: &str, depth: usize) -> Case<'static> {
    let step = |_| {
        Box::new(Slice {
            base: 512,
            size: 1 << 50,
        }) as Box<dyn Step>
    };
    // Hidden from the compiler, which would otherwise see that all steps are of one type.
    let steps: Vec<Box<dyn Step>> = black_box((0..depth).map(step).collect());
    repeated(name, move |iteration| {
        let mut request = Passing {
            offset: (iteration & 1023) * 512,
            length: 512,
        };
        let passed = steps.iter().all(|step| step.pass(&mut request));
        black_box((passed, request.offset));
    })
}

/// A case that does `work` over and over.
pub fn repeated(name: &str, mut work: impl FnMut(u64) + 'static) -> Case<'static> {
    Case::new(name, move |iterations| {
        let start_ns = clock::now_ns();
        for iteration in 0..iterations {
            work(black_box(iteration));
        }
        Ok(RunResult::taking(clock::now_ns() - start_ns))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slicers_move_the_offset_and_mind_the_end() {
        let slice = Slice {
            base: 512,
            size: 1024,
        };
        let mut request = Passing {
            offset: 512,
            length: 512,
        };
        assert!(slice.pass(&mut request));
        assert_eq!(request.offset, 1024);
        assert!(!slice.pass(&mut request), "that is past the end");
    }

    #[test]
    fn every_floor_runs() {
        for mut case in [
            empty_loop("loop"),
            clock_reading("clock"),
            ticks_reading("ticks"),
            indirect_calls("chain", 8),
        ] {
            assert!((case.run)(1000).is_ok(), "{}", case.name);
        }
    }
}
