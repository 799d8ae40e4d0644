package scenes;

import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * Plays scenes on a cluster and writes what it saw.
 *
 * <p>Arguments: "mini" (Hadoop's own, started here) or "remote" (the parent's); a directory with *-site.xml; the file to
 * write; which scenes: topics ("ClientScenes") or single ones ("ClientScenes.kill").
 */
public final class Driver {
    private Driver() {}

    /** Threads of Hadoop's clients would hold the JVM: it is halted. */
    public static void main(String[] arguments) {
        int status = 1;
        try {
            run(arguments);
            status = 0;
        } catch (Throwable thrown) {
            thrown.printStackTrace();
        }
        System.err.flush();
        Runtime.getRuntime().halt(status);
    }

    private static void run(String[] arguments) throws Exception {
        PrintStream control = System.out;
        System.setOut(System.err);
        Configuration conf = new YarnConfiguration();
        conf.set("fs.defaultFS", "file:///");
        for (String file : new String[] {"yarn-site.xml", "capacity-scheduler.xml"}) {
            Path path = Paths.get(arguments[1], file);
            if (path.toFile().exists()) {
                conf.addResource(new org.apache.hadoop.fs.Path(path.toUri()));
            }
        }
        List<String> wanted = Arrays.asList(arguments).subList(3, arguments.length);
        try (PrintStream out = new PrintStream(new FileOutputStream(arguments[2]), true, "UTF-8");
            Cluster cluster = arguments[0].equals("mini") ? mini(conf) : new RemoteCluster(conf, control)) {
            for (String topic : wanted) {
                play(topic, cluster, out);
            }
        }
    }

    /** By name: its class is compiled only with the jars of the servers. */
    private static Cluster mini(Configuration conf) throws Exception {
        Class<?> type = Class.forName("scenes.MiniCluster");
        var constructor = type.getDeclaredConstructor(Configuration.class, int.class, Path.class);
        constructor.setAccessible(true);
        return (Cluster) constructor.newInstance(conf, Scenes.NODES, Paths.get("").toAbsolutePath());
    }

    private static void play(String wanted, Cluster cluster, PrintStream out) throws Exception {
        String[] parts = wanted.split("\\.");
        Class<?> topic = Class.forName("scenes." + parts[0]);
        Method[] methods = topic.getDeclaredMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method method : methods) {
            boolean isScene = method.isAnnotationPresent(Scene.class);
            if (isScene && (parts.length == 1 || parts[1].equals(method.getName()))) {
                play(topic, method, cluster, out);
            }
        }
    }

    private static void failed(Recorder seen, Throwable thrown) {
        thrown.printStackTrace();
        seen.failure(thrown);
    }

    private static void play(Class<?> topic, Method method, Cluster cluster, PrintStream out) throws Exception {
        Recorder seen = new Recorder(topic.getSimpleName() + "." + method.getName(), out);
        long started = System.nanoTime();
        Scenes scene = (Scenes) topic.getDeclaredConstructor().newInstance();
        try {
            scene.begin(cluster, seen);
            method.invoke(scene);
            scene.end();
        } catch (InvocationTargetException failure) {
            failed(seen, failure.getCause());
            scene.end();
        } catch (Exception failure) {
            failed(seen, failure);
        }
        System.err.printf("SCENE %s.%s %.1f s%n", topic.getSimpleName(), method.getName(), (System.nanoTime() - started) / 1e9);
    }
}
