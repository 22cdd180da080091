//! Whole experiments on targets and commands, and the sentences for known samples.

use super::*;
use std::process::Command;
use ugeom_harness::compare::Loaded;
use ugeom_harness::document::Document as Json;
use ugeom_harness::{Control, Machine};
use ugeom_measure::Claim;
use ugeom_measure::gate::Outcome;
use ugeom_testkit::{begins, has};

fn target(text: &str) -> Side {
    Side::Target(text.to_owned())
}

fn command(text: &str) -> Side {
    Side::Command(text.to_owned())
}

fn options(sides: impl IntoIterator<Item = Side>) -> AbOptions {
    let mut subject = Subject::of(sides.into_iter().map(Candidate::of).collect());
    subject.load.size_bytes = 512;
    AbOptions {
        subject,
        rounds: Some(6),
        processes: Some(1),
        budget_ns: ugeom_harness::processes::BUDGET_NS,
        run_ns: 1_000_000,
        seed: Some(4),
        destroy: false,
    }
}

fn measured(options: &AbOptions) -> Result<Document, HarnessError> {
    let mut control = Control::silent();
    // No process is started where one is asked for.
    let launch = || Command::new("false");
    run(options, &Jobs::none(), &launch, &Machine, &mut control)
}

/// A result of so many processes whose times in ns are given: case by case, process by process.
fn made_up(sides: usize, processes: u64, ns: impl Fn(usize, u64) -> u64) -> Document {
    let mut document = measured(&options((0..sides).map(|_| target("zero")))).unwrap();
    let mut template = document.processes[0].clone();
    template.rounds.truncate(1);
    document.processes.clear();
    for process in 0..processes {
        let mut one = template.clone();
        for (case, sample) in one.rounds[0].samples.iter_mut().enumerate() {
            (sample.iterations, sample.wall_ns) = (1000, 1000 * ns(case, process));
            (sample.cpu.user_ns, sample.cpu.system_ns) = (sample.wall_ns, 0);
        }
        document.processes.push(one);
    }
    document
}

fn wobble(case: usize, process: u64) -> u64 {
    (process * 7 + case as u64 * 3 + process * process) % 11
}

#[test]
fn a_slow_target_is_slower_and_the_result_can_be_saved() {
    let document = measured(&options([target("zero"), target("zero | nop:delay=20ms")])).unwrap();
    assert_eq!(document.processes[0].cases, ["A", "B", "A again"]);
    assert_eq!(document.rounds(), 6);
    let answer = answer(&document);
    has(&answer.sentence, " x slower than A (");
    assert_eq!(answer.claims, [Claim::Slower]);
    let text = document.to_json().unwrap();
    let saved = Json::<Subject>::from_json(&text, EXPERIMENT).unwrap();
    assert_eq!(super::answer(&saved), answer);
    let shown = page(&saved).to_text(100);
    assert!(shown.contains(&answer.sentence[..20]), "{shown}");
    let csv = ugeom_harness::tidy::table(&saved).to_csv();
    assert!(
        csv.lines().nth(1).unwrap().starts_with("ab,A,time,1,"),
        "{csv}"
    );
}

#[test]
fn one_target_is_compared_with_itself_set_otherwise() {
    let mut options = options([target("zero"), target("zero")]);
    options.subject.set = vec!["statistics=counts".to_owned()];
    options.subject.candidates[1].set = vec!["dispatch=queued".to_owned(), "spin=0".to_owned()];
    let document = measured(&options).unwrap();
    let blocks = document.blocks();
    let least = |case| {
        let values = blocks.values(case).unwrap();
        values.into_iter().fold(f64::MAX, f64::min)
    };
    // Two hand-overs to threads that sleep take microseconds, a call some tens of nanoseconds.
    assert!(least(1) > 2.0 * least(0), "{:?}", blocks.rounds());
    let shown = page(&document).to_text(100);
    let asked = "ugeom ab --size 512 --set statistics=counts --set-b dispatch=queued \
                 --set-b spin=0 zero zero";
    assert!(shown.contains(asked), "{shown}");
    options.subject.candidates[1].set = vec!["dispatch=sideways".to_owned()];
    let refused = measured(&options).unwrap_err().to_string();
    has(&refused, "dispatch=sideways: ");
}

#[test]
fn reads_at_once_and_at_random_are_whole_and_counted() {
    for (random, depth) in [(false, 1), (true, 1), (false, 8), (true, 8)] {
        let mut options = options([target("md:1m"), target("md:1m | nop")]);
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
        let mut options = options([target("zero"), target(text)]);
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
    // It fails from the twelfth time on: behind the warm-up, before the last round.
    let failing = format!("echo >> {count}; test $(wc -l < {count}) -lt 12");
    let mut options = options([command("true"), command(&failing)]);
    options.rounds = Some(20);
    let document = measured(&options).unwrap();
    let failure = document.processes.last().unwrap().failure.as_ref();
    let failure = failure.expect("a failure");
    assert_eq!(document.rounds(), 10);
    assert!(failure.case == "B" && failure.error.contains("exit code 1"));
    assert!(page(&document).to_text(100).contains("FAILED"));
}

#[test]
fn a_failing_cleanup_keeps_the_result_and_the_other_cleanups() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("cleaned");
    let mut options = options([command("true"), command("true")]);
    options.rounds = Some(6);
    options.subject.shell = Shell::None;
    options.subject.candidates[0].cleanup = Some("exit 3".to_owned());
    options.subject.candidates[1].cleanup = Some(format!("touch {}", mark.display()));
    let document = measured(&options).unwrap();
    assert_eq!(document.rounds(), 6);
    let failure = document.processes.last().unwrap().failure.clone().unwrap();
    assert_eq!(failure.case, "A");
    assert_eq!(failure.error, "`--cleanup exit 3`: exit code 3");
    assert!(mark.exists());
    // The first candidate is cleaned up even if the set-up of another one fails.
    std::fs::remove_file(&mark).unwrap();
    options.subject.candidates.swap(0, 1);
    options.subject.candidates[1].setup = Some("exit 4".to_owned());
    let error = measured(&options).unwrap_err().to_string();
    has(&error, "--setup exit 4");
    assert!(mark.exists());
}

#[test]
fn a_failure_behind_the_last_run_keeps_the_result() {
    let mut options = options([command("true")]);
    options.rounds = Some(6);
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let count = count.display();
    // It fails behind the last of one warm-up and six runs.
    let failing = format!("echo >> {count}; test $(wc -l < {count}) -lt 7");
    options.subject.warmup = 1;
    options.subject.candidates[0].conclude = Some(failing);
    let document = measured(&options).unwrap();
    assert_eq!(document.rounds(), 6);
    let failure = document.processes.last().unwrap().failure.clone().unwrap();
    assert!(failure.error.contains("--conclude"), "{failure:?}");
}

#[test]
fn candidates_have_as_many_rounds_as_their_verdicts_need() {
    let three = [command("true"), command("true"), command("true")];
    let mut options = options(three);
    options.subject.shell = Shell::None;
    options.rounds = Some(6);
    let few = answer(&measured(&options).unwrap()).sentence;
    has(&few, "6 rounds are too few for 2 comparisons: 7 are needed");
    options.rounds = None;
    options.budget_ns = 1;
    let document = measured(&options).unwrap();
    assert_eq!(
        document.rounds(),
        7,
        "more than the least for one comparison"
    );
}

#[test]
fn commands_that_print_their_time_are_believed() {
    let mut options = options([command("echo 2.5 ms"), command("echo 5.0 ms")]);
    options.subject.printed = Some(Printed::Ms);
    let document = measured(&options).unwrap();
    assert_eq!(
        answer(&document).sentence,
        "B is 2.0 x slower than A (2.0 to 2.0)."
    );
}

#[test]
fn the_shell_is_measured_and_its_time_subtracted() {
    let mut document = measured(&options([command("sleep 0.2"), command("sleep 0.4")])).unwrap();
    let cost = contest(&document).shell.unwrap();
    assert!(cost.subtracted, "{cost:?}");
    let row = &contest(&document).metrics[0].rows[0];
    let rounds = document.processes.iter().flat_map(|one| &one.rounds);
    let most = rounds.map(|round| round.samples[0].wall_ns).max().unwrap() as f64;
    assert!(
        (row.ends.1 - (most - cost.interval.estimate)).abs() < 1.0,
        "{row:?}"
    );
    // A run may take less than the shell usually does.
    for sample in &mut document.processes[0].rounds[0].samples[..2] {
        (sample.iterations, sample.wall_ns) = (1, 1);
    }
    for row in &contest(&document).metrics[0].rows {
        assert_eq!(row.ends.0, 0.0, "{row:?}");
    }
    let document = measured(&options([command("true"), command("true")])).unwrap();
    // Beside other work a command that does nothing may take twice as long as its shell.
    let subtracted = contest(&document).shell.unwrap().subtracted;
    let shown = page(&document).to_text(100);
    let shown: Vec<&str> = shown.split_whitespace().collect();
    let told = shown.join(" ").contains("(use --shell none)");
    assert_eq!(told, !subtracted, "{shown:?}");
    let mut direct = options([command("true"), command("true")]);
    direct.subject.shell = Shell::None;
    assert!(contest(&measured(&direct).unwrap()).shell.is_none());
}

#[test]
fn commands_around_runs_come_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let note = |word: &str| format!("echo {word} >> {}", log.display());
    let mut options = options([command(&note("run"))]);
    options.rounds = Some(2);
    options.subject.warmup = 1;
    let one = &mut options.subject.candidates[0];
    one.setup = Some(note("setup"));
    one.prepare = Some(note("prepare"));
    one.conclude = Some(note("conclude"));
    one.cleanup = Some(note("cleanup"));
    measured(&options).unwrap();
    let said = std::fs::read_to_string(&log).unwrap();
    let each = "prepare run conclude ";
    let expected = format!("setup {}cleanup", each.repeat(3));
    assert_eq!(
        said.split_whitespace().collect::<Vec<_>>().join(" "),
        expected
    );
}

#[test]
fn the_processor_time_of_commands_is_that_of_the_children() {
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let document = measured(&options([command("sleep 0.05"), command(busy)])).unwrap();
    let cpu = |case: usize| {
        let rounds = document.processes.iter().flat_map(|one| &one.rounds);
        let used = rounds.map(|round| {
            let sample = &round.samples[case];
            (sample.cpu.user_ns + sample.cpu.system_ns) / sample.iterations
        });
        used.min().unwrap()
    };
    assert!(cpu(1) > 2 * cpu(0), "{} {}", cpu(0), cpu(1));
}

#[test]
fn the_sentence_says_faster_slower_equivalent_or_what_could_be_seen() {
    let said = |processes, ns: &dyn Fn(usize, u64) -> u64| answer(&made_up(2, processes, ns));
    let faster = said(12, &|case, process| match case {
        1 => 250 + wobble(1, process),
        _ => 1000 + wobble(case, process),
    });
    let start = "B is 4.0 x faster than A (3.9 to 4.0). Wall time 25";
    assert!(faster.sentence.starts_with(start), "{}", faster.sentence);
    has(&faster.sentence, "; CPU time 25");
    let same = said(12, &|case, process| 10_000 + wobble(case, process));
    begins(&same.sentence, "B and A are equivalent within 1 %.");
    assert_eq!(same.claims, [Claim::Equivalent]);
    let open = said(12, &|case, process| 100 + wobble(case, process));
    let start = "B against A: not significant (differences below ";
    assert!(open.sentence.starts_with(start), "{}", open.sentence);
    let few = said(2, &|case, process| 100 + wobble(case, process));
    has(
        &few.sentence,
        "2 processes are too few, a comparison needs 6 (--processes 6)",
    );
}

#[test]
fn requests_have_iops_beside_their_times_and_commands_do_not() {
    let mut document = made_up(2, 12, |case, process| {
        20_000 * (case as u64 + 1) + wobble(case, process)
    });
    for sample in document
        .processes
        .iter_mut()
        .flat_map(|one| &mut one.rounds[0].samples)
    {
        sample.work.transactions = 1000;
    }
    let table = page(&document).summary.unwrap();
    let at = table.columns.iter().position(|one| one.name == "IOPS");
    let rates = table.rows.iter().map(|row| row[at.unwrap()].text.as_str());
    assert_eq!(rates.collect::<Vec<_>>(), ["50.0 k", "25.0 k"]);
    let commands = measured(&options([command("true"), command("true")])).unwrap();
    let table = page(&commands).summary.unwrap();
    assert!(table.columns.iter().all(|one| one.name != "IOPS"));
}

#[test]
fn medians_that_contradict_the_verdict_are_explained() {
    // Ratios of 2, 4 and 1.5 at three levels: their median is 2, that of the medians 4.
    let said = |ratios: [u64; 3]| {
        let document = made_up(2, 12, |case, process| {
            let (base, ratio) = ([100, 1000, 10_000], ratios);
            let level = (process % 3) as usize;
            let time = base[level] * if case == 1 { ratio[level] } else { 10 } / 10;
            time * 10 + process
        });
        answer(&document).sentence
    };
    let apart = said([20, 40, 15]);
    has(&apart, "the medians of all rounds differ by 4.0");
    let alike = said([20, 20, 20]);
    assert!(
        alike.contains("slower") && !alike.contains("median of ratios"),
        "{alike}"
    );
}

#[test]
fn many_candidates_without_a_difference_are_one_sentence() {
    let ns = |case: usize, process: u64| 100 + wobble(case, process);
    let sentence = answer(&made_up(7, 20, ns)).sentence;
    assert_eq!(
        sentence,
        "None of 6 candidates differs significantly from A."
    );
}

#[test]
fn several_candidates_are_one_family() {
    let document = made_up(4, 12, |case, process| {
        [10_000, 4000, 15_000, 10_001][case.min(3)] + wobble(case, process)
    });
    let answer = answer(&document);
    assert_eq!(
        answer.claims,
        [Claim::Faster, Claim::Slower, Claim::Equivalent]
    );
    for part in [
        "B is 2.5 x faster than A",
        "% slower than A (",
        "D and A are equivalent",
    ] {
        assert!(
            answer.sentence.contains(part),
            "{part}: {}",
            answer.sentence
        );
    }
    let change = contest(&document).metrics[0].rows[1].change.unwrap();
    // Of three comparisons: the second to the eleventh of twelve.
    assert!(
        (change.ratio.confidence - 0.9937).abs() < 1e-3,
        "{change:?}"
    );
}

#[test]
fn the_gate_has_three_outcomes() {
    let outcome = |slower: u64, processes| {
        let mut document = made_up(2, processes, |case, process| {
            let base = if case == 1 { 10_000 + slower } else { 10_000 };
            base + 10 * wobble(case, process)
        });
        document.subject.fail_if_slower = Some(0.05);
        answer(&document)
    };
    assert_eq!(outcome(1000, 12).outcome, Some(Outcome::Fail));
    assert_eq!(outcome(0, 12).outcome, Some(Outcome::Pass));
    assert_eq!(outcome(500, 12).outcome, Some(Outcome::Undecided));
    assert_eq!(outcome(1000, 4).outcome, Some(Outcome::Undecided));
    let words = outcome(1000, 12).sentence;
    begins(&words, "FAIL: time of B relative to A: +");
    has(
        &words,
        "each bound wrong in at most 1.9 % of runs; limit +5 %",
    );
}

#[test]
fn what_was_asked_can_be_given_to_a_shell_again() {
    let document = measured(&options([command("sh -c 'true'"), command("true")])).unwrap();
    let shown = page(&document).to_text(100);
    let asked = r"ugeom ab 'sh -c '\''true'\''' true";
    assert!(shown.starts_with(asked), "{shown}");
}

#[test]
fn what_was_asked_has_all_that_changes_what_is_measured() {
    let mut options = options([command("true"), command("false")]);
    options.subject.warmup = 2;
    options.subject.ignore_failure = true;
    options.subject.candidates[0].prepare = Some("true 1".to_owned());
    options.subject.candidates[1].prepare = Some("true 2".to_owned());
    for one in &mut options.subject.candidates {
        one.conclude = Some("true".to_owned());
    }
    let shown = page(&measured(&options).unwrap()).to_text(200);
    let asked = "ugeom ab --prepare 'true 1' --prepare 'true 2' --conclude true --warmup 2 \
                 --ignore-failure true false";
    assert!(shown.starts_with(asked), "{shown}");
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
        let mut document = made_up(2, 5, |case, process| 1000 + case as u64 + process);
        document.subject.candidates[0].side = target(a);
        Loaded::read(name, &document.to_json().unwrap()).unwrap()
    };
    let others = |other: Loaded| other_sides(&[of("old.json", "zero"), other]);
    let reason = "A is the target zero in old.json, and the target md:1m in new.json";
    assert_eq!(others(of("new.json", "md:1m")), [reason]);
    assert!(others(of("new.json", "zero")).is_empty());
}
