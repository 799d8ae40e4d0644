package scenes;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;

/** A cluster that the parent process started: acts are lines on standard output, answered on standard input. */
final class RemoteCluster implements Cluster {
    private final Configuration conf;
    private final PrintStream out;
    private final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    RemoteCluster(Configuration conf, PrintStream out) {
        this.conf = conf;
        this.out = out;
    }

    @Override
    public Configuration conf() {
        return conf;
    }

    @Override
    public void restartRM() throws IOException {
        act("restart-rm");
    }

    @Override
    public void killNode(int number) throws IOException {
        act("kill-node " + number);
    }

    @Override
    public void stopNode(int number) throws IOException {
        act("stop-node " + number);
    }

    @Override
    public void startNode(int number) throws IOException {
        act("start-node " + number);
    }

    @Override
    public void decommission(int number, int seconds) throws IOException {
        act("decommission " + number + " " + seconds);
    }

    @Override
    public void keep(int number) throws IOException {
        act("keep " + number);
    }

    @Override
    public void recommission(int number) throws IOException {
        act("recommission " + number);
    }

    @Override
    public int numberOf(String nodeId) throws IOException {
        return Integer.parseInt(act("number-of " + nodeId));
    }

    @Override
    public void close() {}

    /** The answer is "ok", "ok VALUE" or why not. */
    private String act(String what) throws IOException {
        out.println(what);
        out.flush();
        String answer = in.readLine();
        if (answer == null || !answer.startsWith("ok")) {
            throw new IOException(what + ": " + answer);
        }
        return answer.substring(2).strip();
    }
}
