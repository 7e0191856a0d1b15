import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What Kafka's own consumer sees of committed records: Reader BOOTSTRAP TOPIC... prints a line for each, a partition after the other, up to
 * the last stable offset.
 */
public class Reader {
    public static void main(String[] args) {
        Map<String, Object> c = new HashMap<>();
        c.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        c.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        c.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 5000);
        c.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, 50);
        StringBuilder out = new StringBuilder();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(c, new StringDeserializer(), new StringDeserializer())) {
            for (int i = 1; i < args.length; i++) {
                List<TopicPartition> all = new ArrayList<>();
                for (PartitionInfo p : consumer.partitionsFor(args[i]))
                    all.add(new TopicPartition(args[i], p.partition()));
                all.sort((a, b) -> a.partition() - b.partition());
                for (TopicPartition p : all) {
                    List<TopicPartition> one = List.of(p);
                    consumer.assign(one);
                    consumer.seekToBeginning(one);
                    long end = consumer.endOffsets(one).get(p);
                    while (consumer.position(p) < end)
                        for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(100)))
                            out.append(r.topic()).append(' ').append(r.partition()).append(' ').append(r.offset()).append(' ').append(r.timestamp())
                                .append(' ').append(r.key()).append('=').append(r.value() == null ? "NULL" : r.value()).append('\n');
                    out.append(p).append(" ends at ").append(end).append('\n');
                }
            }
        }
        System.out.print(out);
    }
}
