package conformance;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatResponse;
import org.apache.hadoop.yarn.server.resourcemanager.MockNM;

/** A node manager's side: the containers it has, and what it will say of each at its next heartbeat. */
final class RecordedNode {
  /** What a status holds while there is no exit status (ContainerExitStatus.INVALID). */
  private static final int NONE_YET = -1000;
  /** ContainerExitStatus.KILLED_BY_APPMASTER: what a node says of a container that it was told to clean up. */
  private static final int CLEANED_UP = -105;

  final NodeId id;
  private final Map<ContainerId, ContainerStatus> statuses = new LinkedHashMap<>();
  private MockNM manager;

  RecordedNode(MockNM manager) {
    this.manager = manager;
    this.id = manager.getNodeId();
  }

  boolean isLost() {
    return manager == null;
  }

  MockNM manager() {
    return manager;
  }

  void lose() {
    manager = null;
    statuses.clear();
  }

  void start(ContainerId container) {
    statuses.putIfAbsent(container, status(container, ContainerState.RUNNING, NONE_YET));
  }

  void complete(ContainerId container, int exitStatus) {
    statuses.put(container, status(container, ContainerState.COMPLETE, exitStatus));
  }

  /** Tell everything, forget what has ended, and end what the answer says is to be cleaned up. */
  NodeHeartbeatResponse heartbeat(boolean healthy) throws Exception {
    List<ContainerStatus> told = new ArrayList<>(statuses.values());
    NodeHeartbeatResponse response = manager.nodeHeartbeat(told, healthy);
    statuses.values().removeIf(status -> status.getState() == ContainerState.COMPLETE);
    for (ContainerId container : List.copyOf(statuses.keySet())) {
      if (response.getContainersToCleanup().contains(container)
          || response.getApplicationsToCleanup().contains(container.getApplicationAttemptId().getApplicationId())) {
        complete(container, CLEANED_UP);
      }
    }
    return response;
  }

  private static ContainerStatus status(ContainerId container, ContainerState state, int exitStatus) {
    return ContainerStatus.newInstance(container, state, "", exitStatus);
  }
}
