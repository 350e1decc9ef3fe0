//! The simulator and the checks of the repository itself.
