//! DescribeLogDirs (35), the response of v1-5.
//!
//! v5: whether a directory takes no new replicas, which kafka-protocol's type has no place for.

use bytes::BytesMut;
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};

use super::{EncodeError, Value, encode_response_with};

/// Writes the response body; `cordoned` goes with its results one by one, a missing one is false.
pub fn encode(
    version: i16,
    response: &DescribeLogDirsResponse,
    cordoned: &[bool],
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let mut cordoned = cordoned.iter().copied();
    let next = |_: &'static str| cordoned.next().map(Value::Bool);
    encode_response_with::<DescribeLogDirsRequest>(version, response, next, out)
}
