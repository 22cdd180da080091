//! Conformance suites, faults and oracles for the tests of ugeom.
