package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.KillApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.MoveApplicationAcrossQueuesRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.UpdateApplicationPriorityRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ApplicationTimeoutType;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.resourcemanager.ClientRMService;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMAppState;

/** What clients ask for. */
final class ClientSteps {
  private static final int ATTEMPTS_MAX_DEFAULT = 2;

  private ClientSteps() {
  }

  static void submit(Cluster cluster, JsonNode step, ObjectNode reply) throws Exception {
    ClientRMService service = cluster.rm.getClientRMService();
    ApplicationId id = service.getNewApplication(GetNewApplicationRequest.newInstance()).getApplicationId();
    RecordedApp app = new RecordedApp(step.get("app").asText(), id);
    cluster.add(app);
    SubmitApplicationRequest request = SubmitApplicationRequest.newInstance(context(id, step));
    as(user(step), () -> service.submitApplication(request));
    cluster.settle();
    RMApp known = cluster.rmApp(app);
    reply.put("state", known == null ? "null" : known.getState().toString());
    if (known != null && known.getState() == RMAppState.FAILED) {
      reply.put("diagnostics", known.getDiagnostics().toString().trim());
    }
    if (known != null && !known.getApplicationTimeouts().isEmpty()) {
      long expiryMs = known.getApplicationTimeouts().get(ApplicationTimeoutType.LIFETIME);
      // The clocks are read one after the other, a few milliseconds apart, and never a second.
      reply.put("lifetime", Math.round((expiryMs - known.getSubmitTime()) / 1000.0));
    }
  }

  private static UserGroupInformation user(JsonNode step) {
    String user = step.get("user").asText();
    if (!step.has("groups")) {
      return UserGroupInformation.createUserForTesting(user, new String[] {user});
    }
    String[] groups = step.get("groups").asText().split(",");
    UserGroups.BY_USER.put(user, List.of(groups));
    return UserGroupInformation.createUserForTesting(user, groups);
  }

  private static ApplicationSubmissionContext context(ApplicationId id, JsonNode step) {
    ResourceRequest master = ResourceRequest.newInstance(
        Priority.newInstance(0), ResourceRequest.ANY, Texts.resource(step.get("am")), 1);
    if (step.has("am_label")) {
      master.setNodeLabelExpression(step.get("am_label").asText());
    }
    ContainerLaunchContext launch = ContainerLaunchContext.newInstance(
        new HashMap<>(), new HashMap<>(), new ArrayList<>(), new HashMap<>(), null, new HashMap<>());
    String queue = step.hasNonNull("queue") ? step.get("queue").asText() : null;
    Priority priority = step.has("priority") ? Priority.newInstance(step.get("priority").asInt()) : null;
    boolean unmanaged = false;
    boolean cancelTokens = true;
    int attempts = step.path("max_attempts").asInt(ATTEMPTS_MAX_DEFAULT);
    ApplicationSubmissionContext context = ApplicationSubmissionContext.newInstance(id, step.get("app").asText(), queue,
        priority, launch, unmanaged, cancelTokens, attempts, master.getCapability(), "YARN");
    context.setAMContainerResourceRequests(new ArrayList<>(List.of(master)));
    context.setKeepContainersAcrossApplicationAttempts(step.path("keep_containers").asBoolean(false));
    if (step.has("label")) {
      context.setNodeLabelExpression(step.get("label").asText());
    }
    if (step.has("lifetime")) {
      context.setApplicationTimeouts(Map.of(ApplicationTimeoutType.LIFETIME, step.get("lifetime").asLong()));
    }
    return context;
  }

  static void kill(Cluster cluster, JsonNode step) throws Exception {
    RecordedApp app = cluster.app(step);
    app.registered = false;
    cluster.rm.getClientRMService().forceKillApplication(KillApplicationRequest.newInstance(app.id));
  }

  static void move(Cluster cluster, JsonNode step) throws Exception {
    cluster.rm.getClientRMService().moveApplicationAcrossQueues(
        MoveApplicationAcrossQueuesRequest.newInstance(cluster.app(step).id, step.get("queue").asText()));
  }

  static void setPriority(Cluster cluster, JsonNode step) throws Exception {
    Priority priority = Priority.newInstance(step.get("priority").asInt());
    cluster.rm.getClientRMService().updateApplicationPriority(
        UpdateApplicationPriorityRequest.newInstance(cluster.app(step).id, priority));
  }

  /** Calls as somebody; a call's own exception, not the one that doAs wraps it in. */
  static <T> T as(UserGroupInformation caller, PrivilegedExceptionAction<T> call) throws Exception {
    try {
      return caller.doAs(call);
    } catch (java.lang.reflect.UndeclaredThrowableException e) {
      if (e.getCause() instanceof Exception cause) {
        throw cause;
      }
      throw e;
    }
  }
}
