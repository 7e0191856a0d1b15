import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.utils.Exit;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Runs Kafka's command-line tools in one JVM, several at a time, each as if it had a process of its own: a start of the JVM for
 * each would take a second or two. One JSON object a line on standard input:
 *   {"id":1,"main":"org.apache.kafka.tools.TopicCommand","args":["--list"],"in":"lines for its standard input"}   runs a tool
 *   {"id":1,"stop":true}                                                                       ends it as SIGTERM does
 * and on standard output {"id":1,"out":"..."}, {"id":1,"err":"..."} as it prints, {"id":1,"exit":0} when it has ended.
 * A tool is the threads of a thread group: they write to its outputs. Exit runs its shutdown hooks and parks the thread that asked.
 */
public class Tools {
    static final ObjectMapper JSON = new ObjectMapper();
    static final PrintStream ANSWERS = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
    static final Map<Integer, Tool> RUNNING = new ConcurrentHashMap<>();

    static final class Tool extends ThreadGroup {
        final int id;
        final InputStream in;
        final ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
        final List<Runnable> hooks = new ArrayList<>();
        final AtomicBoolean ended = new AtomicBoolean();

        Tool(int id, byte[] in) {
            super("tool-" + id);
            this.id = id;
            this.in = new ByteArrayInputStream(in);
        }

        void run(String main, String[] args) {
            int status = 0;
            try {
                reset(main);
                Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) args);
                // A process lives as long as threads that are not daemons.
                for (Thread t : threads())
                    if (t != Thread.currentThread() && !t.isDaemon())
                        t.join();
            } catch (InvocationTargetException e) {
                System.err.print("Exception in thread \"main\" ");
                e.getCause().printStackTrace();
                status = 1;
            } catch (Throwable e) {
                e.printStackTrace();
                status = 1;
            }
            end(status);
        }

        List<Thread> threads() {
            Thread[] all = new Thread[activeCount() + 32];
            return Arrays.asList(all).subList(0, enumerate(all));
        }

        /** What ends a process: its hooks, all at once, then silence. */
        void end(int status) {
            if (!ended.compareAndSet(false, true))
                return;
            List<Thread> all = systemHooks();
            synchronized (hooks) {
                for (Runnable h : hooks)
                    all.add(new Thread(this, h));
            }
            for (Thread t : all) {
                t.setDaemon(true);
                t.start();
            }
            for (Thread t : all) {
                try {
                    t.join(30_000);
                } catch (InterruptedException e) {
                    break;
                }
            }
            flush();
            say(this, "exit", status);
            RUNNING.remove(id);
        }

        /** The hooks this tool gave to the JVM itself, taken from it. */
        List<Thread> systemHooks() {
            List<Thread> mine = new ArrayList<>();
            try {
                Class<?> keeper = Class.forName("java.lang.ApplicationShutdownHooks");
                Field f = keeper.getDeclaredField("hooks");
                f.setAccessible(true); // peers opens java.lang
                synchronized (keeper) {
                    for (Object t : ((Map<?, ?>) f.get(null)).keySet())
                        if (((Thread) t).getThreadGroup() == this)
                            mine.add((Thread) t);
                }
                for (Thread t : mine)
                    Runtime.getRuntime().removeShutdownHook(t);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
            return mine;
        }

        void flush() {
            print(out, "out");
            print(err, "err");
        }

        void print(ByteArrayOutputStream from, String name) {
            synchronized (from) {
                if (from.size() > 0)
                    say(this, name, new String(from.toByteArray(), StandardCharsets.UTF_8));
                from.reset();
            }
        }
    }

    /** Some tools count in static fields, as if there were one run. */
    static void reset(String main) {
        try {
            Field f = Class.forName(main).getDeclaredField("messageCount");
            f.setAccessible(true);
            f.setInt(null, 0);
        } catch (ReflectiveOperationException e) {
            // it has none
        }
    }

    static Tool current() {
        for (ThreadGroup g = Thread.currentThread().getThreadGroup(); g != null; g = g.getParent())
            if (g instanceof Tool)
                return (Tool) g;
        return null;
    }

    static synchronized void say(Tool t, String name, Object value) {
        ObjectNode o = JSON.createObjectNode().put("id", t.id);
        o.set(name, JSON.valueToTree(value));
        ANSWERS.println(o);
    }

    /** Writes to the stream of the tool whose thread writes; whole lines are told. */
    static PrintStream divided(boolean err) {
        return new PrintStream(new OutputStream() {
            @Override
            public void write(int b) {
                write(new byte[] {(byte) b}, 0, 1);
            }

            @Override
            public void write(byte[] b, int from, int n) {
                Tool t = current();
                if (t == null)
                    return;
                ByteArrayOutputStream to = err ? t.err : t.out;
                synchronized (to) {
                    to.write(b, from, n);
                    if (n > 0 && b[from + n - 1] == '\n')
                        t.print(to, err ? "err" : "out");
                }
            }
        }, true, StandardCharsets.UTF_8);
    }

    static void exit(int status, String message) {
        Tool t = current();
        if (t == null)
            Runtime.getRuntime().halt(status);
        t.end(status);
        while (true) {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException e) {
                // parked for good
            }
        }
    }

    public static void main(String[] none) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.setOut(divided(false));
        System.setErr(divided(true));
        System.setIn(new InputStream() {
            @Override
            public int read() throws java.io.IOException {
                return current().in.read();
            }

            @Override
            public int read(byte[] b, int from, int n) throws java.io.IOException {
                return current().in.read(b, from, n);
            }

            @Override
            public int available() throws java.io.IOException {
                return current().in.available();
            }
        });
        Exit.setExitProcedure(Tools::exit);
        Exit.setHaltProcedure(Tools::exit);
        Exit.setShutdownHookAdder((name, hook) -> {
            Tool t = current();
            synchronized (t.hooks) {
                t.hooks.add(hook);
            }
        });
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JsonNode c = JSON.readTree(line);
            int id = c.get("id").asInt();
            if (c.has("stop")) {
                Tool t = RUNNING.get(id);
                if (t != null)
                    new Thread(t, () -> t.end(143)).start();
                continue;
            }
            Tool t = new Tool(id, c.path("in").asText("").getBytes(StandardCharsets.UTF_8));
            String[] args = JSON.convertValue(c.get("args"), String[].class);
            RUNNING.put(id, t);
            Thread main = new Thread(t, () -> t.run(c.get("main").asText(), args), "main");
            main.start();
        }
        Runtime.getRuntime().halt(0);
    }
}
