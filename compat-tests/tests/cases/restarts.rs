//! What has to survive a stop, a kill and an expiry; and connections that are idle.

use compat_tests::broker::Broker;
use compat_tests::differ::batch::{batch, three, values};
use compat_tests::differ::context::{Step, T, dig, with};
use compat_tests::differ::rules::now_ms;
use serde_json::{Value, json};

use crate::{code, number};

/// Ends the process, by a kill every other time, and starts it anew.
fn restart(broker: &mut Broker, round: usize) {
    if round.is_multiple_of(2) {
        broker.kill()
    } else {
        broker.stop()
    }
    broker.resume();
}

/// A context on a restarted broker, when the topic serves.
fn again(broker: &Broker, name: &str, topic: &str) -> T {
    let mut t = T::new(&broker.bootstrap, name, 0);
    t.await_topic(topic, 1).expect("it serves");
    t
}

#[test]
fn five_batches_are_remembered() {
    let Some(mut broker) = Broker::restartable(&[]) else { return };
    let mut t = T::new(&broker.bootstrap, "window", 0);
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let id = t.producer_id().expect("an id");
    let send = |t: &mut T, sequence| {
        // A producer whose last record is older than a day is forgotten, so it is of now.
        let sent = values(&["x"]).at(now_ms()).producer(id, 0, sequence);
        let answer = t.produce(&topic, 9, &sent);
        (code(&answer), answer["BaseOffset"].as_i64().unwrap_or(-1))
    };
    for sequence in 0..5 {
        assert_eq!(send(&mut t, sequence), (0, i64::from(sequence)));
    }
    for round in 0..3 {
        for sequence in 0..5 {
            assert_eq!(send(&mut t, sequence), (0, i64::from(sequence)), "round {round}");
        }
        assert_eq!(number(&t.offset_at(&topic, 7, -1), "/Offset"), 5, "round {round}");
        restart(&mut broker, round);
        t = again(&broker, "window", &topic);
    }
    assert_eq!(send(&mut t, 5), (0, 5));
    assert_eq!(send(&mut t, 0).0, 45, "older than the window");
    assert_eq!(send(&mut t, 1), (0, 1));
    // Part of what was sent, and more.
    let overlap = values(&["x", "y"]).at(now_ms()).producer(id, 0, 5);
    assert_eq!(code(&t.produce(&topic, 9, &overlap)), 45);
    assert_eq!(number(&t.offset_at(&topic, 7, -1), "/Offset"), 6);
}

#[test]
fn append_time_of_a_duplicate_is_the_first_one() {
    let broker = Broker::start(&[]);
    let mut t = T::new(&broker.bootstrap, "append-time", 0);
    let topic = t.topic("a", 1, &[("message.timestamp.type", "LogAppendTime")]).expect("a topic");
    let id = t.producer_id().expect("an id");
    let sent = values(&["x"]).producer(id, 0, 0);
    let first = t.produce(&topic, 9, &sent);
    t.pause(20);
    let second = t.produce(&topic, 9, &sent);
    for field in ["ErrorCode", "BaseOffset", "LogAppendTimeMs"] {
        assert_eq!(first[field], second[field], "{first} {second}");
    }
}

/// The end of an epoch: (error, epoch, offset).
fn end_of(t: &mut T, topic: &str, epoch: i64) -> (i64, i64, i64) {
    let partition = json!({"Partition": 0, "CurrentLeaderEpoch": -1, "LeaderEpoch": epoch});
    let topics = json!([{"Topic": topic, "Partitions": [partition]}]);
    let answer = t.ask("OffsetForLeaderEpoch", 4, json!({"ReplicaId": -1, "Topics": topics}));
    let got = dig(&answer, "/Topics/0/Partitions/0");
    (code(&got), number(&got, "/LeaderEpoch"), number(&got, "/EndOffset"))
}

/// KIP-320: ends of epochs, with epochs between in which nothing was written, over restarts and
/// after the records of the first are gone.
#[test]
fn ends_of_epochs_survive() -> Step {
    let Some(mut broker) = Broker::restartable(&[]) else { return Ok(()) };
    let mut t = T::new(&broker.bootstrap, "epoch-ends", 0);
    let topic = t.topic("a", 1, &[])?;
    let mut written: Vec<(i64, i64)> = Vec::new();
    let mut current = 0;
    for round in 0..5 {
        let known = t.ask("Metadata", 12, json!({"Topics": [{"Name": topic}]}));
        current = number(&known, "/Topics/0/Partitions/0/LeaderEpoch");
        if round % 2 == 0 {
            let base = t.put(&topic, &batch(&three()))?;
            match written.last() {
                Some((epoch, _)) if *epoch == current => {}
                _ => written.push((current, base)),
            }
        }
        restart(&mut broker, round);
        t = again(&broker, "epoch-ends", &topic);
    }
    println!("epochs and where they begin: {written:?}, the last is {current}");
    check_ends(&mut t, &topic, &written, 9);
    let Some(second) = written.get(1).map(|(_, start)| *start) else { return Ok(()) };
    let partition = json!([{"PartitionIndex": 0, "Offset": second}]);
    let topics = json!([{"Name": topic, "Partitions": partition}]);
    t.need("DeleteRecords", 2, json!({"Topics": topics, "TimeoutMs": 5000}))?;
    check_ends(&mut t, &topic, &written[1..], 9);
    restart(&mut broker, 0);
    let mut t = again(&broker, "epoch-ends", &topic);
    check_ends(&mut t, &topic, &written[1..], 9);
    Ok(())
}

fn check_ends(t: &mut T, topic: &str, written: &[(i64, i64)], end: i64) {
    let known = t.ask("Metadata", 12, json!({"Topics": [{"Name": topic}]}));
    let current = number(&known, "/Topics/0/Partitions/0/LeaderEpoch");
    for epoch in 0..=current + 2 {
        let before = written.iter().rposition(|(known, _)| *known <= epoch);
        let want = match before {
            _ if epoch > current => (0, -1, -1),
            _ if epoch == current => (0, current, end),
            None => (0, epoch, written[0].1),
            Some(at) => (0, written[at].0, written.get(at + 1).map_or(end, |next| next.1)),
        };
        assert_eq!(end_of(t, topic, epoch), want, "epoch {epoch} of {written:?}, now {current}");
    }
}

#[test]
fn the_start_survives_deleted_records() {
    let Some(mut broker) = Broker::restartable(&[]) else { return };
    let mut t = T::new(&broker.bootstrap, "start", 0);
    let topic = t.topic("a", 1, &[]).expect("a topic");
    for _ in 0..3 {
        t.put(&topic, &batch(&three())).expect("produced");
    }
    for (round, start) in [(0, 4), (1, 7), (2, 9)] {
        let partition = json!([{"PartitionIndex": 0, "Offset": start}]);
        let topics = json!([{"Name": topic, "Partitions": partition}]);
        t.need("DeleteRecords", 2, json!({"Topics": topics, "TimeoutMs": 5000})).expect("deleted");
        restart(&mut broker, round);
        t = again(&broker, "start", &topic);
        assert_eq!(number(&t.offset_at(&topic, 7, -2), "/Offset"), start);
        assert_eq!(number(&t.offset_at(&topic, 7, -1), "/Offset"), 9);
        assert_eq!(code(&t.fetch(&topic, 11, start)), 0);
        assert_eq!(code(&t.fetch(&topic, 11, start - 1)), 1);
    }
}

/// Everything expires, again and again: offsets never shift and the start can always be read.
#[test]
fn an_expired_log_goes_on_where_it_ended() {
    let soon = ("log.initial.task.delay.ms", "200");
    let often = ("log.retention.check.interval.ms", "200");
    let Some(mut broker) = Broker::restartable(&[soon, often]) else { return };
    let mut t = T::new(&broker.bootstrap, "expired", 0);
    let short = [("retention.ms", "300"), ("segment.ms", "300")];
    let topic = t.topic("a", 1, &short).expect("a topic");
    let mut end = 0;
    for round in 0..4 {
        for _ in 0..10 {
            // Ten records a batch, of the distant past.
            let base = t.put(&topic, &values(&["x"; 10])).expect("produced");
            assert_eq!(base, end, "round {round}");
            end += 10;
        }
        let start = t.poll(|t| t.offset_at(&topic, 7, -2), |answer| answer["Offset"] == json!(end));
        assert_eq!(number(&start, "/Offset"), end, "round {round}");
        assert_eq!(number(&start, "/Timestamp"), -1, "round {round}");
        for again_ in [false, true] {
            if again_ {
                restart(&mut broker, round);
                t = again(&broker, "expired", &topic);
            }
            assert_eq!(number(&t.offset_at(&topic, 7, -2), "/Offset"), end, "round {round}");
            assert_eq!(number(&t.offset_at(&topic, 7, -1), "/Offset"), end, "round {round}");
            assert_eq!(number(&t.offset_at(&topic, 7, 1), "/Offset"), -1, "round {round}");
            let got = t.fetch(&topic, 11, end);
            let found =
                (code(&got), number(&got, "/HighWatermark"), number(&got, "/LogStartOffset"));
            assert_eq!(found, (0, end, end), "round {round}");
            assert_eq!(code(&t.fetch(&topic, 11, end - 1)), 1, "round {round}");
        }
    }
}

/// Who is silent is let go after a while, but never while an answer is owed.
#[test]
fn idle_connections_end() {
    let broker = Broker::start(&[("connections.max.idle.ms", "1000")]);
    let mut t = T::new(&broker.bootstrap, "idle", 0);
    let topic = t.topic("a", 1, &[]).expect("a topic");
    let mut idle = t.conn();
    assert_eq!(code(&idle.ask("ApiVersions", 0, &json!({}))), 0);
    let mut waiting = t.conn();
    let wait = json!({"MaxWaitMs": 4000, "MinBytes": 1});
    waiting.start("Fetch", 11, &with(t.fetch_body(&topic, 0), wait)).expect("sent");
    assert_eq!(idle.watch(9000), json!("closed"));
    assert!(waiting.finish().is_ok_and(|answer| code(&answer) == 0), "its answer was owed");
}

/// Beyond the limit of an address connections end at once, and the others go on.
#[test]
fn connections_of_one_address_are_limited() {
    let broker = Broker::start(&[("max.connections.per.ip", "20")]);
    let t = T::new(&broker.bootstrap, "limited", 0);
    let hello =
        |conn: &mut compat_tests::differ::conn::Conn| conn.ask("ApiVersions", 0, &json!({}));
    // What was used to see that it serves may not be gone yet.
    t.pause(500);
    let mut kept: Vec<_> = (0..20).map(|_| t.conn()).collect();
    let is_served = |answer: &Value| answer.is_object();
    let served = kept.iter_mut().map(hello).filter(is_served).count();
    assert!(served >= 15, "{served}");
    let mut more: Vec<_> = (0..100).map(|_| t.conn()).collect();
    let beyond = more.iter_mut().map(hello).filter(is_served).count();
    assert!(served + beyond <= 20, "{served} and {beyond}");
    drop((kept, more));
    t.pause(500);
    assert!(is_served(&hello(&mut t.conn())), "there is room again");
}
