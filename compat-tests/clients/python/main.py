"""Three Python clients against a broker: main.py CLIENT BOOTSTRAP.

Prints "name ok" or "name FAIL reason" lines. What is asked of a client is written once here; how
it is asked stands in confluent.py, kafkapython.py and aio.py, each with a class Client:

    null_headers                      whether the client has headers without a value
    brokers()                         number of brokers in the metadata
    create(topic, partitions)
    send(topic, records, codec=None, idempotent=False)
    read(topic, count)                the first records of partition 0
    join(group, topic)                a member: poll() -> values, assigned() -> partitions,
                                      commit(), close()
    describe(topic, group)            number of the topic's settings, members of the group
"""

import importlib
import os
import sys
import time
import traceback
from collections import namedtuple

Record = namedtuple("Record", "key value headers timestamp", defaults=(None, None, [], None))
PATIENCE_S = 40
MODULES = {"confluent-kafka": "confluent", "kafka-python": "kafkapython", "aiokafka": "aio"}


def unique(prefix):
    return f"{prefix}-{os.urandom(5).hex()}"


def until(what, done):
    end = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")


def same(got, want):
    if got != want:
        raise AssertionError(f"{str(got)[:60]} instead of {str(want)[:60]}")


def topic_of(client, partitions=1):
    topic = unique("py")
    client.create(topic, partitions)
    return topic


def metadata(client):
    assert client.brokers() >= 1, "no brokers"


def create_topic(client):
    topic_of(client, 3)


def codec(name):
    def body(client):
        topic = topic_of(client)
        sent = [Record(value=b"%d-" % n + b"x" * n) for n in range(200)]
        client.send(topic, sent, codec=name)
        same([r.value for r in client.read(topic, 200)], [r.value for r in sent])

    return body


def fields(client):
    topic = topic_of(client)
    # Retention takes what is older than a week.
    at = int(time.time() * 1000) - 3_600_000
    sent = [
        Record(b"k", b"v", [("h", b"1"), ("h", b"2"), ("empty", b"")], at),
        Record(None, b"no key", [], at + 1),
        Record(b"no value", None, [], at + 2),
        Record(b"", b"", [("null", None)] if client.null_headers else [], at + 3),
    ]
    client.send(topic, sent)
    same(client.read(topic, len(sent)), sent)


def large(client):
    topic = topic_of(client)
    value = os.urandom(900_000)
    client.send(topic, [Record(value=value)])
    assert client.read(topic, 1)[0].value == value, "came back changed"


def idempotence(client):
    topic = topic_of(client)
    sent = [Record(value=b"%d" % n) for n in range(500)]
    client.send(topic, sent, idempotent=True)
    same([r.value for r in client.read(topic, 500)], [r.value for r in sent])


def resume(client):
    topic, group = topic_of(client), unique("g")
    for value in (b"a", b"b"):
        client.send(topic, [Record(value=value)])
        member, got = client.join(group, topic), []
        until("a record", lambda: got.extend(member.poll()) or got)
        member.commit()
        member.close()
        same(got, [value])


def rebalance(client):
    topic, group = topic_of(client, 4), unique("g")
    everything = {0, 1, 2, 3}
    first = client.join(group, topic)
    until("one has all", lambda: first.poll() is not None and first.assigned() == everything)
    second = client.join(group, topic)

    def shared():
        first.poll(), second.poll()
        mine, others = first.assigned(), second.assigned()
        return len(mine) == len(others) == 2 and mine | others == everything

    until("each has two", shared)
    assert client.describe(topic, group)[1] == 2, "the group has not two members"
    second.close()
    until("one has all again", lambda: first.poll() is not None and first.assigned() == everything)
    first.close()


def describe(client):
    topic = topic_of(client)
    settings, _ = client.describe(topic, None)
    assert settings >= 20, f"only {settings} settings"


ABILITIES = [
    ("metadata", metadata),
    ("create topic", create_topic),
    *[(f"codec {name}", codec(name)) for name in ("none", "gzip", "snappy", "lz4", "zstd")],
    ("keys headers nulls timestamps", fields),
    ("900 KB record", large),
    ("idempotence", idempotence),
    ("commit and resume", resume),
    ("group with a rebalance", rebalance),
    ("describe", describe),
]


def main():
    name, bootstrap = sys.argv[1:]
    client = importlib.import_module(MODULES[name]).Client(bootstrap)
    failed = False
    for ability, body in ABILITIES:
        try:
            body(client)
            print(ability, "ok", flush=True)
        except Exception as error:  # Whatever a client throws is a result.
            failed = True
            if os.environ.get("VERBOSE"):
                traceback.print_exc()
            said = " ".join(f"{type(error).__name__}: {error}".split())
            print(ability, "FAIL", said[:200], flush=True)
    # Threads of a client that failed must not hold the others up.
    sys.stdout.flush()
    os._exit(failed)


if __name__ == "__main__":
    main()
