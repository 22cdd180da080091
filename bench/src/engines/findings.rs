//! The figures: each engine against libaio at each depth, and what an engine costs.

use super::cells::{ENGINES, again, cost_name, job_name};
use super::subject::Document;
use crate::figure::{Figure, Unit};
use ugeom_measure::holm::holm;
use ugeom_measure::{Blocks, Error, Noise, Ratio};

const CONFIDENCE: f64 = 0.95;

/// How far two engines may lie apart and still agree, as a share: what the measurement of 2007
/// fluctuated by.
pub(super) const AGREE: f64 = 0.1;

/// Computes noise and figures of a document from its samples.
pub fn compute(document: &mut Document) {
    let blocks = document.blocks();
    let depths = document.subject.depths.clone();
    document.noise = depths.first().and_then(|&depth| {
        let values = |name: String| blocks.values(blocks.position(&name)?).ok();
        let (first, second) = (values(job_name("libaio", depth))?, values(again(depth))?);
        Noise::of(&first, &second, CONFIDENCE).ok()
    });
    let mut figures = Vec::new();
    for &depth in &depths {
        for engine in ENGINES.iter().filter(|engine| **engine != "libaio") {
            figures.extend(against_libaio(&blocks, engine, depth));
        }
    }
    judge(&mut figures);
    for depth in [1, 100, 1000] {
        for engine in ["sync", "libaio", "io_uring"] {
            figures.extend(cost(&blocks, engine, depth));
        }
    }
    document.figures = figures;
}

/// How many times libaio's requests a second an engine makes.
fn against_libaio(blocks: &Blocks, engine: &str, depth: u32) -> Option<Figure> {
    let own = blocks.position(&job_name(engine, depth))?;
    let libaio = blocks.position(&job_name("libaio", depth))?;
    // Rates are the inverse of times, so that the time of libaio is the one above.
    let ratio = blocks.typical_ratio(own, libaio, CONFIDENCE);
    let id = format!("iops.{engine}.{depth}");
    let what = format!("requests a second of {engine} to those of libaio, {depth} at a time");
    figure_of(&id, &what, ratio)
}

fn figure_of(id: &str, what: &str, ratio: Result<Ratio, Error>) -> Option<Figure> {
    let ratio = ratio.ok()?;
    let figure = Figure::plain(id, what, Unit::Times, ratio.interval);
    Some(Figure {
        p_value: Some(ratio.p_value),
        ..figure
    })
}

/// Which differences are proven, all taken together.
fn judge(figures: &mut [Figure]) {
    let p_values: Vec<f64> = figures.iter().filter_map(|figure| figure.p_value).collect();
    let Ok(tested) = holm(&p_values, 1.0 - CONFIDENCE) else {
        return;
    };
    for (figure, tested) in figures.iter_mut().zip(tested) {
        figure.proven = Some(tested.proven);
    }
}

/// The time of one cached read.
fn cost(blocks: &Blocks, engine: &str, depth: u32) -> Option<Figure> {
    let cell = blocks.position(&cost_name(engine, depth))?;
    let mean = blocks.contrast(&[(cell, 1.0)], CONFIDENCE);
    let id = format!("cached.{engine}.{depth}");
    let what = format!("a cached 4 KiB read by {engine}, {depth} at a time");
    // That a time is not zero is no finding.
    let figure = Figure::of(&id, &what, Unit::Ns, mean)?;
    Some(Figure {
        p_value: None,
        ..figure
    })
}
