package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.StreamSupport;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeLabel;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration;

/** What administrators do. */
final class AdminSteps {
  /** NodeId: a label for the host, whichever node managers it has. */
  private static final int ANY_PORT = 0;

  private AdminSteps() {
  }

  /** The scheduler's keys are replaced as if capacity-scheduler.xml had been rewritten; the others stay. */
  static void refreshQueues(Cluster cluster, JsonNode step) throws IOException {
    Configuration changed = changed(cluster, step.get("properties"));
    cluster.scheduler.reinitialize(new CapacitySchedulerConfiguration(changed, false), cluster.rm.getRMContext());
    cluster.configuration = changed;
  }

  /** The ResourceManager is killed and started again, with `properties` as at a refresh, and `conf` on top. */
  static void restart(Cluster cluster, JsonNode step) {
    Configuration changed =
        step.has("properties") ? changed(cluster, step.get("properties")) : new Configuration(cluster.configuration);
    Cluster.set(changed, step.path("conf"));
    cluster.restart(changed);
  }

  private static Configuration changed(Cluster cluster, JsonNode properties) {
    Configuration changed = new Configuration(cluster.configuration);
    List<String> replaced = new ArrayList<>();
    for (Map.Entry<String, String> entry : changed) {
      if (entry.getKey().startsWith(CapacitySchedulerConfiguration.PREFIX)) {
        replaced.add(entry.getKey());
      }
    }
    replaced.forEach(changed::unset);
    Cluster.set(changed, properties);
    return changed;
  }

  static void addLabels(Cluster cluster, JsonNode step) throws IOException {
    List<NodeLabel> added = new ArrayList<>();
    for (JsonNode label : step.get("labels")) {
      added.add(NodeLabel.newInstance(label.get("name").asText(), label.path("exclusive").asBoolean(true)));
    }
    labels(cluster).addToCluserNodeLabels(added);
  }

  static void removeLabels(Cluster cluster, JsonNode step) throws IOException {
    labels(cluster).removeFromClusterNodeLabels(
        StreamSupport.stream(step.get("labels").spliterator(), false).map(JsonNode::asText).toList());
  }

  static void labelNodes(Cluster cluster, JsonNode step) throws IOException {
    Map<NodeId, Set<String>> replacing = new HashMap<>();
    step.get("nodes").fields().forEachRemaining(entry -> {
      String label = entry.getValue().asText();
      replacing.put(NodeId.newInstance(entry.getKey(), ANY_PORT), label.isEmpty() ? Set.of() : Set.of(label));
    });
    labels(cluster).replaceLabelsOnNode(replacing);
  }

  private static RMNodeLabelsManager labels(Cluster cluster) {
    return cluster.rm.getRMContext().getNodeLabelManager();
  }
}
