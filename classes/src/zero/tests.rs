//! Tests of `zero`.
