package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.UndeclaredThrowableException;
import java.nio.charset.StandardCharsets;
import java.security.NoSuchAlgorithmException;
import org.apache.hadoop.service.ServiceStateException;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.exceptions.YarnRuntimeException;

/**
 * Lines in, lines out. A line with {@code conf} starts a new ResourceManager, any other is a step for the running one;
 * each is answered by one line. The formats are told in tests/conformance/README.md.
 */
public final class Driver {
  /** Exit status after a step from which Hadoop did not come to rest: its threads cannot be stopped. */
  private static final int RESTLESS = 3;

  private final ObjectMapper json = new ObjectMapper();
  private final PrintStream answers;
  private Cluster cluster;
  private View view;

  private Driver(PrintStream answers) {
    this.answers = answers;
  }

  public static void main(String[] args) throws IOException, NoSuchAlgorithmException {
    OneKeyPair.install();
    PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
    // What Hadoop or a library prints must not get between the answers.
    System.setOut(System.err);
    new Driver(answers).serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
    System.exit(0);
  }

  private void serve(BufferedReader requests) throws IOException {
    String line;
    while ((line = requests.readLine()) != null) {
      JsonNode request = json.readTree(line);
      try {
        answer(request.has("conf") ? start(request.get("conf")) : step(request));
      } catch (Restless e) {
        answer(json.createObjectNode().put("hang", true));
        Runtime.getRuntime().halt(RESTLESS);
      }
    }
    stop();
  }

  private void answer(ObjectNode answer) throws IOException {
    answers.println(json.writeValueAsString(answer));
    answers.flush();
  }

  private ObjectNode start(JsonNode properties) {
    stop();
    ObjectNode answer = json.createObjectNode();
    try {
      cluster = new Cluster(properties);
      view = new View(cluster);
      answer.put("ready", true);
      view.putChanges(answer.putObject("delta"));
    } catch (Restless e) {
      throw e;
    } catch (Throwable t) {
      putError(answer, t);
    }
    return answer;
  }

  private ObjectNode step(JsonNode step) {
    ObjectNode answer = json.createObjectNode();
    if (cluster == null) {
      return answer.put("dead", true);
    }
    ObjectNode reply = answer.putObject("reply");
    awaitNextMillisecond();
    try {
      Steps.run(cluster, step, reply);
    } catch (Restless e) {
      throw e;
    } catch (Throwable t) {
      putError(reply, t);
    }
    cluster.settle();
    view.putChanges(answer.putObject("delta"));
    return answer;
  }

  /** Orders by start time (fair, max-parallel-apps) see a difference between what different steps started. */
  private static void awaitNextMillisecond() {
    long now = System.currentTimeMillis();
    while (System.currentTimeMillis() == now) {
      Thread.onSpinWait();
    }
  }

  private void stop() {
    if (cluster != null) {
      cluster.close();
      cluster = null;
    }
  }

  private static void putError(ObjectNode to, Throwable thrown) {
    Throwable t = thrown;
    while (t.getCause() != null && isWrapping(t)) {
      t = t.getCause();
    }
    to.putObject("error").put("class", t.getClass().getSimpleName()).put("message", String.valueOf(t.getMessage()));
  }

  /** Classes that only carry another's error; of the two general ones the class itself, not those below it. */
  private static boolean isWrapping(Throwable t) {
    return t instanceof UndeclaredThrowableException
        || t instanceof ServiceStateException
        || t instanceof YarnRuntimeException
        || t.getClass() == RuntimeException.class
        || t.getClass() == YarnException.class;
  }
}
