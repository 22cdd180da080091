//! Where the arm of a disk is sent: the sectors that the seek times are made of.
//!
//! Source: FreeBSD's diskinfo(8), `usr.sbin/diskinfo/diskinfo.c`.

/// The fewest sectors that the strokes fit into: the sequential ones take so many.
pub const SECTORS_MIN: u64 = 2048;

/// The longest way from one sector to the next of the same end of a stroke, sectors.
const STEP_MAX: u64 = 16384;
/// Strokes are so many short steps wide, four times over, that none leaves the media.
const STEPS: u64 = 4 * 200;

/// One kind of seek: what it is called, and the sectors that are read one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stroke {
    /// Its name.
    pub name: &'static str,
    /// The sectors, in order.
    pub sectors: Vec<u64>,
}

/// How far the ends of a stroke move from one reading to the next, sectors: the largest power of
/// two of which 800 fit into the media, and at most 16,384.
pub fn step_sectors(media_sectors: u64) -> u64 {
    let ratio = (media_sectors / STEPS).max(1);
    (1 << ratio.ilog2()).min(STEP_MAX)
}

/// All seven strokes on a media of so many sectors, at least [`SECTORS_MIN`].
pub fn strokes(media_sectors: u64) -> [Stroke; 7] {
    let all = media_sectors.max(SECTORS_MIN);
    let step = step_sectors(all);
    let (quarter, half) = (all / 4, all / 2);
    let stroke = |name, sectors| Stroke { name, sectors };
    let apart = |pairs: u64, distance: u64| {
        let pair = |i| [quarter + i * step, quarter + distance + i * step];
        (0..pairs).flat_map(pair).collect()
    };
    let ends = |i| [i * step, all - step - i * step];
    [
        stroke("Full stroke", (0..125).flat_map(ends).collect()),
        stroke("Half stroke", apart(125, half)),
        stroke("Quarter stroke", apart(250, quarter)),
        stroke("Short forward", (0..400).map(|i| half + i * step).collect()),
        stroke(
            "Short backward",
            (0..400).map(|i| half - i * step).collect(),
        ),
        stroke("Seq outer", (0..SECTORS_MIN).collect()),
        stroke("Seq inner", (all - SECTORS_MIN..all).collect()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_readings_as_freebsd_makes() {
        let counts = strokes(1 << 30).map(|stroke| stroke.sectors.len());
        assert_eq!(counts, [250, 250, 500, 400, 400, 2048, 2048]);
    }

    #[test]
    fn no_stroke_leaves_the_media() {
        for media in [2048, 2049, 2880, 4096, 100_000, 1 << 24, (1 << 40) + 7] {
            for stroke in strokes(media) {
                let furthest = stroke.sectors.iter().max();
                assert!(
                    furthest.is_some_and(|&furthest| furthest < media),
                    "{media}: {stroke:?}"
                );
            }
        }
    }

    #[test]
    fn the_steps_grow_with_the_media_up_to_a_limit() {
        // 80 GB of 512 bytes are 156,301,488 sectors: 2^17 steps of 800, more than the most.
        assert_eq!(
            [2048, 819_200, 156_301_488].map(step_sectors),
            [2, 1024, 16_384]
        );
    }

    #[test]
    fn a_full_stroke_goes_from_one_end_to_the_other() {
        let [full, half, quarter, ..] = strokes(1 << 20);
        let first = |stroke: &Stroke| (stroke.sectors[0], stroke.sectors[1]);
        assert_eq!(first(&full), (0, (1 << 20) - 1024));
        assert_eq!(first(&half), (1 << 18, 3 << 18));
        assert_eq!(first(&quarter), (1 << 18, 1 << 19));
    }
}
