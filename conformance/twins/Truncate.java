import kafka.log.UnifiedLog;
import kafka.server.BrokerTopicStats;

import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Does with Kafka's own log what a follower does to one: each line of standard input is
 *   DIR LOG_START RECOVERY_POINT SEGMENT_BYTES INDEX_INTERVAL OFFSET BATCHES
 * The log in DIR, which was stopped cleanly, is cut off at OFFSET, the batches in the file BATCHES are appended one by one, and it is closed.
 */
public class Truncate {
    public static void main(String[] args) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] a = line.split(" ");
            Properties p = new Properties();
            p.put("segment.bytes", a[3]);
            p.put("index.interval.bytes", a[4]);
            p.put("file.delete.delay.ms", "3600000");
            UnifiedLog log = UnifiedLog.apply(new File(a[0]), new LogConfig(p), Long.parseLong(a[1]), Long.parseLong(a[2]), scheduler,
                new BrokerTopicStats(false), Time.SYSTEM, 900_000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600_000,
                new LogDirFailureChannel(1), true, scala.Option.empty(), true, new ConcurrentHashMap<>(), false,
                LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
            log.truncateTo(Long.parseLong(a[5]));
            MemoryRecords all = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(Path.of(a[6]))));
            for (MutableRecordBatch b : all.batches()) {
                ByteBuffer one = ByteBuffer.allocate(b.sizeInBytes());
                b.writeTo(one);
                one.flip();
                log.appendAsFollower(MemoryRecords.readableRecords(one), b.partitionLeaderEpoch());
            }
            log.flush(true);
            log.close();
            System.out.println(log.logEndOffset());
        }
        Runtime.getRuntime().halt(0);
    }
}
