//! Rounds of join and sync, and what time does to them.

use super::script::{check, check_with};
use crate::groups::GroupSettings;

#[test]
fn one_member_through_its_life() {
    for v in 0..10 {
        let asked_back = if v >= 4 { "a join => 79\n state => Empty" } else { "" };
        check(&format!(
            "a join v={v} id=x => 25            # No such group.
             {asked_back}
             a join => gen 1 leads a
             state => CompletingRebalance
             a sync a=A => A
             a beat => 0
             describe => Stable consumer/range a:14:A
             a join => gen 2 leads a            # A leader that joins again wants a rebalance.
             a sync a=A => A
             a leave => 0
             a beat => 25
             describe => Empty consumer/
             a join => 25                       # The id went with the member.
             a join id=- v=3 => gen 4 leads a"
        ));
    }
}

#[test]
fn the_first_rebalance_waits_for_more_members() {
    let patient = |script: &str| check_with(GroupSettings::default(), script);
    patient(
        "a join rebalance=2000 => waits        # Even if the member has less time.
         +2999
         +1
         a gets gen 1 leads a
         a sync a=A => A
         a leave => 0
         a join id=- => waits                  # An empty group is a new start.
         +3000
         a gets gen 3 leads a",
    );
    // Whoever joins meanwhile adds another delay.
    patient(
        "a join => waits
         +1500
         b join => waits
         +4499
         +1
         a gets gen 1 leads a,b
         b gets gen 1 follows a",
    );
    // Up to the rebalance timeout.
    patient(
        "a join rebalance=10000 => waits
         +2000
         b join => waits
         +3000
         c join => waits
         +3000
         d join => waits
         +1999
         +1
         a gets gen 1 leads a,b,c,d
         b gets gen 1 follows a
         c gets gen 1 follows a
         d gets gen 1 follows a",
    );
    // A group with members has no delay, only the time its members need to come back.
    patient(
        "a join => waits
         +3000
         a gets gen 1 leads a
         a sync a=A => A
         b join => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a",
    );
    // All gone before it ends.
    patient(
        "a join v=4 => 79
         a join => waits
         a leave => 0
         a gets 25
         state => PreparingRebalance
         +3000
         state => Empty
         records => 2",
    );
}

#[test]
fn two_members() {
    check(
        "a join => gen 1 leads a
         a sync a=A => A
         b join => waits
         a beat => 27
         a sync a=A => 27
         state => PreparingRebalance
         describe => PreparingRebalance consumer/ ?:0: a:0:A
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         state => CompletingRebalance
         b beat => 0
         b put t-0=1 => all 27
         b sync => waits
         a sync gen=1 a=A => 22
         a sync a=A b=B stranger=X => A
         b gets B
         describe => Stable consumer/range a:14:A b:14:B
         b sync => B
         b put t-0=7 => 0
         b join => gen 2 follows a              # Nothing new: no rebalance for a follower.
         b sync => B
         b leave => 0
         a beat => 27
         a join => gen 3 leads a
         a sync => nothing to do                # The leader forgot itself.
         describe => Stable consumer/range a:14:",
    );
}

#[test]
fn protocols_are_voted_for() {
    check(
        "a join proto=range => gen 1 leads a
         a sync a=A => A
         b join type=other => 23
         b join type=consumer proto=roundrobin => 23
         b join proto= => 23
         b join proto=roundrobin,range => waits
         a beat => 27
         a join => gen 2 leads a,b
         b gets gen 2 follows a",
    );
    check(
        "a join proto= => 23                    # A refused newcomer makes no group.
         state => Dead
         a join type= proto=range => 23
         records => 0",
    );
    check(
        "a join proto=x,y,z => gen 1 leads a by x
         b join proto=z,y => waits
         a join => gen 2 leads a,b by y         # One vote each: the first by name.
         b gets gen 2 follows a by y
         c join proto=w,z,y => waits
         a join => waits
         b join => gen 3 follows a by z
         a gets gen 3 leads a,b,c by z
         c gets gen 3 follows a by z
         c leave => 0
         a join proto=x => 23                   # b does not speak it.
         a join proto=y,y => waits              # Said twice counts once.
         b join => gen 4 follows a by y
         a gets gen 4 leads a,b by y",
    );
}

#[test]
fn a_changed_member_rebalances_the_group() {
    let two = "a join => gen 1 leads a
         b join => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a";
    check(&format!(
        "{two}
         b join => gen 2 follows a              # It may have missed the answer.
         a join => gen 2 leads a,b
         b sync => waits
         b join proto=range:t => waits          # Now it wants something else.
         b gets 27
         state => PreparingRebalance
         a join => gen 3 leads a,b
         b gets gen 3 follows a
         b sync => waits
         a sync b=B => nothing to do
         b gets B
         b join proto=range:u => waits          # In a stable group, too.
         a beat => 27
         a join => gen 4 leads a,b
         b gets gen 4 follows a"
    ));
}

#[test]
fn asked_twice() {
    check(
        "a join => gen 1 leads a
         b join => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         b sync => waits
         b sync => waits                        # On a new connection; the old one is told off.
         b gets 27
         a sync b=B => nothing to do
         b gets B
         c join => waits
         b join => waits
         b join => waits
         b gets 27
         a join => gen 3 leads a,b,c
         b gets gen 3 follows a
         c gets gen 3 follows a",
    );
}

#[test]
fn silent_members_are_left_out() {
    check(
        "a join rebalance=2000 session=30000 => gen 1 leads a
         a sync a=A => A
         b join rebalance=2000 session=30000 => waits
         +1999
         +1
         b gets gen 2 leads b
         a beat => 25",
    );
    // With the longest of the members' timeouts.
    check(
        "a join rebalance=2000 session=30000 => gen 1 leads a
         a sync a=A => A
         b join rebalance=7000 session=30000 => waits
         +6999
         a join => gen 2 leads a,b
         b gets gen 2 follows a",
    );
    // A leader that does not come back is succeeded.
    check(
        "a join => gen 1 leads a
         b join => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         a sync => nothing to do
         c join => waits
         b join => waits
         +9999
         +1
         b gets gen 3 leads b,c
         c gets gen 3 follows b
         a beat => 25",
    );
}

#[test]
fn members_that_never_sync_are_out() {
    // The leader only sends heartbeats (KAFKA-10134, KAFKA-12890).
    check(
        "a join rebalance=4000 session=10000 => gen 1 leads a
         b join rebalance=4000 session=10000 => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         b sync => waits
         +3000
         a beat => 0
         +1000
         b gets 27
         a beat => 25
         b join => gen 3 leads b",
    );
    // A follower that took its generation and went.
    check(
        "a join rebalance=4000 session=10000 => gen 1 leads a
         b join rebalance=4000 session=10000 => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         a sync a=A b=B => A
         state => Stable
         +4000
         b beat => 25
         a beat => 27
         a join => gen 3 leads a",
    );
    // All of them.
    check(
        "a join rebalance=4000 => gen 1 leads a
         +4000
         state => Empty
         a beat => 25",
    );
}

#[test]
fn sessions_end() {
    check(
        "a join session=6000 => gen 1 leads a
         a sync a=A => A
         +5999
         a beat => 0
         deadline a => 6000
         +5999
         a put t-0=1 => 0                       # As good as a heartbeat.
         deadline a => 6000
         +5999
         state => Stable
         +1
         state => Empty
         a beat => 25
         describe => Empty consumer/",
    );
    // While it waits for an answer a client sends nothing.
    check(
        "a join session=6000 rebalance=60000 => gen 1 leads a
         a sync => nothing to do
         b join session=6000 rebalance=60000 => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         b sync => waits
         +5000
         a beat => 0
         +5000
         a beat => 0
         a sync b=B => nothing to do
         b gets B
         deadline b => 6000
         c join session=6000 rebalance=60000 => waits
         b join => waits
         +5000
         a beat => 27
         +5000
         a join => gen 3 leads a,b,c
         b gets gen 3 follows a
         c gets gen 3 follows a
         deadline b => 6000",
    );
    // A newcomer has five minutes, as it cannot send heartbeats yet.
    check(
        "a join session=600000 rebalance=900000 => gen 1 leads a
         a sync => nothing to do
         b join session=6000 rebalance=900000 => waits
         +299999
         +1
         b gets 25
         a join => gen 2 leads a",
    );
    check(
        "a join session=6000 rebalance=900000 => gen 1 leads a
         a sync => nothing to do
         b join session=6000 rebalance=900000 v=4 => 79
         deadline b => 6000
         b join => waits
         deadline b => 300000
         a leave => 0
         b gets gen 2 leads b",
    );
}

#[test]
fn a_member_lost_while_joining_holds_nobody_up() {
    let three = "a join => gen 1 leads a
         b join => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         a sync => nothing to do
         c join session=6000 => waits
         a join => waits
         b join => gen 3 follows a
         a gets gen 3 leads a,b,c
         c gets gen 3 follows a
         b sync => waits
         c sync => waits
         a sync => nothing to do
         b gets nothing to do
         c gets nothing to do
         a join => waits
         b join => waits";
    check(&format!(
        "{three}
         c leave => 0
         a gets gen 4 leads a,b
         b gets gen 4 follows a"
    ));
    check(&format!(
        "{three}
         +6000
         a gets gen 4 leads a,b
         b gets gen 4 follows a"
    ));
}

#[test]
fn pending_ids() {
    check(
        "a join v=4 => 79
         b join v=4 => 79
         state => Empty
         list => g//Empty
         describe => Empty /
         a beat gen=0 => 25
         a leave => 0
         a join => 25
         b join => gen 1 leads b
         b sync b=B => B
         c join v=4 session=6000 => 79           # Being asked back disturbs nobody.
         state => Stable
         b beat => 0
         a join id=- v=3 => waits
         b join => waits                         # c may come yet.
         +6000
         b gets gen 2 leads a,b
         a gets gen 2 follows b
         c join => 25",
    );
    check(
        "a join v=4 session=6000 => 79
         +6000
         a join => 25
         state => Empty
         expire => 0
         state => Dead",
    );
    check(
        "a join v=4 => 79
         a join static=i => 25                   # A static member was never asked back.
         a join static=- => gen 1 leads a",
    );
    // Two hundred first joins that are never followed up.
    let abandoned = "a join v=4 id=- => 79\n".repeat(200);
    check(&format!(
        "{abandoned}
         +10000
         state => Empty
         expire => 0
         state => Dead"
    ));
}

#[test]
fn groups_have_a_largest_size() {
    let small = |script: &str| {
        let settings = GroupSettings {
            max_size: 2,
            initial_rebalance_delay_ms: 0,
            ..GroupSettings::default()
        };
        check_with(settings, script);
    };
    small(
        "a join => gen 1 leads a
         b join => waits
         c join => waits                         # Who waits counts, and that is b alone.
         a join => 81                            # Too late: it is out.
         b gets gen 2 leads b,c
         c gets gen 2 follows b
         a beat => 25
         a join id=- => 81
         d join v=4 => 81
         b sync => nothing to do
         d join => 81
         c leave => 0
         d join v=3 => waits
         b join => gen 3 leads b,d
         d gets gen 3 follows b",
    );
}

#[test]
fn timeouts_have_bounds() {
    check(
        "a join session=1 => 26
         a join session=5999 => 26
         a join session=1800001 => 26
         records => 0
         a join session=6000 => gen 1 leads a",
    );
}
