//! `ugeom ministat` beside Debian's ministat, which is the classic version, and on bad input.

use crate::disks;
use crate::run::{Ended, command, has, json_of, run, ugeom, ugeom_with};
use fastrand::Rng;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use ugeom_testkit::begins;

/// How many comparisons of one to seven data sets are made.
const CASES: usize = 400;

fn debian(arguments: &[String]) -> Ended {
    run(command("ministat", arguments), b"")
}

fn classic(arguments: &[String]) -> Ended {
    let own = ["ministat", "--classic"].map(str::to_owned);
    ugeom(&[&own, arguments].concat())
}

#[test]
fn the_published_data_sets_give_debians_output_to_the_byte() {
    let Some(_) = ugeom_testkit::program("ministat") else { return };
    let Some(folder) = ugeom_testkit::shared("fixtures/ministat") else { return };
    let files = ["iguana", "chameleon"].map(|name| disks::at(&folder, name));
    for confidence in ["80", "90", "95", "98", "99", "99.5"] {
        for flags in [&[][..], &["-s"], &["-A"], &["-n"], &["-s", "-w", "60"]] {
            let mut arguments = vec!["-c".to_owned(), confidence.to_owned()];
            arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
            arguments.extend(files.clone());
            let expected = debian(&arguments).text();
            assert!(!expected.is_empty());
            assert_eq!(classic(&arguments).quiet(), expected, "{arguments:?}");
        }
    }
    let arguments = ["-c", "80", &files[0], &files[1]].map(str::to_owned);
    let text = classic(&arguments).quiet();
    has(&text, "\t240 +/- 212.215\n\t80% +/- 70.7384%\n");
}

/// A value of one of the shapes that measurements and mistakes have.
fn value(shape: usize, random: &mut Rng) -> String {
    let small = random.i64(-9..10);
    match shape {
        0 => random.u32(0..12).to_string(),
        1 => "42.125".to_owned(),
        2 => format!("{:e}", random.f64() * 1e150),
        3 => format!("{:e}", (random.f64() - 0.5) * 1e-150),
        4 => format!("-{:.3}", 1000.0 + 10.0 * random.f64()),
        5 => (1_000_000_000_i64 + small).to_string(),
        6 => {
            let exponent = random.i32(-140..140);
            let sign = random.choice(["", "-", "+"]).unwrap_or("");
            format!("{sign}{}e{exponent}", random.f64())
        }
        7 => format!(
            "{}",
            if random.bool() {
                5 + small
            } else {
                500 + small
            }
        ),
        8 => format!("0x{:x}p{small}", random.u32(1..4096)),
        9 => (100_000_000_000_000_i64 + small).to_string(),
        10 => format!("{:.2}", small as f64 / 8.0),
        _ => format!("{:.1}", 25_000.0 + 300.0 * random.f64()),
    }
}

const SHAPES: usize = 12;

/// A data set in the column, with comments, empty lines and other columns around it.
fn data_set(shape: usize, column: usize, delimiter: char, random: &mut Rng) -> String {
    let count = *random.choice(&[3, 4, 5, 10, 11, 30, 120]).unwrap_or(&3);
    let mut text = String::from("# made by a test\n");
    let constant = value(shape, random);
    let is_flat = random.u8(0..8) == 0;
    for _ in 0..count {
        for other in 1..column {
            let _ = write!(text, "c{other}{delimiter}");
        }
        if is_flat {
            text.push_str(&constant);
        } else {
            text.push_str(&value(shape, random));
        }
        text.push_str(match random.u8(0..6) {
            0 if delimiter == ' ' => "\t# a comment\n",
            1 => "\n\n",
            2 => "\r\n",
            3 => "\n#\n",
            _ => "\n",
        });
    }
    text
}

/// The arguments of one case; its files lie in `folder`.
fn case(number: usize, folder: &Path, random: &mut Rng) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut flag = |name: &str, value: Option<String>| {
        arguments.push(name.to_owned());
        arguments.extend(value);
    };
    let (column, delimiter) = match random.u8(0..4) {
        0 => (3, ','),
        1 => (2, ' '),
        _ => (1, ' '),
    };
    if column > 1 {
        flag("-C", Some(column.to_string()));
    }
    if delimiter == ',' {
        flag("-d", Some(",;".to_owned()));
    }
    for name in ["-s", "-A", "-n"] {
        if random.u8(0..4) == 0 {
            flag(name, None);
        }
    }
    if random.bool() {
        let confidence = random.choice(["80", "90", "95.0", "98", "99", "99.5"]);
        flag("-c", confidence.map(str::to_owned));
    }
    if random.bool() {
        flag("-w", Some(random.usize(2..200).to_string()));
    }
    let sets = random.usize(1..=7);
    for set in 0..sets {
        // Most cases compare sets of one shape, as people do.
        let shape = if random.u8(0..4) == 0 {
            random.usize(0..SHAPES)
        } else {
            number % SHAPES
        };
        let path = folder.join(format!("case{number}-{set}"));
        let text = data_set(shape, column, delimiter, random);
        std::fs::write(&path, text).expect("a data set");
        arguments.push(disks::text(&path));
    }
    arguments
}

#[test]
fn generated_data_sets_of_every_shape_give_debians_output_to_the_byte() {
    let Some(_) = ugeom_testkit::program("ministat") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = Rng::with_seed(2003);
    let (mut proven, mut plots) = (0, 0);
    for number in 0..CASES {
        let arguments = case(number, folder.path(), &mut random);
        let expected = debian(&arguments);
        assert_eq!(expected.code, 0, "{arguments:?}: {}", expected.stderr);
        let expected = expected.text();
        proven += expected.matches("Difference at").count();
        plots += usize::from(expected.contains("+--"));
        assert_eq!(classic(&arguments).quiet(), expected, "{arguments:?}");
    }
    assert!(proven > 100 && plots > 100, "{proven} {plots}: too easy");
}

#[test]
fn every_entry_of_the_table_is_debians() {
    let Some(_) = ugeom_testkit::program("ministat") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| disks::file(&folder, name, text);
    let base = file("base", "-1\n0\n1\n");
    for values in 3..=101 {
        // Far away, so that the interval is printed, with six digits of t.
        let lines = (0..values).map(|index| format!("{}\n", 1000.0 + f64::from(index % 2)));
        let other = file("other", &lines.collect::<String>());
        for confidence in ["80", "90", "95", "98", "99", "99.5"] {
            let arguments = ["-A", "-c", confidence, &base, &other].map(str::to_owned);
            let expected = debian(&arguments).text();
            has(&expected, "Difference at");
            assert_eq!(classic(&arguments).quiet(), expected, "{values} values");
        }
    }
}

#[test]
fn of_an_option_given_twice_the_last_counts_as_in_debians() {
    let Some(_) = ugeom_testkit::program("ministat") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let set = disks::file(&folder, "set", "1 5\n2 7\n3 90\n");
    let twice = "-c 80 -c 99 -w 30 -w 50 -C 1 -C 2 -d , -d _ -s -s";
    let mut arguments: Vec<String> = twice.split(' ').map(|one| one.replace('_', " ")).collect();
    arguments.extend([set.clone(), set]);
    let expected = debian(&arguments);
    assert_eq!(expected.code, 0, "{}", expected.stderr);
    assert_eq!(classic(&arguments).quiet(), expected.text());
}

#[test]
fn a_negative_width_is_a_value_and_no_option() {
    let negative = ugeom(&["ministat", "-w", "-3"]).failed(2);
    has(&negative, "write a number from 2 to 10000");
}

#[test]
fn standard_input_and_the_current_version() {
    let input = b"1\n2\n30\n40\n";
    let classic = ugeom_with(&["ministat", "--classic", "-A"], input).quiet();
    begins(&classic, "x <stdin>\n");
    has(&classic, "            30 ");
    let current = ugeom_with(&["ministat", "-A", "-"], input).quiet();
    begins(&current, "x -\n");
    has(&current, "            16 ");
    let quiet = ugeom_with(&["ministat", "-qn"], input).quiet();
    assert_eq!(
        quiet,
        "x   4             1            40            16         18.25     19.771613\n"
    );
}

#[test]
fn json_holds_statistics_and_comparisons() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("a", "1\n2\n3\n"), ("b", "11\n12\n13.5\n")]
        .map(|(name, text)| disks::file(&folder, name, text));
    let json = json_of(ugeom(&["ministat", "--json", &files[0], &files[1]]).quiet());
    assert_eq!(
        (&json["version"], &json["confidence_percent"]),
        (&"current".into(), &95.0.into())
    );
    assert_eq!(
        (&json["sets"][0]["symbol"], &json["sets"][0]["difference"]),
        (&"x".into(), &Value::Null)
    );
    let difference = &json["sets"][1]["difference"];
    assert_eq!(difference["proven"], true);
    assert_eq!(difference["degrees_of_freedom"], 4);
    assert_eq!(difference["critical"], 2.776);
}

#[test]
fn bad_data_sets_are_1_with_file_and_line_and_wrong_usage_is_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |name: &str, text: &[u8]| disks::file(&folder, name, text);
    let good = of("good", b"1\n2\n3\n");
    for (name, text, problem) in [
        (
            "two",
            &b"1\n2\n"[..],
            "a data set needs at least 3 values, this one has 2",
        ),
        (
            "empty",
            b"",
            "a data set needs at least 3 values, this one has 0",
        ),
        ("text", b"1\n2\nthree\n", "line 3: `three` is not a number"),
        (
            "nan",
            b"1\nNaN\n3\n4\n",
            "line 2: `NaN` is not a finite number",
        ),
        (
            "colour",
            b"1\n\x1b[31m2\n",
            "line 2: `\\x1b[31m2` is not a number",
        ),
        (
            "zeros",
            &[0; 100_000],
            "line 1 is longer than 65536 bytes; is this a text?",
        ),
    ] {
        let path = of(name, text);
        let stderr = ugeom(&["ministat", &good, &path]).failed(1);
        assert_eq!(stderr, format!("ugeom: {path}: {problem}\n"));
    }
    let column = ugeom(&["ministat", "-C", "2", &good]).failed(1);
    has(&column, "there is no column 2: the longest line has 1");
    let missing = ugeom(&["ministat", "/no/such/set"]).failed(1);
    has(&missing, "/no/such/set: No such file");
    let large = of("large", b"-1e308\n1e308\n0\n");
    let plot = ugeom(&["ministat", &large]).failed(1);
    has(&plot, "too large for a plot");
    let eight = [&["ministat"][..], &[good.as_str(); 8]].concat();
    let stderr = ugeom(&eight).failed(2);
    has(&stderr, "8 data sets");
    for wrong in [
        &["-w", "1"][..],
        &["-w", "0"],
        &["-w", "-3"],
        &["-w", "1000000"],
        &["-C", "0"],
        &["-C", "x"],
        &["-c", "97"],
        &["-c", "x"],
        &["-d", ""],
        &["-", "-"],
        &["-x"],
    ] {
        ugeom(&[&["ministat"], wrong].concat()).failed(2);
    }
}
