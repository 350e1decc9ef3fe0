"""confluent-kafka, which is librdkafka."""

from confluent_kafka import Consumer, Producer, TopicPartition, OFFSET_BEGINNING
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from main import Record, PATIENCE_S, until


def record_of(message):
    assert message.error() is None, message.error()
    headers = [(key, value) for key, value in message.headers() or []]
    return Record(message.key(), message.value(), headers, message.timestamp()[1])


class Client:
    null_headers = True

    def __init__(self, bootstrap):
        self.base = {"bootstrap.servers": bootstrap}
        self.admin = AdminClient(self.base)

    def brokers(self):
        return len(self.admin.list_topics(timeout=PATIENCE_S).brokers)

    def create(self, topic, partitions):
        for future in self.admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            future.result(PATIENCE_S)

    def send(self, topic, records, codec=None, idempotent=False):
        settings = {"compression.type": codec or "none", "enable.idempotence": idempotent}
        producer = Producer({**self.base, **settings})
        errors = []
        told = lambda error, _: error and errors.append(error)
        for one in records:
            at = {"timestamp": one.timestamp} if one.timestamp else {}
            producer.produce(topic, one.value, one.key, headers=one.headers, on_delivery=told, **at)
        assert producer.flush(PATIENCE_S) == 0, "not all were answered"
        assert not errors, errors[0]

    def consumer(self, group):
        settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        faster = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 300}
        return Consumer({**self.base, **settings, **faster})

    def read(self, topic, count):
        consumer, got = self.consumer("unused"), []
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        until(
            f"{count} records",
            lambda: got.extend(map(record_of, consumer.consume(count, 0.2))) or len(got) >= count,
        )
        consumer.close()
        return got

    def join(self, group, topic):
        consumer = self.consumer(group)
        consumer.subscribe([topic])
        return Member(consumer)

    def describe(self, topic, group):
        wanted = ConfigResource(ConfigResource.Type.TOPIC, topic)
        settings = self.admin.describe_configs([wanted])[wanted].result(PATIENCE_S)
        self.admin.list_consumer_groups().result(PATIENCE_S)
        if group is None:
            return len(settings), 0
        described = self.admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
        return len(settings), len(described.members)


class Member:
    def __init__(self, consumer):
        self.consumer = consumer

    def poll(self):
        return [record_of(message).value for message in self.consumer.consume(10, 0.1)]

    def assigned(self):
        return {place.partition for place in self.consumer.assignment()}

    def commit(self):
        self.consumer.commit(asynchronous=False)

    def close(self):
        self.consumer.close()
