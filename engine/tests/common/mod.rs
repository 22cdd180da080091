//! Shared parts of the tests of engines.

use ugeom_engine::{Choice, Engine, open_engine};
use ugeom_testkit::engine::Memory;

/// A function that makes engines of this choice, or `None` after reporting a skip where the system
/// refuses it.
pub fn makers(choice: Choice) -> Option<impl Fn(u32) -> Box<dyn Engine<Memory>>> {
    ugeom_testkit::or_skip(open_engine::<Memory>(choice, 1))?;
    Some(move |depth| match open_engine(choice, depth) {
        Ok((engine, _)) => engine,
        Err(error) => panic!("{error}"),
    })
}
