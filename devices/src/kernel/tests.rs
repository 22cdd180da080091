//! The arithmetic on chains of files, where a layer adds nothing.

use super::*;

/// Two layers that are the same file, and a third that begins later.
fn chain(folder: &Path) -> Chain {
    let path = folder.join("file");
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    let row = |name: &str, offset_bytes| chain::ChainLayer {
        name: name.to_owned(),
        class: "FILE",
        path: path.clone(),
        file: std::fs::File::open(&path).unwrap(),
        offset_bytes,
        sector_bytes: 512,
    };
    Chain {
        rows: vec![row("upper", 0), row("lower", 0), row("later", 4096)],
        region_bytes: (1 << 20) - 4096,
        left_out: Vec::new(),
    }
}

/// A case of six passes.
fn measured(chain: &Chain, bytes: u64, depth: usize) -> Case {
    let mut random = fastrand::Rng::with_seed(7);
    let mut samples = CaseSamples::default();
    for _ in 0..6 {
        samples.push(measure(chain, (bytes, depth), 0, &mut random).unwrap());
    }
    let rows = chain.rows.iter();
    let names: Vec<_> = rows.map(|row| (row.name.clone(), row.class)).collect();
    Case {
        bytes,
        depth,
        awake: false,
        rounds: samples.rounds(),
        passes: samples.passes(),
        rows: samples.rows(&names),
        traced: None,
    }
}

#[test]
fn a_layer_that_adds_nothing_is_measured_as_nothing_within_its_interval() {
    let folder = tempfile::tempdir().unwrap();
    let chain = chain(folder.path());
    for depth in DEPTHS {
        let case = measured(&chain, 4096, depth);
        assert_eq!((case.rounds, case.rows.len()), (6 * ROUNDS_MIN, 3));
        let upper = &case.rows[0];
        let added = upper.added.as_ref().unwrap().wall_ns.unwrap();
        let read = upper.read.wall_ns.unwrap();
        assert!(
            added.low < read.estimate && added.half_width() > 0.0,
            "{case:?}"
        );
        assert!(case.rows[2].added.is_none(), "the lowest stands on nothing");
    }
}

#[test]
fn sizes_below_a_sector_are_left_out_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = chain(folder.path());
    chain.rows[1].sector_bytes = 4096;
    let mut left_out = Vec::new();
    let plan = plan(&chain, &mut left_out);
    assert!(plan.iter().all(|(bytes, _, _)| *bytes == 4096));
    assert_eq!(left_out, ["reads of 512 bytes: lower has sectors of 4096"]);
}

#[test]
fn a_read_past_the_end_names_the_layer_and_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let chain = chain(folder.path());
    let mut reader = Reader::new(&chain.rows[2], 4096, 1).unwrap();
    let error = reader.slice(&[1 << 20]).unwrap_err().to_string();
    let expected = "later: a read of 4096 bytes at offset 4294971392 ended after 0";
    assert_eq!(error, expected);
}

#[test]
fn devices_made_anew_may_have_other_numbers_and_no_other_layers() {
    let names = |names: [&str; 2]| names.map(|name| (name.to_owned(), "LOOP")).to_vec();
    let before = names(["loop1", "loop0"]);
    assert!(same(&before, &before, false));
    assert!(!same(&before, &names(["loop3", "loop2"]), false));
    assert!(same(&before, &names(["loop3", "loop2"]), true));
    assert!(!same(&before, &before[..1].to_vec(), true));
}

#[test]
fn a_result_is_saved_and_its_page_names_each_layer() {
    let folder = tempfile::tempdir().unwrap();
    let chain = chain(folder.path());
    let case = measured(&chain, 512, 1);
    let result = KernelLayers {
        schema: 1,
        program: "ugeom".to_owned(),
        experiment: EXPERIMENT.to_owned(),
        host: Host::now(),
        target: "upper".to_owned(),
        in_memory_of: Some("/dev/loop7".to_owned()),
        seed: 7,
        took_ns: 40_000_000_000,
        budget_ns: Some(3_000_000_000),
        cases: vec![Case {
            awake: true,
            traced: Some(TracedReads {
                reads: 1000,
                kernel_ns: 9000.0,
                caller_ns: 9900.0,
                layers: vec![traced::TracedLayer {
                    name: "upper".to_owned(),
                    exclusive_ns: 8765.0,
                }],
                wake_up_ns: 235.0,
                workers: vec![ugeom_trace::workers::WorkerFigures {
                    device: "upper".to_owned(),
                    starts: 1000,
                    same_processor: 250,
                }],
                lost: 0,
            }),
            ..case
        }],
        faithful: Some(Faithful {
            loops: 100_000,
            rows: Vec::new(),
        }),
        left_out: vec!["vda: EPERM".to_owned()],
    };
    let json = serde_json::to_string(&result).unwrap();
    let page = super::page(&serde_json::from_str(&json).unwrap());
    let saved = ugeom_report::Saved::new(json, page).unwrap();
    let text = saved.page().to_text(100);
    for word in [
        "upper adds",
        "lower adds",
        "left out",
        "later",
        "--kernel /dev/loop7 --bottom memory",
        "8.77",
        "25.0",
        "PROGRAM OF 2002",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains("took 40 s instead of 3 s"), "{text}");
    let screen = saved.page().to_screen(80, ugeom_report::Style::Plain);
    assert!(
        screen.lines().count() < 24 && screen.contains("upper adds"),
        "{screen}"
    );
    let html = ugeom_report::to_html(&[saved]);
    assert!(html.contains("<svg"), "no picture of the answer");
}

#[test]
fn a_time_is_never_below_zero_and_a_median_forgets_a_disturbed_round() {
    let mut samples = CaseSamples::default();
    for pass in 0..6 {
        let mut tables = [(); 3].map(|()| Blocks::new(["upper", "lower", "later"]));
        for round in 0..ROUNDS_MIN {
            // A round whose reads waited for another program.
            let wall = if round == 1 {
                1e9
            } else {
                1000.0 + (pass + round) as f64
            };
            for table in &mut tables {
                table.push_round(vec![wall + 100.0, wall, wall]).unwrap();
            }
        }
        samples.push(Pass::of(&tables));
    }
    let names = ["upper", "lower", "later"].map(|name| (name.to_owned(), "LOOP"));
    let rows = samples.rows(&names);
    let read = rows[0].read.wall_ns.unwrap();
    assert!(read.low > 1000.0 && read.estimate < 1200.0, "{read:?}");
    let added = rows[0].added.as_ref().unwrap().wall_ns.unwrap();
    assert!((added.low, added.high) == (100.0, 100.0), "{added:?}");
}
