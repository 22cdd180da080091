//! Reading of a command's output as in `ugeom ab --printed`: any text is a time that a sample can
//! hold, or is refused in few words. The first byte chooses the unit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ugeom_ab::Printed;

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else { return };
    let unit = match choice % 5 {
        0 => Printed::Ns,
        1 => Printed::Us,
        2 => Printed::Ms,
        3 => Printed::S,
        _ => Printed::PerSecond,
    };
    match unit.read(&String::from_utf8_lossy(text)) {
        Ok(ns) => assert!((0.001..=3.6e12).contains(&ns)),
        Err(problem) => assert!(problem.len() < 4096 && !problem.contains(['\n', '\x1b'])),
    }
});
