//! Members with an instance id (KIP-345, KIP-814).

use super::script::check;

/// Two static members, stable; `a` leads.
const PAIR: &str = "a join v=5 static=a session=20000 => gen 1 leads a
    b join v=5 static=b session=20000 => waits
    a join => gen 2 leads a,b
    b gets gen 2 follows a
    b sync => waits
    a sync a=A b=B => A
    b gets B";

#[test]
fn a_restarted_member_takes_its_place_again() {
    for v in [5, 8] {
        check(&format!(
            "a join v=5 static=one => gen 1 leads a
             a sync a=A => A
             x join v={v} static=one => gen 1 follows a
             a beat => 82
             a beat static=- => 25
             a put t-0=1 => all 82
             a sync => 82
             a join => 82
             x sync => A
             x beat => 0
             x put t-0=1 => 0
             describe => Stable consumer/range x:14:A"
        ));
    }
    check(
        "a join v=5 static=one => gen 1 leads a
         a sync a=A => A
         x join v=9 static=one => gen 1 leads x skips
         a beat => 82
         x sync => A
         x beat => 0
         describe => Stable consumer/range x:14:A
         failover
         x beat => 0
         a beat => 82",
    );
}

#[test]
fn followers_and_leaders() {
    for v in [8, 9] {
        check(&format!(
            "{PAIR}
             x join v={v} static=b => gen 2 follows a
             x sync => B
             a beat => 0"
        ));
    }
    check(&format!(
        "{PAIR}
         x join v=8 static=a => gen 2 follows a
         x sync => A
         y join v=9 static=a => gen 2 leads b,y skips
         y sync => A
         x beat => 82
         b beat => 0"
    ));
}

#[test]
fn what_it_wants_may_change_if_the_protocol_does_not() {
    check(
        "a join v=5 static=one proto=range:x => gen 1 leads a
         a sync a=A => A
         x join v=5 static=one proto=range:y => gen 1 follows a
         describe => Stable consumer/range x:17:A",
    );
    // Of two protocols the other one would be chosen now: everybody has to know.
    check(
        "a join v=5 static=a proto=range,other => gen 1 leads a
         a sync a=A => A
         x join v=5 static=a proto=other,range => gen 2 leads x by other
         x sync x=X => X
         a beat => 82",
    );
    check(&format!(
        "{PAIR}
         x join v=9 static=b proto=other => 23
         b beat => 0"
    ));
}

#[test]
fn ids_that_do_not_match() {
    check(
        "a join v=5 static=one => gen 1 leads a
         a sync a=A => A
         a join => gen 2 leads a
         a sync a=A => A
         b join v=5 static=one id=wrong => 82
         b join static=two id=a => 25
         b join static=two id=wrong => 25
         a beat static=other => 25
         a sync static=other => 25
         a put t-0=1 static=other => all 25
         a beat => 0
         a beat static=- => 0                    # Its own id alone will do.",
    );
}

#[test]
fn replaced_while_something_was_parked() {
    // While its join waits.
    check(&format!(
        "{PAIR}
         c join v=3 => waits
         b join => waits
         x join v=5 static=b => waits
         b gets 82
         a join => gen 3 leads a,c,x
         x gets gen 3 follows a
         c gets gen 3 follows a"
    ));
    // While its sync waits: the leader may assign to the old id, so all start over.
    check(&format!(
        "{PAIR}
         a join => waits
         b join => gen 3 follows a
         a gets gen 3 leads a,b
         b sync => waits
         x join v=5 static=b => waits
         b gets 82
         a sync a=A b=B => 27
         a join => gen 4 leads a,x
         x gets gen 4 follows a"
    ));
    // The leader itself, between join and sync.
    check(&format!(
        "{PAIR}
         a join => waits
         b join => gen 3 follows a
         a gets gen 3 leads a,b
         b sync => waits
         x join v=9 static=a => waits
         b gets 27
         b join => gen 4 follows x
         x gets gen 4 leads b,x"
    ));
}

#[test]
fn they_stay_until_their_session_ends() {
    // Not dropped for missing a join phase.
    check(
        "a join v=5 static=a session=30000 rebalance=4000 => gen 1 leads a
         b join v=5 static=b session=30000 rebalance=4000 => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         a sync => nothing to do
         b sync => nothing to do
         a join => waits
         +4000
         a gets gen 3 leads a,b
         describe => CompletingRebalance consumer/ a:0: b:0:
         a sync a=A b=B => A
         b beat => 22
         b join => gen 3 follows a
         b sync => B",
    );
    // But for missing the sync that follows.
    check(
        "a join v=5 static=a session=30000 rebalance=4000 => gen 1 leads a
         b join v=5 static=b session=30000 rebalance=4000 => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         a sync => nothing to do
         b sync => nothing to do
         a join => waits
         +4000
         a gets gen 3 leads a,b
         a sync a=A b=B => A
         +4000
         a beat => 27
         b beat => 25",
    );
    // A join phase to which nobody came is held open for them.
    check(&format!(
        "{PAIR}
         c join v=3 => waits
         c leave id=- also=c => 25 25
         +9999
         state => PreparingRebalance
         +1
         c gets gen 3 leads a,b,c"
    ));
    check(
        "a join v=5 static=a session=30000 rebalance=4000 => gen 1 leads a
         b join v=4 rebalance=4000 => 79
         b join => waits
         b leave => 0
         b gets 25
         +4000
         state => PreparingRebalance
         +25999
         state => PreparingRebalance
         +1
         state => Empty",
    );
    check(&format!(
        "{PAIR}
         +19999
         state => Stable
         b beat => 0
         +1
         state => PreparingRebalance
         b join => gen 3 leads b"
    ));
}

#[test]
fn leaving() {
    // An administrator needs the instance id alone.
    check(&format!(
        "{PAIR}
         admin leave id=x also=y@z => 25 25
         admin leave id=x static=b => 82
         admin leave id=- static=nobody => 25
         admin leave id=- static=a also=unknown,@b,@b => 0 25 0 25
         state => Empty
         a beat => 25
         in other
         admin leave id=x also=y@z => 25 25
         in g
         a leave also=a => 25 25"
    ));
}
