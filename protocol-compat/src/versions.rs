//! Which versions can be spoken, and which of them kafka-protocol has types for.
//!
//! What a broker offers to a client also depends on the handlers it has; that is the broker's.

use kafka_protocol::messages::ApiKey;

use crate::schema::{self, Struct, Type, Versions};

/// The key of Produce.
const PRODUCE: i16 = 0;

/// Where kafka-protocol's request types end before the versions it claims for the API: they were
/// still unstable in Kafka 4.1. Key, last version.
const SHORT_REQUESTS: [(i16, i16); 3] = [(8, 9), (9, 9), (22, 5)];

/// The versions of an API's request that kafka-protocol has types for, if it has the API at all.
/// Later ones are bridged by [`crate::later`].
pub fn request_types(key: i16) -> Option<Versions> {
    let mut versions = response_types(key)?;
    if let Some((_, last)) = SHORT_REQUESTS.iter().find(|(short, _)| *short == key) {
        versions.max = *last;
    }
    Some(versions)
}

/// The versions of an API's response that kafka-protocol has types for.
pub fn response_types(key: i16) -> Option<Versions> {
    let range = ApiKey::try_from(key).ok()?.valid_versions();
    Some(Versions { min: range.min, max: range.max })
}

/// All versions of an API that a broker can read and answer; `None` for the APIs whose types
/// kafka-protocol lacks.
pub fn served(key: i16) -> Option<Versions> {
    let api = schema::api(key)?;
    request_types(key)?;
    Some(Versions { min: api.min, max: api.max_stable() })
}

/// The lowest version to advertise. Produce says 0 though 3 is the lowest that is read:
/// librdkafka takes a higher one for a broker without message format 1 (KAFKA-18659).
pub fn advertised_min(api: &schema::Api) -> i16 {
    if api.key == PRODUCE { 0 } else { api.min }
}

/// Whether a struct has the same bytes in two versions.
pub(crate) fn same_layout(item: &'static Struct, a: i16, b: i16) -> bool {
    a == b
        || item.fields.iter().all(|field| {
            let same = |versions: Versions| versions.holds(a) == versions.holds(b);
            let inner = match field.ty {
                Type::Struct(inner) | Type::Array(&Type::Struct(inner)) => Some(inner),
                _ => None,
            };
            same(field.versions)
                && same(field.nullable)
                && same(field.tagged)
                && inner.is_none_or(|inner| !field.versions.holds(a) || same_layout(inner, a, b))
        })
}

#[cfg(test)]
mod tests;
