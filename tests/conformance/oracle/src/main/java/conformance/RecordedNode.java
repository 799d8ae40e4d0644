package conformance;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.server.api.protocolrecords.NMContainerStatus;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatResponse;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerResponse;
import org.apache.hadoop.yarn.server.api.records.NodeAction;
import org.apache.hadoop.yarn.server.resourcemanager.MockNM;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceTrackerService;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;

/** A node manager's side: the containers it has, and what it will say of each at its next heartbeat. */
final class RecordedNode {
  /** What a status holds while there is no exit status (ContainerExitStatus.INVALID). */
  private static final int NONE_YET = -1000;
  /** ContainerExitStatus.KILLED_BY_APPMASTER: what a node says of a container that it was told to clean up. */
  private static final int CLEANED_UP = -105;

  /** ContainerExitStatus.ABORTED: what a node says of a container that it ends when it registers again. */
  private static final int ENDED_AT_RESYNC = -100;

  final NodeId id;
  private final Map<ContainerId, ContainerStatus> statuses = new LinkedHashMap<>();
  /** What a container's token told its node: of all that ever ran here. */
  private final Map<ContainerId, RMContainer> known = new HashMap<>();
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

  /** The next ResourceManager is the one to call. */
  void callOn(ResourceTrackerService tracker) {
    if (!isLost()) {
      manager.setResourceTrackerService(tracker);
    }
  }

  void know(RMContainer container) {
    known.put(container.getContainerId(), container);
  }

  /** Register with all that is here; if it is not kept, it ends before. */
  RegisterNodeManagerResponse registerAgain(boolean keepsContainers) throws Exception {
    if (!keepsContainers) {
      for (ContainerStatus status : List.copyOf(statuses.values())) {
        if (status.getState() != ContainerState.COMPLETE) {
          complete(status.getContainerId(), ENDED_AT_RESYNC);
        }
      }
    }
    List<NMContainerStatus> reports = new ArrayList<>();
    Set<ApplicationId> applications = new LinkedHashSet<>();
    List<ContainerStatus> ordered = new ArrayList<>(statuses.values());
    ordered.sort(Comparator.comparing(ContainerStatus::getContainerId));
    for (ContainerStatus status : ordered) {
      reports.add(report(known.get(status.getContainerId()), status));
      applications.add(status.getContainerId().getApplicationAttemptId().getApplicationId());
    }
    return manager.registerNode(reports, List.copyOf(applications));
  }

  private static NMContainerStatus report(RMContainer container, ContainerStatus status) {
    Container token = container.getContainer();
    return NMContainerStatus.newInstance(status.getContainerId(), token.getVersion(), status.getState(),
        container.getAllocatedResource(), "", status.getExitStatus(), container.getAllocatedSchedulerKey().getPriority(),
        container.getCreationTime(), container.getNodeLabelExpression(), container.getExecutionType(),
        token.getAllocationRequestId());
  }

  /** Tell everything, forget what has ended, and end what the answer says is to be cleaned up. */
  NodeHeartbeatResponse heartbeat(boolean healthy) throws Exception {
    List<ContainerStatus> told = new ArrayList<>(statuses.values());
    NodeHeartbeatResponse response = manager.nodeHeartbeat(told, healthy);
    if (response.getNodeAction() == NodeAction.RESYNC) {
      return response;
    }
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
