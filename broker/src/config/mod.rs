//! The configuration table, its parser, and what clients see of it.
