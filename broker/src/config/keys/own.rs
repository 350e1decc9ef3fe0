//! Settings that Kafka does not have. DescribeConfigs shows one only when it is set.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { OWN_ROWS;
    /// The address as `host:port` that serves metrics and health over HTTP; empty switches the
    /// server off.
    HTTP_LISTEN "http.listen" Text = "127.0.0.1:9404", Any, Medium ReadOnly Acts internal;
}
