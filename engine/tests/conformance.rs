//! Every engine against the conformance suite.

use ugeom_engine::{Choice, Engine, SyncEngine, UringEngine, open_engine};
use ugeom_testkit::engine::{Memory, conform};

#[test]
fn sync_conforms() {
    conform(&|_| Box::new(SyncEngine::new()));
}

#[test]
fn io_uring_conforms() {
    if let Err(error) = UringEngine::<Memory>::open(1) {
        return ugeom_testkit::skip("io_uring_conforms", &error.to_string());
    }
    conform(&|depth| match UringEngine::open(depth) {
        Ok(engine) => Box::new(engine),
        Err(error) => panic!("{error}"),
    });
}

#[test]
fn the_chosen_engine_says_its_name_and_why() {
    for choice in Choice::ALL {
        match open_engine::<Memory>(choice, 8) {
            Ok((engine, why)) => {
                let engine: Box<dyn Engine<Memory>> = engine;
                assert!(why.starts_with(&format!("{}: ", engine.name())), "{why}");
                assert!(choice == Choice::Auto || engine.name() == choice.name());
            }
            Err(error) => assert_eq!(choice, Choice::IoUring, "{error}"),
        }
    }
}
