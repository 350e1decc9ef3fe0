//! Classic groups: joining, syncing, heartbeats, leaving, rebalances, static members, looking on.

use serde_json::{Value, json};

use crate::differ::codec::hex;
use crate::differ::conn::Conn;
use crate::differ::context::{Step, Stop, T, with};
use crate::differ::run::Cases;

mod commits;

pub fn add(cases: &mut Cases) {
    lives(cases);
    joins(cases);
    second_members(cases);
    syncs(cases);
    heartbeats(cases);
    leaves(cases);
    rebalances(cases);
    rejoins(cases);
    statics(cases);
    looking_on(cases);
    coordinators(cases);
    commits::add(cases);
}

/// A member with a connection of its own.
struct Member {
    conn: Conn,
    group: String,
    id: String,
    instance: Option<String>,
    generation: i64,
    protocols: Vec<(&'static str, Value)>,
}

impl Member {
    fn new(t: &T, group: &str) -> Member {
        Member {
            conn: t.conn_as(Some("app")),
            group: group.to_owned(),
            id: String::new(),
            instance: None,
            generation: -1,
            protocols: vec![("range", json!("meta"))],
        }
    }

    fn fixed(t: &T, group: &str, instance: &str) -> Member {
        Member { instance: Some(instance.to_owned()), ..Member::new(t, group) }
    }

    fn join_body(&self) -> Value {
        let protocols = self.protocols.iter();
        let protocols = protocols.map(|(name, data)| json!({"Name": name, "Metadata": data}));
        json!({
            "GroupId": self.group, "SessionTimeoutMs": 10000, "RebalanceTimeoutMs": 8000,
            "MemberId": self.id, "GroupInstanceId": self.instance, "ProtocolType": "consumer",
            "Protocols": protocols.collect::<Vec<_>>(),
        })
    }

    /// Takes over what an answer to JoinGroup says.
    fn learn(&mut self, answer: &Value) {
        if let Some(id) = answer["MemberId"].as_str().filter(|id| !id.is_empty()) {
            self.id = id.to_owned();
        }
        if answer["ErrorCode"] == json!(0) {
            self.generation = answer["GenerationId"].as_i64().unwrap_or(-1);
        }
    }

    fn join(&mut self, version: i16) -> Value {
        let answer = self.conn.ask("JoinGroup", version, &self.join_body());
        self.learn(&answer);
        answer
    }

    /// Joins, a second time if an id is handed out first.
    fn joined(&mut self, version: i16) -> Step<Value> {
        let mut answer = self.join(version);
        if answer["ErrorCode"] == json!(79) {
            answer = self.join(version);
        }
        match answer["ErrorCode"] == json!(0) {
            true => Ok(answer),
            false => Err(Stop(format!("JoinGroup: {answer}"))),
        }
    }

    fn sync_body(&self, assignments: &[(&str, &str)]) -> Value {
        let assignments = assignments.iter();
        let assignments = assignments.map(|(id, data)| json!({"MemberId": id, "Assignment": data}));
        with(
            self.body(),
            json!({
                "ProtocolType": "consumer", "ProtocolName": "range",
                "Assignments": assignments.collect::<Vec<_>>(),
            }),
        )
    }

    fn sync(&mut self, version: i16, assignments: &[(&str, &str)]) -> Value {
        self.conn.ask("SyncGroup", version, &self.sync_body(assignments))
    }

    /// Group, generation and member, as SyncGroup and Heartbeat have them.
    fn body(&self) -> Value {
        json!({
            "GroupId": self.group, "GenerationId": self.generation, "MemberId": self.id,
            "GroupInstanceId": self.instance,
        })
    }

    fn beat(&mut self, version: i16) -> Value {
        let body = self.body();
        self.conn.ask("Heartbeat", version, &body)
    }

    fn leave(&mut self, version: i16) -> Value {
        let member =
            json!({"MemberId": self.id, "GroupInstanceId": self.instance, "Reason": "test"});
        let body = json!({"GroupId": self.group, "MemberId": self.id, "Members": [member]});
        self.conn.ask("LeaveGroup", version, &body)
    }
}

/// A stable group of one.
fn stable(t: &mut T, part: &str) -> Step<Member> {
    let group = t.group(part)?;
    let mut member = Member::new(t, &group);
    member.joined(5)?;
    let id = member.id.clone();
    let answer = member.sync(3, &[(&id, "mine")]);
    match answer["ErrorCode"] == json!(0) {
        true => Ok(member),
        false => Err(Stop(format!("SyncGroup: {answer}"))),
    }
}

fn lives(cases: &mut Cases) {
    for version in 0..=9 {
        cases.add(format!("groups/life join v{version}"), move |t| {
            let group = t.group("g")?;
            let mut member = Member::new(t, &group);
            let first = member.join(version);
            t.see("joined", first.clone());
            if first["ErrorCode"] == json!(79) {
                let second = member.join(version);
                t.see("joined with an id", second);
            }
            let id = member.id.clone();
            let synced = member.sync(version.min(5), &[(&id, "mine")]);
            t.see("synced", synced);
            let alive = member.beat(version.min(4));
            t.see("alive", alive);
            let again = member.join(version);
            t.see("joined again", again);
            let synced = member.sync(version.min(5), &[(&id, "mine")]);
            t.see("synced again", synced);
            t.look("described", "DescribeGroups", version.min(6), json!({"Groups": [group]}));
            let left = member.leave(version.min(5));
            t.see("left", left);
            t.look("described empty", "DescribeGroups", version.min(6), json!({"Groups": [group]}));
            Ok(())
        });
    }
}

fn joins(cases: &mut Cases) {
    type Change = fn(&T) -> Value;
    let all: [(&str, Change); 19] = [
        ("session 1 ms", |_| json!({"SessionTimeoutMs": 1})),
        ("session 5999 ms", |_| json!({"SessionTimeoutMs": 5999})),
        ("session 6000 ms", |_| json!({"SessionTimeoutMs": 6000})),
        ("session 30 minutes", |_| json!({"SessionTimeoutMs": 1_800_000})),
        ("session longer", |_| json!({"SessionTimeoutMs": 1_800_001})),
        ("session negative", |_| json!({"SessionTimeoutMs": -1})),
        ("empty group", |_| json!({"GroupId": ""})),
        ("empty group and session", |_| json!({"GroupId": "", "SessionTimeoutMs": 1})),
        ("unknown member", |_| json!({"MemberId": "nobody"})),
        ("no protocols", |_| json!({"Protocols": []})),
        ("empty type", |_| json!({"ProtocolType": ""})),
        ("another type", |_| json!({"ProtocolType": "connect"})),
        ("rebalance 0", |_| json!({"RebalanceTimeoutMs": 0})),
        ("rebalance negative", |_| json!({"RebalanceTimeoutMs": -1})),
        ("empty instance", |_| json!({"GroupInstanceId": ""})),
        ("bad instance", |_| json!({"GroupInstanceId": "a b"})),
        ("dots instance", |_| json!({"GroupInstanceId": ".."})),
        ("long instance", |_| json!({"GroupInstanceId": "x".repeat(250)})),
        ("unknown member with instance", |_| json!({"GroupInstanceId": "i", "MemberId": "nobody"})),
    ];
    for (label, change) in all {
        cases.add(format!("groups/join {label}"), move |t| {
            for version in [0, 3, 4, 5, 9] {
                let group = t.group(&format!("v{version}"))?;
                let body = with(Member::new(t, &group).join_body(), change(t));
                let answer = t.conn_as(Some("app")).ask("JoinGroup", version, &body);
                t.see(format!("v{version}"), answer);
            }
            Ok(())
        });
    }
}

fn second_members(cases: &mut Cases) {
    let protocols: [(&str, &[&'static str]); 4] = [
        ("no common protocol", &["other"]),
        ("one common protocol", &["other", "range"]),
        ("the same", &["range"]),
        ("none", &[]),
    ];
    for (label, names) in protocols {
        cases.add(format!("groups/second member with {label}"), move |t| {
            let mut first = stable(t, "g")?;
            let group = first.group.clone();
            let mut second = Member::new(t, &group);
            second.protocols = names.iter().map(|name| (*name, json!("meta"))).collect();
            let answer = second.join(4);
            t.see("first answer", answer.clone());
            if answer["ErrorCode"] != json!(79) {
                return Ok(());
            }
            second.conn.start("JoinGroup", 4, &second.join_body()).ok();
            t.pause(150);
            let told = first.beat(3);
            t.see("the other's heartbeat", told);
            let again = first.join(4);
            t.see("the other joins", again);
            let answer = second.conn.finish().unwrap_or_else(|why| why.value());
            t.see("second answer", answer);
            Ok(())
        });
    }
    cases.add("groups/member ids by client id", |t| {
        for client in [None, Some(""), Some("c d"), Some("ok")] {
            let group = t.group(&format!("{}", client.map_or(9, str::len)))?;
            let body = Member::new(t, &group).join_body();
            let answer = t.conn_as(client).ask("JoinGroup", 4, &body);
            t.see(format!("{client:?}"), answer);
        }
        Ok(())
    });
    cases.add("groups/protocols with bytes", |t| {
        let group = t.group("g")?;
        let mut member = Member::new(t, &group);
        member.protocols = vec![("range", hex(&[0, 1, 255])), ("other", json!(""))];
        let answer = member.joined(5)?;
        t.see("joined", answer);
        t.look("described", "DescribeGroups", 5, json!({"Groups": [group]}));
        Ok(())
    });
}

fn syncs(cases: &mut Cases) {
    for version in 0..=5 {
        cases.add(format!("groups/sync errors v{version}"), move |t| {
            let member = stable(t, "g")?;
            let group = t.group("none")?;
            let good = member.sync_body(&[]);
            let all = [
                ("good", json!({})),
                ("unknown group", json!({"GroupId": group})),
                ("empty group", json!({"GroupId": ""})),
                ("unknown member", json!({"MemberId": "nobody"})),
                ("empty member", json!({"MemberId": ""})),
                ("generation 0", json!({"GenerationId": 0})),
                ("generation 9", json!({"GenerationId": 9})),
                ("generation -1", json!({"GenerationId": -1})),
                ("no type", json!({"ProtocolType": null})),
                ("no protocol", json!({"ProtocolName": null})),
                ("another type", json!({"ProtocolType": "connect"})),
                ("another protocol", json!({"ProtocolName": "other"})),
                (
                    "another protocol and generation",
                    json!({"ProtocolName": "other", "GenerationId": 9}),
                ),
                ("instance", json!({"GroupInstanceId": "stranger"})),
            ];
            for (label, change) in all {
                t.look(label, "SyncGroup", version, with(good.clone(), change));
            }
            Ok(())
        });
    }
    cases.add("groups/sync with odd assignments", |t| {
        let group = t.group("g")?;
        let mut member = Member::new(t, &group);
        member.joined(5)?;
        let id = member.id.clone();
        for (label, assignments) in [
            ("strangers", vec![("nobody", "x"), (&*id, "first")]),
            ("changed later", vec![(&*id, "second")]),
        ] {
            let answer = member.sync(3, &assignments);
            t.see(label, answer);
        }
        let answer = member.join(5);
        t.see("joined again", answer["ErrorCode"].clone());
        let answer = member.sync(3, &[]);
        t.see("no assignment", answer);
        t.look("described", "DescribeGroups", 5, json!({"Groups": [group]}));
        Ok(())
    });
    cases.add("groups/heartbeat before the sync", |t| {
        let group = t.group("g")?;
        let mut member = Member::new(t, &group);
        member.joined(5)?;
        let answer = member.beat(3);
        t.see("heartbeat", answer);
        t.look("described", "DescribeGroups", 5, json!({"Groups": [group]}));
        Ok(())
    });
}

fn heartbeats(cases: &mut Cases) {
    for version in 0..=4 {
        cases.add(format!("groups/heartbeat errors v{version}"), move |t| {
            let member = stable(t, "g")?;
            let group = t.group("none")?;
            let all = [
                ("good", json!({})),
                ("unknown group", json!({"GroupId": group})),
                ("empty group", json!({"GroupId": ""})),
                ("unknown member", json!({"MemberId": "nobody"})),
                ("empty member", json!({"MemberId": ""})),
                ("generation 0", json!({"GenerationId": 0})),
                ("generation 9", json!({"GenerationId": 9})),
                ("generation -1", json!({"GenerationId": -1})),
                ("instance", json!({"GroupInstanceId": "stranger"})),
            ];
            for (label, change) in all {
                t.look(label, "Heartbeat", version, with(member.body(), change));
            }
            Ok(())
        });
    }
}

fn leaves(cases: &mut Cases) {
    for version in 0..=5 {
        cases.add(format!("groups/leave errors v{version}"), move |t| {
            let mut member = stable(t, "g")?;
            let none = t.group("none")?;
            let ask = |group: &str, id: &str, instance: Option<&str>| {
                let one = json!({"MemberId": id, "GroupInstanceId": instance});
                json!({"GroupId": group, "MemberId": id, "Members": [one]})
            };
            let group = member.group.clone();
            t.look("unknown group", "LeaveGroup", version, ask(&none, "nobody", None));
            t.look("empty group", "LeaveGroup", version, ask("", "nobody", None));
            t.look("unknown member", "LeaveGroup", version, ask(&group, "nobody", None));
            t.look("empty member", "LeaveGroup", version, ask(&group, "", None));
            let nobody = json!({"GroupId": group, "Members": []});
            t.look("no members", "LeaveGroup", version, nobody);
            t.look("instance", "LeaveGroup", version, ask(&group, "", Some("stranger")));
            let id = member.id.clone();
            t.look("wrong instance", "LeaveGroup", version, ask(&group, &id, Some("stranger")));
            let left = member.leave(version);
            t.see("left", left);
            let again = member.leave(version);
            t.see("again", again);
            Ok(())
        });
    }
    cases.add("groups/leave with others", |t| {
        let mut member = stable(t, "g")?;
        let members = json!([
            {"MemberId": "nobody"}, {"MemberId": member.id}, {"MemberId": member.id},
        ]);
        let group = member.group.clone();
        t.look("three", "LeaveGroup", 4, json!({"GroupId": group, "Members": members}));
        let answer = member.beat(3);
        t.see("after", answer);
        Ok(())
    });
    cases.add("groups/leave before joining with the id", |t| {
        let group = t.group("g")?;
        let mut member = Member::new(t, &group);
        let answer = member.join(4);
        t.see("an id", answer);
        let left = member.leave(3);
        t.see("left", left);
        let answer = member.join(4);
        t.see("joined after all", answer);
        Ok(())
    });
}

/// A second member joins a stable group of one: what each hears.
fn second_joins(t: &mut T, version: i16) -> Step<(Member, Member)> {
    let mut first = stable(t, "g")?;
    let group = first.group.clone();
    let mut second = Member::new(t, &group);
    let answer = second.join(version);
    t.see("an id", answer.clone());
    if answer["ErrorCode"] == json!(79) {
        second.conn.start("JoinGroup", version, &second.join_body()).ok();
        t.pause(150);
    }
    let told = first.beat(3);
    t.see("heartbeat", told);
    let old = first.sync(3, &[]);
    t.see("sync meanwhile", old);
    let joined = first.join(version);
    t.see("first", joined);
    let joined = second.conn.finish().unwrap_or_else(|why| why.value());
    second.learn(&joined);
    t.see("second", joined);
    Ok((first, second))
}

fn rebalances(cases: &mut Cases) {
    for version in [4, 5, 7, 9] {
        cases.add(format!("groups/second member v{version}"), move |t| {
            let (mut first, mut second) = second_joins(t, version)?;
            let sync = version.min(5);
            second.conn.start("SyncGroup", sync, &second.sync_body(&[])).ok();
            t.pause(50);
            let both = [(&*first.id.clone(), "one"), (&*second.id.clone(), "two")];
            let synced = first.sync(sync, &both);
            t.see("first synced", synced);
            let synced = second.conn.finish().unwrap_or_else(|why| why.value());
            t.see("second synced", synced);
            let left = first.leave(3);
            t.see("first left", left);
            let told = second.beat(3);
            t.see("second hears", told);
            let joined = second.join(version);
            t.see("second alone", joined);
            Ok(())
        });
    }
    cases.add("groups/old generation", |t| {
        let mut member = stable(t, "g")?;
        let old = member.generation;
        let again = member.join(5);
        t.see("joined again", again);
        member.generation = old;
        let answer = member.sync(3, &[]);
        t.see("sync", answer);
        let answer = member.beat(3);
        t.see("heartbeat", answer);
        Ok(())
    });
}

fn rejoins(cases: &mut Cases) {
    cases.add("groups/other metadata joins again", |t| {
        let mut member = stable(t, "g")?;
        let same = member.join(5);
        t.see("the same", same);
        let id = member.id.clone();
        let synced = member.sync(3, &[(&id, "x")]);
        t.see("synced", synced);
        member.protocols = vec![("range", json!("other"))];
        let other = member.join(5);
        t.see("other metadata", other);
        Ok(())
    });
    cases.add("groups/leader chosen, protocol voted", |t| {
        let group = t.group("g")?;
        let mut first = Member::new(t, &group);
        first.protocols = vec![("a", json!("1")), ("b", json!("1"))];
        first.joined(5)?;
        let mut second = Member::new(t, &group);
        second.protocols = vec![("c", json!("2")), ("b", json!("2")), ("a", json!("2"))];
        second.join(5);
        second.conn.start("JoinGroup", 5, &second.join_body()).ok();
        t.pause(150);
        let joined = first.join(5);
        t.see("first", joined);
        let joined = second.conn.finish().unwrap_or_else(|why| why.value());
        t.see("second", joined);
        Ok(())
    });
    cases.add("groups/session runs out", |t| {
        let group = t.group("g")?;
        let mut member = Member::new(t, &group);
        let short = json!({"SessionTimeoutMs": 6000});
        let id = member.conn.ask("JoinGroup", 5, &with(member.join_body(), short.clone()));
        member.learn(&id);
        let joined = member.conn.ask("JoinGroup", 5, &with(member.join_body(), short));
        member.learn(&joined);
        member.sync(3, &[]);
        t.pause(5000);
        let alive = member.beat(3);
        t.see("after 5 s", alive);
        t.pause(6800);
        let gone = member.beat(3);
        t.see("after 6.8 s more", gone);
        t.look("described", "DescribeGroups", 5, json!({"Groups": [group]}));
        Ok(())
    });
}

fn statics(cases: &mut Cases) {
    for version in [5, 7, 8, 9] {
        cases.add(format!("groups/static member comes back v{version}"), move |t| {
            let group = t.group("g")?;
            let mut first = Member::fixed(t, &group, "one");
            let joined = first.joined(version)?;
            t.see("joined", joined);
            let id = first.id.clone();
            let synced = first.sync(version.min(5), &[(&id, "mine")]);
            t.see("synced", synced);
            let mut again = Member::fixed(t, &group, "one");
            let joined = again.join(version);
            t.see("comes back", joined);
            let id = again.id.clone();
            let synced = again.sync(version.min(5), &[(&id, "other")]);
            t.see("synced again", synced);
            let old = first.beat(3);
            t.see("the old one's heartbeat", old);
            let old = first.sync(version.min(5), &[]);
            t.see("the old one's sync", old);
            let old = first.join(version);
            t.see("the old one joins", old);
            first.instance = None;
            let old = first.beat(3);
            t.see("the old one without instance", old);
            t.look("described", "DescribeGroups", 5, json!({"Groups": [group]}));
            Ok(())
        });
        cases.add(format!("groups/static member changes v{version}"), move |t| {
            let group = t.group("g")?;
            let mut first = Member::fixed(t, &group, "one");
            first.joined(version)?;
            let id = first.id.clone();
            first.sync(version.min(5), &[(&id, "mine")]);
            let mut again = Member::fixed(t, &group, "one");
            again.protocols = vec![("other", json!("x"))];
            let joined = again.join(version);
            t.see("other protocols", joined);
            Ok(())
        });
    }
    for version in [3, 5] {
        cases.add(format!("groups/static member is removed v{version}"), move |t| {
            let group = t.group("g")?;
            let mut member = Member::fixed(t, &group, "one");
            member.joined(5)?;
            let wrong = json!([{"MemberId": "nobody", "GroupInstanceId": "one"}]);
            t.look("wrong id", "LeaveGroup", version, json!({"GroupId": group, "Members": wrong}));
            let right = json!([{"MemberId": "", "GroupInstanceId": "one"}]);
            t.look(
                "by instance",
                "LeaveGroup",
                version,
                json!({"GroupId": group, "Members": right}),
            );
            let answer = member.beat(3);
            t.see("heartbeat", answer);
            Ok(())
        });
    }
}

fn looking_on(cases: &mut Cases) {
    for version in 0..=6 {
        cases.add(format!("groups/described v{version}"), move |t| {
            let member = stable(t, "g")?;
            let none = t.group("none")?;
            let body = json!({
                "Groups": [member.group, none, member.group],
                "IncludeAuthorizedOperations": version >= 3,
            });
            t.look("answer", "DescribeGroups", version, body);
            t.look("nothing", "DescribeGroups", version, json!({"Groups": []}));
            Ok(())
        });
    }
    for version in 0..=5 {
        cases.add(format!("groups/listed v{version}"), move |t| {
            let member = stable(t, "stable")?;
            let mut empty = stable(t, "empty")?;
            empty.leave(3);
            let mut fresh = Member::new(t, &t.name("fresh"));
            fresh.joined(5)?;
            let mut filters = vec![("all", json!({}))];
            if version >= 4 {
                filters.push(("stable", json!({"StatesFilter": ["stable"]})));
                filters.push(("empty and dead", json!({"StatesFilter": ["EMPTY", "Dead"]})));
                filters.push(("unknown state", json!({"StatesFilter": ["none-such"]})));
                filters.push(("empty name", json!({"StatesFilter": [""]})));
            }
            if version >= 5 {
                filters.push(("classic", json!({"TypesFilter": ["Classic"]})));
                filters.push(("consumer", json!({"TypesFilter": ["consumer"]})));
                filters.push(("unknown type", json!({"TypesFilter": ["none-such"]})));
            }
            for (label, filter) in filters {
                let answer = t.ask("ListGroups", version, filter);
                let mine = t.only_mine(answer, "/Groups", "GroupId");
                t.see(label, mine);
            }
            drop(member);
            Ok(())
        });
    }
    for version in 0..=3 {
        cases.add(format!("groups/deleted v{version}"), move |t| {
            let mut member = stable(t, "g")?;
            let none = t.group("none")?;
            let group = member.group.clone();
            let body = json!({"GroupsNames": [group, none]});
            t.look("with a member", "DeleteGroups", version, body.clone());
            member.leave(3);
            t.look("empty", "DeleteGroups", version, body.clone());
            t.look("again", "DeleteGroups", version, body);
            t.look("twice", "DeleteGroups", version, json!({"GroupsNames": [group, group]}));
            t.look("nothing", "DeleteGroups", version, json!({"GroupsNames": []}));
            t.look("described", "DescribeGroups", 6, json!({"Groups": [group]}));
            let answer = member.join(5);
            t.see("the old member joins", answer);
            Ok(())
        });
    }
}

fn coordinators(cases: &mut Cases) {
    for version in 0..=6 {
        cases.add(format!("coordinator/v{version}"), move |t| {
            let group = t.group("g")?;
            for kind in if version == 0 { 0..1 } else { 0..5 } {
                // Transactions have a coordinator only once their topic is there.
                if kind == 1 {
                    continue;
                }
                for key in [group.as_str(), "", "a b"] {
                    let body = match version {
                        0 => json!({ "Key": key }),
                        1..=3 => json!({"Key": key, "KeyType": kind}),
                        _ => json!({"CoordinatorKeys": [key], "KeyType": kind}),
                    };
                    t.look(format!("kind {kind} key {key:?}"), "FindCoordinator", version, body);
                }
            }
            if version >= 4 {
                t.look("no keys", "FindCoordinator", version, json!({"CoordinatorKeys": []}));
                let twice = json!({"CoordinatorKeys": [group, group]});
                t.look("twice", "FindCoordinator", version, twice);
            }
            Ok(())
        });
    }
}
