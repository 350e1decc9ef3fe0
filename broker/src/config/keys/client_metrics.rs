//! Settings of a client-metrics subscription (KIP-714).
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { ROWS;
    /// How often matching clients report their metrics, between 100 ms and one hour.
    INTERVAL_MS "interval.ms" Int = 300_000, Between(100, 3_600_000), Medium Resource Later;

    /// Which clients are meant, as `selector=pattern` pairs: client_id, client_instance_id,
    /// client_software_name, client_software_version, client_source_address or
    /// client_source_port.
    MATCH "match" List = "", List, Medium Resource Later;

    /// Names of metrics, by their beginnings, that matching clients report; `*` means all,
    /// empty none.
    METRICS "metrics" List = "", List, Medium Resource Later;
}
