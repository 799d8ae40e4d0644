package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.ResourceOption;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatResponse;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerResponse;
import org.apache.hadoop.yarn.server.api.records.NodeAction;
import org.apache.hadoop.yarn.server.resourcemanager.MockNM;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainerState;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeDecommissioningEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeEventType;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeResourceUpdateEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;

/** What nodes do, and what happens on them. */
final class NodeSteps {
  /** ResourceOption: containers that no longer fit are left to end by themselves. */
  private static final int NO_OVER_COMMIT_TIMEOUT = -1;
  private static final int MASTER_FAILED = 1;
  private static final Set<RMAppAttemptState> LAUNCHED =
      Set.of(RMAppAttemptState.LAUNCHED, RMAppAttemptState.RUNNING);
  private static final int DECOMMISSIONING_TIMEOUT_SECONDS = 100_000;

  private NodeSteps() {
  }

  static void register(Cluster cluster, JsonNode step, ObjectNode reply) throws Exception {
    String host = step.get("node").asText();
    if (step.has("rack")) {
      Racks.BY_HOST.put(host, step.get("rack").asText());
    }
    MockNM manager =
        new MockNM(host + ":1", Texts.resource(step.get("resource")), cluster.rm.getResourceTrackerService());
    RegisterNodeManagerResponse response = step.path("healthy").asBoolean(true)
        ? manager.registerNode()
        : cluster.rm.getResourceTrackerService().registerNodeManager(TrackerSteps.registration(cluster, step));
    reply.put("action", response.getNodeAction().toString());
    cluster.nodes.put(host, new RecordedNode(manager));
  }

  static void heartbeat(Cluster cluster, JsonNode step, ObjectNode reply) throws Exception {
    RecordedNode node = cluster.node(step);
    if (node.isLost()) {
      reply.put("skipped", "node is lost");
      return;
    }
    start(cluster, node, LAUNCHED);
    NodeHeartbeatResponse response = node.heartbeat(step.path("healthy").asBoolean(true));
    if (response.getNodeAction() != NodeAction.NORMAL) {
      reply.put("action", String.valueOf(response.getNodeAction()));
    }
  }

  /** A node manager that has to register again does so with what it has. Without work-preserving recovery it ends that. */
  static void resync(Cluster cluster, JsonNode step, ObjectNode reply) throws Exception {
    RecordedNode node = cluster.node(step);
    if (node.isLost()) {
      reply.put("skipped", "node is lost");
      return;
    }
    start(cluster, node, LAUNCHED);
    boolean keeps = cluster.rm.getRMContext().isWorkPreservingRecoveryEnabled();
    reply.put("action", node.registerAgain(keeps).getNodeAction().toString());
  }

  /** All that can be running on the nodes runs: the last that a ResourceManager does is to launch its masters. */
  static void startAll(Cluster cluster) {
    Set<RMAppAttemptState> states =
        Set.of(RMAppAttemptState.ALLOCATED, RMAppAttemptState.LAUNCHED, RMAppAttemptState.RUNNING);
    cluster.nodes.values().stream().filter(node -> !node.isLost()).forEach(node -> start(cluster, node, states));
  }

  private static void start(Cluster cluster, RecordedNode node, Set<RMAppAttemptState> launched) {
    FiCaSchedulerNode scheduled = cluster.scheduler.getNode(node.id);
    if (scheduled != null) {
      for (RMContainer container : scheduled.getCopiedListOfRunningContainers()) {
        node.know(container);
        if (isStarted(cluster, container, launched)) {
          node.start(container.getContainerId());
        }
      }
    }
  }

  /** Whether somebody has started the container on its node: its application, or for masters the ResourceManager. */
  private static boolean isStarted(Cluster cluster, RMContainer container, Set<RMAppAttemptState> launched) {
    if (!container.isAMContainer()) {
      return container.getState() == RMContainerState.ACQUIRED;
    }
    RMAppAttempt attempt = cluster.rm.getRMContext().getRMApps()
        .get(container.getApplicationAttemptId().getApplicationId()).getRMAppAttempt(container.getApplicationAttemptId());
    return launched.contains(attempt.getAppAttemptState());
  }

  static void lose(Cluster cluster, JsonNode step) throws Exception {
    RecordedNode node = cluster.node(step);
    cluster.rm.sendNodeLost(node.manager());
    node.lose();
  }

  static void resize(Cluster cluster, JsonNode step) {
    ResourceOption total = ResourceOption.newInstance(Texts.resource(step.get("resource")), NO_OVER_COMMIT_TIMEOUT);
    cluster.send(new RMNodeResourceUpdateEvent(cluster.node(step).id, total));
  }

  /** What NodesListManager sends when a host is excluded. The ResourceManager drops it for nodes that are out of use. */
  static void decommission(Cluster cluster, JsonNode step) {
    NodeId id = cluster.node(step).id;
    if (step.path("graceful").asBoolean(true)) {
      cluster.send(new RMNodeDecommissioningEvent(id, step.path("timeout").asInt(DECOMMISSIONING_TIMEOUT_SECONDS)));
    } else {
      cluster.send(new RMNodeEvent(id, RMNodeEventType.DECOMMISSION));
    }
  }

  /** What NodesListManager sends for each node that is being decommissioned when its host is included again. */
  static void recommission(Cluster cluster, JsonNode step) {
    NodeId id = cluster.node(step).id;
    RMNode known = cluster.rm.getRMContext().getRMNodes().get(id);
    if (known != null && known.getState() == NodeState.DECOMMISSIONING) {
      cluster.send(new RMNodeEvent(id, RMNodeEventType.RECOMMISSION));
    }
  }

  /** A process ends. One that the application has not been given cannot be running. */
  static void finish(Cluster cluster, JsonNode step, ObjectNode reply) {
    RMContainer container = cluster.pick(cluster.app(step), step.get("pick").asInt(), false);
    if (container == null) {
      reply.put("skipped", "none live");
    } else if (container.getState() == RMContainerState.ALLOCATED) {
      reply.put("skipped", "not acquired");
    } else {
      cluster.complete(container, step.path("exit").asInt(0));
      reply.put("container", cluster.name(container.getContainerId()));
    }
  }

  static void failMaster(Cluster cluster, JsonNode step, ObjectNode reply) {
    RecordedApp app = cluster.app(step);
    RMContainer master = app.registered ? cluster.pick(app, 0, true) : null;
    if (master == null) {
      reply.put("skipped", "no master");
      return;
    }
    cluster.complete(master, MASTER_FAILED);
    app.registered = false;
    reply.put("container", cluster.name(master.getContainerId()));
  }
}
