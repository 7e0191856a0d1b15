import java.io.FileInputStream;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;

/** Prints Kafka's own knowledge of its settings, or what Java reads from a properties file. See README.md. */
public class PrintKafka {
    static String esc(String s) {
        StringBuilder b = new StringBuilder();
        for (char c : s.toCharArray()) {
            if (c == '\\') b.append("\\\\");
            else if (c == '\t') b.append("\\t");
            else if (c == '\n') b.append("\\n");
            else if (c == '\r') b.append("\\r");
            else if (c == '\f') b.append("\\f");
            else b.append(c);
        }
        return b.toString();
    }

    public static void main(String[] a) throws Exception {
        if (a[0].equals("properties")) {
            Properties p = new Properties();
            p.load(new FileInputStream(a[1]));
            for (String k : new TreeSet<>(p.stringPropertyNames())) System.out.println(esc(k) + "\t" + esc(p.getProperty(k)));
            return;
        }
        boolean broker = a[0].equals("broker");
        ConfigDef d = broker ? kafka.server.KafkaConfig$.MODULE$.configDef() : org.apache.kafka.storage.internals.log.LogConfig.configDefCopy();
        Set<String> one = new HashSet<>(), all = new HashSet<>();
        Object dynamic = kafka.server.DynamicBrokerConfig$.MODULE$;
        scala.collection.Iterator<String> it = kafka.server.DynamicBrokerConfig$.MODULE$.AllDynamicConfigs().iterator();
        while (broker && it.hasNext()) all.add(it.next());
        for (java.lang.reflect.Method m : dynamic.getClass().getDeclaredMethods()) {
            if (!m.getName().contains("PerBrokerConfigs") || m.getParameterCount() > 0) continue;
            m.setAccessible(true);
            scala.collection.Iterator<?> i = ((scala.collection.Set<?>) m.invoke(dynamic)).iterator();
            while (i.hasNext()) one.add((String) i.next());
        }
        for (String n : new TreeSet<>(d.names())) {
            ConfigDef.ConfigKey k = d.configKeys().get(n);
            String def = k.defaultValue == null ? "\\N" : esc(ConfigDef.convertToString(k.defaultValue, k.type));
            String scope = !all.contains(n) ? "read-only" : one.contains(n) ? "per-broker" : "cluster-wide";
            System.out.println(String.join("\t", n, k.type.name(), def, k.validator == null ? "" : k.validator.toString(), scope, k.internalConfig ? "internal" : ""));
        }
    }
}
