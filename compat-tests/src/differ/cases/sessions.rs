//! Fetch sessions (KIP-227): opening, what an incremental answer leaves out, errors, closing.

use serde_json::{Value, json};

use crate::differ::batch::values;
use crate::differ::conn::Conn;
use crate::differ::context::{Step, T, with};
use crate::differ::run::Cases;

const NAMES: [i16; 4] = [7, 9, 11, 12];
const IDS: [i16; 3] = [13, 15, 18];

/// A session of one case: the answers of its own connection.
struct Session {
    conn: Conn,
    version: i16,
    id: i64,
    epoch: i32,
}

impl Session {
    fn new(t: &T, version: i16) -> Session {
        Session { conn: t.conn(), version, id: 0, epoch: 0 }
    }

    /// The next Fetch: partitions with their offsets, and ones to forget.
    fn next(&mut self, t: &T, asked: &[(&str, i32, i64)], forgotten: &[(&str, i32)]) -> Value {
        let body = body(t, self.id, self.epoch, asked, forgotten);
        let answer = self.conn.ask("Fetch", self.version, &body);
        self.id = answer["SessionId"].as_i64().unwrap_or(self.id);
        self.epoch = self.epoch.wrapping_add(1);
        answer
    }
}

fn body(
    t: &T,
    session: i64,
    epoch: i32,
    asked: &[(&str, i32, i64)],
    forgotten: &[(&str, i32)],
) -> Value {
    let topics = asked.iter().map(|(topic, index, offset)| {
        let partition =
            json!({"Partition": index, "FetchOffset": offset, "PartitionMaxBytes": 5000});
        json!({"Topic": topic, "TopicId": t.id(topic), "Partitions": [partition]})
    });
    let forgotten = forgotten.iter().map(
        |(topic, index)| json!({"Topic": topic, "TopicId": t.id(topic), "Partitions": [index]}),
    );
    json!({
        "ReplicaId": -1, "MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 100_000,
        "SessionId": session, "SessionEpoch": epoch,
        "Topics": topics.collect::<Vec<_>>(),
        "ForgottenTopicsData": forgotten.collect::<Vec<_>>(),
    })
}

pub fn add(cases: &mut Cases) {
    for version in NAMES.into_iter().chain(IDS) {
        cases.add(format!("sessions/life v{version}"), move |t| life(t, version));
        cases.add(format!("sessions/errors v{version}"), move |t| errors(t, version));
        cases.add(format!("sessions/deleted topic v{version}"), move |t| deleted(t, version));
    }
    cases.add("sessions/names and ids do not mix", |t| {
        let a = t.topic("a", 1, &[])?;
        for (first, second) in [(12, 13), (13, 12), (16, 11)] {
            let mut session = Session::new(t, first);
            session.next(t, &[(&a, 0, 0)], &[]);
            session.version = second;
            let mixed = session.next(t, &[(&a, 0, 0)], &[]);
            t.see(format!("v{first} then v{second}"), mixed);
            (session.version, session.epoch) = (first, 1);
            let back = session.next(t, &[], &[]);
            t.see(format!("v{first} again"), back);
        }
        Ok(())
    });
    cases.add("sessions/another connection", |t| {
        let a = t.topic("a", 1, &[])?;
        let mut session = Session::new(t, 12);
        session.next(t, &[(&a, 0, 0)], &[]);
        session.conn = t.conn();
        t.put(&a, &values(&["x"]))?;
        let answer = session.next(t, &[], &[]);
        t.see("answer", answer);
        Ok(())
    });
    cases.add("sessions/what changes is told", |t| {
        let a = t.topic("a", 3, &[])?;
        let mut session = Session::new(t, 12);
        let all = [(&*a, 0, 0), (&*a, 1, 0), (&*a, 2, 0)];
        let opened = session.next(t, &all, &[]);
        t.see("opened", opened);
        t.put(&a, &values(&["x"]))?;
        let told = session.next(t, &[], &[]);
        t.see("new records", told);
        let told = session.next(t, &[(&a, 0, 1)], &[]);
        t.see("moved on", told);
        let cut = json!([{"Name": a, "Partitions": [{"PartitionIndex": 0, "Offset": 1}]}]);
        t.need("DeleteRecords", 2, json!({"Topics": cut, "TimeoutMs": 5000}))?;
        let told = session.next(t, &[], &[]);
        t.see("log start", told);
        let told = session.next(t, &[(&a, 1, 5)], &[]);
        t.see("out of range", told);
        let told = session.next(t, &[], &[]);
        t.see("still out of range", told);
        let told = session.next(t, &[(&a, 1, 0)], &[]);
        t.see("in range again", told);
        Ok(())
    });
    waiting(cases);
}

fn waiting(cases: &mut Cases) {
    cases.add("sessions/waiting", |t| {
        let a = t.topic("a", 1, &[])?;
        let mut session = Session::new(t, 12);
        session.next(t, &[(&a, 0, 0)], &[]);
        let wait = json!({"MaxWaitMs": 400, "MinBytes": 1});
        let quiet = with(body(t, session.id, 1, &[], &[]), wait.clone());
        let answer = session.conn.ask("Fetch", 12, &quiet);
        t.see("nothing new", answer);
        session.conn.start("Fetch", 12, &with(body(t, session.id, 2, &[], &[]), wait)).ok();
        t.pause(50);
        t.put(&a, &values(&["x"]))?;
        let answer = session.conn.finish().unwrap_or_else(|why| why.value());
        t.see("something new", answer);
        Ok(())
    });
    for (label, id, epoch) in [
        ("unknown", 12345, 1),
        ("unknown, epoch 0", 12345, 0),
        ("unknown, closing", 12345, -1),
        ("none, epoch 1", 0, 1),
        ("none, closing", 0, -1),
        ("none, epoch -2", 0, -2),
        ("negative", -5, 1),
    ] {
        cases.add(format!("sessions/id {label}"), move |t| {
            let a = t.topic("a", 1, &[])?;
            for version in [7, 12, 13] {
                let body = body(t, id, epoch, &[(&a, 0, 0)], &[]);
                t.look(format!("v{version}"), "Fetch", version, body);
            }
            Ok(())
        });
    }
}

fn life(t: &mut T, version: i16) -> Step {
    let a = t.topic("a", 2, &[])?;
    let b = t.topic("b", 1, &[])?;
    t.put(&a, &values(&["1", "2"]))?;
    let mut session = Session::new(t, version);
    let opened = session.next(t, &[(&a, 0, 0), (&a, 1, 0)], &[]);
    t.see("opened", opened);
    let empty = session.next(t, &[(&a, 0, 2)], &[]);
    t.see("nothing new", empty);
    t.put(&a, &values(&["3"]))?;
    let new = session.next(t, &[], &[]);
    t.see("new records", new);
    let again = session.next(t, &[], &[]);
    t.see("the same again", again);
    let added = session.next(t, &[(&b, 0, 0)], &[]);
    t.see("a partition more", added);
    let forgot = session.next(t, &[], &[(&a, 0)]);
    t.see("one forgotten", forgot);
    t.put(&a, &values(&["4"]))?;
    let silent = session.next(t, &[], &[]);
    t.see("of which nothing is heard", silent);
    session.epoch = -1;
    let closed = session.next(t, &[(&a, 0, 3)], &[]);
    t.see("closed", closed);
    session.epoch = 7;
    let after = session.next(t, &[], &[]);
    t.see("after closing", after);
    Ok(())
}

fn errors(t: &mut T, version: i16) -> Step {
    let a = t.topic("a", 1, &[])?;
    let mut session = Session::new(t, version);
    session.next(t, &[(&a, 0, 0)], &[]);
    for epoch in [2, 5, i32::MAX] {
        session.epoch = epoch;
        let id = session.id;
        let answer = session.next(t, &[], &[]);
        t.see(format!("epoch {epoch} instead of 1"), answer);
        session.id = id;
    }
    session.epoch = 1;
    let good = session.next(t, &[], &[]);
    t.see("epoch 1", good);
    session.epoch = 1;
    let id = session.id;
    let again = session.next(t, &[], &[]);
    t.see("epoch 1 again", again);
    session.id = id;
    let missing = t.name("missing");
    session.epoch = 2;
    let unknown = session.next(t, &[(&missing, 0, 0), (&a, 9, 0)], &[(&missing, 3), (&a, 0)]);
    t.see("unknown ones", unknown);
    let still = session.next(t, &[], &[]);
    t.see("still unknown", still);
    session.epoch = 0;
    let renewed = session.next(t, &[(&a, 0, 0)], &[]);
    t.see("opened anew", renewed);
    Ok(())
}

fn deleted(t: &mut T, version: i16) -> Step {
    let a = t.topic("a", 1, &[])?;
    let b = t.topic("b", 1, &[])?;
    let mut session = Session::new(t, version);
    session.next(t, &[(&a, 0, 0), (&b, 0, 0)], &[]);
    t.delete_topic(&a)?;
    let mut last = Value::Null;
    for _ in 0..100 {
        last = session.next(t, &[], &[]);
        if last["Responses"] != json!([]) {
            break;
        }
        t.pause(20);
    }
    t.see("deleted", last);
    let again = session.next(t, &[], &[]);
    t.see("asked again", again);
    t.topic("a", 1, &[])?;
    let anew = session.next(t, &[], &[]);
    t.see("made again", anew);
    Ok(())
}
