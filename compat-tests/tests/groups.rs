//! Consumer groups: assignment, rebalances of every kind, commits, resuming, static members.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use compat_tests::broker::Broker;
use compat_tests::client::{self, Admin, Got, PATIENCE, Rec, Sender};
use compat_tests::settings::unique;
use rdkafka::Offset;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};

fn broker() -> &'static str {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    &BROKER.get_or_init(Broker::shared).bootstrap
}

/// A topic with `each` records in each of its partitions.
fn filled(partitions: i32, each: usize) -> String {
    let topic = Admin::new(broker()).topic(partitions, &[]);
    let sender = Sender::new(broker(), &[]);
    for partition in 0..partitions {
        sender.fill(&topic, partition, (0..each).map(|n| format!("{partition}-{n}")));
    }
    topic
}

fn member(group: &str, topics: &[&str], settings: &[(&str, &str)]) -> BaseConsumer {
    let consumer = client::consumer(broker(), group, settings);
    consumer.subscribe(topics).expect("subscribed");
    consumer
}

/// What a member owns now.
fn owned(consumer: &BaseConsumer) -> BTreeSet<(String, i32)> {
    let list = consumer.assignment().expect("an assignment");
    list.elements().iter().map(|one| (one.topic().to_owned(), one.partition())).collect()
}

/// Polls all members until their shares are of these sizes, in any order, and disjoint.
fn settle(members: &[&BaseConsumer], sizes: &[usize]) {
    let deadline = Instant::now() + PATIENCE;
    let mut want = sizes.to_vec();
    want.sort_unstable();
    loop {
        for member in members {
            let _ = member.poll(Duration::from_millis(20));
        }
        let shares: Vec<_> = members.iter().map(|member| owned(member)).collect();
        let mut have: Vec<usize> = shares.iter().map(BTreeSet::len).collect();
        have.sort_unstable();
        let all: BTreeSet<_> = shares.iter().flatten().collect();
        if have == want && all.len() == sizes.iter().sum::<usize>() {
            return;
        }
        assert!(Instant::now() < deadline, "shares are {have:?}, not {want:?}");
    }
}

fn texts(got: &[Got]) -> String {
    got.iter().map(Got::text).collect::<Vec<_>>().join(" ")
}

#[test]
fn one_member_gets_everything() {
    let topic = filled(3, 5);
    let consumer = member(&unique("g"), &[&topic], &[]);
    assert_eq!(client::poll(&consumer, 15).len(), 15);
    assert_eq!(owned(&consumer).len(), 3);
}

/// Two members share 4 partitions; one leaves and the other has all.
fn check_two(strategy: &str) {
    let topic = filled(4, 1);
    let group = unique("g");
    let settings = [("partition.assignment.strategy", strategy)];
    let first = member(&group, &[&topic], &settings);
    settle(&[&first], &[4]);
    let second = member(&group, &[&topic], &settings);
    settle(&[&first, &second], &[2, 2]);
    drop(second);
    settle(&[&first], &[4]);
}

#[test]
fn rebalance_range() {
    check_two("range");
}

#[test]
fn rebalance_roundrobin() {
    check_two("roundrobin");
}

#[test]
fn rebalance_cooperative() {
    check_two("cooperative-sticky");
}

#[test]
fn four_members_of_three_partitions() {
    let topic = filled(3, 1);
    let group = unique("g");
    let members: Vec<BaseConsumer> = (0..4).map(|_| member(&group, &[&topic], &[])).collect();
    settle(&members.iter().collect::<Vec<_>>(), &[1, 1, 1, 0]);
}

#[test]
fn members_with_different_topics() {
    let (one, two) = (filled(2, 1), filled(2, 1));
    let group = unique("g");
    let first = member(&group, &[&one], &[]);
    let second = member(&group, &[&two], &[]);
    settle(&[&first, &second], &[2, 2]);
    assert!(owned(&first).iter().all(|(topic, _)| *topic == one));
}

#[test]
fn cooperative_members_read_on_while_others_join() {
    let topic = filled(2, 1);
    let group = unique("g");
    let settings = [("partition.assignment.strategy", "cooperative-sticky")];
    let first = member(&group, &[&topic], &settings);
    settle(&[&first], &[2]);
    let second = member(&group, &[&topic], &settings);
    settle(&[&first, &second], &[1, 1]);
    let kept = owned(&first).into_iter().next().expect("one partition").1;
    Sender::new(broker(), &[]).fill(&topic, kept, ["more".to_owned()]);
    assert_eq!(texts(&client::poll(&first, 1)), "more");
}

/// Reads 3 of 10, commits with `commit`, and a new member goes on at the fourth.
fn check_resume(commit: impl FnOnce(&BaseConsumer, &str)) {
    let topic = filled(1, 10);
    let group = unique("g");
    let first = member(&group, &[&topic], &[("enable.auto.offset.store", "true")]);
    assert_eq!(texts(&client::poll(&first, 3)), "0-0 0-1 0-2");
    commit(&first, &topic);
    drop(first);
    let second = member(&group, &[&topic], &[]);
    assert_eq!(texts(&client::poll(&second, 2)), "0-3 0-4");
}

#[test]
fn commit_sync_and_resume() {
    check_resume(|consumer, topic| {
        let place = client::list(&[(topic, 0, Offset::Offset(3))]);
        consumer.commit(&place, CommitMode::Sync).expect("committed");
    });
}

#[test]
fn commit_async_and_resume() {
    check_resume(|consumer, topic| {
        let place = client::list(&[(topic, 0, Offset::Offset(3))]);
        consumer.commit(&place, CommitMode::Async).expect("queued");
        client::until("it is committed", || {
            let _ = consumer.poll(Duration::from_millis(10));
            let committed = consumer.committed(PATIENCE).expect("an answer");
            committed.find_partition(topic, 0).map(|one| one.offset()) == Some(Offset::Offset(3))
        });
    });
}

#[test]
fn commit_state_and_resume() {
    check_resume(|consumer, _| {
        consumer.commit_consumer_state(CommitMode::Sync).expect("committed");
    });
}

#[test]
fn auto_commit_on_close() {
    let topic = filled(1, 4);
    let group = unique("g");
    let first = member(&group, &[&topic], &[("enable.auto.commit", "true")]);
    client::poll(&first, 4);
    drop(first);
    let probe = client::consumer(broker(), &group, &[]);
    let ask = client::list(&[(&topic, 0, Offset::Invalid)]);
    let found = probe.committed_offsets(ask, PATIENCE).expect("an answer");
    assert_eq!(found.find_partition(&topic, 0).expect("it").offset(), Offset::Offset(4));
}

#[test]
fn without_a_commit_all_is_read_again() {
    let topic = filled(1, 3);
    let group = unique("g");
    for _ in 0..2 {
        let consumer = member(&group, &[&topic], &[]);
        assert_eq!(texts(&client::poll(&consumer, 3)), "0-0 0-1 0-2");
    }
}

#[test]
fn commit_of_several_partitions() {
    let (one, two) = (filled(3, 1), filled(2, 1));
    let consumer = client::consumer(broker(), &unique("g"), &[]);
    let places = client::list(&[
        (&one, 0, Offset::Offset(1)),
        (&one, 2, Offset::Offset(0)),
        (&two, 1, Offset::Offset(77)),
    ]);
    consumer.commit(&places, CommitMode::Sync).expect("committed");
    let ask = client::list(&[
        (&one, 0, Offset::Invalid),
        (&one, 1, Offset::Invalid),
        (&one, 2, Offset::Invalid),
        (&two, 1, Offset::Invalid),
    ]);
    let found = consumer.committed_offsets(ask, PATIENCE).expect("an answer");
    let offsets: Vec<Offset> = found.elements().iter().map(|one| one.offset()).collect();
    let want = [Offset::Offset(1), Offset::Invalid, Offset::Offset(0), Offset::Offset(77)];
    assert_eq!(offsets, want);
}

#[test]
fn commit_carries_metadata() {
    let topic = filled(1, 1);
    let consumer = client::consumer(broker(), &unique("g"), &[]);
    let place = client::list(&[(&topic, 0, Offset::Offset(1))]);
    place.find_partition(&topic, 0).expect("it").set_metadata("a note");
    consumer.commit(&place, CommitMode::Sync).expect("committed");
    let ask = client::list(&[(&topic, 0, Offset::Invalid)]);
    let found = consumer.committed_offsets(ask, PATIENCE).expect("an answer");
    assert_eq!(found.find_partition(&topic, 0).expect("it").metadata(), "a note");
}

#[test]
fn commit_may_go_back() {
    let topic = filled(1, 5);
    let group = unique("g");
    let consumer = client::consumer(broker(), &group, &[]);
    for at in [4, 1] {
        let place = client::list(&[(&topic, 0, Offset::Offset(at))]);
        consumer.commit(&place, CommitMode::Sync).expect("committed");
    }
    drop(consumer);
    assert_eq!(texts(&client::poll(&member(&group, &[&topic], &[]), 1)), "0-1");
}

#[test]
fn two_groups_are_independent() {
    let topic = filled(1, 5);
    let groups = [unique("g"), unique("g")];
    let first = member(&groups[0], &[&topic], &[]);
    assert_eq!(client::poll(&first, 5).len(), 5);
    first.commit_consumer_state(CommitMode::Sync).expect("committed");
    let second = member(&groups[1], &[&topic], &[]);
    assert_eq!(texts(&client::poll(&second, 5)), "0-0 0-1 0-2 0-3 0-4");
}

#[test]
fn regex_subscription() {
    let prefix = unique("rx");
    let admin = Admin::new(broker());
    for suffix in ["a", "b"] {
        admin.create(&format!("{prefix}-{suffix}"), 1, &[]).expect("created");
    }
    let settings = [("topic.metadata.refresh.interval.ms", "500")];
    let consumer = member(&unique("g"), &[&format!("^{prefix}-.*")], &settings);
    settle(&[&consumer], &[2]);
    // A topic that comes later is found, too.
    admin.create(&format!("{prefix}-c"), 1, &[]).expect("created");
    settle(&[&consumer], &[3]);
}

#[test]
fn new_partitions_are_found() {
    let topic = filled(1, 1);
    let consumer =
        member(&unique("g"), &[&topic], &[("topic.metadata.refresh.interval.ms", "500")]);
    settle(&[&consumer], &[1]);
    Admin::new(broker()).add_partitions(&topic, 3).expect("added");
    settle(&[&consumer], &[3]);
}

#[test]
fn static_member_comes_back_without_rebalance() {
    let topic = filled(4, 1);
    let group = unique("g");
    let named = |name| member(&group, &[&topic], &[("group.instance.id", name)]);
    let (first, second) = (named("one"), named("two"));
    settle(&[&first, &second], &[2, 2]);
    let share = owned(&second);
    // A static member does not say goodbye.
    drop(second);
    let again = named("two");
    settle(&[&first, &again], &[2, 2]);
    assert_eq!(owned(&again), share);
}

#[test]
fn static_member_is_fenced_by_its_double() {
    let topic = filled(1, 1);
    let group = unique("g");
    let named = || member(&group, &[&topic], &[("group.instance.id", "same")]);
    let first = named();
    settle(&[&first], &[1]);
    let second = named();
    settle(&[&second], &[1]);
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "the first was not fenced");
        let _ = second.poll(Duration::from_millis(10));
        if let Some(Err(error)) = first.poll(Duration::from_millis(50)) {
            let text = format!("{error:?}");
            assert!(text.contains("Fatal") || text.contains("FencedInstanceId"), "{text}");
            return;
        }
    }
}

#[test]
fn silent_member_is_dropped() {
    let topic = filled(2, 1);
    let group = unique("g");
    let silent = member(&group, &[&topic], &[("max.poll.interval.ms", "6000")]);
    settle(&[&silent], &[2]);
    let other = member(&group, &[&topic], &[]);
    // The first does not poll again; it loses its partitions once its interval is over.
    settle(&[&other], &[2]);
}

#[test]
fn unsubscribe_and_subscribe_again() {
    let (one, two) = (filled(1, 1), filled(2, 1));
    let consumer = member(&unique("g"), &[&one], &[]);
    settle(&[&consumer], &[1]);
    consumer.unsubscribe();
    client::until("nothing is owned", || {
        let _ = consumer.poll(Duration::from_millis(10));
        owned(&consumer).is_empty()
    });
    consumer.subscribe(&[&two]).expect("subscribed");
    settle(&[&consumer], &[2]);
}

#[test]
fn groups_are_listed_and_described() {
    let topic = filled(1, 1);
    let group = unique("g");
    let consumer = member(&group, &[&topic], &[("client.id", "the-client")]);
    settle(&[&consumer], &[1]);
    let listed = consumer.fetch_group_list(Some(&group), PATIENCE).expect("an answer");
    let found = listed.groups().iter().find(|one| one.name() == group).expect("it is listed");
    assert_eq!((found.state(), found.protocol_type()), ("Stable", "consumer"));
    assert_eq!(found.members().len(), 1);
    assert_eq!(found.members()[0].client_id(), "the-client");
    assert!(found.members()[0].assignment().is_some_and(|bytes| !bytes.is_empty()));
}

#[test]
fn left_group_is_empty() {
    let topic = filled(1, 1);
    let group = unique("g");
    let consumer = member(&group, &[&topic], &[]);
    settle(&[&consumer], &[1]);
    consumer.commit_consumer_state(CommitMode::Sync).ok();
    drop(consumer);
    let probe: BaseConsumer = client::base(broker()).create().expect("no client");
    client::until("it is empty", || {
        let listed = probe.fetch_group_list(Some(&group), PATIENCE).expect("an answer");
        listed.groups().iter().any(|one| one.state() == "Empty" || one.state() == "Dead")
    });
}

#[test]
fn every_record_once_over_a_rebalance() {
    const TOTAL: usize = 60;
    let topic = filled(4, 0);
    let group = unique("g");
    let settings = [("partition.assignment.strategy", "cooperative-sticky")];
    let first = member(&group, &[&topic], &settings);
    settle(&[&first], &[4]);
    let second = member(&group, &[&topic], &settings);
    let sender = Sender::new(broker(), &[]);
    let mut seen = Vec::new();
    let mut sent = 0;
    let deadline = Instant::now() + PATIENCE;
    while sent < TOTAL || seen.len() < sent {
        assert!(Instant::now() < deadline, "{} of {sent} seen", seen.len());
        if sent < TOTAL {
            sender
                .send_one(&Rec::to(&topic).partition((sent % 4) as i32).value(sent.to_string()))
                .expect("sent");
            sent += 1;
        }
        for member in [&first, &second] {
            // Committed at once, so that a moved partition goes on where it was.
            if let Some(Ok(message)) = member.poll(Duration::from_millis(2)) {
                seen.push(Got::of(&message).text());
                member.commit_message(&message, CommitMode::Sync).ok();
            }
        }
    }
    let distinct: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(distinct.len(), TOTAL, "{} records seen", seen.len());
}
