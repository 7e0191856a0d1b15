import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.BooleanSupplier;

/** A step's line on standard output, and what the steps wait with. A line says nothing that differs from run to run. */
final class Step {
    static final long WAIT_MS = 60_000;

    interface Body {
        Object run() throws Exception;
    }

    /** What the client itself cannot do: the reason is part of the line. */
    static final class Unsupported extends RuntimeException {
        Unsupported(String why) {
            super(why);
        }
    }

    /** Prints the step's line; the first wrong thing ends the program. */
    static void step(String name, Body body) {
        long from = System.nanoTime();
        try {
            line(name, "true", body.run());
        } catch (Unsupported e) {
            line(name, "\"unsupported\"", e.getMessage());
        } catch (Throwable e) {
            e.printStackTrace();
            line(name, "false", e.toString());
            System.out.flush();
            Runtime.getRuntime().halt(1);
        }
        System.err.printf("%s: %d ms%n", name, (System.nanoTime() - from) / 1_000_000);
    }

    private static void line(String name, String ok, Object detail) {
        System.out.println("{\"step\":" + json(name) + ",\"ok\":" + ok + ",\"detail\":" + json(detail) + "}");
    }

    static String json(Object v) {
        if (v == null || v instanceof Number || v instanceof Boolean) {
            return String.valueOf(v);
        }
        if (v instanceof Map) {
            StringBuilder b = new StringBuilder("{");
            new TreeMap<Object, Object>((Map<?, ?>) v).forEach((k, e) -> b.append(b.length() > 1 ? "," : "").append(json(k)).append(":").append(json(e)));
            return b.append("}").toString();
        }
        if (v instanceof Iterable) {
            StringBuilder b = new StringBuilder("[");
            ((Iterable<?>) v).forEach(e -> b.append(b.length() > 1 ? "," : "").append(json(e)));
            return b.append("]").toString();
        }
        return "\"" + v.toString().replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"";
    }

    static void check(boolean fact, String otherwise) {
        if (!fact) {
            throw new IllegalStateException(otherwise);
        }
    }

    static void same(String what, Object got, Object want) {
        check(String.valueOf(want).equals(String.valueOf(got)), what + ": " + got + ", want " + want);
    }

    static void await(String what, BooleanSupplier fact) throws InterruptedException {
        long until = System.currentTimeMillis() + WAIT_MS;
        while (!fact.getAsBoolean()) {
            check(System.currentTimeMillis() < until, "waited " + WAIT_MS + " ms for: " + what);
            Thread.sleep(5);
        }
    }

    /** The name of the error the call ends with. */
    static String failure(Body body) throws Exception {
        try {
            return "no error: " + body.run();
        } catch (ExecutionException e) {
            return e.getCause().getClass().getSimpleName();
        } catch (org.apache.kafka.common.KafkaException e) {
            return e.getClass().getSimpleName();
        }
    }
}
