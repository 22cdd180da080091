//! One folder a GEOM class, their registry, and the stack language.
