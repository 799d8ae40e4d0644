package conformance;

import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AutoCreatedQueueDeletionPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
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

  void removeIdleQueues() {
    deletion.editSchedule();
  }
}
