//! Committed offsets: who may commit, what is fetched, what expires.

use super::script::{check, check_with};
use crate::groups::GroupSettings;

#[test]
fn simple_groups() {
    check(
        "admin put t-0=5/note t-1=6 => 0 0
         offsets => t-0=5/note t-1=6
         offsets of=t-1,t-9,u-0,t-1 => t-1=6 t-9=-1 u-0=-1 t-1=6
         offsets of= =>
         admin put t-0=-1 => 0
         admin put t-0=-5 => 0
         offsets of=t-0 => t-0=-5
         admin put =>
         admin put t-0=9 t-0=10 => 0 0
         offsets of=t-0 => t-0=10
         admin put t-0=1 id=m gen=3 => all 25
         admin put t-0=2 id=m gen=-1 => 0
         admin put t-0=3 static=inst => 0
         state => Empty
         describe => Empty /
         list => g//Empty
         in other
         admin put t-0=1 id=m gen=3 => all 69
         offsets =>
         offsets of=t-0 => t-0=-1
         state => Dead
         admin put =>
         state => Dead
         in                                      # The empty id is a group like any other here.
         admin put t-0=1 => 0
         offsets => t-0=1
         failover
         in g
         offsets of=t-0 => t-0=3",
    );
}

#[test]
fn metadata_counts_in_java_characters() {
    check(
        "admin put t-0=1 metadata=4096 => 0
         admin put t-0=2 metadata=4097 t-1=2 => 12 12
         offsets of=t-1 => t-1=-1",
    );
}

#[test]
fn members_and_others() {
    check(
        "a join v=4 => 79
         a put t-0=1 gen=-1 => 0                 # Nobody is in yet.
         a join => gen 1 leads a
         a put t-0=2 => all 27
         a put t-0=2 gen=0 => all 22
         admin put t-0=2 => all 25
         a sync => nothing to do
         a put t-0=2 => 0
         admin put t-0=3 => all 25
         admin put t-0=3 static=inst => all 25
         a put t-0=3 gen=-1 => all 22
         a put t-0=3 gen=0 => all 22
         a put t-0=3 gen=2 => all 22
         b put t-0=3 id=b gen=1 => all 25
         b join v=3 => waits
         a put t-0=4 => 0                        # The last commit before it joins again.
         offsets => t-0=4
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         b put t-0=5 => all 27
         a leave also=b => 0 0
         a put t-0=5 => all 25
         admin put t-0=5 => 0",
    );
    check(
        "s join v=5 static=inst => gen 1 leads s
         s sync => nothing to do
         s put t-0=1 gen=-1 id=- => all 82
         s put t-0=1 id=- => all 82
         s put t-0=1 id=other => all 82
         s put t-0=1 => 0",
    );
}

#[test]
fn topic_ids_tell_a_topic_from_its_namesake() {
    check(
        "admin put t-0=5 topicid=1 => 0
         offsets of=t-0 topicid=1 => t-0=5
         offsets of=t-0 topicid=2 => t-0=-1
         offsets of=t-0 => t-0=5
         dropped t@2 => 0
         offsets of=t-0 => t-0=5
         dropped t@1 => 0
         offsets of=t-0 => t-0=-1
         state => Empty",
    );
}

#[test]
fn deletion_spares_what_members_read() {
    check(
        "a join proto=range:t => gen 1 leads a
         a sync => nothing to do
         a put t-0=5 u-0=6 => 0 0
         unsubscribe of=t-0,u-0,u-9 => 86 0 0
         offsets => t-0=5
         unsubscribe of= =>
         a leave => 0
         unsubscribe of=t-0 => 0
         offsets =>
         state => Empty
         in none
         unsubscribe of=t-0 => all 69
         in
         unsubscribe of=t-0 => all 24
         a beat => 24
         a leave => 24
         a sync => 24
         a join => 24
         in other
         b join type=other proto=x => gen 1 leads b by x
         b sync => nothing to do
         unsubscribe of=t-0 => all 68
         b leave => 0
         unsubscribe of=t-0 => 0",
    );
}

#[test]
fn topics_that_are_gone() {
    check(
        "admin put a-0=5 a-1=5 b-0=6 => 0 0 0
         in h
         admin put a-0=7 => 0
         dropped a => 0
         offsets =>
         state => Empty
         in g
         offsets => b-0=6
         admin put a-0=1 => 0                    # Used again: the notice has been dealt with.
         +1000
         offsets => a-0=1 b-0=6",
    );
    // A full disk delays it.
    check(
        "admin put a-0=5 => 0
         fail storage
         dropped a => 0
         offsets => a-0=5
         +5000
         offsets => a-0=5
         fail off
         +500
         offsets =>",
    );
}

fn minute(script: &str) {
    let settings = GroupSettings {
        initial_rebalance_delay_ms: 0,
        offsets_retention_ms: 60_000,
        offsets_check_interval_ms: 1_000,
        ..GroupSettings::default()
    };
    check_with(settings, script);
}

#[test]
fn expiry_of_simple_groups() {
    for failover in ["", "failover"] {
        minute(&format!(
            "admin put t-0=1 => 0
             +30000
             {failover}
             admin put t-1=2 => 0
             +29000
             offsets => t-0=1 t-1=2
             +1000
             offsets => t-1=2
             +30000
             offsets =>
             state => Dead"
        ));
    }
    // A commit with a retention of its own.
    minute(
        "admin put t-0=1 retention=5000 => 0
         admin put t-1=1 retention=120000 => 0
         +4000
         offsets => t-0=1 t-1=1
         +1000
         offsets => t-1=1
         failover
         +114000
         offsets => t-1=1
         +1000
         state => Dead",
    );
}

#[test]
fn expiry_of_groups_with_members() {
    minute(
        "a join session=1000000 proto=range:t => gen 1 leads a
         a sync => nothing to do
         a put t-0=1 u-0=1 => 0 0
         +59000
         offsets => t-0=1 u-0=1
         +1000
         offsets => t-0=1                        # Not subscribed: like a simple group's.
         +940000
         offsets => t-0=1
         state => Empty
         +58000
         offsets => t-0=1                        # The clock starts when the last one goes.
         failover
         +2000
         offsets =>
         state => Dead",
    );
    // What cannot be read is needed; what is joining may be needed.
    minute(
        "a join type=connect proto=x session=1000000 => gen 1 leads a by x
         a sync => nothing to do
         a put t-0=1 => 0
         +120000
         offsets => t-0=1
         b join v=3 rebalance=600000 => 23
         a leave => 0
         +60000
         state => Dead",
    );
    minute(
        "a join session=1000000 rebalance=900000 => gen 1 leads a
         a sync => nothing to do
         a put t-0=1 => 0
         b join v=3 rebalance=900000 => waits
         +120000
         offsets => t-0=1
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         a sync => nothing to do
         +1000
         offsets =>",
    );
}

#[test]
fn empty_groups_go() {
    minute(
        "a join v=4 session=6000 => 79
         +5999
         state => Empty
         +1001
         state => Dead
         a join id=- v=3 => gen 1 leads a
         a leave => 0
         state => Empty
         +1000
         state => Dead",
    );
}

#[test]
fn expiry_survives_failed_writes() {
    minute(
        "admin put t-0=1 => 0
         fail storage
         +61000
         offsets => t-0=1
         fail off
         +500
         state => Dead",
    );
}
