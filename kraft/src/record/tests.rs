//! Tests of the records.
