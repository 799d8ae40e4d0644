package conformance;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceUsage;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AbstractCSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AbstractLeafQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.QueueCapacities;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.UserInfo;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.UsersManager.User;

/** What can be seen of a queue, its users and the queues below it. */
final class QueueView {
  private QueueView() {
  }

  static void add(Map<String, Object> view, CSQueue queue) {
    AbstractCSQueue shown = (AbstractCSQueue) queue;
    Set<String> booked = new TreeSet<>(shown.getQueueCapacities().getExistingNodeLabels());
    booked.addAll(shown.getQueueResourceUsage().getExistingNodeLabels());
    Set<String> labels = View.labels(booked);
    labels.forEach(label -> addLabel(view, shown, label));
    String at = "queue/" + shown.getQueuePath();
    view.put(at + "/state", String.valueOf(shown.getState()));
    view.put(at + "/containers", shown.getNumContainers());
    if (shown instanceof AbstractLeafQueue leaf) {
      view.put(at + "/active_apps", leaf.getNumActiveApplications());
      view.put(at + "/pending_apps", leaf.getNumPendingApplications());
      leaf.getUsersManager().getUsersInfo().forEach(user -> addUser(view, leaf, user, labels));
    }
    List<CSQueue> below = queue.getChildQueues();
    if (below != null) {
      below.forEach(child -> add(view, child));
    }
  }

  private static void addLabel(Map<String, Object> view, AbstractCSQueue queue, String label) {
    String at = "queue/" + queue.getQueuePath() + "@" + label;
    ResourceUsage usage = queue.getQueueResourceUsage();
    view.put(at + "/used", Texts.show(usage.getUsed(label)));
    view.put(at + "/reserved", Texts.show(usage.getReserved(label)));
    view.put(at + "/pending", Texts.show(usage.getPending(label)));
    view.put(at + "/am_used", Texts.show(usage.getAMUsed(label)));
    if (queue instanceof AbstractLeafQueue) {
      view.put(at + "/am_limit", Texts.show(usage.getAMLimit(label)));
    }
    view.put(at + "/guaranteed", Texts.show(queue.getEffectiveCapacity(label)));
    view.put(at + "/maximum", Texts.show(queue.getEffectiveMaxCapacity(label)));
    QueueCapacities capacities = queue.getQueueCapacities();
    view.put(at + "/absolute_capacity", capacities.getAbsoluteCapacity(label));
    view.put(at + "/absolute_maximum_capacity", capacities.getAbsoluteMaximumCapacity(label));
    view.put(at + "/used_capacity", capacities.getUsedCapacity(label));
    view.put(at + "/absolute_used_capacity", capacities.getAbsoluteUsedCapacity(label));
  }

  private static void addUser(Map<String, Object> view, AbstractLeafQueue leaf, UserInfo info, Set<String> labels) {
    String at = "user/" + leaf.getQueuePath() + "/" + info.getUsername();
    view.put(at, (info.getIsActive() ? "active" : "idle")
        + " apps " + info.getNumActiveApplications() + "+" + info.getNumPendingApplications());
    // The list of users is a copy: one of them may have left the queue since.
    User user = leaf.getUser(info.getUsername());
    for (String label : labels) {
      view.put(at + "@" + label + "/used", Texts.show(user == null ? null : user.getResourceUsage().getUsed(label)));
    }
    view.put(at + "/limit", Texts.show(user == null ? null : user.getUserResourceLimit()));
  }
}
