//! Failed writes, failovers, answers that wait for the watermark.

use super::script::check;

#[test]
fn a_leaders_assignment_that_cannot_be_written() {
    check(
        "a join => gen 1 leads a
         b join => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         b sync => waits
         fail storage
         a sync a=A b=B => 16                    # b waits on: nothing has happened.
         state => CompletingRebalance
         a sync a=A b=B => 16
         fail replicas
         a sync a=A b=B => 15
         fail off
         a sync a=A b=B => A
         b gets B",
    );
    check(
        "a join rebalance=6000 => gen 1 leads a
         fail large
         a sync a=A => -1
         fail off
         +6000
         state => Empty",
    );
}

#[test]
fn a_group_that_cannot_be_made() {
    check(
        "fail storage
         a join => 16
         a join v=4 => 16
         state => Dead
         fail off
         a join v=3 => gen 1 leads a",
    );
}

#[test]
fn a_replacement_that_cannot_be_written() {
    check(
        "a join v=5 static=one => gen 1 leads a
         a sync a=A => A
         fail storage
         x join v=9 static=one => 16
         a beat => 0
         fail off
         x join v=9 static=one => gen 1 leads x skips
         a beat => 82",
    );
}

#[test]
fn a_group_that_cannot_become_empty() {
    check(
        "a join => gen 1 leads a
         a sync a=A => A
         fail storage
         a leave => 16
         state => Stable
         a beat => 0
         +20000
         state => Stable                         # Its session is over, but that is not written.
         fail off
         +500
         state => Empty
         records => 3",
    );
    check(
        "a join => gen 1 leads a
         a sync a=A => A
         b join v=4 => 79
         b join => waits
         a leave => 0
         b gets gen 2 leads b
         fail storage
         b leave => 16
         b beat => 0
         delete => 68
         fail off
         b leave => 0
         fail storage
         delete => 16
         state => Empty
         admin put t-0=1 => all 16
         offsets =>
         fail off
         delete => 0",
    );
}

#[test]
fn a_stable_group_survives_a_failover() {
    check(
        "a join v=5 static=one proto=range:x,other session=7000 => gen 1 leads a
         b join => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         b sync => waits
         a sync a=A b=B => A
         b gets B
         a put x-0=5 => 0
         +6000
         failover
         state => Stable
         deadline a => 7000
         deadline b => 10000
         describe => Stable consumer/range a:17:A b:14:B
         a beat => 0
         b sync => B
         b beat => 0
         unsubscribe of=x-0 => 86
         +7000
         a beat => 25
         b beat => 27
         b join => gen 3 leads b",
    );
}

#[test]
fn what_was_in_motion_is_lost() {
    check(
        "a join => gen 1 leads a
         a sync a=A => A
         b join => waits
         c join v=4 => 79
         failover
         b gets 16
         state => Stable
         a beat => 0
         c join => 25
         b join v=4 => 79
         b join => waits
         a join => gen 2 leads a,b
         b gets gen 2 follows a
         b sync => waits
         failover                                # Between join and sync the old generation is back.
         b gets 16
         b beat => 25
         a beat => 22
         a join => gen 2 leads a
         a leave => 0
         failover
         describe => Empty consumer/
         a join id=- => gen 4 leads a",
    );
}

#[test]
fn answers_wait_for_the_watermark() {
    check(
        "a join => gen 1 leads a
         hold
         b join v=5 static=b => waits
         a join => gen 2 leads a,b               # Nothing was written.
         b gets gen 2 follows a
         b sync => waits
         hold
         a sync b=B => waits
         a beat => waits                         # A read behind the write.
         state => Stable
         commit
         a gets nothing to do
         a gets 0
         b gets B",
    );
}
