//! Every request and response of the field table, in every version: random ones are taken by
//! the shape check and by kafka-protocol, cut ones are refused, odd ones mean the same.

mod harness;

use bytes::Bytes;
use harness::messages::{TYPES, one_request, types};
use protocol_compat::random::{self, Rng};
use protocol_compat::schema::APIS;
use protocol_compat::{shape, versions};

const SEEDS: u64 = 5;

/// Runs `check` for each API, version and seed.
fn each(check: impl Fn(i16, i16, u64)) {
    for api in APIS {
        for version in api.min..=api.max {
            for seed in 0..SEEDS {
                check(api.key, version, seed);
            }
        }
    }
}

#[test]
fn kafka_protocol_has_every_api_but_four() {
    assert_eq!(TYPES.len(), 87);
    let lacking: Vec<i16> =
        APIS.iter().map(|api| api.key).filter(|key| types(*key).is_none()).collect();
    assert_eq!(lacking, [88, 89, 93, 94]);
    for types in TYPES {
        let request = versions::request_types(types.key).expect("it has types");
        let response = versions::response_types(types.key).expect("it has types");
        assert_eq!((request.max, response.max), types.last, "{}", types.key);
    }
}

#[test]
fn requests_are_taken_whole_and_refused_when_cut() {
    each(|key, version, seed| {
        let body = random::request(seed, key, version).expect("the table has it");
        let at = format!("key {key} version {version} seed {seed}: {body:02x?}");
        let shape = shape::check_request(key, version, &body).expect(&at);
        assert_eq!((shape.len, shape.odd), (body.len(), false), "{at}");
        for len in 0..body.len() {
            let cut = body.get(..len).expect("shorter than all of it");
            assert!(!one_request(key, version, cut), "{len} bytes of {at}");
        }
        let Some(types) = types(key) else { return };
        let again = (types.request)(version, &Bytes::from(body.clone())).expect(&at);
        if version <= types.last.0 {
            assert_eq!(again, body, "{at}");
        }
    });
}

#[test]
fn responses_are_taken_whole_and_refused_when_cut() {
    each(|key, version, seed| {
        let body = random::response(seed, key, version).expect("the table has it");
        let at = format!("key {key} version {version} seed {seed}: {body:02x?}");
        let shape = shape::check_response(key, version, &body).expect(&at);
        assert_eq!((shape.len, shape.odd), (body.len(), false), "{at}");
        for len in 0..body.len() {
            let cut = body.get(..len).expect("shorter than all of it");
            assert!(shape::check_response(key, version, cut).is_err(), "{len} bytes of {at}");
        }
        let Some(types) = types(key) else { return };
        if version <= types.last.1 {
            let again = (types.response)((version, version), &body).expect(&at);
            assert_eq!(again, body, "{at}");
        }
    });
}

#[test]
fn responses_of_later_versions_are_well_formed() {
    for types in TYPES {
        let newest = types.last.1;
        let later = versions::served(types.key).expect("it has types").max.max(newest);
        for seed in 0..SEEDS {
            let body = random::response(seed, types.key, newest).expect("the table has it");
            let again = (types.response)((newest, later), &body);
            let at = format!("key {} seed {seed}: {body:02x?}", types.key);
            let again = again.expect(&at);
            let shape = shape::check_response(types.key, later, &again).expect(&at);
            assert_eq!((shape.len, shape.odd), (again.len(), false), "{at}");
        }
    }
}

#[test]
fn odd_requests_mean_the_same() {
    each(|key, version, seed| {
        let body = random::odd_request(seed, key, version).expect("the table has it");
        let at = format!("key {key} version {version} seed {seed}: {body:02x?}");
        assert!(one_request(key, version, &body.plain), "{at}");
        assert!(one_request(key, version, &body.odd), "{at}");
        let Some(types) = types(key) else { return };
        let plain = (types.request)(version, &Bytes::from(body.plain)).expect(&at);
        let odd = (types.request)(version, &Bytes::from(body.odd)).expect(&at);
        assert_eq!(plain, odd, "{at}");
    });
}

#[test]
fn changed_bytes_are_decoded_or_refused() {
    let taken = std::cell::Cell::new(0);
    each(|key, version, seed| {
        let body = random::odd_request(seed, key, version).expect("the table has it");
        let mut rng = Rng::new(seed);
        for source in [&body.plain, &body.odd] {
            for _ in 0..8 {
                let mut changed = source.clone();
                for _ in 0..=rng.below(3) {
                    change(&mut changed, &mut rng);
                }
                taken.set(taken.get() + u32::from(one_request(key, version, &changed)));
            }
        }
    });
    assert!(taken.get() > 500, "only {} were still well formed", taken.get());
}

/// One byte more, less, or other.
fn change(body: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.below(body.len() as u64 + 1) as usize;
    let byte = match rng.below(4) {
        0 => 0,
        1 => 0xff,
        2 => rng.below(8) as u8,
        _ => rng.any() as u8,
    };
    match (rng.below(8), body.get_mut(at)) {
        (0, _) | (_, None) => body.insert(at, byte),
        (1, _) => drop(body.remove(at)),
        (_, Some(place)) => *place = byte,
    }
}
