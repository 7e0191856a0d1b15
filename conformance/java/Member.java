import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;

/** A member of a group on a thread of its own: reads, commits after each poll and before it gives a partition up. */
final class Member extends Thread implements ConsumerRebalanceListener {
    /** What the members of one group share: who owns what, who read what. */
    static final class Ledger {
        final Map<TopicPartition, Member> owners = new ConcurrentHashMap<>();
        final Map<String, Integer> reads = new ConcurrentHashMap<>();
        volatile String wrong;

        boolean complete(Set<String> values) {
            Step.check(wrong == null, wrong);
            return reads.keySet().containsAll(values);
        }

        long duplicates() {
            return reads.values().stream().filter(n -> n > 1).count();
        }
    }

    final KafkaConsumer<byte[], byte[]> consumer;
    final Ledger ledger;
    final String topic;
    final Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
    final Set<TopicPartition> owned = ConcurrentHashMap.newKeySet();
    final CountDownLatch ended = new CountDownLatch(1);
    volatile int generation = -1;
    volatile Exception error;
    private volatile boolean leaving;

    Member(String name, KafkaConsumer<byte[], byte[]> consumer, String topic, Ledger ledger) {
        super(name);
        this.consumer = consumer;
        this.topic = topic;
        this.ledger = ledger;
        setDaemon(true);
        start();
    }

    @Override
    public void run() {
        try {
            consumer.subscribe(Set.of(topic), this);
            while (!leaving) {
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(50))) {
                    TopicPartition p = new TopicPartition(r.topic(), r.partition());
                    if (ledger.owners.get(p) != this) {
                        ledger.wrong = getName() + " read " + p + ", which " + ledger.owners.get(p) + " owns";
                    }
                    positions.put(p, new OffsetAndMetadata(r.offset() + 1));
                    ledger.reads.merge(new String(r.value()), 1, Integer::sum);
                }
                generation = consumer.groupMetadata().generationId();
                try {
                    consumer.commitSync(positions);
                } catch (RebalanceInProgressException e) {
                    // The next poll gives up what must be given up, and commits it first.
                }
            }
        } catch (Exception e) {
            error = e;
        } finally {
            consumer.close();
            ended.countDown();
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        for (TopicPartition p : partitions) {
            Member before = ledger.owners.putIfAbsent(p, this);
            if (before != null) {
                ledger.wrong = p + " went to " + getName() + " while " + before.getName() + " owned it";
            }
        }
        owned.addAll(partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        Map<TopicPartition, OffsetAndMetadata> last = new HashMap<>(positions);
        last.keySet().retainAll(partitions);
        consumer.commitSync(last);
        positions.keySet().removeAll(partitions);
        owned.removeAll(partitions);
        partitions.forEach(p -> ledger.owners.remove(p, this));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        if (!leaving && error == null) {
            ledger.wrong = getName() + " lost " + new TreeSet<>(partitions.stream().map(String::valueOf).toList());
        }
        positions.keySet().removeAll(partitions);
        owned.removeAll(partitions);
        partitions.forEach(p -> ledger.owners.remove(p, this));
    }

    void end() throws Exception {
        leaving = true;
        ended.await();
        if (error != null) {
            throw error;
        }
    }
}
