// Apache Kafka's Java client against a broker: java -cp JARS Main.java BOOTSTRAP.
// Prints "name ok" or "name FAIL reason" lines.

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Main {
    static final long PATIENCE_MS = 40_000;
    static String bootstrap;
    static Admin admin;
    static boolean failed = false;

    interface Body {
        void run() throws Exception;
    }

    static void test(String name, Body body) {
        try {
            body.run();
            System.out.println(name + " ok");
        } catch (Exception | AssertionError error) {
            failed = true;
            Throwable said = error instanceof ExecutionException ? error.getCause() : error;
            System.out.println(name + " FAIL " + said.toString().replaceAll("\\s+", " "));
        }
    }

    static void check(boolean holds, String why) {
        if (!holds) throw new AssertionError(why);
    }

    static void until(String what, BooleanSupplier done) {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (!done.getAsBoolean()) check(System.currentTimeMillis() < end, "never: " + what);
    }

    static String unique(String prefix) {
        return prefix + "-" + UUID.randomUUID().toString().substring(0, 13);
    }

    static <T> T get(Future<T> answer) throws Exception {
        return answer.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
    }

    static String create(int partitions) throws Exception {
        String topic = unique("java");
        get(admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all());
        return topic;
    }

    static Map<String, Object> base() {
        return new HashMap<>(Map.of("bootstrap.servers", bootstrap));
    }

    static void send(List<ProducerRecord<byte[], byte[]>> records, Map<String, Object> settings)
            throws Exception {
        Map<String, Object> all = base();
        all.putAll(settings);
        var bytes = new ByteArraySerializer();
        try (var producer = new KafkaProducer<byte[], byte[]>(all, bytes, bytes)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (var record : records) sent.add(producer.send(record));
            for (var one : sent) get(one);
        }
    }

    static ProducerRecord<byte[], byte[]> record(String topic, byte[] value) {
        return new ProducerRecord<>(topic, value);
    }

    static KafkaConsumer<byte[], byte[]> consumer(String group) {
        Map<String, Object> all = base();
        all.put("group.id", group);
        all.put("group.protocol", "classic");
        all.put("auto.offset.reset", "earliest");
        all.put("enable.auto.commit", "false");
        all.put("session.timeout.ms", "6000");
        all.put("heartbeat.interval.ms", "300");
        var bytes = new ByteArrayDeserializer();
        return new KafkaConsumer<>(all, bytes, bytes);
    }

    static KafkaConsumer<byte[], byte[]> join(String group, String topic) {
        var member = consumer(group);
        member.subscribe(List.of(topic));
        return member;
    }

    static List<ConsumerRecord<byte[], byte[]>> poll(KafkaConsumer<byte[], byte[]> consumer) {
        List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
        consumer.poll(Duration.ofMillis(100)).forEach(got::add);
        return got;
    }

    static List<ConsumerRecord<byte[], byte[]>> read(String topic, int count) {
        try (var consumer = consumer("unused")) {
            List<TopicPartition> place = List.of(new TopicPartition(topic, 0));
            consumer.assign(place);
            consumer.seekToBeginning(place);
            List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
            until(count + " records", () -> {
                got.addAll(poll(consumer));
                return got.size() >= count;
            });
            return got;
        }
    }

    // There and back: count records with these settings.
    static void round(int count, Map<String, Object> settings) throws Exception {
        String topic = create(1);
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            records.add(record(topic, (n + "-" + "x".repeat(n)).getBytes()));
        }
        send(records, settings);
        var got = read(topic, count);
        for (int n = 0; n < count; n++) {
            check(Arrays.equals(got.get(n).value(), records.get(n).value()), n + " differs");
        }
    }

    static void fields() throws Exception {
        String topic = create(1);
        byte[] key = "k".getBytes();
        // Retention takes what is older than a week.
        long at = System.currentTimeMillis() - 3_600_000;
        var full = new ProducerRecord<byte[], byte[]>(topic, 0, at, key, null);
        full.headers().add("h", "1".getBytes()).add("h", "2".getBytes()).add("null", null);
        var bare = new ProducerRecord<byte[], byte[]>(topic, 0, at + 1, null, new byte[0]);
        send(List.of(full, bare), Map.of());
        var got = read(topic, 2);
        var one = got.get(0);
        check(Arrays.equals(one.key(), full.key()) && one.value() == null, "key or value");
        check(one.timestamp() == at, "timestamp " + one.timestamp());
        check(one.headers().equals(full.headers()), "headers " + one.headers());
        var two = got.get(1);
        check(two.key() == null && two.value().length == 0, "null key, empty value");
    }

    static void large() throws Exception {
        String topic = create(1);
        byte[] value = new byte[900_000];
        new Random().nextBytes(value);
        send(List.of(record(topic, value)), Map.of());
        check(Arrays.equals(read(topic, 1).get(0).value(), value), "differs");
    }

    static void resume() throws Exception {
        String topic = create(1);
        String group = unique("g");
        for (String want : List.of("a", "b")) {
            send(List.of(record(topic, want.getBytes())), Map.of());
            try (var member = join(group, topic)) {
                List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
                until("a record", () -> got.addAll(poll(member)));
                member.commitSync();
                check(got.size() == 1, got.size() + " records");
                check(new String(got.get(0).value()).equals(want), "another record");
            }
        }
    }

    static void rebalance() throws Exception {
        String topic = create(4);
        String group = unique("g");
        try (var first = join(group, topic)) {
            BooleanSupplier all = () -> {
                poll(first);
                return first.assignment().size() == 4;
            };
            until("one has all", all);
            try (var second = join(group, topic)) {
                until("each has two", () -> {
                    poll(first);
                    poll(second);
                    return first.assignment().size() == 2 && second.assignment().size() == 2;
                });
                var described = get(admin.describeConsumerGroups(List.of(group)).all()).get(group);
                check(described.members().size() == 2, "described as " + described);
            }
            until("one has all again", all);
        }
    }

    static void describe() throws Exception {
        String topic = create(1);
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        var settings = get(admin.describeConfigs(List.of(resource)).all()).get(resource).entries();
        check(settings.size() >= 20, "only " + settings.size() + " settings");
        var described = get(admin.describeTopics(List.of(topic)).allTopicNames()).get(topic);
        check(described.partitions().size() == 1, "described as " + described);
        get(admin.listGroups().all());
        get(admin.describeMetadataQuorum().quorumInfo());
        get(admin.describeFeatures().featureMetadata());
        get(admin.deleteTopics(List.of(topic)).all());
    }

    public static void main(String[] arguments) {
        bootstrap = arguments[0];
        admin = Admin.create(base());
        test("metadata", () -> {
            Collection<?> nodes = get(admin.describeCluster().nodes());
            check(!nodes.isEmpty(), "no brokers");
        });
        test("create topic", () -> create(3));
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            test("codec " + codec, () -> round(200, Map.of("compression.type", codec)));
        }
        test("keys headers nulls timestamps", Main::fields);
        test("900 KB record", Main::large);
        test("idempotence", () -> round(500, Map.of("enable.idempotence", "true")));
        test("commit and resume", Main::resume);
        test("group with a rebalance", Main::rebalance);
        test("describe", Main::describe);
        System.exit(failed ? 1 : 0);
    }
}
