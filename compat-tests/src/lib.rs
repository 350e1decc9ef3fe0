//! Black-box suites: they know only the built binary.
