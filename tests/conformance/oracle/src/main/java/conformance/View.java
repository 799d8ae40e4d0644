package conformance;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.yarn.nodelabels.CommonNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceUsage;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.util.resource.Resources;

/** All that can be seen of a cluster, as flat keys and values; a step's answer holds what changed since the last look. */
final class View {
  private final Cluster cluster;
  private SortedMap<String, Object> last = new TreeMap<>();

  View(Cluster cluster) {
    this.cluster = cluster;
  }

  /** What is new or other than before, then null for what is gone; keys in order. */
  void putChanges(ObjectNode changes) {
    SortedMap<String, Object> now = look();
    now.forEach((key, value) -> {
      if (!value.equals(last.get(key))) {
        put(changes, key, value);
      }
    });
    last.keySet().stream().filter(key -> !now.containsKey(key)).forEach(changes::putNull);
    last = now;
  }

  private static void put(ObjectNode object, String key, Object value) {
    if (value instanceof Float number) {
      object.put(key, number);
    } else if (value instanceof Integer number) {
      object.put(key, number);
    } else {
      object.put(key, (String) value);
    }
  }

  private SortedMap<String, Object> look() {
    SortedMap<String, Object> view = new TreeMap<>();
    QueueView.add(view, cluster.scheduler.getRootQueue());
    cluster.nodes.forEach((host, node) -> addNode(view, "node/" + host, node));
    cluster.apps.values().forEach(app -> addApp(view, "app/" + app.name, app));
    return view;
  }

  private void addNode(Map<String, Object> view, String at, RecordedNode node) {
    RMNode known = cluster.rm.getRMContext().getRMNodes().get(node.id);
    view.put(at + "/state", known == null ? "LOST" : known.getState().toString());
    FiCaSchedulerNode scheduled = cluster.scheduler.getNode(node.id);
    if (scheduled == null) {
      return;
    }
    view.put(at + "/total", Texts.show(scheduled.getTotalResource()));
    view.put(at + "/used", Texts.show(scheduled.getAllocatedResource()));
    view.put(at + "/available", Texts.show(scheduled.getUnallocatedResource()));
    if (!scheduled.getPartition().isEmpty()) {
      view.put(at + "/label", scheduled.getPartition());
    }
    RMContainer reserved = scheduled.getReservedContainer();
    if (reserved != null) {
      view.put(at + "/reserved",
          cluster.name(reserved.getContainerId()) + " " + Texts.show(reserved.getReservedResource()));
    }
    if (Resources.greaterThan(cluster.scheduler.getResourceCalculator(), cluster.scheduler.getClusterResource(),
        scheduled.getTotalKillableResources(), Resources.none())) {
      view.put(at + "/killable", Texts.show(scheduled.getTotalKillableResources()));
    }
  }

  private void addApp(Map<String, Object> view, String at, RecordedApp app) {
    RMApp known = cluster.rmApp(app);
    if (known == null) {
      return;
    }
    view.put(at + "/state", known.getState().toString());
    view.put(at + "/queue", known.getQueue());
    RMAppAttempt attempt = known.getCurrentAppAttempt();
    if (attempt == null) {
      return;
    }
    view.put(at + "/attempt", attempt.getAppAttemptId().getAttemptId() + " " + attempt.getAppAttemptState());
    FiCaSchedulerApp scheduled = cluster.scheduler.getApplicationAttempt(attempt.getAppAttemptId());
    if (scheduled == null || scheduled.isStopped()) {
      return;
    }
    ResourceUsage usage = scheduled.getAppAttemptResourceUsage();
    labels(usage.getExistingNodeLabels())
        .forEach(label -> view.put(at + "@" + label + "/pending", Texts.show(usage.getPending(label))));
    scheduled.getLiveContainers().forEach(container -> addLive(view, container));
    scheduled.getReservedContainers().forEach(container -> addReserved(view, container));
  }

  private void addLive(Map<String, Object> view, RMContainer container) {
    String label = container.getNodeLabelExpression();
    view.put("container/" + cluster.name(container.getContainerId()),
        container.getAllocatedNode().getHost()
            + " [" + Texts.show(container.getAllocatedResource()) + "]"
            + priority(container)
            + (label == null || label.isEmpty() ? "" : " label " + label)
            + " " + container.getState()
            + (container.isAMContainer() ? " master" : ""));
  }

  private void addReserved(Map<String, Object> view, RMContainer container) {
    view.put("reserved/" + cluster.name(container.getContainerId()),
        container.getReservedNode().getHost()
            + " [" + Texts.show(container.getReservedResource()) + "]"
            + priority(container));
  }

  private static String priority(RMContainer container) {
    return " priority " + container.getAllocatedSchedulerKey().getPriority().getPriority();
  }

  /** Those that are booked on, always with the default one, never with the sum over all. */
  static Set<String> labels(Set<String> booked) {
    Set<String> labels = new TreeSet<>(booked);
    labels.add(CommonNodeLabelsManager.NO_LABEL);
    labels.remove(CommonNodeLabelsManager.ANY);
    return labels;
  }
}
