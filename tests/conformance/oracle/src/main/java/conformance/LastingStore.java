package conformance;

import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.MemoryRMStateStore;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.records.ApplicationAttemptStateData;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.records.ApplicationStateData;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.records.impl.pb.ApplicationAttemptStateDataPBImpl;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.records.impl.pb.ApplicationStateDataPBImpl;

/** A store that the next ResourceManager finds as a disk would have it: copies, each written before the call returns. */
final class LastingStore extends MemoryRMStateStore {
  @Override
  @SuppressWarnings("rawtypes")
  protected EventHandler getRMStateStoreEventHandler() {
    return rmStateStoreEventHandler;
  }

  /** The end of one ResourceManager is not the end of its store. */
  @Override
  public void stop() {
  }

  @Override
  public synchronized void storeApplicationStateInternal(ApplicationId id, ApplicationStateData data) throws Exception {
    super.storeApplicationStateInternal(id, copy(data));
  }

  @Override
  public synchronized void updateApplicationStateInternal(ApplicationId id, ApplicationStateData data) throws Exception {
    super.updateApplicationStateInternal(id, copy(data));
  }

  @Override
  public synchronized void storeApplicationAttemptStateInternal(
      ApplicationAttemptId id, ApplicationAttemptStateData data) throws Exception {
    super.storeApplicationAttemptStateInternal(id, copy(data));
  }

  @Override
  public synchronized void updateApplicationAttemptStateInternal(
      ApplicationAttemptId id, ApplicationAttemptStateData data) throws Exception {
    super.updateApplicationAttemptStateInternal(id, copy(data));
  }

  private static ApplicationStateData copy(ApplicationStateData data) {
    return new ApplicationStateDataPBImpl(((ApplicationStateDataPBImpl) data).getProto());
  }

  private static ApplicationAttemptStateData copy(ApplicationAttemptStateData data) {
    return new ApplicationAttemptStateDataPBImpl(((ApplicationAttemptStateDataPBImpl) data).getProto());
  }
}
