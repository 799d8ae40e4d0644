package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.server.api.protocolrecords.NMContainerStatus;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatResponse;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerResponse;
import org.apache.hadoop.yarn.server.api.protocolrecords.UnRegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.api.records.NodeAction;
import org.apache.hadoop.yarn.server.api.records.NodeHealthStatus;
import org.apache.hadoop.yarn.server.api.records.NodeStatus;
import org.apache.hadoop.yarn.server.resourcemanager.NodesListManager;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceTrackerService;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.util.Records;
import org.apache.hadoop.yarn.util.resource.Resources;

/** Calls of the tracker's protocol exactly as a step has them, whatever a correct node manager would say. */
final class TrackerSteps {
  private static final int PORT = 1;
  private static final int HTTP_PORT = 2;
  private static final int NONE_YET = -1000;
  private static final int NEVER_SUBMITTED = 4711;
  private static final int CONTAINER_MB = 1024;

  private TrackerSteps() {
  }

  static void register(Cluster cluster, JsonNode step, ObjectNode reply) throws Exception {
    RegisterNodeManagerResponse response = tracker(cluster).registerNodeManager(registration(cluster, step));
    reply.put("action", response.getNodeAction().toString());
    put(reply, "diagnostics", response.getDiagnosticsMessage());
    put(reply, "version", response.getRMVersion());
    reply.put("identified", response.getRMIdentifier() != 0);
    reply.put("keys", response.getContainerTokenMasterKey() != null && response.getNMTokenMasterKey() != null);
    putNodes(cluster, reply);
  }

  static RegisterNodeManagerRequest registration(Cluster cluster, JsonNode step) {
    List<NMContainerStatus> reports = new ArrayList<>();
    for (JsonNode container : step.path("containers")) {
      ContainerStatus status = status(cluster, container);
      reports.add(NMContainerStatus.newInstance(status.getContainerId(), 0, status.getState(),
          Resources.createResource(CONTAINER_MB, 1), "", status.getExitStatus(), Priority.newInstance(1), 1));
    }
    List<ApplicationId> applications =
        texts(step.path("applications")).map(name -> application(cluster, name)).toList();
    RegisterNodeManagerRequest request = Records.newRecord(RegisterNodeManagerRequest.class);
    request.setNodeId(node(step));
    request.setHttpPort(step.path("http_port").asInt(HTTP_PORT));
    request.setResource(Texts.resource(step.get("resource")));
    if (step.has("version")) {
      request.setNMVersion(step.get("version").asText());
    }
    request.setContainerStatuses(reports);
    request.setRunningApplications(applications);
    request.setNodeStatus(nodeStatus(step, 0, List.of()));
    return request;
  }

  static void heartbeat(Cluster cluster, JsonNode step, ObjectNode reply) throws Exception {
    List<ContainerStatus> statuses = new ArrayList<>();
    step.path("containers").forEach(container -> statuses.add(status(cluster, container)));
    NodeStatus status = nodeStatus(step, step.get("response_id").asInt(), statuses);
    RMContext context = cluster.rm.getRMContext();
    NodeHeartbeatResponse response = tracker(cluster).nodeHeartbeat(NodeHeartbeatRequest.newInstance(status,
        context.getContainerTokenSecretManager().getCurrentKey(), context.getNMTokenSecretManager().getCurrentKey(), null));
    // The answer before the first has no action; a node manager goes on as after NORMAL.
    NodeAction action = response.getNodeAction() == null ? NodeAction.NORMAL : response.getNodeAction();
    reply.put("action", action.toString());
    reply.put("response_id", response.getResponseId());
    put(reply, "diagnostics", response.getDiagnosticsMessage());
    if (response.getNodeAction() == NodeAction.NORMAL) {
      reply.put("interval_ms", response.getNextHeartBeatInterval());
    }
    putNames(reply, "containers_to_clean_up", response.getContainersToCleanup(), cluster);
    putNames(reply, "containers_to_forget", response.getContainersToBeRemovedFromNM(), cluster);
    List<String> applications =
        response.getApplicationsToCleanup().stream().map(cluster::name).sorted().toList();
    putTexts(reply, "applications_to_clean_up", applications);
    putNodes(cluster, reply);
  }

  static void unregister(Cluster cluster, JsonNode step, ObjectNode reply) throws Exception {
    tracker(cluster).unRegisterNodeManager(UnRegisterNodeManagerRequest.newInstance(node(step)));
    cluster.settle();
    putNodes(cluster, reply);
  }

  /** An administrator rewrites the lists of hosts and calls refreshNodes, with a timeout gracefully. */
  static void refreshNodes(Cluster cluster, JsonNode step, ObjectNode reply) throws IOException, YarnException {
    Configuration changed = new Configuration(cluster.configuration);
    changed.set(YarnConfiguration.RM_NODES_INCLUDE_FILE_PATH, hosts(cluster, step, "include"));
    changed.set(YarnConfiguration.RM_NODES_EXCLUDE_FILE_PATH, hosts(cluster, step, "exclude"));
    NodesListManager hosts = cluster.rm.getRMContext().getNodesListManager();
    if (step.has("timeout")) {
      hosts.refreshNodesGracefully(changed, step.get("timeout").asInt());
    } else {
      hosts.refreshNodes(changed, false);
    }
    cluster.settle();
    putNodes(cluster, reply);
  }

  private static String hosts(Cluster cluster, JsonNode step, String key) throws IOException {
    Path file = cluster.scratch().resolve(key);
    Files.write(file, texts(step.path(key)).toList());
    return file.toString();
  }

  private static NodeStatus nodeStatus(JsonNode step, int responseId, List<ContainerStatus> containers) {
    NodeHealthStatus health = NodeHealthStatus.newInstance(step.path("healthy").asBoolean(true), "", 0);
    return NodeStatus.newInstance(node(step), responseId, containers, List.of(), health, null, null, null);
  }

  private static NodeId node(JsonNode step) {
    return NodeId.newInstance(step.get("node").asText(), step.path("port").asInt(PORT));
  }

  /** A container as APP/ATTEMPT/ID; an application that no step has submitted gets an id that nobody has. */
  private static ContainerStatus status(Cluster cluster, JsonNode container) {
    String[] parts = container.get("id").asText().split("/");
    ApplicationAttemptId attempt =
        ApplicationAttemptId.newInstance(application(cluster, parts[0]), Integer.parseInt(parts[1]));
    ContainerId id = ContainerId.newContainerId(attempt, Long.parseLong(parts[2]));
    return ContainerStatus.newInstance(
        id, ContainerState.valueOf(container.get("state").asText()), "", container.path("exit").asInt(NONE_YET));
  }

  private static ApplicationId application(Cluster cluster, String name) {
    RecordedApp app = cluster.apps.get(name);
    if (app == null) {
      app = new RecordedApp(name, ApplicationId.newInstance(1, NEVER_SUBMITTED));
      cluster.add(app);
    }
    return app.id;
  }

  private static ResourceTrackerService tracker(Cluster cluster) {
    return cluster.rm.getResourceTrackerService();
  }

  /** The state of each node that the ResourceManager knows, those out of use among them. */
  private static void putNodes(Cluster cluster, ObjectNode reply) {
    cluster.settle();
    Map<String, String> states = new TreeMap<>();
    for (Map<NodeId, RMNode> known
        : List.of(cluster.rm.getRMContext().getInactiveRMNodes(), cluster.rm.getRMContext().getRMNodes())) {
      known.values().forEach(node -> states.put(node.getNodeID().toString(), node.getState().toString()));
    }
    ObjectNode nodes = reply.putObject("nodes");
    states.forEach(nodes::put);
  }

  private static void put(ObjectNode reply, String key, String text) {
    if (text != null && !text.isEmpty()) {
      reply.put(key, text);
    }
  }

  private static void putNames(ObjectNode reply, String key, Collection<ContainerId> containers, Cluster cluster) {
    putTexts(reply, key, containers.stream().map(cluster::name).sorted().toList());
  }

  private static void putTexts(ObjectNode reply, String key, List<String> texts) {
    if (!texts.isEmpty()) {
      ArrayNode array = reply.putArray(key);
      texts.forEach(array::add);
    }
  }

  private static Stream<String> texts(JsonNode list) {
    return StreamSupport.stream(list.spliterator(), false).map(JsonNode::asText);
  }
}
