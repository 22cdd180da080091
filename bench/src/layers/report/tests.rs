//! The report of documents whose costs are known, against the text that a reader gets.
use super::*;
use crate::layers::{compute, fixture};

fn computed(rounds: usize) -> Document {
    let mut document = fixture::document(rounds);
    compute(&mut document);
    document
}
#[test]
fn look() {
    println!("{}", report(&computed(12), true));
}
