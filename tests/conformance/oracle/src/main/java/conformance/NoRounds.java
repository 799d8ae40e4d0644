package conformance;

import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.SchedulingEditPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;

/** In place of the configured policies, whose first round would run beside the recovery: rounds are steps. */
public final class NoRounds implements SchedulingEditPolicy {
  @Override
  public void init(Configuration configuration, RMContext context, ResourceScheduler scheduler) {
  }

  @Override
  public void editSchedule() {
  }

  @Override
  public long getMonitoringInterval() {
    return TimeUnit.DAYS.toMillis(1);
  }

  @Override
  public String getPolicyName() {
    return "none";
  }
}
