//! Memory, clock, CPU and wake-ups: the floor that everything else of ugeom stands on.
