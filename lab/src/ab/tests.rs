//! Whole experiments on targets and commands, and the sentences for known samples.

use super::*;
use std::sync::atomic::AtomicBool;
use ugeom_harness::compare::Loaded;
use ugeom_harness::document::Document as Json;
use ugeom_harness::{Machine, Unfinished};
use ugeom_measure::Verdict;

fn target(text: &str) -> Side {
    Side::Target(text.to_owned())
}

fn command(text: &str) -> Side {
    Side::Command(text.to_owned())
}

fn options(a: Side, b: Side) -> Options {
    Options {
        subject: Subject {
            a,
            b,
            load: Load {
                size_bytes: 512,
                ..Load::default()
            },
            printed: None,
            confidence: 0.95,
            same_within: 0.01,
            set: Vec::new(),
            set_b: Vec::new(),
        },
        rounds: Some(5),
        budget_ns: BUDGET_NS,
        run_ns: 1_000_000,
        seed: Some(4),
    }
}

fn measured(options: &Options) -> Result<Document, HarnessError> {
    let cancelled = AtomicBool::new(false);
    let mut control = Control {
        progress: &mut |_| (),
        cancelled: &cancelled,
    };
    run(options, &Jobs::none(), &Machine, &mut control)
}

/// A result whose times in ns are given, round by round: A, B, A again.
fn made_up(rounds: u64, ns: impl Fn(usize, u64) -> u64) -> Document {
    let mut document = measured(&options(target("zero"), target("zero"))).unwrap();
    let template = document.processes[0].rounds[0].clone();
    let round = |number: u64| {
        let mut round = template.clone();
        for (cell, sample) in round.samples.iter_mut().enumerate() {
            (sample.iterations, sample.wall_ns) = (1000, 1000 * ns(cell, number));
        }
        round
    };
    document.processes[0].rounds = (0..rounds).map(round).collect();
    document
}

fn wobble(cell: usize, round: u64) -> u64 {
    (round * 7 + cell as u64 * 3 + round * round) % 11
}

#[test]
fn a_slow_target_is_slower_and_the_result_can_be_saved() {
    let document = measured(&options(target("zero"), target("zero | nop:delay=20ms"))).unwrap();
    assert_eq!(document.processes[0].cells, CELLS);
    assert_eq!(document.rounds(), 5);
    let answer = answer(&document);
    assert!(
        answer.sentence.contains(" slower than A: "),
        "{}",
        answer.sentence
    );
    let text = document.to_json().unwrap();
    let saved = Json::<Subject>::from_json(&text, EXPERIMENT).unwrap();
    assert_eq!(super::answer(&saved), answer);
    let shown = page(&saved).to_text(100);
    assert!(shown.contains(&answer.sentence[..20]), "{shown}");
}

#[test]
fn one_target_is_compared_with_itself_set_otherwise() {
    let mut options = options(target("zero"), target("zero"));
    options.subject.set = vec!["statistics=counts".to_owned()];
    options.subject.set_b = vec!["dispatch=queued".to_owned(), "spin=0".to_owned()];
    let document = measured(&options).unwrap();
    let blocks = document.blocks();
    let least = |cell| {
        blocks
            .values(cell)
            .unwrap()
            .into_iter()
            .fold(f64::MAX, f64::min)
    };
    // Two hand-overs to threads that sleep take microseconds, a call some tens of nanoseconds.
    assert!(least(1) > 2.0 * least(0), "{:?}", blocks.rounds());
    let shown = page(&document).to_text(100);
    let asked = "ugeom ab --set statistics=counts --set-b dispatch=queued --set-b spin=0 zero zero";
    assert!(shown.contains(asked), "{shown}");
    options.subject.set_b = vec!["dispatch=sideways".to_owned()];
    let refused = measured(&options).unwrap_err().to_string();
    assert!(refused.contains("dispatch=sideways: "), "{refused}");
}

#[test]
fn reads_at_once_and_at_random_are_whole_and_counted() {
    for (random, depth) in [(false, 1), (true, 1), (false, 8), (true, 8)] {
        let mut options = options(target("md:1m"), target("md:1m | nop"));
        options.subject.load = Load {
            size_bytes: 4096,
            random,
            depth,
        };
        let document = measured(&options).unwrap();
        for sample in &document.processes[0].rounds[4].samples {
            assert_eq!(sample.work.transactions, sample.iterations);
            assert_eq!(sample.work.bytes, 4096 * sample.iterations);
        }
    }
}

#[test]
fn a_target_that_cannot_be_read_so_is_refused_by_name() {
    let refused = |text: &str, size_bytes| {
        let mut options = options(target("zero"), target(text));
        options.subject.load.size_bytes = size_bytes;
        measured(&options).unwrap_err().to_string()
    };
    assert!(refused("md:64k", 131_072).contains("it holds 65536 bytes"));
    assert!(refused("md:1m,sectorsize=4k", 512).contains("its sectors of 4096"));
    assert!(refused("/no/such/disk", 512).contains("/no/such/disk"));
    assert!(refused("zero | nop:rfail=100%", 512).contains("B"));
}

#[test]
fn what_was_measured_before_a_failure_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let count = count.display();
    // It fails from the twentieth time on: behind the trials, before the last round.
    let failing = format!("echo >> {count}; test $(wc -l < {count}) -lt 20");
    let mut options = options(command("true"), command(&failing));
    options.run_ns = 1;
    options.rounds = Some(20);
    let document = measured(&options).unwrap();
    let failure = document.processes[0].failure.as_ref().expect("a failure");
    assert!(document.rounds() >= 3 && document.rounds() < 20);
    assert!(failure.cell == "B" && failure.error.contains("exit status: 1"));
    assert!(page(&document).to_text(100).contains("FAILED"));
}

#[test]
fn commands_that_print_their_time_are_believed() {
    let mut options = options(command("echo 2.5 ms"), command("echo 5.0 ms"));
    options.subject.printed = Some(Printed::Ms);
    let document = measured(&options).unwrap();
    let blocks = document.blocks();
    assert_eq!(blocks.values(1).unwrap(), [5e6; 5]);
    assert_eq!(
        answer(&document).sentence,
        "B takes exactly 5 ms and A exactly 2.50 ms in each of 5 rounds: without any spread there \
         is nothing to judge."
    );
}

#[test]
fn the_processor_time_of_commands_is_that_of_the_children() {
    let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let document = measured(&options(command("sleep 0.05"), command(busy))).unwrap();
    let cpu = |cell: usize| {
        let samples = document.processes[0].rounds.iter();
        let used = samples.map(|round| {
            let sample = &round.samples[cell];
            (sample.cpu.user_ns + sample.cpu.system_ns) / sample.iterations
        });
        used.min().unwrap()
    };
    assert!(cpu(1) > 2 * cpu(0), "{} {}", cpu(0), cpu(1));
}

#[test]
fn the_sentence_says_faster_slower_same_or_what_it_would_take() {
    let faster = made_up(20, |cell, round| match cell {
        1 => 900 + wobble(1, round),
        _ => 1000 + wobble(cell, round),
    });
    let said = answer(&faster);
    assert!(said.sentence.starts_with("B is 10"), "{}", said.sentence);
    assert!(
        said.sentence
            .contains(" faster than A: 904 ns against 1.01 us"),
        "{}",
        said.sentence
    );
    let same = made_up(20, |cell, round| 10_000 + wobble(cell, round));
    let said = answer(&same);
    assert!(
        said.sentence
            .starts_with("B and A are the same within 1 %: B takes 0.0")
    );
    assert!(matches!(said.verdict, Some(Verdict::SameWithin { .. })));
    // Differences of up to a tenth: 1 % is far below what 20 rounds can show.
    let open = made_up(20, |cell, round| 100 + wobble(cell, round));
    let said = answer(&open);
    assert!(
        said.sentence
            .starts_with("No difference is proven: B takes "),
        "{}",
        said.sentence
    );
    let needed = said.rounds_needed.unwrap();
    assert!((50..5000).contains(&needed), "{needed}");
    assert!(
        said.sentence.contains("in 80 of 100 tries by"),
        "{}",
        said.sentence
    );
    let few = made_up(2, |cell, round| 100 + wobble(cell, round));
    assert!(answer(&few).sentence.contains("2 rounds are too few"));
}

#[test]
fn what_was_asked_can_be_given_to_a_shell_again() {
    let document = measured(&options(command("sh -c 'true'"), target("zero"))).unwrap();
    let shown = page(&document).to_text(100);
    let asked = r"ugeom ab 'sh -c '\''true'\''' zero";
    assert!(shown.starts_with(asked), "{shown}");
}

#[test]
fn what_ran_once_is_shown_without_an_interval() {
    let whole = made_up(1, |cell, _| 100 + cell as u64);
    let shown = page(&whole).to_text(100);
    assert!(shown.contains("1 round is too few"), "{shown}");
    assert!(shown.contains("1 round of 3 cases"), "{shown}");
    for time in ["100 ns", "101 ns", "102 ns"] {
        assert!(shown.contains(time), "{time}: {shown}");
    }
    let mut broken = whole;
    let samples = std::mem::take(&mut broken.processes[0].rounds)
        .remove(0)
        .samples;
    let mut unfinished = Unfinished {
        calibrating: false,
        samples: vec![(1, samples[1].clone())],
    };
    broken.processes[0].unfinished = Some(unfinished.clone());
    let shown = page(&broken).to_text(100);
    assert!(shown.contains("0 rounds are too few"), "{shown}");
    let (_, measured) = shown.split_once("WHAT WAS MEASURED").unwrap();
    assert!(
        measured.contains("101 ns") && !measured.contains("A again"),
        "{shown}"
    );
    unfinished.calibrating = true;
    broken.processes[0].unfinished = Some(unfinished);
    let shown = page(&broken).to_text(100);
    let (_, below_the_head) = shown.split_once("THE QUESTION").unwrap();
    assert!(!below_the_head.contains("101 ns"), "{shown}");
}

#[test]
fn what_is_said_to_be_proven_does_not_reach_nothing() {
    // The differences are proven, at 5 % just so; the logarithms of the ratios are not.
    let times = [1900, 500, 2500, 1200, 2500, 1600, 1000, 2500, 1900, 500];
    let document = made_up(10, |cell, round| match cell {
        1 => times[round as usize],
        _ => 1000,
    });
    let said = answer(&document);
    assert!(
        matches!(said.verdict, Some(Verdict::Proven { .. })),
        "{said:?}"
    );
    let start = "B is 61 % ± 56 slower than A: 1.61 us against 1 us each.";
    assert_eq!(said.sentence, start);
}

#[test]
fn what_only_one_of_two_equal_cells_shows_is_no_difference() {
    // B is a tenth faster than A, and no faster than A once more.
    let lucky = made_up(20, |cell, round| match cell {
        0 => 1000 + wobble(0, round),
        _ => 900 + wobble(cell, round),
    });
    let said = answer(&lucky);
    assert!(
        matches!(said.verdict, Some(Verdict::NoDifferenceProven { .. })),
        "{said:?}"
    );
    assert!(
        said.sentence
            .starts_with("No difference is proven: B takes 10"),
        "{}",
        said.sentence
    );
    let mut document = lucky;
    compute(&mut document);
    assert_eq!(document.figure("ab.time").unwrap().proven, Some(false));
}

#[test]
fn a_text_is_taken_for_what_exists() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("disk.img");
    std::fs::write(&image, [0; 4096]).unwrap();
    let image = image.display().to_string();
    for name in ["a.fio", "b.job"] {
        let path = folder.path().join(name);
        std::fs::write(&path, "[job]\n").unwrap();
        let path = path.display().to_string();
        assert_eq!(Side::guess(&path), Some(Side::Job(path.clone())), "{path}");
        assert_eq!(
            Side::guess(&format!("cat {path}")),
            Some(command(&format!("cat {path}")))
        );
    }
    for text in ["md:64m", "zero", "md:1m | nop:delay=1ms", image.as_str()] {
        assert_eq!(Side::guess(text), Some(target(text)), "{text}");
    }
    for text in [
        "true",
        "sleep 0.1",
        "LC_ALL=C sort -n x",
        "cat x | sort",
        "/bin/sh -c true",
    ] {
        assert_eq!(Side::guess(text), Some(command(text)), "{text}");
    }
    for text in [
        "",
        "no-such-program",
        "no-such.fio",
        "/no/such/file",
        "md:1x | npo",
    ] {
        assert_eq!(Side::guess(text), None, "{text}");
    }
}

#[test]
fn two_results_of_ab_say_where_their_sides_were_something_else() {
    let of = |name: &str, a: &str| {
        let mut document = made_up(5, |cell, round| 1000 + cell as u64 + round);
        (document.subject.a, document.subject.b) = (target(a), command("true"));
        Loaded::read(name, &document.to_json().unwrap()).unwrap()
    };
    let others = |other: Loaded| other_sides(&[of("old.json", "zero"), other]);
    let reason = "A is the target zero in old.json, and the target md:1m in new.json";
    assert_eq!(others(of("new.json", "md:1m")), [reason]);
    assert!(others(of("new.json", "zero")).is_empty());
}
