"""kafka-python."""

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from main import Record, PATIENCE_S, until


def record_of(one):
    return Record(one.key, one.value, list(one.headers), one.timestamp)


class Client:
    null_headers = False

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def brokers(self):
        return len(self.admin.describe_cluster()["brokers"])

    def create(self, topic, partitions):
        self.admin.create_topics([NewTopic(topic, partitions, 1)])

    def send(self, topic, records, codec=None, idempotent=False):
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
        )
        sent = [
            producer.send(topic, one.value, one.key, one.headers, timestamp_ms=one.timestamp)
            for one in records
        ]
        for future in sent:
            future.get(PATIENCE_S)
        producer.close()

    def consumer(self, *topics, group=None):
        return KafkaConsumer(
            *topics,
            bootstrap_servers=self.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=300,
        )

    def read(self, topic, count):
        consumer, got = self.consumer(), []
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()

        def all_came():
            for batch in consumer.poll(200).values():
                got.extend(map(record_of, batch))
            return len(got) >= count

        until(f"{count} records", all_came)
        consumer.close()
        return got

    def join(self, group, topic):
        return Member(self.consumer(topic, group=group))

    def describe(self, topic, group):
        wanted = ConfigResource(ConfigResourceType.TOPIC, topic)
        asked = self.admin.describe_configs([wanted], config_filter="all")
        settings = asked["topic"][topic]
        self.admin.list_groups()
        if group is None:
            return len(settings), 0
        return len(settings), len(self.admin.describe_groups([group])[group]["members"])


class Member:
    def __init__(self, consumer):
        self.consumer = consumer

    def poll(self):
        return [one.value for batch in self.consumer.poll(100).values() for one in batch]

    def assigned(self):
        return {place.partition for place in self.consumer.assignment()}

    def commit(self):
        self.consumer.commit()

    def close(self):
        self.consumer.close()
