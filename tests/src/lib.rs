//! End-to-end tests against programs that ugeom did not write.
