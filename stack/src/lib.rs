//! GEOM itself: class, geom, provider, consumer, bio, topology, access, dispatch, statistics.
