//! Describe, list, delete.

use super::script::check;

#[test]
fn describing() {
    check(
        "describe => Dead 69 /
         a join proto=range:x => gen 1 leads a
         a sync a=A => A
         describe => Stable consumer/range a:17:A
         a leave => 0
         describe => Empty consumer/
         in
         describe => Dead 69 /",
    );
}

#[test]
fn listing() {
    check(
        "in stable
         a join => gen 1 leads a
         a sync => nothing to do
         in empty
         b join => gen 1 leads b
         b leave => 0
         in simple
         admin put t-0=1 => 0
         in new
         c join => gen 1 leads c
         list => empty/consumer/Empty new/consumer/CompletingRebalance \
                 simple//Empty stable/consumer/Stable
         list states=Stable => stable/consumer/Stable
         list states=stable => stable/consumer/Stable
         list states=EMPTY,Stable => empty/consumer/Empty simple//Empty stable/consumer/Stable
         list states=Dead =>
         list states=nonsense =>
         list states=Assigning =>
         list types=Classic states=Empty => empty/consumer/Empty simple//Empty
         list types=consumer =>
         list types=nonsense =>
         list types=consumer,classic states=Stable => stable/consumer/Stable",
    );
}

#[test]
fn deleting() {
    check(
        "delete => 69
         admin put t-0=1 => 0
         delete => 0
         state => Dead
         offsets of=t-0 => t-0=-1
         delete => 69
         a join => gen 1 leads a
         delete => 68
         a sync => nothing to do
         delete => 68
         a beat => 0
         b join => waits
         delete => 68
         a leave => 0
         b gets gen 2 leads b
         b leave => 0
         delete => 0
         b beat => 25
         b join id=- => gen 1 leads b            # Nothing is left of it.
         in
         admin put t-0=1 => 0
         delete => 0",
    );
    // Ids that were handed out go with the group.
    check(
        "a join v=4 => 79
         delete => 0
         a join => 25
         state => Dead
         b join v=4 => 79
         b join => gen 1 leads b
         +10000
         state => Empty",
    );
}
