import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Transactions of Kafka's own producer: Writer BOOTSTRAP ROUND COUNT TIMEOUT_MS TOPIC:PARTITIONS...
 * Four producers, with a codec each, write transactions over each other, COUNT in all; every third is aborted. Then two are left open: one
 * that times out, one that its producer's next life ends. Prints a line for each record: committed, aborted, timed-out or open, the
 * partition, key and value.
 */
public class Writer {
    static final String[] CODECS = {"none", "gzip", "lz4", "zstd", "snappy"};
    static final StringBuilder SAID = new StringBuilder();

    final String id;
    final KafkaProducer<String, String> producer;
    final List<String> sent = new ArrayList<>();

    Writer(String bootstrap, String id, String codec, int timeoutMs) {
        this.id = id;
        Map<String, Object> c = new HashMap<>();
        c.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        c.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, id);
        c.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, codec);
        c.put(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, timeoutMs);
        c.put(ProducerConfig.LINGER_MS_CONFIG, 1);
        producer = new KafkaProducer<>(c, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
    }

    void send(String topic, int partition, int n, String what) {
        String key = "key-" + (n * 7 + partition) % 31;
        String value = n % 13 == 5 ? null : what + " of " + id + " " + "x".repeat(n * 37 % 400);
        producer.send(new ProducerRecord<>(topic, partition, 1_700_000_000_000L + n * 10L, key, value));
        sent.add(topic + " " + partition + " " + key + "=" + (value == null ? "NULL" : value));
    }

    void end(String how) {
        for (String s : sent)
            SAID.append(how).append(' ').append(s).append('\n');
        sent.clear();
    }

    public static void main(String[] args) {
        int round = Integer.parseInt(args[1]), count = Integer.parseInt(args[2]), n = 0;
        List<String> topics = new ArrayList<>();
        List<Integer> partitions = new ArrayList<>();
        for (int i = 4; i < args.length; i++) {
            String[] t = args[i].split(":");
            for (int p = 0; p < Integer.parseInt(t[1]); p++) {
                topics.add(t[0]);
                partitions.add(p);
            }
        }
        List<Writer> all = new ArrayList<>();
        for (int i = 0; i < 4; i++)
            all.add(new Writer(args[0], "writer-" + i, CODECS[(i + round) % CODECS.length], 600_000));
        for (Writer w : all)
            w.producer.beginTransaction();
        for (int i = 0; i < count; i++) {
            for (Writer w : all) {
                int to = (n * 5 + i) % topics.size();
                for (int k = 0; k <= (n + i) % 3; k++)
                    w.send(topics.get(to), partitions.get(to), n++, round + "." + i);
                w.producer.flush(); // so that batches of different transactions alternate
            }
            Writer w = all.get(i * 3 % 4);
            if (i % 3 == 2)
                w.producer.abortTransaction();
            else
                w.producer.commitTransaction();
            w.end(i % 3 == 2 ? "aborted" : "committed");
            w.producer.beginTransaction();
        }
        for (Writer w : all) {
            w.producer.commitTransaction();
            w.end("committed");
        }
        Writer soon = new Writer(args[0], "soon-over", "none", Integer.parseInt(args[3])), open = all.get(0);
        soon.producer.beginTransaction();
        open.producer.beginTransaction();
        for (int i = 0; i < topics.size(); i++) {
            soon.send(topics.get(i), partitions.get(i), n++, round + ".soon");
            open.send(topics.get(i), partitions.get(i), n++, round + ".open");
        }
        soon.producer.flush();
        open.producer.flush();
        soon.end("timed-out");
        open.end("open");
        System.out.print(SAID);
        System.out.flush();
        Runtime.getRuntime().halt(0); // a producer that is closed ends its transaction
    }
}
