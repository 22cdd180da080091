//! Rules, the clients that they are about, and certificates that were changed at random.

use super::*;
use proptest::prelude::*;

/// Made by `openssl req -x509` with two common names and every kind of alternative name.
const CERTIFICATE: &[u8] = include_bytes!("client.der");

fn rule(text: &str) -> Rule {
    text.parse().expect("a rule")
}

#[test]
fn names_of_a_certificate_are_those_that_openssl_put_there() {
    let names = CertificateNames::decode(CERTIFICATE).expect("a certificate");
    assert_eq!(names.common, ["laptop", "Größe=1"]);
    let expected = [
        "Laptop.test",
        "me@example.org",
        "spiffe://example.org/me",
        "192.0.2.7",
        "2001:db8::1",
    ];
    assert_eq!(names.alternative, expected);
}

#[test]
fn a_rule_is_about_the_clients_that_it_names() {
    let known = Identity {
        user: None,
        names: CertificateNames::decode(CERTIFICATE).expect("a certificate"),
    };
    let local = Identity {
        user: Some(1000),
        ..Identity::default()
    };
    let unknown = Identity::default();
    for (text, seen) in [
        ("a=any", [true, true, true]),
        ("a=uid:1000", [false, true, false]),
        ("a=uid:100", [false, false, false]),
        ("a=uid:0", [false, false, false]),
        ("a=cn:laptop", [true, false, false]),
        ("a=cn:Laptop", [false, false, false]),
        ("a=cn:lap", [false, false, false]),
        ("a=cn:Größe=1", [true, false, false]),
        ("a=cn:elsewhere", [false, false, false]),
        ("a=cn:Laptop.test", [false, false, false]),
        ("a=san:laptop.TEST", [true, false, false]),
        ("a=san:me@example.org", [true, false, false]),
        ("a=san:192.0.2.7", [true, false, false]),
        ("a=san:laptop", [false, false, false]),
    ] {
        let rules = [rule("b=any"), rule(text)];
        let found = [&known, &local, &unknown].map(|it| it.sees(&rules, "a", "top"));
        assert_eq!(found, seen, "{text}");
        assert!(unknown.sees(&rules, "b", "top") && !unknown.sees(&rules, "top", "top"));
        assert!(unknown.sees(&[], "a", "top"), "without rules");
    }
    // All exports, and the default one.
    assert!(local.sees(&[rule("*=uid:1000")], "x", "top"));
    assert!(local.sees(&[rule("=uid:1000")], "top", "top"));
    assert!(!local.sees(&[rule("=uid:1000")], "x", "top"));
}

#[test]
fn rules_are_read_or_refused_with_a_reason() {
    for text in [
        "a=any",
        "a=b=uid:7",
        "=cn:x",
        "*=san:a=cn:b",
        "a:uid=cn:a,b",
    ] {
        assert_eq!(rule(text).to_string(), text);
    }
    assert_eq!(rule("a=b=uid:7").export, "a=b");
    for (text, part) in [
        ("a", "EXPORT=CLIENT"),
        ("a=", "EXPORT=CLIENT"),
        ("a=root", "EXPORT=CLIENT"),
        ("a=uid:root", "a uid is a number"),
        ("a=uid:-1", "a uid is a number"),
        ("a=uid:4294967296", "a uid is a number"),
        ("a=cn:", "name is missing"),
        ("a=san:", "name is missing"),
    ] {
        let refused = text.parse::<Rule>().expect_err(text).to_string();
        assert!(
            refused.contains(part) && refused.contains(text),
            "{refused}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    #[test]
    fn changed_certificates_are_read_or_refused(
        changes in prop::collection::vec((0..CERTIFICATE.len(), any::<u8>()), 0..6),
        length in 0..=CERTIFICATE.len(),
    ) {
        let mut bytes = CERTIFICATE.to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes.truncate(length.max(CERTIFICATE.len() / 2));
        if let Ok(names) = CertificateNames::decode(&bytes) {
            let text = [names.common, names.alternative].concat().concat();
            prop_assert!(text.len() <= 2 * bytes.len());
        }
    }

    #[test]
    fn any_text_is_a_rule_or_an_error(text in ".{0,40}", kind in "(any|uid:|cn:|san:|)") {
        let text = format!("{text}={kind}{text}");
        if let Ok(rule) = text.parse::<Rule>() {
            let again = rule.to_string().parse::<Rule>();
            prop_assert_eq!(again.expect("a rule"), rule);
        }
    }
}
