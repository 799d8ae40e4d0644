package conformance;

import java.lang.reflect.Method;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.util.Time;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AbstractCSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AutoCreatedQueueDeletionPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.QueueManagementDynamicEditPolicy;
import org.apache.hadoop.yarn.util.ControlledClock;

/** The scheduler's monitors: in Hadoop each has a thread and an interval, here a round is a step. */
final class Policies {
  private final RMContext context;
  private final CapacityScheduler scheduler;
  private final ControlledClock clock = new ControlledClock();
  private final AutoCreatedQueueDeletionPolicy deletion = new AutoCreatedQueueDeletionPolicy();
  /** Made at the first round, since it reads its configuration when it is made. */
  private ProportionalCapacityPreemptionPolicy preemption;

  Policies(RMContext context, CapacityScheduler scheduler) {
    this.context = context;
    this.scheduler = scheduler;
    clock.setTime(System.currentTimeMillis());
    deletion.init(scheduler.getConfiguration(), context, scheduler);
  }

  void preempt(long advanceMs) {
    if (preemption == null) {
      preemption = new ProportionalCapacityPreemptionPolicy(context, scheduler, clock);
    }
    clock.setTime(clock.getTime() + advanceMs);
    preemption.editSchedule();
  }

  /** A round of the policies of managed parents. */
  void manageQueues() {
    new QueueManagementDynamicEditPolicy(context, scheduler).editSchedule();
  }

  /** A round of the deletion, with every auto-created queue's time since its last submission over. */
  void removeIdleQueues() throws ReflectiveOperationException {
    long expiryMs = TimeUnit.SECONDS.toMillis(scheduler.getConfiguration().getAutoExpiredDeletionTime() + 1);
    Method submitted = AbstractCSQueue.class.getDeclaredMethod("setLastSubmittedTimestamp", long.class);
    submitted.setAccessible(true);
    for (CSQueue queue : scheduler.getCapacitySchedulerQueueManager().getQueues().values()) {
      if (queue instanceof AbstractCSQueue made && made.isDynamicQueue()) {
        submitted.invoke(made, Time.monotonicNow() - expiryMs);
      }
    }
    deletion.editSchedule();
  }
}
