//! gpart's text of a table, written and read.

use super::*;
use proptest::prelude::*;

fn full(scheme: Scheme) -> Table {
    let mut table = new(scheme);
    let labels = matches!(scheme, Scheme::Gpt | Scheme::Apm);
    for number in 0..3 {
        let label = labels.then(|| format!("disk {number} [a]\\"));
        let new = NewPart {
            label: label.filter(|_| number > 0),
            ..sized(kind(scheme), 2016)
        };
        table.add(&new).unwrap();
    }
    let attribute = match scheme {
        Scheme::Gpt => Some("bootme"),
        Scheme::Mbr | Scheme::Ebr | Scheme::Pc98 => Some("active"),
        _ => None,
    };
    if let Some(name) = attribute {
        let (name, on) = (name.to_owned(), true);
        let index = table.parts()[1].index;
        table
            .change(index, &Change::Attribute { name, on })
            .unwrap();
    }
    table
}

fn restored(text: &str, media: Media, labels: bool) -> Result<Table, Error> {
    let backup = Backup::parse(text).unwrap();
    let keep = Keep { labels, ids: false };
    backup.table(media, &Create::default(), keep, &mut || [9; 16])
}

#[test]
fn the_text_is_gparts() {
    let mut gpt = new(Scheme::Gpt);
    let boot = NewPart {
        label: Some("loader".to_owned()),
        ..sized("freebsd-boot", 1024)
    };
    gpt.add(&boot).unwrap();
    gpt.add(&sized("efi", 2048)).unwrap();
    let (name, on) = ("bootme".to_owned(), true);
    gpt.change(1, &Change::Attribute { name, on }).unwrap();
    let expected = "GPT 128\n\
                    1   freebsd-boot    34  1024 loader  [bootme] \n\
                    2            efi  1058  2048  \n";
    let text = gpt.backup();
    let (lines, ids) = text.split_at(expected.len().min(text.len()));
    assert_eq!(lines, expected);
    assert!(ids.lines().all(|line| line.starts_with('#')), "{ids}");
    let mut mbr = new(Scheme::Mbr);
    mbr.add(&sized("freebsd", 100)).unwrap();
    assert_eq!(
        mbr.backup(),
        "MBR 4\n1 freebsd    63   100  \n# disk id=0x07070707\n"
    );
}

#[test]
fn every_table_comes_back_on_a_larger_disk() {
    let larger = Media {
        sectors: 40_960,
        ..MEDIA
    };
    for scheme in EVERY {
        let table = full(scheme);
        let text = table.backup();
        for media in [MEDIA, larger] {
            let back = restored(&text, media, true).unwrap();
            assert_eq!(back.parts(), table.parts(), "{scheme}: {text}");
            assert_eq!(back.media(), media);
        }
        let without = restored(&text, MEDIA, false).unwrap();
        let label = |part: &Part| part.label.as_deref().is_none_or(str::is_empty);
        assert!(without.parts().iter().all(label), "{scheme}");
        // Not on a disk that is too small.
        let smaller = Media {
            sectors: 5000,
            ..MEDIA
        };
        assert!(restored(&text, smaller, true).is_err(), "{scheme}");
    }
}

#[test]
fn types_of_an_apple_map_without_a_name_come_back() {
    let mut table = new(Scheme::Apm);
    for kind in ["!Other", "!Two Words", "Apple_Driver43", "apple-hfs"] {
        table.add(&sized(kind, 100)).unwrap();
    }
    let text = table.backup();
    let shown = ["!Other", "!Two\\040Words", "!Apple_Driver43", "apple-hfs"];
    assert!(
        shown.iter().all(|kind| text.contains(&format!(" {kind} "))),
        "{text}"
    );
    assert_eq!(
        restored(&text, MEDIA, false).unwrap().parts(),
        table.parts()
    );
}

/// The identities by which a system finds partitions, also with attributes that gpart has no name
/// for.
#[test]
fn guids_and_numbers_of_disks_come_back_where_they_are_wanted() {
    for scheme in EVERY {
        let mut table = full(scheme);
        let ids = table.ids();
        let mut wanted = ids.clone();
        for (index, id) in &mut wanted.parts {
            id.uuid = crate::gpt::Guid([*index as u8; 16]);
            id.attributes |= u64::from(scheme == Scheme::Gpt) << 2;
        }
        table.edit_mut().set_ids(&wanted);
        let backup = Backup::parse(&table.backup()).unwrap();
        let again = |ids| {
            let keep = Keep { labels: true, ids };
            let create = Create::default();
            backup.table(MEDIA, &create, keep, &mut || [9; 16]).unwrap()
        };
        assert_eq!(again(true).ids(), wanted, "{scheme}: {}", table.backup());
        if !ids.is_empty() {
            assert_ne!(again(false).ids(), wanted, "{scheme}");
        }
    }
    let ids = |scheme| full(scheme).ids();
    assert_eq!(ids(Scheme::Mbr).disk, Some(DiskId::Number(0x0707_0707)));
    assert_eq!(
        (ids(Scheme::Gpt).parts.len(), ids(Scheme::Bsd64).parts.len()),
        (3, 3)
    );
}

#[test]
fn what_is_no_backup_is_refused_with_its_line() {
    for (text, expected) in [
        ("", "line 1 of the backup: it ends without a scheme"),
        (
            "# nothing\n\n",
            "line 2 of the backup: it ends without a scheme",
        ),
        (
            "XYZ 4\n",
            "line 1 of the backup: \"XYZ\" is no partitioning scheme",
        ),
        ("GPT many\n", "line 1 of the backup: \"many\" is no number"),
        (
            "1 efi 34 5\n",
            "line 1 of the backup: the scheme has to come first",
        ),
        ("GPT 128\nMBR 4\n", "line 2 of the backup: 2 words"),
        ("GPT\n1 efi 34\n", "line 2 of the backup: 3 words"),
        (
            "GPT\n1 efi 34 5 a [b] c\n",
            "line 2 of the backup: \"c\" is behind",
        ),
        (
            "GPT\n1 efi 34 5 a b\n",
            "line 2 of the backup: \"b\" is no list",
        ),
        (
            "GPT\n-1 efi 34 5\n",
            "line 2 of the backup: \"-1\" is no number",
        ),
        (
            "GPT\n# 1 uuid=12\n",
            "line 2 of the backup: \"12\" is not a GUID",
        ),
        (
            "MBR\n# disk id=0x123456789\n",
            "line 2 of the backup: 0x123456789 has more than 32 bits",
        ),
    ] {
        let error = Backup::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}

#[test]
fn comments_tabs_and_a_missing_count_are_read_as_by_gpart() {
    let text = "# saved\n\n# disk of mine\n#\nmbr\n\t1\tfreebsd 63  100 [active]\n  # end\n";
    let backup = Backup::parse(text).unwrap();
    assert_eq!((backup.scheme, backup.entries), (Scheme::Mbr, None));
    let table = restored(text, MEDIA, true).unwrap();
    assert_eq!(table.parts()[0].attributes, ["active"]);
    assert_eq!(places(&table), [(1, 63, 100)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_is_read_or_refused(text in "([A-Z0-9]{0,5}[ \\t\\[\\],#!\\\\]{0,3}\n?){0,20}") {
        let _ = Backup::parse(&text);
    }

    #[test]
    fn any_label_comes_back(label in "\\PC{0,30}") {
        let mut table = new(Scheme::Gpt);
        let labelled = NewPart { label: Some(label), ..sized("efi", 8) };
        prop_assume!(table.add(&labelled).is_ok());
        let back = restored(&table.backup(), MEDIA, true).unwrap();
        let labels = |table: &Table| table.parts()[0].label.clone();
        prop_assert_eq!(labels(&back), labels(&table));
    }
}

/// Three numbers have gpart's name `ebr`.
#[test]
fn an_extended_partition_keeps_its_number() {
    for number in [5, 15, 133] {
        let mut table = new(Scheme::Mbr);
        table.add(&sized(&format!("!{number}"), 1024)).unwrap();
        let text = table.backup();
        let again = restored(&text, table.media(), true).unwrap();
        assert_eq!(again.parts(), table.parts(), "{text}");
        assert_eq!(text.contains(" ebr "), number == 5, "{text}");
    }
}
