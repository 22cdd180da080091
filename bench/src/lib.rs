//! The experiments of ugeom lab: runner, judgement, reports.
