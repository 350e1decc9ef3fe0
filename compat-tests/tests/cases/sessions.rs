//! Fetch sessions (KIP-227) over the wire.

use compat_tests::broker::Broker;
use compat_tests::differ::batch::{batch, three};
use compat_tests::differ::context::{T, with};
use serde_json::{Value, json};

use crate::{batches, case, code, number};

/// A Fetch within a session, of partition 0 of these topics.
fn body(t: &T, id: i64, epoch: i32, topics: &[(&str, i64)]) -> Value {
    let topics =
        topics.iter().map(|(topic, offset)| t.fetch_body(topic, *offset)["Topics"][0].clone());
    json!({
        "ReplicaId": -1, "MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20,
        "SessionId": id, "SessionEpoch": epoch, "Topics": topics.collect::<Vec<_>>(),
    })
}

/// Session id and error of an answer, and how many partitions it has.
fn brief(answer: &Value) -> (bool, i64, usize) {
    let partitions = answer["Responses"].as_array().expect("a list");
    (number(answer, "/SessionId") != 0, code(answer), partitions.len())
}

#[test]
fn every_transition() {
    let mut t = case("transitions");
    let a = t.topic("a", 1, &[]).expect("a topic");
    let b = t.topic("b", 1, &[]).expect("a topic");
    for version in [7, 11, 12, 13, 16] {
        let opened = t.ask("Fetch", version, body(&t, 0, 0, &[(&a, 0), (&b, 0)]));
        assert_eq!(brief(&opened), (true, 0, 2), "{opened}");
        let id = number(&opened, "/SessionId");
        let steps: [(i64, i32, (bool, i64, usize)); 9] = [
            (id, 1, (true, 0, 0)),
            (id, 1, (false, 71, 0)),
            (id, 5, (false, 71, 0)),
            (id, 2, (true, 0, 0)),
            (id ^ 1, 3, (false, 70, 0)),
            (0, 3, (false, 70, 0)),
            (id, 3, (true, 0, 0)),
            (id, -1, (false, 0, 0)),
            (id, 4, (false, 70, 0)),
        ];
        for (id, epoch, want) in steps {
            let answer = t.ask("Fetch", version, body(&t, id, epoch, &[]));
            let (has_id, code, partitions) = brief(&answer);
            // Beside an error the session id says nothing.
            assert_eq!((code, partitions), (want.1, want.2), "v{version} {epoch}: {answer}");
            assert!(code != 0 || has_id == want.0, "v{version} {epoch}: {answer}");
        }
        let bare = t.ask("Fetch", version, body(&t, 0, -1, &[(&a, 0)]));
        assert_eq!(brief(&bare), (false, 0, 1), "{bare}");
    }
}

#[test]
fn an_answer_has_what_changed() {
    let mut t = case("changed");
    let a = t.topic("a", 1, &[]).expect("a topic");
    let b = t.topic("b", 1, &[]).expect("a topic");
    let opened = t.ask("Fetch", 11, body(&t, 0, 0, &[(&a, 0), (&b, 0)]));
    let id = number(&opened, "/SessionId");
    t.put(&a, &batch(&three())).expect("produced");
    let news = t.ask("Fetch", 11, body(&t, id, 1, &[]));
    assert_eq!(news["Responses"][0]["Topic"], json!(a), "{news}");
    assert_eq!(brief(&news).2, 1, "{news}");
    // It was not asked for the next offset: the records are there again, not a frozen nothing.
    let again = t.ask("Fetch", 11, body(&t, id, 2, &[]));
    assert_eq!(batches(&again["Responses"][0]["Partitions"][0]).len(), 1, "{again}");
    let moved = t.ask("Fetch", 11, body(&t, id, 3, &[(&a, 3)]));
    assert_eq!(brief(&moved), (true, 0, 0), "{moved}");
    // Who goes beyond the end hears of it every time.
    for epoch in [4, 5] {
        let topics: &[(&str, i64)] = if epoch == 4 { &[(&b, 9)] } else { &[] };
        let wrong = t.ask("Fetch", 11, body(&t, id, epoch, topics));
        assert_eq!(number(&wrong, "/Responses/0/Partitions/0/ErrorCode"), 1, "{wrong}");
    }
    let forgets = with(
        body(&t, id, 6, &[]),
        json!({
            "ForgottenTopicsData": [{"Topic": b, "TopicId": t.id(&b), "Partitions": [0]}],
        }),
    );
    assert_eq!(brief(&t.ask("Fetch", 11, forgets)), (true, 0, 0));
}

/// Clients that open a session with every Fetch and use none cost others nothing.
#[test]
fn sessions_thrown_away_do_not_push_out_a_steady_one() {
    let slots = ("max.incremental.fetch.session.cache.slots", "3");
    let broker = Broker::start(&[slots]);
    let mut t = T::new(&broker.bootstrap, "thrown-away", 0);
    let topic = t.topic("a", 1, &[]).expect("a topic");
    t.put(&topic, &batch(&three())).expect("produced");
    let opened = t.ask("Fetch", 11, body(&t, 0, 0, &[(&topic, 3)]));
    let id = number(&opened, "/SessionId");
    assert!(id != 0);
    let mut wasteful = t.conn();
    let mut without = 0;
    for round in 1..=200 {
        let full = wasteful.ask("Fetch", 11, &body(&t, 0, 0, &[(&topic, 0)]));
        // With no slot left it is served as if it had asked for no session.
        assert_eq!(batches(&full["Responses"][0]["Partitions"][0]).len(), 1, "{full}");
        without += usize::from(number(&full, "/SessionId") == 0);
        let steady = t.ask("Fetch", 11, body(&t, id, round, &[]));
        assert_eq!(brief(&steady), (true, 0, 0), "round {round}: {steady}");
    }
    assert_eq!(without, 198);
}
