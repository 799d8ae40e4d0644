package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.Event;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;

/** One ResourceManager with the node managers, clients and masters of a scenario. Every step works on this. */
final class Cluster implements AutoCloseable {
  /** How long Hadoop may be busy with one step; a step takes milliseconds, but a machine may be busy too. */
  static final int REST_SECONDS_MAX = 40;

  private static final Executor WAITING = Executors.newSingleThreadExecutor(task -> {
    Thread thread = new Thread(task, "waiting-for-rest");
    thread.setDaemon(true);
    return thread;
  });

  /** What the running ResourceManager started with or last took up at a refresh: what the next one reads. */
  Configuration configuration;
  RecordedRM rm;
  CapacityScheduler scheduler;
  Policies policies;
  final Map<String, RecordedNode> nodes = new LinkedHashMap<>();
  final Map<String, RecordedApp> apps = new LinkedHashMap<>();
  private final Map<ApplicationId, String> names = new HashMap<>();
  private final Path scratch;

  Cluster(JsonNode properties) throws Exception {
    Logger.getRootLogger().setLevel(Level.OFF);
    scratch = Files.createTempDirectory("oracle");
    configuration = RecordedRM.configuration(scratch);
    set(configuration, properties);
    take(RecordedRM.start(configuration));
    settle();
  }

  /** The ResourceManager is killed, and another one starts on its store. */
  void restart(Configuration changed) {
    NodeSteps.startAll(this);
    take(rm.restart(changed));
    configuration = changed;
    nodes.values().forEach(node -> node.callOn(rm.getResourceTrackerService()));
  }

  private void take(RecordedRM started) {
    rm = started;
    Logger.getRootLogger().setLevel(Level.OFF);
    scheduler = (CapacityScheduler) rm.getResourceScheduler();
    policies = new Policies(rm.getRMContext(), scheduler);
  }

  @Override
  public void close() {
    rm.stop();
    FileUtil.fullyDelete(scratch.toFile());
  }

  static void set(Configuration configuration, JsonNode properties) {
    properties.fields().forEachRemaining(entry -> configuration.set(entry.getKey(), entry.getValue().asText()));
  }

  /** Waits until all that was set off has been handled. Throws Restless. */
  void settle() {
    try {
      CompletableFuture.runAsync(rm::drainEvents, WAITING).get(REST_SECONDS_MAX, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      throw new Restless();
    } catch (InterruptedException | ExecutionException e) {
      throw new IllegalStateException(e);
    }
  }

  @SuppressWarnings({"rawtypes", "unchecked"})
  void send(Event event) {
    rm.getRMContext().getDispatcher().getEventHandler().handle(event);
  }

  RecordedNode node(JsonNode step) {
    return known(nodes, step.get("node").asText());
  }

  RecordedApp app(JsonNode step) {
    return known(apps, step.get("app").asText());
  }

  private static <T> T known(Map<String, T> things, String name) {
    T thing = things.get(name);
    if (thing == null) {
      throw new IllegalArgumentException(name + " was not named by an earlier step");
    }
    return thing;
  }

  void add(RecordedApp app) {
    apps.put(app.name, app);
    names.put(app.id, app.name);
  }

  /** Null if the ResourceManager does not know the application (it refused the submission). */
  RMApp rmApp(RecordedApp app) {
    return rm.getRMContext().getRMApps().get(app.id);
  }

  Path scratch() {
    return scratch;
  }

  String name(ApplicationId application) {
    return names.get(application);
  }

  /** APP/ATTEMPT/ID: the same in every run, unlike Hadoop's own id with its cluster timestamp. */
  String name(ContainerId container) {
    ApplicationAttemptId attempt = container.getApplicationAttemptId();
    return names.get(attempt.getApplicationId()) + "/" + attempt.getAttemptId() + "/" + container.getContainerId();
  }

  /** Number `number`, modulo how many there are, of an application's live containers; null if it has none. */
  RMContainer pick(RecordedApp app, int number, boolean masters) {
    FiCaSchedulerApp attempt = app.attempt == null ? null : scheduler.getApplicationAttempt(app.attempt);
    if (attempt == null) {
      return null;
    }
    List<RMContainer> live = new ArrayList<>(attempt.getLiveContainers());
    live.removeIf(container -> container.isAMContainer() != masters);
    live.sort(Comparator.comparing(RMContainer::getContainerId));
    return live.isEmpty() ? null : live.get(number % live.size());
  }

  /** The container ends on its node, if that is there to notice. */
  void complete(RMContainer container, int exitStatus) {
    for (RecordedNode node : nodes.values()) {
      if (!node.isLost() && node.id.equals(container.getAllocatedNode())) {
        node.complete(container.getContainerId(), exitStatus);
      }
    }
  }
}
