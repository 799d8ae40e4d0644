package commands;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;
import org.apache.hadoop.yarn.client.cli.ApplicationCLI;
import org.apache.hadoop.yarn.client.cli.ClusterCLI;
import org.apache.hadoop.yarn.client.cli.NodeCLI;
import org.apache.hadoop.yarn.client.cli.QueueCLI;
import org.apache.hadoop.yarn.client.cli.RMAdminCLI;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * Runs commands of Hadoop's `yarn`, one after another, in this JVM: words separated by tabs on each line of standard input,
 * for each a line with the exit status and, in base64, what it printed on standard output and standard error.
 */
public final class Commands {
    private static final Set<String> OF_APPLICATIONS = Set.of("application", "applicationattempt", "container");

    private Commands() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, "UTF-8"));
            System.setErr(new PrintStream(err, true, "UTF-8"));
            int status = run(line.split("\t"));
            answers.println((status & 0xff) + " " + base64(out) + " " + base64(err));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** The exit status that the command's own main would give: 1 for an exception that leaves it. */
    private static int run(String[] words) {
        try {
            Configuration conf = new YarnConfiguration();
            boolean ofApplications = OF_APPLICATIONS.contains(words[0]);
            Tool tool = tool(words[0]);
            tool.setConf(conf);
            return ToolRunner.run(tool, ofApplications ? words : Arrays.copyOfRange(words, 1, words.length));
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            return 1;
        }
    }

    private static Tool tool(String verb) throws Exception {
        switch (verb) {
            case "node":
                NodeCLI nodes = new NodeCLI();
                nodes.setSysOutPrintStream(System.out);
                nodes.setSysErrPrintStream(System.err);
                return nodes;
            case "queue":
                QueueCLI queues = new QueueCLI();
                queues.setSysOutPrintStream(System.out);
                queues.setSysErrPrintStream(System.err);
                return queues;
            case "cluster":
                ClusterCLI cluster = new ClusterCLI();
                cluster.setSysOutPrintStream(System.out);
                cluster.setSysErrPrintStream(System.err);
                return cluster;
            case "rmadmin":
                return new RMAdminCLI();
            default:
                ApplicationCLI applications = new ApplicationCLI();
                applications.setSysOutPrintStream(System.out);
                applications.setSysErrPrintStream(System.err);
                return applications;
        }
    }

    private static String base64(ByteArrayOutputStream bytes) {
        String text = Base64.getEncoder().encodeToString(bytes.toByteArray());
        return text.isEmpty() ? "=" : text;
    }
}
