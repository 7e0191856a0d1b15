import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client against one broker: java Client BOOTSTRAP PREFIX, the prefix of all topics and groups. */
public final class Client {
    static final int PARTITIONS = 4;
    static String bootstrap;
    static String prefix;
    static Admin admin;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        prefix = args[1];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        String topic = prefix + "-main";
        Step.step("create topic", () -> createTopic(topic));
        int steps = 0;
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            for (String acks : List.of("0", "1", "all")) {
                steps++;
                Step.step("produce " + codec + " acks=" + acks, () -> produce(topic, codec, acks));
            }
        }
        int want = steps * 40;
        Step.step("consume", () -> consume(topic, want));
        Step.step("idempotence", () -> idempotence(prefix + "-idempotence"));
        Step.step("headers, null and empty", () -> headers(prefix + "-headers"));
        Step.step("list offsets", () -> offsets(prefix + "-offsets"));
        Step.step("configs and partitions", () -> configs(prefix + "-configs"));
        Groups.steps();
        Step.step("delete topic", () -> deleteTopic(topic));
        admin.close();
        System.exit(0);
    }

    static KafkaProducer<byte[], byte[]> producer(Object... settings) {
        return new KafkaProducer<>(settings("max.block.ms", 20000, settings), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(Object... settings) {
        return new KafkaConsumer<>(settings("enable.auto.commit", false, "auto.offset.reset", "earliest", settings),
            new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static Properties settings(Object... pairs) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        Object[] last = (Object[]) pairs[pairs.length - 1];
        for (Object[] from : new Object[][] {Arrays.copyOf(pairs, pairs.length - 1), last}) {
            for (int i = 0; i < from.length; i += 2) {
                p.put(from[i], String.valueOf(from[i + 1]));
            }
        }
        return p;
    }

    static void create(String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    }

    static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    private static Object createTopic(String topic) throws Exception {
        create(topic, PARTITIONS);
        int n = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        Step.same("partitions", n, PARTITIONS);
        return Map.of("again", Step.failure(() -> admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get()));
    }

    /** A value that compresses, so that a batch comes out as the codec's. */
    private static String value(String codec, String acks, int i) {
        return codec + "/" + acks + "/" + i + "/" + "compressible ".repeat(40);
    }

    private static Object produce(String topic, String codec, String acks) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> p = producer("compression.type", codec, "acks", acks, "enable.idempotence", false, "linger.ms", 20)) {
            for (int i = 0; i < 40; i++) {
                sent.add(p.send(new ProducerRecord<>(topic, i % PARTITIONS, bytes("k" + i), bytes(value(codec, acks, i)))));
            }
        }
        int answered = 0;
        for (Future<RecordMetadata> f : sent) {
            answered += f.get().hasOffset() ? 1 : 0;
        }
        return Map.of("records", sent.size(), "with offset", answered);
    }

    /** Reads every partition from its start to its end. */
    static List<ConsumerRecord<byte[], byte[]>> readAll(String topic, Object... settings) {
        List<ConsumerRecord<byte[], byte[]>> all = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> c = consumer(settings)) {
            List<TopicPartition> parts = c.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
            c.assign(parts);
            c.seekToBeginning(parts);
            Map<TopicPartition, Long> ends = c.endOffsets(parts);
            long until = System.currentTimeMillis() + Step.WAIT_MS;
            while (!parts.stream().allMatch(p -> c.position(p) >= ends.get(p))) {
                Step.check(System.currentTimeMillis() < until, "read " + all.size() + " records, ends are " + ends);
                c.poll(Duration.ofMillis(100)).forEach(all::add);
            }
        }
        return all;
    }

    private static Object consume(String topic, int want) {
        Map<String, Integer> seen = new HashMap<>();
        Map<Integer, Long> next = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> r : readAll(topic, "fetch.max.bytes", 20000, "max.partition.fetch.bytes", 10000)) {
            Step.same("offset in " + r.partition(), r.offset(), next.getOrDefault(r.partition(), 0L));
            next.put(r.partition(), r.offset() + 1);
            String v = new String(r.value());
            String[] parts = v.split("/");
            Step.same("value", v, value(parts[0], parts[1], Integer.parseInt(parts[2])));
            Step.same("key", new String(r.key()), "k" + parts[2]);
            seen.merge(v, 1, Integer::sum);
        }
        Step.same("different records", seen.size(), want);
        Step.check(seen.values().stream().allMatch(n -> n == 1), "a record came twice");
        return Map.of("records", seen.size());
    }

    /** Many small batches, five requests under way: each record once, in order. */
    private static Object idempotence(String topic) throws Exception {
        create(topic, 1);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> p = producer("enable.idempotence", true, "batch.size", 200, "linger.ms", 0)) {
            for (int i = 0; i < 1000; i++) {
                sent.add(p.send(new ProducerRecord<>(topic, null, bytes("record " + i + " of many small batches"))));
            }
        }
        for (int i = 0; i < sent.size(); i++) {
            Step.same("offset", sent.get(i).get().offset(), i);
        }
        int n = 0;
        for (ConsumerRecord<byte[], byte[]> r : readAll(topic)) {
            Step.same("value", new String(r.value()), "record " + n++ + " of many small batches");
        }
        return Map.of("records", n);
    }

    private static Object headers(String topic) throws Exception {
        create(topic, 1);
        byte[] binary = new byte[256];
        for (int i = 0; i < binary.length; i++) {
            binary[i] = (byte) i;
        }
        List<Header> headers = List.of(new RecordHeader("null", (byte[]) null), new RecordHeader("empty", new byte[0]),
            new RecordHeader("binary", binary), new RecordHeader("twice", bytes("1")), new RecordHeader("twice", bytes("2")),
            new RecordHeader("", bytes("no name")), new RecordHeader("ключ", bytes("значение")));
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (byte[] key : new byte[][] {null, {}, binary}) {
            for (byte[] value : new byte[][] {null, {}, binary}) {
                records.add(new ProducerRecord<>(topic, 0, key, value, records.size() % 2 == 0 ? headers : List.of()));
            }
        }
        for (String codec : List.of("none", "zstd")) {
            try (KafkaProducer<byte[], byte[]> p = producer("compression.type", codec)) {
                records.forEach(p::send);
            }
        }
        List<ConsumerRecord<byte[], byte[]>> got = readAll(topic);
        Step.same("records", got.size(), 2 * records.size());
        for (int i = 0; i < got.size(); i++) {
            ProducerRecord<byte[], byte[]> want = records.get(i % records.size());
            Step.check(Arrays.equals(got.get(i).key(), want.key()), "key of record " + i);
            Step.check(Arrays.equals(got.get(i).value(), want.value()), "value of record " + i);
            Step.check(Arrays.equals(got.get(i).headers().toArray(), want.headers().toArray()), "headers of record " + i + ": " + got.get(i).headers());
        }
        return Map.of("records", got.size(), "headers", headers.size());
    }

    private static Object offsets(String topic) throws Exception {
        create(topic, 2);
        TopicPartition full = new TopicPartition(topic, 0);
        TopicPartition empty = new TopicPartition(topic, 1);
        long base = System.currentTimeMillis() - 60_000;
        try (KafkaProducer<byte[], byte[]> p = producer()) {
            for (int i : new int[] {0, 1, 4, 3, 2}) { // the latest time is not the last record's
                p.send(new ProducerRecord<>(topic, 0, base + i * 1000, null, bytes("at " + i))).get();
            }
        }
        Map<String, Object> out = new java.util.TreeMap<>();
        Map<String, OffsetSpec> specs = Map.of("earliest", OffsetSpec.earliest(), "latest", OffsetSpec.latest(), "max timestamp", OffsetSpec.maxTimestamp(),
            "0", OffsetSpec.forTimestamp(base), "1.5", OffsetSpec.forTimestamp(base + 1500), "4", OffsetSpec.forTimestamp(base + 4000),
            "5", OffsetSpec.forTimestamp(base + 5000));
        for (Map.Entry<String, OffsetSpec> s : specs.entrySet()) {
            Map<TopicPartition, ?> r = admin.listOffsets(Map.of(full, s.getValue(), empty, s.getValue())).all().get();
            out.put(s.getKey(), r.values().size() == 2 ? List.of(offset(r.get(full), base), offset(r.get(empty), base)) : r.toString());
        }
        try (KafkaConsumer<byte[], byte[]> c = consumer()) {
            out.put("consumer begins, ends", List.of(c.beginningOffsets(List.of(full)).get(full), c.endOffsets(List.of(full)).get(full)));
            out.put("consumer 1.5", c.offsetsForTimes(Map.of(full, base + 1500)).get(full).offset());
            out.put("consumer 5", String.valueOf(c.offsetsForTimes(Map.of(full, base + 5000)).get(full)));
        }
        return out;
    }

    private static Object offset(Object result, long base) {
        var r = (org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo) result;
        return r.offset() + (r.timestamp() < 0 ? "" : " at " + (r.timestamp() - base)) + r.leaderEpoch().map(e -> " epoch " + e).orElse("");
    }

    private static Object configs(String topic) throws Exception {
        create(topic, 1);
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        var op = new org.apache.kafka.clients.admin.AlterConfigOp(
            new org.apache.kafka.clients.admin.ConfigEntry("max.message.bytes", "2000"), org.apache.kafka.clients.admin.AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(op))).all().get();
        Config c = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        String large;
        try (KafkaProducer<byte[], byte[]> p = producer()) {
            do { // the setting may need a moment to act
                large = Step.failure(() -> p.send(new ProducerRecord<>(topic, 2, null, new byte[5000])).get());
            } while (large.startsWith("no error"));
        }
        try (KafkaProducer<byte[], byte[]> p = producer()) {
            for (int i = 0; i < 10; i++) {
                p.send(new ProducerRecord<>(topic, 0, null, bytes("record " + i))).get();
            }
        }
        TopicPartition first = new TopicPartition(topic, 0);
        admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(7))).all().get();
        List<Long> left = readAll(topic).stream().filter(r -> r.partition() == 0).map(ConsumerRecord::offset).toList();
        return Map.of("value", c.get("max.message.bytes").value() + " " + c.get("max.message.bytes").source(), "too large", large, "after delete records", left);
    }

    private static Object deleteTopic(String topic) throws Exception {
        admin.deleteTopics(List.of(topic)).all().get();
        Step.await("the topic is gone", () -> {
            try {
                return !admin.listTopics().names().get().contains(topic);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        return Map.of("again", Step.failure(() -> admin.deleteTopics(List.of(topic)).all().get()));
    }
}
