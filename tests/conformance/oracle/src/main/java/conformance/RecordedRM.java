package conformance;

import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeys;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.net.DNSToSwitchMapping;
import org.apache.hadoop.security.GroupMappingServiceProvider;
import org.apache.hadoop.security.Groups;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.AbstractEvent;
import org.apache.hadoop.yarn.event.Dispatcher;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.server.resourcemanager.MockRM;
import org.apache.hadoop.yarn.server.resourcemanager.RMContextImpl;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.RMStateStore.RMState;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration;
import org.apache.hadoop.yarn.util.ControlledClock;
import org.apache.hadoop.yarn.util.RackResolver;

/** The ResourceManager, with all that would differ from run to run taken out of it. */
final class RecordedRM extends MockRM {
  /** When it believes that it started: application ids, and the order of their hashes, repeat. */
  private static final long STARTED_MS = 1_700_000_000_000L;
  private static final long DAY_MS = 86_400_000L;

  /** The time from which a restarted one measures its wait for nodes and masters. */
  private final ControlledClock clock = new ControlledClock();
  private final LastingStore store;
  private final int restarts;

  private RecordedRM(Configuration configuration, LastingStore store, int restarts) {
    super(new CapacitySchedulerConfiguration(configuration, false), store);
    this.store = store;
    this.restarts = restarts;
  }

  /** Started, with its first events not yet handled. `configuration` is of {@link #configuration}. */
  static RecordedRM start(Configuration configuration) throws Exception {
    resetStatics(configuration);
    LastingStore store = isRecovering(configuration) ? new LastingStore() : null;
    if (store != null) {
      store.init(configuration);
    }
    RecordedRM rm = new RecordedRM(configuration, store, 0);
    rm.begin();
    return rm;
  }

  /** The next one, started on what this one stored; this one has ended, whether or not the next one starts. */
  RecordedRM restart(Configuration configuration) {
    stop();
    RecordedRM next = new RecordedRM(configuration, isRecovering(configuration) ? store : null, restarts + 1);
    next.labels().keep(labels());
    next.begin();
    return next;
  }

  private void begin() {
    disableDrainEventsImplicitly();
    clock.setTime(STARTED_MS);
    ((RMContextImpl) getRMContext()).setSystemClock(clock);
    start();
    // Application ids have the time: those of a restarted one are new.
    setClusterTimeStamp(STARTED_MS + restarts);
  }

  /** The wait for nodes and masters after a restart is over. */
  void endWait() {
    clock.tickMsec(DAY_MS);
  }

  /**
   * All applications are recovered before the first event that this leads to is handled. In Hadoop a thread handles
   * events meanwhile, and it depends on the threads which attempts are there when another one ends.
   */
  @Override
  public void recover(RMState state) throws Exception {
    CompletableFuture<Void> recovered = new CompletableFuture<>();
    Dispatcher dispatcher = getRMContext().getDispatcher();
    dispatcher.register(Hold.class, (EventHandler<AbstractEvent<Hold>>) event -> recovered.join());
    dispatcher.getEventHandler().handle(new AbstractEvent<>(Hold.DURING_RECOVERY) { });
    try {
      super.recover(state);
    } finally {
      recovered.complete(null);
    }
  }

  private enum Hold { DURING_RECOVERY }

  private LastingLabels labels() {
    return (LastingLabels) getRMContext().getNodeLabelManager();
  }

  @Override
  protected RMNodeLabelsManager createNodeLabelManager() {
    LastingLabels labels = new LastingLabels(this::drainEvents);
    labels.init(getConfig());
    return labels;
  }

  private static boolean isRecovering(Configuration configuration) {
    return configuration.getBoolean(YarnConfiguration.RECOVERY_ENABLED, YarnConfiguration.DEFAULT_RM_RECOVERY_ENABLED);
  }

  /** Hadoop's defaults, then what every recording needs. The scenario's own keys come on top. */
  static YarnConfiguration configuration(Path scratch) {
    YarnConfiguration configuration = new YarnConfiguration();
    configuration.setClass(YarnConfiguration.RM_SCHEDULER, CapacityScheduler.class, ResourceScheduler.class);
    configuration.setClass(CommonConfigurationKeysPublic.NET_TOPOLOGY_NODE_SWITCH_MAPPING_IMPL_KEY,
        Racks.class, DNSToSwitchMapping.class);
    configuration.setClass(CommonConfigurationKeysPublic.HADOOP_SECURITY_GROUP_MAPPING,
        UserGroups.class, GroupMappingServiceProvider.class);
    // The policy runs when a step says so, never by its own thread.
    configuration.set(YarnConfiguration.RM_SCHEDULER_MONITOR_POLICIES, NoRounds.class.getName());
    configuration.setLong(CapacitySchedulerConfiguration.PREEMPTION_MONITORING_INTERVAL, DAY_MS);
    // So are lifetimes: on a busy machine a scenario may take longer than one of its applications may live.
    configuration.setLong(YarnConfiguration.RM_APPLICATION_MONITOR_INTERVAL_MS, DAY_MS);
    // So is the poll for decommissioning nodes that have been silent for too long.
    configuration.setLong(YarnConfiguration.RM_DECOMMISSIONING_NODES_WATCHER_POLL_INTERVAL, DAY_MS / 1000);
    // Host names of scenarios resolve nowhere, and need not.
    configuration.setBoolean(CommonConfigurationKeys.HADOOP_SECURITY_TOKEN_SERVICE_USE_IP, false);
    configuration.set(YarnConfiguration.FS_NODE_ATTRIBUTE_STORE_ROOT_DIR, scratch.toUri().toString());
    return configuration;
  }

  private static void resetStatics(Configuration configuration) throws ReflectiveOperationException {
    Racks.BY_HOST.clear();
    UserGroups.BY_USER.clear();
    Groups.getUserToGroupsMappingServiceWithLoadedConfiguration(configuration);
    SecurityUtil.setConfiguration(configuration);
    Method reset = RackResolver.class.getDeclaredMethod("reset");
    reset.setAccessible(true);
    reset.invoke(null);
    RackResolver.init(configuration);
  }
}
