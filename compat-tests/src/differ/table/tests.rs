//! The table reads as Kafka has it.

use super::*;

#[test]
fn every_broker_api_is_there() {
    let on_broker = apis().values().filter(|api| api.on_broker).count();
    assert_eq!(on_broker, 79);
    assert_eq!(api("Fetch").stable(), 4..=18);
    assert_eq!(api("InitProducerId").stable(), 0..=5, "the last one is unstable");
    assert!(!api("Vote").on_broker);
}

#[test]
fn types_that_are_named_elsewhere_have_their_fields() {
    fn check(fields: &[Field], at: &str) {
        for field in fields {
            let at = format!("{at}.{}", field.name);
            let kind = match &field.kind {
                Type::Array(element) => element,
                other => other,
            };
            if let Type::Struct(inner) = kind {
                assert!(!inner.is_empty(), "{at} has no fields");
                check(inner, &at);
            }
        }
    }
    for api in apis().values() {
        check(&api.request.fields, &api.name);
        check(&api.response.fields, &api.name);
    }
}
