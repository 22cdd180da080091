//! Every engine against the conformance suite.

mod common;

use common::makers;
use ugeom_engine::{
    Backend, Choice, Engine, EngineOptions, Faults, GuasiOptions, Simulation, open_engine,
    open_engine_with,
};
use ugeom_testkit::engine::{Memory, conform};

/// Runs the suite on engines by name, on each that the system lets us use.
macro_rules! conforms {
    ($($name:ident: $choice:ident;)*) => {
        $(#[test]
        fn $name() {
            if let Some(make) = makers(Choice::$choice) {
                conform(&make);
            }
        })*
    };
}

conforms! {
    io_uring_conforms: IoUring;
    guasi_conforms: Guasi;
    libaio_conforms: Libaio;
    sync_conforms: Sync;
    seek_conforms: Seek;
    splice_conforms: Splice;
    mmap_conforms: Mmap;
}

#[test]
fn guasi_with_the_ring_conforms() {
    let options = |depth, backend| {
        let guasi = GuasiOptions {
            backend,
            ..GuasiOptions::default()
        };
        EngineOptions::new(depth, guasi)
    };
    let ring = open_engine_with::<Memory>(Choice::Guasi, options(1, Backend::Ring));
    if ugeom_testkit::or_skip(ring).is_none() {
        return;
    }
    conform(&|depth| {
        let opened = open_engine_with(Choice::Guasi, options(depth, Backend::Auto));
        let (engine, why) = opened.unwrap();
        assert_eq!(why, "guasi: asked for; ring: the kernel allows it");
        engine
    });
}

#[test]
fn a_simulated_disk_that_is_often_short_and_interrupted_conforms() {
    for seed in 0..3 {
        let faults = Faults {
            seed,
            short: 0.5,
            interrupted: 0.5,
            ..Faults::default()
        };
        conform(&|depth| Box::new(Simulation::new(faults.clone()).engine(depth)));
    }
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
            Err(error) => {
                let optional = matches!(choice, Choice::IoUring | Choice::Libaio);
                assert!(optional, "{choice}: {error}");
            }
        }
    }
}
