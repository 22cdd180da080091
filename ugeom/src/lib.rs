//! A userspace GEOM with a measuring bench built in.
