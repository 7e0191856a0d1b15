import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.UnsupportedVersionException;

/** The steps with groups. */
final class Groups {
    private static final Duration NOW = Duration.ofMillis(50);

    static void steps() {
        String g = Client.prefix + "-group-";
        Step.step("group of two, range", () -> ofTwo(g + "range", RangeAssignor.class));
        Step.step("group of two, cooperative", () -> ofTwo(g + "cooperative", CooperativeStickyAssignor.class));
        Step.step("commit and resume", () -> resume(g + "resume"));
        Step.step("alter and delete offsets", () -> alter(g + "resume"));
        Step.step("static member", () -> staticMember(g + "static"));
        Step.step("list groups", () -> list(g));
        Step.step("delete group", () -> delete(g + "resume"));
        Step.step("group.protocol=consumer", () -> newProtocol(g + "new"));
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String group, Object... more) {
        List<Object> s = new ArrayList<>(List.of("group.id", group, "session.timeout.ms", 10000, "heartbeat.interval.ms", 300));
        s.addAll(List.of(more));
        return Client.consumer(s.toArray());
    }

    private static ConsumerGroupDescription describe(String group) {
        try {
            return Client.admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** Two members while records keep coming: the second joins, then the first leaves. */
    private static Object ofTwo(String group, Class<?> assignor) throws Exception {
        String topic = group;
        Client.create(topic, Client.PARTITIONS);
        Set<String> sent = ConcurrentHashMap.newKeySet();
        boolean[] enough = {false};
        Thread load = new Thread(() -> {
            try (KafkaProducer<byte[], byte[]> p = Client.producer()) {
                for (int i = 0; !enough[0]; i++) {
                    String v = "record " + i;
                    p.send(new ProducerRecord<>(topic, i % Client.PARTITIONS, null, Client.bytes(v))).get();
                    sent.add(v);
                    Thread.sleep(1);
                }
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
        load.start();
        Map<String, Object> out = new TreeMap<>();
        Member.Ledger ledger = new Member.Ledger();
        Object strategy = assignor.getName();
        Member a = new Member("A", consumer(group, "partition.assignment.strategy", strategy, "client.id", "A"), topic, ledger);
        Step.await("A owns all", () -> a.owned.size() == 4 && ledger.reads.size() > 100);
        Member b = new Member("B", consumer(group, "partition.assignment.strategy", strategy, "client.id", "B"), topic, ledger);
        Step.await("A and B own two each", () -> a.owned.size() == 2 && b.owned.size() == 2);
        Step.await("the group is stable", () -> describe(group).state().toString().equals("Stable"));
        ConsumerGroupDescription d = describe(group);
        Map<String, Object> members = new TreeMap<>();
        d.members().forEach(m -> members.put(m.clientId(), m.host() + " " + m.assignment().topicPartitions().size()));
        out.put("described", d.partitionAssignor() + " " + members);
        out.put("delete while in use", Step.failure(() -> Client.admin.deleteConsumerGroups(List.of(group)).all().get()));
        int mark = ledger.reads.size();
        Step.await("both read", () -> ledger.reads.size() > mark + 200);
        a.end();
        Step.await("B owns all", () -> b.owned.size() == 4);
        int last = ledger.reads.size();
        Step.await("B reads", () -> ledger.reads.size() > last + 100);
        enough[0] = true;
        load.join();
        Step.await("all is read", () -> ledger.complete(sent));
        b.end();
        Step.check(ledger.wrong == null, ledger.wrong);
        out.put("read twice", ledger.duplicates());
        Map<TopicPartition, OffsetAndMetadata> committed = Client.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        long sum = committed.values().stream().mapToLong(OffsetAndMetadata::offset).sum();
        Step.same("sum of committed offsets", sum, sent.size());
        out.put("state at the end", describe(group).state());
        return out;
    }

    private static Object resume(String group) throws Exception {
        String topic = group;
        Client.create(topic, 2);
        TopicPartition p0 = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> p = Client.producer()) {
            for (int i = 0; i < 40; i++) {
                p.send(new ProducerRecord<>(topic, i % 2, null, Client.bytes("record " + i / 2)));
            }
        }
        try (KafkaConsumer<byte[], byte[]> c = consumer(group)) {
            c.subscribe(Set.of(topic));
            first(c, p0);
            c.commitSync(Map.of(p0, new OffsetAndMetadata(7, "seven")));
        }
        try (KafkaConsumer<byte[], byte[]> c = consumer(group)) {
            OffsetAndMetadata at = c.committed(Set.of(p0)).get(p0);
            c.subscribe(Set.of(topic));
            Map<Integer, ConsumerRecord<byte[], byte[]>> firsts = first(c, p0, new TopicPartition(topic, 1));
            return new TreeMap<>(Map.of("committed", at.offset() + " " + at.metadata(), "not committed", String.valueOf(c.committed(Set.of(new TopicPartition(topic, 1)))
                .get(new TopicPartition(topic, 1))), "first", List.of(firsts.get(0).offset(), new String(firsts.get(0).value()), firsts.get(1).offset())));
        }
    }

    /** Polls until each partition gave a record; the first of each. */
    private static Map<Integer, ConsumerRecord<byte[], byte[]>> first(KafkaConsumer<byte[], byte[]> c, TopicPartition... of) {
        Map<Integer, ConsumerRecord<byte[], byte[]>> firsts = new TreeMap<>();
        long until = System.currentTimeMillis() + Step.WAIT_MS;
        while (!List.of(of).stream().allMatch(p -> firsts.containsKey(p.partition()))) {
            Step.check(System.currentTimeMillis() < until, "nothing read from " + List.of(of));
            c.poll(NOW).forEach(r -> firsts.putIfAbsent(r.partition(), r));
        }
        return firsts;
    }

    private static Object alter(String group) throws Exception {
        TopicPartition p0 = new TopicPartition(group, 0);
        TopicPartition p1 = new TopicPartition(group, 1);
        Client.admin.alterConsumerGroupOffsets(group, Map.of(p0, new OffsetAndMetadata(3), p1, new OffsetAndMetadata(5, "five"))).all().get();
        Map<String, Object> out = new TreeMap<>();
        out.put("altered", offsets(group));
        Client.admin.deleteConsumerGroupOffsets(group, Set.of(p0)).all().get();
        out.put("deleted", offsets(group));
        return out;
    }

    private static String offsets(String group) throws Exception {
        Map<Integer, String> out = new TreeMap<>();
        Client.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
            .forEach((p, o) -> out.put(p.partition(), o == null ? "none" : o.offset() + "/" + o.metadata()));
        return out.toString();
    }

    /** A static member that comes back changes no generation; its double puts it out. */
    private static Object staticMember(String group) throws Exception {
        String topic = group;
        Client.create(topic, Client.PARTITIONS);
        Member.Ledger ledger = new Member.Ledger();
        Member other = new Member("other", consumer(group, "group.instance.id", "other"), topic, ledger);
        Member first = new Member("first", consumer(group, "group.instance.id", "one"), topic, ledger);
        Step.await("two partitions each", () -> other.owned.size() == 2 && first.owned.size() == 2 && other.generation >= 0 && other.generation == first.generation);
        int before = other.generation;
        first.end();
        Member again = new Member("again", consumer(group, "group.instance.id", "one"), topic, ledger);
        Step.await("it is back", () -> again.owned.size() == 2 && again.generation >= 0);
        Step.same("generation after the return", again.generation + " " + other.generation, before + " " + before);
        Map<String, Object> out = new TreeMap<>();
        out.put("generations passed by the return", again.generation - before);
        Member.Ledger apart = new Member.Ledger();
        Member twin = new Member("twin", consumer(group, "group.instance.id", "one"), topic, apart);
        again.ended.await();
        Step.check(again.error instanceof FencedInstanceIdException, "the one put out saw " + again.error);
        out.put("put out by", again.error.getClass().getSimpleName());
        Step.await("the twin owns", () -> twin.owned.size() == 2);
        twin.end();
        other.end();
        ledger.wrong = ledger.wrong == null ? apart.wrong : ledger.wrong;
        Step.check(ledger.wrong == null, ledger.wrong);
        List<org.apache.kafka.clients.admin.MemberToRemove> remove = List.of(
            new org.apache.kafka.clients.admin.MemberToRemove("one"), new org.apache.kafka.clients.admin.MemberToRemove("other"));
        Client.admin.removeMembersFromConsumerGroup(group, new org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions(remove)).all().get();
        out.put("members after removal", describe(group).members().size());
        return out;
    }

    private static Object list(String groups) throws Exception {
        Map<String, Object> out = new TreeMap<>();
        Client.admin.listConsumerGroups().all().get().stream().filter(g -> g.groupId().startsWith(groups))
            .forEach(g -> out.put(g.groupId().substring(groups.length()), g.state().map(String::valueOf).orElse("") + (g.isSimpleConsumerGroup() ? " simple" : "")));
        return out;
    }

    private static Object delete(String group) throws Exception {
        Client.admin.deleteConsumerGroups(List.of(group)).all().get();
        boolean there = Client.admin.listConsumerGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group));
        Step.check(!there, "the deleted group is listed");
        return Map.of("again", Step.failure(() -> Client.admin.deleteConsumerGroups(List.of(group)).all().get()));
    }

    /** The protocol of KIP-848, which Kafka 3.9 with ZooKeeper does not serve. */
    private static Object newProtocol(String group) {
        try (KafkaConsumer<byte[], byte[]> c = new KafkaConsumer<>(Map.of("bootstrap.servers", Client.bootstrap, "group.id", group, "group.protocol", "consumer"),
            new org.apache.kafka.common.serialization.ByteArrayDeserializer(), new org.apache.kafka.common.serialization.ByteArrayDeserializer())) {
            c.subscribe(Set.of(Client.prefix + "-main"));
            long until = System.currentTimeMillis() + Step.WAIT_MS;
            while (System.currentTimeMillis() < until) {
                c.poll(NOW);
            }
            throw new IllegalStateException("neither served nor refused");
        } catch (UnsupportedVersionException e) {
            throw new Step.Unsupported(e.getClass().getSimpleName());
        }
    }
}
