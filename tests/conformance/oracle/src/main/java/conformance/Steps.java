package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** What a step of a scenario may be. */
final class Steps {
  private Steps() {
  }

  /** Do one step and fill its reply. Hadoop's errors pass through; what was set off may still be under way. */
  static void run(Cluster cluster, JsonNode step, ObjectNode reply) throws Exception {
    switch (step.get("op").asText()) {
      case "register_node" -> NodeSteps.register(cluster, step, reply);
      case "heartbeat" -> NodeSteps.heartbeat(cluster, step, reply);
      case "lose_node" -> NodeSteps.lose(cluster, step);
      case "resync" -> NodeSteps.resync(cluster, step, reply);
      case "raw_register" -> TrackerSteps.register(cluster, step, reply);
      case "raw_heartbeat" -> TrackerSteps.heartbeat(cluster, step, reply);
      case "raw_unregister" -> TrackerSteps.unregister(cluster, step, reply);
      case "refresh_nodes" -> TrackerSteps.refreshNodes(cluster, step, reply);
      case "resize_node" -> NodeSteps.resize(cluster, step);
      case "decommission" -> NodeSteps.decommission(cluster, step);
      case "recommission" -> NodeSteps.recommission(cluster, step);
      case "finish" -> NodeSteps.finish(cluster, step, reply);
      case "fail_am" -> NodeSteps.failMaster(cluster, step, reply);
      case "submit" -> ClientSteps.submit(cluster, step, reply);
      case "kill_app" -> ClientSteps.kill(cluster, step);
      case "move" -> ClientSteps.move(cluster, step);
      case "set_priority" -> ClientSteps.setPriority(cluster, step);
      case "register" -> MasterSteps.register(cluster, step, reply);
      case "allocate" -> MasterSteps.allocate(cluster, step, reply);
      case "unregister" -> MasterSteps.unregister(cluster, step, reply);
      case "refresh_queues" -> AdminSteps.refreshQueues(cluster, step);
      case "restart_rm" -> AdminSteps.restart(cluster, step);
      case "end_wait" -> cluster.rm.endWait();
      case "rest" -> AsynchronousSteps.rest(cluster, reply);
      case "add_labels" -> AdminSteps.addLabels(cluster, step);
      case "remove_labels" -> AdminSteps.removeLabels(cluster, step);
      case "label_nodes" -> AdminSteps.labelNodes(cluster, step);
      case "preempt" -> cluster.policies.preempt(step.path("advance").asLong(0));
      case "remove_idle_queues" -> cluster.policies.removeIdleQueues();
      case "manage_queues" -> cluster.policies.manageQueues();
      case "expire_container" -> ExpirySteps.container(cluster, step, reply);
      case "expire_master" -> ExpirySteps.master(cluster, step, reply);
      case "expire_lifetime" -> ExpirySteps.lifetime(cluster, step, reply);
      default -> throw new UnsupportedOperationException("no such op: " + step.get("op"));
    }
  }
}
