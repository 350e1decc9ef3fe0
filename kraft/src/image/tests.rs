//! Tests of the image.
