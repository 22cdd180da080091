//! Histograms and statistics, pure mathematics.
