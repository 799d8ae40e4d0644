package conformance;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;

/** With asynchronous scheduling, threads of the scheduler place containers between steps. */
final class AsynchronousSteps {
  /** The threads walk over all nodes every few milliseconds; so long without a change means that nothing more fits. */
  private static final long QUIET_MS = 700;
  private static final long POLL_MS = 50;

  private AsynchronousSteps() {
  }

  /** Wait until the threads have placed all they can; the reply counts the containers by queue and node. */
  static void rest(Cluster cluster, ObjectNode reply) throws InterruptedException {
    Map<String, Integer> placed = placed(cluster);
    long since = System.currentTimeMillis();
    while (System.currentTimeMillis() - since < QUIET_MS) {
      Thread.sleep(POLL_MS);
      Map<String, Integer> found = placed(cluster);
      if (!found.equals(placed)) {
        placed = found;
        since = System.currentTimeMillis();
      }
    }
    ObjectNode shown = reply.putObject("placed");
    placed.forEach(shown::put);
  }

  /** {QUEUE@HOST: containers}. */
  private static Map<String, Integer> placed(Cluster cluster) {
    Map<String, Integer> counts = new TreeMap<>();
    cluster.scheduler.getNodeTracker().getAllNodes().forEach(node -> {
      for (RMContainer container : node.getCopiedListOfRunningContainers()) {
        counts.merge(container.getQueueName() + "@" + node.getNodeID().getHost(), 1, Integer::sum);
      }
    });
    return counts;
  }
}
