//! Idempotent producers: sequence numbers, epochs, the window of duplicates.

use serde_json::{Value, json};

use crate::differ::batch::{Batch, values};
use crate::differ::codec::hex;
use crate::differ::run::Cases;

/// `count` records of a producer.
fn sent(id: i64, epoch: i16, sequence: i32, count: usize) -> Batch {
    values(&["x", "y", "z", "u", "v"][..count]).producer(id, epoch, sequence)
}

/// The steps of one producer: epoch, sequence, count.
type Steps = &'static [(i16, i32, usize)];

pub fn add(cases: &mut Cases) {
    sequences(cases);
    codes(cases);
    others(cases);
    after_other_calls(cases);
    ids(cases);
}

fn sequences(cases: &mut Cases) {
    const MAX: i32 = i32::MAX;
    let all: [(&str, Steps); 15] = [
        ("one after another", &[(0, 0, 1), (0, 1, 2), (0, 3, 3)]),
        ("duplicate", &[(0, 0, 2), (0, 0, 2), (0, 2, 2), (0, 2, 2), (0, 0, 2)]),
        (
            "window of five",
            &[
                (0, 0, 2),
                (0, 2, 2),
                (0, 4, 2),
                (0, 6, 2),
                (0, 8, 2),
                (0, 0, 2),
                (0, 2, 2),
                (0, 8, 2),
                (0, 10, 2),
                (0, 0, 2),
                (0, 2, 2),
                (0, 12, 2),
                (0, 2, 2),
            ],
        ),
        ("gap", &[(0, 0, 2), (0, 3, 2), (0, 2, 2)]),
        ("back", &[(0, 0, 3), (0, 1, 2), (0, 0, 2), (0, 0, 1), (0, 2, 1)]),
        ("longer than stored", &[(0, 0, 2), (0, 0, 3), (0, 1, 3)]),
        ("first sequence 7", &[(0, 7, 2), (0, 9, 1), (0, 12, 1), (0, 7, 2)]),
        ("first epoch 3", &[(3, 100, 1), (3, 101, 1), (2, 102, 1)]),
        (
            "epochs",
            &[
                (1, 0, 2),
                (1, 0, 2),
                (0, 2, 2),
                (2, 5, 2),
                (2, 0, 2),
                (1, 0, 2),
                (2, 2, 2),
                (2, 0, 2),
            ],
        ),
        ("last epoch", &[(i16::MAX, 0, 1), (i16::MAX, 1, 1), (0, 0, 1)]),
        ("epoch after many", &[(0, 0, 2), (0, 2, 2), (1, 2, 2), (1, 0, 1), (0, 4, 1)]),
        ("wrap inside a batch", &[(0, MAX - 7, 5), (0, MAX - 2, 5), (0, 2, 1), (0, 3, 1)]),
        ("wrap between batches", &[(0, MAX - 2, 2), (0, MAX, 1), (0, 0, 1), (0, 1, 1)]),
        ("wrap too early", &[(0, MAX - 2, 2), (0, 0, 1), (0, MAX, 1)]),
        ("wrap and duplicates", &[(0, MAX - 1, 2), (0, 0, 2), (0, 0, 2), (0, MAX - 1, 2)]),
    ];
    for (label, steps) in all {
        cases.add(format!("idempotence/{label}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            let id = t.producer_id()?;
            for (epoch, sequence, count) in steps {
                let answer = t.produce(&topic, 9, &sent(id, *epoch, *sequence, *count));
                t.see(format!("epoch {epoch} sequence {sequence} count {count}"), answer);
            }
            t.see_log("log", &topic);
            Ok(())
        });
    }
}

fn codes(cases: &mut Cases) {
    for version in [3, 5, 8, 13] {
        cases.add(format!("idempotence/codes v{version}"), move |t| {
            let topic = t.topic("a", 1, &[])?;
            let id = t.producer_id()?;
            for (epoch, sequence) in [(1, 0), (1, 0), (1, 9), (0, 1), (2, 4)] {
                let answer = t.produce(&topic, version, &sent(id, epoch, sequence, 1));
                t.see(format!("epoch {epoch} sequence {sequence}"), answer);
            }
            Ok(())
        });
    }
}

fn others(cases: &mut Cases) {
    cases.add("idempotence/duplicate of other bytes", |t| {
        let topic = t.topic("a", 1, &[])?;
        let id = t.producer_id()?;
        t.put(&topic, &sent(id, 0, 0, 2))?;
        let other = values(&["other", "values"]).producer(id, 0, 0).codec(1);
        let answer = t.produce(&topic, 9, &other);
        t.see("other values", answer);
        t.see_log("log", &topic);
        Ok(())
    });
    cases.add("idempotence/append time of a duplicate", |t| {
        let topic = t.topic("a", 1, &[("message.timestamp.type", "LogAppendTime")])?;
        let id = t.producer_id()?;
        let first = t.produce(&topic, 9, &sent(id, 0, 0, 1));
        t.pause(30);
        let again = t.produce(&topic, 9, &sent(id, 0, 0, 1));
        t.see("the same", first["LogAppendTimeMs"] == again["LogAppendTimeMs"]);
        t.see("again", again);
        Ok(())
    });
    cases.add("idempotence/beside plain batches", |t| {
        let topic = t.topic("a", 1, &[])?;
        let id = t.producer_id()?;
        let plain = values(&["plain"]);
        let steps = [sent(id, 0, 0, 2), plain.clone(), sent(id, 0, 2, 2), plain, sent(id, 0, 0, 2)];
        for (number, step) in steps.iter().enumerate() {
            let answer = t.produce(&topic, 9, step);
            t.see(format!("step {number}"), answer);
        }
        t.see_log("log", &topic);
        Ok(())
    });
    cases.add("idempotence/two producers in one request", |t| {
        let topic = t.topic("a", 2, &[])?;
        let ids = [t.producer_id()?, t.producer_id()?];
        let data = ids.iter().enumerate().map(
            |(index, id)| json!({"Index": index, "Records": hex(&sent(*id, 0, 0, 1).bytes())}),
        );
        let data = json!([{"Name": topic, "PartitionData": data.collect::<Vec<Value>>()}]);
        t.look("answer", "Produce", 9, json!({"Acks": -1, "TimeoutMs": 3000, "TopicData": data}));
        t.see("ids differ", ids[0] != ids[1]);
        Ok(())
    });
    cases.add("idempotence/a partition each", |t| {
        let topic = t.topic("a", 1, &[])?;
        let other = t.topic("b", 1, &[])?;
        let id = t.producer_id()?;
        for (name, sequence) in [(&topic, 0), (&other, 0), (&topic, 1), (&other, 5), (&other, 1)] {
            let answer = t.produce(name, 9, &sent(id, 0, sequence, 1));
            t.see(format!("sequence {sequence}"), answer);
        }
        Ok(())
    });
}

fn after_other_calls(cases: &mut Cases) {
    cases.add("idempotence/refused batches leave no trace", |t| {
        let topic = t.topic("a", 1, &[])?;
        let id = t.producer_id()?;
        let broken = sent(id, 0, 0, 2).forge(|batch| batch.crc = Some(1));
        let answer = t.produce(&topic, 9, &broken);
        t.see("refused", answer);
        let answer = t.produce(&topic, 9, &sent(id, 0, 5, 1));
        t.see("any first sequence", answer);
        Ok(())
    });
    cases.add("idempotence/after deleting records", |t| {
        let topic = t.topic("a", 1, &[])?;
        let id = t.producer_id()?;
        for sequence in [0, 2, 4] {
            t.put(&topic, &sent(id, 0, sequence, 2))?;
        }
        let all = json!([{"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": -1}]}]);
        t.look("deleted", "DeleteRecords", 2, json!({"Topics": all, "TimeoutMs": 5000}));
        for sequence in [6, 4, 2, 20] {
            let answer = t.produce(&topic, 9, &sent(id, 0, sequence, 2));
            t.see(format!("sequence {sequence}"), answer);
        }
        Ok(())
    });
    cases.add("idempotence/topic made again", |t| {
        let topic = t.topic("a", 1, &[])?;
        let id = t.producer_id()?;
        t.put(&topic, &sent(id, 0, 0, 2))?;
        t.delete_topic(&topic)?;
        let topic = t.topic("a", 1, &[])?;
        let answer = t.produce(&topic, 9, &sent(id, 0, 2, 2));
        t.see("goes on", answer);
        Ok(())
    });
    cases.add("idempotence/described", |t| {
        let topic = t.topic("a", 2, &[])?;
        let id = t.producer_id()?;
        t.put(&topic, &sent(id, 3, 0, 2))?;
        t.put(&topic, &sent(id, 3, 2, 2))?;
        let missing = t.name("missing");
        let topics = json!([
            {"Name": topic, "PartitionIndexes": [0, 1, 5]},
            {"Name": missing, "PartitionIndexes": [0]},
        ]);
        t.look("answer", "DescribeProducers", 0, json!({ "Topics": topics }));
        Ok(())
    });
}

fn ids(cases: &mut Cases) {
    for version in 0..=5 {
        cases.add(format!("idempotence/new id v{version}"), move |t| {
            let body = |more: Value| {
                let none = json!({"TransactionalId": null, "TransactionTimeoutMs": 60000});
                crate::differ::context::with(none, more)
            };
            let all = [
                ("plain", json!({})),
                ("no time limit", json!({"TransactionTimeoutMs": 0})),
                ("negative time limit", json!({"TransactionTimeoutMs": -1})),
                ("empty transactional id", json!({"TransactionalId": ""})),
                ("id and epoch", json!({"ProducerId": 5, "ProducerEpoch": 1})),
                ("id only", json!({"ProducerId": 5})),
                ("epoch only", json!({"ProducerEpoch": 1})),
            ];
            for (label, more) in all {
                t.look(label, "InitProducerId", version, body(more));
            }
            Ok(())
        });
    }
}
