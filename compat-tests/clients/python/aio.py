"""aiokafka. One event loop, run only while something is asked."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from main import Record, PATIENCE_S, until

LOOP = asyncio.new_event_loop()
asyncio.set_event_loop(LOOP)


def run(what):
    return LOOP.run_until_complete(asyncio.wait_for(what, PATIENCE_S))


def record_of(one):
    return Record(one.key, one.value, list(one.headers), one.timestamp)


class Client:
    null_headers = True

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.admin = None

    async def started(self):
        if self.admin is None:
            self.admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await self.admin.start()
        return self.admin

    def brokers(self):
        async def ask():
            return len((await (await self.started()).describe_cluster())["brokers"])

        return run(ask())

    def create(self, topic, partitions):
        async def ask():
            await (await self.started()).create_topics([NewTopic(topic, partitions, 1)])

        run(ask())

    def send(self, topic, records, codec=None, idempotent=False):
        async def ask():
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic, one.value, one.key, headers=one.headers, timestamp_ms=one.timestamp
                    )
                    for one in records
                ]
                await asyncio.gather(*sent)
            finally:
                await producer.stop()

        run(ask())

    def consumer(self, *topics, group=None):
        async def ask():
            consumer = AIOKafkaConsumer(
                *topics,
                bootstrap_servers=self.bootstrap,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=6000,
                heartbeat_interval_ms=300,
            )
            await consumer.start()
            return consumer

        return run(ask())

    def read(self, topic, count):
        member, got = Member(self.consumer()), []

        async def begin():
            member.consumer.assign([TopicPartition(topic, 0)])
            await member.consumer.seek_to_beginning()

        run(begin())
        until(f"{count} records", lambda: got.extend(member.records()) or len(got) >= count)
        member.close()
        return got

    def join(self, group, topic):
        return Member(self.consumer(topic, group=group))

    def describe(self, topic, group):
        async def ask():
            admin = await self.started()
            wanted = ConfigResource(ConfigResourceType.TOPIC, topic)
            (answer,) = await admin.describe_configs([wanted])
            settings = answer.resources[0][4]
            await admin.list_consumer_groups()
            if group is None:
                return len(settings), 0
            (answer,) = await admin.describe_consumer_groups([group])
            return len(settings), len(answer.groups[0][5])

        return run(ask())


class Member:
    def __init__(self, consumer):
        self.consumer = consumer

    def records(self):
        batches = run(self.consumer.getmany(timeout_ms=100))
        return [record_of(one) for batch in batches.values() for one in batch]

    def poll(self):
        return [one.value for one in self.records()]

    def assigned(self):
        return {place.partition for place in self.consumer.assignment()}

    def commit(self):
        run(self.consumer.commit())

    def close(self):
        run(self.consumer.stop())
