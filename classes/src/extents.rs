//! The answers to EXTENTS.

use ugeom_stack::{Extent, ExtentKind, Next, Request};

/// Answers that all is data: a layer whose READs take time or fail shows no holes, as its users
/// would read nothing from them.
pub(crate) fn all_data(mut request: Request<'_>) -> Next {
    let length_bytes = request.length();
    let kind = ExtentKind::Data;
    request.add_extent(Extent { length_bytes, kind });
    request.finish()
}

/// Answers with what `next` finds at an offset: a length in bytes, and whether it was written.
pub(crate) fn answer(mut request: Request<'_>, next: impl Fn(u64) -> (u64, bool)) -> Next {
    let mut at = request.offset();
    let end = at + request.length();
    let mut wanted = true;
    while wanted && at < end {
        let (length_bytes, written) = next(at);
        let kind = if written {
            ExtentKind::Data
        } else {
            ExtentKind::Hole
        };
        wanted = request.add_extent(Extent { length_bytes, kind });
        at += length_bytes;
    }
    request.finish()
}

#[cfg(test)]
mod tests {
    use crate::target::TargetOptions;
    use crate::target::tests::opened;
    use ugeom_stack::ExtentKind;

    fn first(text: &str) -> ExtentKind {
        let mut options = TargetOptions::untasted();
        options.writable = true;
        let (_target, mut channel, opened) = opened(text, &options, 8);
        let found = channel.extents(&opened, 0, 65_536, 8);
        found.expect("extents")[0].kind
    }

    #[test]
    fn layers_that_delay_or_fail_reads_show_no_holes() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(1 << 20).expect("a size");
        let file = file.path().display();
        for text in [
            "md:1m | nop:rfail=1%",
            "md:1m | nop:rdelay=1%",
            "md:1m | nop:delay=1s",
            "md:1m | nop:count_until_fail=9",
            "md:1m | delayed",
            "disk:1m",
            &format!("{file}?engine=simulated"),
        ] {
            assert_eq!(first(text), ExtentKind::Data, "{text}");
        }
        for text in ["md:1m | nop", "md:1m | nop:wfail=1%", &format!("{file}")] {
            assert_eq!(first(text), ExtentKind::Hole, "{text}");
        }
    }
}
