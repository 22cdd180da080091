//! Results of every experiment, damaged: they are refused, or shown and compared, and never a
//! panic.

#[path = "../../fuzz/src/report.rs"]
mod targets;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use ugeom_ab as ab;
use ugeom_devices::{engines, sweep};
use ugeom_experiment::{Common, run_here};
use ugeom_harness::document::Document;
use ugeom_harness::{Control, HarnessError, Machine, Meter};
use ugeom_lab::{cached, layers, scaling};

/// Values that a result from elsewhere may hold in any place.
fn extreme(random: &mut fastrand::Rng) -> Value {
    let values = [
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(u32::MAX),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(null),
        json!(true),
        json!("\u{1b}[31m<script>"),
        json!([]),
        json!({}),
    ];
    values[random.usize(..values.len())].clone()
}

/// Shows every value of a document, those that hold others after what they hold.
fn values(value: &mut Value, show: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| values(item, show)),
        Value::Object(fields) => fields.values_mut().for_each(|field| values(field, show)),
        _ => {}
    }
    show(value);
}

/// Another value, mostly of the same kind, so that the document is still read.
fn damaged(value: &Value, random: &mut fastrand::Rng) -> Value {
    if random.u8(..16) == 0 {
        return extreme(random);
    }
    match value {
        Value::Number(number) if number.is_u64() => json!(u64::MAX >> random.u8(..64)),
        Value::Number(_) => {
            let exponent = f64::from(random.i16(-300..300));
            json!((random.f64() - 0.3) * exponent.exp2())
        }
        Value::String(_) => json!(["", "a/b", "\u{1b}[31m<script>"][random.usize(..3)]),
        Value::Bool(is) => json!(!is),
        Value::Array(items) => {
            let keep = random.usize(..=items.len());
            let mut items = items[..keep].to_vec();
            random.shuffle(&mut items);
            Value::Array(items)
        }
        other => other.clone(),
    }
}

/// Damages a result in a few places, many times over.
fn survives(result: &str) {
    let whole: Value = serde_json::from_str(result).unwrap();
    let mut count = 0;
    values(&mut whole.clone(), &mut |_| count += 1);
    assert!(targets::show(result.as_bytes()), "it was whole");
    targets::compare(result.as_bytes());
    // The one of a failure can be looked at.
    let last = format!(
        "{}/damaged-{}.json",
        env!("CARGO_TARGET_TMPDIR"),
        whole["experiment"]
    );
    let last = last.replace('"', "");
    let mut shown = 0;
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut copy = whole.clone();
        let places = 1 + random.usize(..8);
        let places: Vec<usize> = (0..places).map(|_| random.usize(..count)).collect();
        let mut at = 0;
        values(&mut copy, &mut |value| {
            if places.contains(&at) {
                *value = damaged(value, &mut random);
            }
            at += 1;
        });
        let text = copy.to_string();
        std::fs::write(&last, &text).unwrap();
        println!("seed {seed}, saved as {last}");
        shown += u32::from(targets::show(text.as_bytes()));
        targets::compare(text.as_bytes());
    }
    assert!(shown > 0, "some damage is not refused");
}

/// Lets an experiment run for as short as it can, and damages its result. Where it cannot run
/// (`O_DIRECT` on some file systems) there is nothing to damage.
fn of<S: Serialize + DeserializeOwned>(
    run: impl FnOnce(&dyn Meter, &mut Control<'_>) -> Result<Document<S>, HarnessError>,
) {
    let mut control = Control::silent();
    match run(&Machine, &mut control) {
        Ok(document) => survives(&document.to_json().unwrap()),
        Err(HarnessError::Os(error)) if error.to_string().contains("O_DIRECT") => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn of_layers() {
    let options = layers::LayersOptions {
        common: short(),
        ..layers::LayersOptions::default()
    };
    of(|meter, control| run_here::<layers::Layers>(&options, meter, control));
}

#[test]
fn of_scaling() {
    let options = scaling::ScalingOptions {
        workers: vec![1],
        common: short(),
        ..scaling::ScalingOptions::default()
    };
    of(|meter, control| run_here::<scaling::Scaling>(&options, meter, control));
}

fn short() -> Common {
    Common {
        budget_ns: Some(1),
        ..Common::default()
    }
}

fn sweep_of_little() -> sweep::SweepOptions {
    sweep::SweepOptions {
        target: Some("disk:1m,preset=ata2004".to_owned()),
        min_bytes: 4096,
        bytes: 64 << 10,
        max_bytes: 64 << 10,
        common: short(),
        ..sweep::SweepOptions::default()
    }
}

#[test]
fn of_a_sweep() {
    of(|meter, control| run_here::<sweep::Sweep>(&sweep_of_little(), meter, control));
}

#[test]
fn of_a_and_b() {
    let sides = ["zero", "md:1m"].map(|text| ab::Side::Target(text.to_owned()));
    let options = ab::AbOptions {
        subject: ab::Subject::of(sides.map(ab::Candidate::of).to_vec()),
        rounds: Some(6),
        processes: Some(1),
        budget_ns: 1,
        run_ns: 1_000_000,
        seed: Some(4),
        destroy: false,
    };
    let launch = || std::process::Command::new("false");
    of(|meter, control| ab::run(&options, &ab::Jobs::none(), &launch, meter, control));
}

#[test]
fn of_the_cache() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![7; 4 << 20]).unwrap();
    let options = cached::CachedOptions {
        file: Some(file.path().to_owned()),
        common: short(),
        ..cached::CachedOptions::default()
    };
    of(|meter, control| run_here::<cached::Cached>(&options, meter, control));
}

#[test]
fn of_engines() {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(file.path(), vec![7; 4 << 20]).unwrap();
    let options = engines::EnginesOptions {
        target: Some(file.path().to_owned()),
        depths: vec![8],
        size_bytes: Some(2 << 20),
        common: short(),
        ..engines::EnginesOptions::default()
    };
    of(|meter, control| run_here::<engines::Engines>(&options, meter, control));
}

#[test]
fn a_sweep_of_blocks_of_nothing_ends() {
    let mut control = Control::silent();
    let document = run_here::<sweep::Sweep>(&sweep_of_little(), &Machine, &mut control).unwrap();
    let mut whole: Value = serde_json::from_str(&document.to_json().unwrap()).unwrap();
    for case in whole["subject"]["cells"].as_array_mut().unwrap() {
        case["block_bytes"] = json!(0);
    }
    assert!(targets::show(whole.to_string().as_bytes()));
}

/// Texts of other programs with bytes changed, cut off and doubled: each is read or refused.
#[test]
fn of_other_programs_and_histories() {
    let samples = [
        r#"{"results": [{"command": "a", "mean": 0.1, "user": 0.001, "times": [0.101, 0.1]}]}"#,
        "goos: linux\npkg: example.com/a\nBenchmarkFib-8 \t 500 \t 3090 ns/op\t 16 B/op\nPASS\n",
        r#"{"fio version": "fio-3.33", "jobs": [{"jobname": "r", "read": {"iops": 5000.5}}]}"#,
        "00000000 {\"commit\": \"a\"}\n",
    ];
    let mut random = fastrand::Rng::with_seed(7);
    for sample in samples {
        for _ in 0..300 {
            let mut bytes = sample.as_bytes().to_vec();
            for _ in 0..random.usize(..4) {
                let at = random.usize(..bytes.len());
                match random.u8(..3) {
                    0 => bytes[at] = random.u8(..),
                    1 => bytes.truncate(at + 1),
                    _ => bytes.extend_from_within(at..),
                }
            }
            targets::foreign(&bytes);
            targets::history(&bytes);
        }
    }
}
