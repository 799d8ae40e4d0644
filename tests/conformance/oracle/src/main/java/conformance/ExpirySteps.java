package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMAppEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMAppEventType;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptEventType;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainerState;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.ContainerExpiredSchedulerEvent;

/** What the ResourceManager's liveness monitors say when somebody was silent too long. Time itself stands still. */
final class ExpirySteps {
  private ExpirySteps() {
  }

  /** ContainerAllocationExpirer: handed out, and no node has reported it. */
  static void container(Cluster cluster, JsonNode step, ObjectNode reply) {
    RMContainer container = cluster.pick(cluster.app(step), step.get("pick").asInt(), false);
    if (container == null) {
      reply.put("skipped", "none live");
    } else if (container.getState() != RMContainerState.ACQUIRED) {
      reply.put("skipped", "container is " + container.getState());
    } else {
      cluster.send(new ContainerExpiredSchedulerEvent(container.getContainerId()));
      reply.put("container", cluster.name(container.getContainerId()));
    }
  }

  /** AMLivelinessMonitor: the master no longer calls. Its process is not known to have ended. */
  static void master(Cluster cluster, JsonNode step, ObjectNode reply) {
    RecordedApp app = cluster.app(step);
    if (!app.registered && !isRecovered(cluster, app)) {
      reply.put("skipped", "not registered");
      return;
    }
    app.registered = false;
    cluster.send(new RMAppAttemptEvent(app.attempt, RMAppAttemptEventType.EXPIRE));
  }

  /** A master that was launched just before a restart, and has never registered. */
  private static boolean isRecovered(Cluster cluster, RecordedApp app) {
    RMApp known = cluster.rmApp(app);
    RMAppAttempt attempt = known == null ? null : known.getCurrentAppAttempt();
    if (attempt == null || attempt.getAppAttemptState() != RMAppAttemptState.LAUNCHED) {
      return false;
    }
    app.attempt = attempt.getAppAttemptId();
    return true;
  }

  /** RMAppLifetimeMonitor: the application has a lifetime, and it is over. */
  static void lifetime(Cluster cluster, JsonNode step, ObjectNode reply) {
    RecordedApp app = cluster.app(step);
    RMApp known = cluster.rmApp(app);
    if (known == null || known.getApplicationTimeouts().isEmpty() || known.isAppInCompletedStates()) {
      reply.put("skipped", known == null ? "no application" : "no lifetime runs");
      return;
    }
    app.registered = false;
    cluster.send(new RMAppEvent(app.id, RMAppEventType.KILL,
        "Application is killed by ResourceManager as it has exceeded the lifetime period."));
  }
}
