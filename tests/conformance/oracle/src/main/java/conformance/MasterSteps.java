package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.StreamSupport;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerUpdateType;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.ExecutionTypeRequest;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.ResourceBlacklistRequest;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.UpdateContainerRequest;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;
import org.apache.hadoop.yarn.server.resourcemanager.ApplicationMasterService;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptEventType;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptImpl;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;

/** What masters ask for. */
final class MasterSteps {
  /** A master asks until it hears that it is unregistered; the first call never says so. */
  private static final int UNREGISTER_CALLS_MAX = 3;
  private static final long NO_REQUEST_ID = -1;

  private MasterSteps() {
  }

  static void register(Cluster cluster, JsonNode step, ObjectNode reply) throws Exception {
    RecordedApp app = cluster.app(step);
    RMApp known = cluster.rmApp(app);
    RMAppAttempt attempt = known == null ? null : known.getCurrentAppAttempt();
    if (attempt == null || !mayRegister(attempt.getAppAttemptState())) {
      reply.put("skipped", attempt == null ? "no attempt" : "attempt is " + attempt.getAppAttemptState());
      return;
    }
    app.attempt = attempt.getAppAttemptId();
    Token<AMRMTokenIdentifier> token =
        cluster.rm.getRMContext().getAMRMTokenSecretManager().createAndGetAMRMToken(app.attempt);
    ((RMAppAttemptImpl) attempt).setAMRMToken(token);
    if (attempt.getAppAttemptState() == RMAppAttemptState.ALLOCATED) {
      cluster.send(new RMAppAttemptEvent(app.attempt, RMAppAttemptEventType.LAUNCHED));
      cluster.settle();
    }
    app.master = UserGroupInformation.createRemoteUser(app.attempt.toString());
    app.master.addTokenIdentifier(token.decodeIdentifier());
    app.responseId = 0;
    RegisterApplicationMasterResponse response = ClientSteps.as(app.master, () -> service(cluster)
        .registerApplicationMaster(RegisterApplicationMasterRequest.newInstance("", 1, "")));
    app.registered = true;
    reply.put("maximum", Texts.show(response.getMaximumResourceCapability()));
    reply.put("queue", response.getQueue());
    List<Container> kept = response.getContainersFromPreviousAttempts();
    if (!kept.isEmpty()) {
      ArrayNode previous = reply.putArray("previous");
      kept.stream().map(Container::getId).sorted().map(cluster::name).forEach(previous::add);
    }
  }

  /** A recovered attempt is LAUNCHED: its master was launched before the restart, and registers, perhaps again. */
  private static boolean mayRegister(RMAppAttemptState state) {
    return state == RMAppAttemptState.ALLOCATED || state == RMAppAttemptState.LAUNCHED;
  }

  static void allocate(Cluster cluster, JsonNode step, ObjectNode reply) throws Exception {
    RecordedApp app = cluster.app(step);
    if (!app.registered) {
      reply.put("skipped", "not registered");
      return;
    }
    Set<ContainerId> released = new LinkedHashSet<>();
    for (JsonNode number : step.path("release")) {
      RMContainer container = cluster.pick(app, number.asInt(), false);
      if (container != null) {
        released.add(container.getContainerId());
      }
    }
    AllocateRequest request = request(cluster, app, step, List.copyOf(released));
    if (!released.isEmpty()) {
      ArrayNode names = reply.putArray("released");
      released.forEach(container -> names.add(cluster.name(container)));
    }
    List<AllocateResponse> answers = new ArrayList<>(List.of(call(cluster, app, request)));
    // Threads decide whether this answer or the next tells of what was released: take both for one.
    int again = step.path("again").asInt(released.isEmpty() ? 0 : 1);
    for (int i = 0; i < again; i++) {
      cluster.settle();
      answers.add(call(cluster, app, emptyRequest(app).build()));
    }
    Replies.putAllocation(reply, answers, cluster);
  }

  private static AllocateRequest request(Cluster cluster, RecordedApp app, JsonNode step, List<ContainerId> released) {
    AllocateRequest.AllocateRequestBuilder request = emptyRequest(app)
        .askList(stream(step.path("asks")).map(MasterSteps::ask).toList())
        .releaseList(released)
        .updateRequests(updates(cluster, app, step.path("updates")));
    if (step.has("blacklist")) {
      JsonNode hosts = step.get("blacklist");
      request.resourceBlacklistRequest(
          ResourceBlacklistRequest.newInstance(texts(hosts.path("add")), texts(hosts.path("remove"))));
    }
    return request.build();
  }

  private static AllocateRequest.AllocateRequestBuilder emptyRequest(RecordedApp app) {
    return AllocateRequest.newBuilder().responseId(app.responseId).progress(0);
  }

  private static AllocateResponse call(Cluster cluster, RecordedApp app, AllocateRequest request) throws Exception {
    AllocateResponse response = ClientSteps.as(app.master, () -> service(cluster).allocate(request));
    app.responseId = response.getResponseId();
    return response;
  }

  private static ResourceRequest ask(JsonNode ask) {
    return ResourceRequest.newBuilder()
        .priority(Priority.newInstance(ask.path("priority").asInt(1)))
        .resourceName(ask.path("name").asText(ResourceRequest.ANY))
        .capability(Texts.resource(ask.get("resource")))
        .numContainers(ask.get("count").asInt())
        .relaxLocality(ask.path("relax").asBoolean(true))
        .nodeLabelExpression(ask.has("label") ? ask.get("label").asText() : null)
        .allocationRequestId(ask.path("request_id").asLong(NO_REQUEST_ID))
        .executionTypeRequest(ExecutionTypeRequest.newInstance(ExecutionType.GUARANTEED, true))
        .build();
  }

  private static List<UpdateContainerRequest> updates(Cluster cluster, RecordedApp app, JsonNode updates) {
    List<UpdateContainerRequest> requests = new ArrayList<>();
    for (JsonNode update : updates) {
      RMContainer container = cluster.pick(app, update.get("pick").asInt(), false);
      if (container != null) {
        requests.add(UpdateContainerRequest.newInstance(container.getContainer().getVersion(), container.getContainerId(),
            ContainerUpdateType.valueOf(update.get("type").asText()),
            update.has("resource") ? Texts.resource(update.get("resource")) : null,
            update.has("execution") ? ExecutionType.valueOf(update.get("execution").asText()) : null));
      }
    }
    return requests;
  }

  static void unregister(Cluster cluster, JsonNode step, ObjectNode reply) throws Exception {
    RecordedApp app = cluster.app(step);
    if (!app.registered) {
      reply.put("skipped", "not registered");
      return;
    }
    RMContainer master = cluster.pick(app, 0, true);
    FinishApplicationMasterRequest request =
        FinishApplicationMasterRequest.newInstance(FinalApplicationStatus.SUCCEEDED, "", "");
    boolean heard = false;
    for (int call = 0; call < UNREGISTER_CALLS_MAX && !heard; call++) {
      heard = ClientSteps.as(app.master, () -> service(cluster).finishApplicationMaster(request)).getIsUnregistered();
      cluster.settle();
    }
    app.registered = false;
    if (master != null) {
      cluster.complete(master, 0);
    }
  }

  private static ApplicationMasterService service(Cluster cluster) {
    return cluster.rm.getApplicationMasterService();
  }

  private static List<String> texts(JsonNode list) {
    return stream(list).map(JsonNode::asText).toList();
  }

  private static java.util.stream.Stream<JsonNode> stream(JsonNode list) {
    return StreamSupport.stream(list.spliterator(), false);
  }
}
