package conformance;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.PreemptionContainer;
import org.apache.hadoop.yarn.api.records.PreemptionMessage;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.UpdateContainerError;
import org.apache.hadoop.yarn.api.records.UpdatedContainer;

/** The reply of a master's heartbeat. */
final class Replies {
  private Replies() {
  }

  /** Several answers in a row become one: what they list together, what they measure from the last. */
  static void putAllocation(ObjectNode reply, List<AllocateResponse> answers, Cluster cluster) {
    AllocateResponse last = answers.get(answers.size() - 1);
    reply.put("headroom", Texts.show(last.getAvailableResources()));
    reply.put("nodes", last.getNumClusterNodes());
    put(reply.putArray("allocated"),
        all(answers, AllocateResponse::getAllocatedContainers).map(container -> show(container, cluster)));
    // Hadoop tells of ends in the order in which threads got to them.
    putIfAny(reply, "completed",
        all(answers, AllocateResponse::getCompletedContainersStatuses).map(status -> show(status, cluster)).sorted());
    putIfAny(reply, "updated",
        all(answers, AllocateResponse::getUpdatedContainers).map(update -> show(update, cluster)));
    putIfAny(reply, "update_errors",
        all(answers, AllocateResponse::getUpdateErrors).map(error -> show(error, cluster)));
    answers.stream().map(AllocateResponse::getPreemptionMessage).filter(Objects::nonNull).reduce((a, b) -> b)
        .ifPresent(message -> putPreemption(reply.putObject("preemption"), message, cluster));
  }

  private static <T> Stream<T> all(List<AllocateResponse> answers, Function<AllocateResponse, Collection<T>> list) {
    return answers.stream().flatMap(answer -> list.apply(answer).stream());
  }

  private static String show(Container container, Cluster cluster) {
    return cluster.name(container.getId());
  }

  private static String show(ContainerStatus status, Cluster cluster) {
    return cluster.name(status.getContainerId()) + " exit " + status.getExitStatus();
  }

  private static String show(UpdatedContainer update, Cluster cluster) {
    Container container = update.getContainer();
    return cluster.name(container.getId()) + " " + update.getUpdateType() + " " + Texts.show(container.getResource())
        + " version " + container.getVersion();
  }

  private static String show(UpdateContainerError error, Cluster cluster) {
    return cluster.name(error.getUpdateContainerRequest().getContainerId()) + " " + error.getReason();
  }

  private static void putPreemption(ObjectNode preemption, PreemptionMessage message, Cluster cluster) {
    if (message.getStrictContract() != null) {
      put(preemption.putArray("strict"), names(message.getStrictContract().getContainers(), cluster));
    }
    if (message.getContract() != null) {
      put(preemption.putArray("negotiable"), names(message.getContract().getContainers(), cluster));
      put(preemption.putArray("asks"), message.getContract().getResourceRequest().stream().map(ask -> {
        ResourceRequest request = ask.getResourceRequest();
        return request.getNumContainers() + " x " + Texts.show(request.getCapability());
      }));
    }
  }

  private static Stream<String> names(Set<PreemptionContainer> containers, Cluster cluster) {
    return containers.stream().map(container -> cluster.name(container.getId())).sorted();
  }

  private static void putIfAny(ObjectNode reply, String key, Stream<String> values) {
    List<String> found = values.toList();
    if (!found.isEmpty()) {
      put(reply.putArray(key), found.stream());
    }
  }

  private static void put(ArrayNode array, Stream<String> values) {
    values.forEach(array::add);
  }
}
