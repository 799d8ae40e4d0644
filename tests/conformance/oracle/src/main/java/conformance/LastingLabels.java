package conformance;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeLabel;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.NullRMNodeLabelsManager;

/** Labels that the next ResourceManager finds when it starts, as FileSystemNodeLabelsStore keeps them. */
final class LastingLabels extends NullRMNodeLabelsManager {
  private List<NodeLabel> kept = List.of();
  private Map<NodeId, Set<String>> keptOfNodes = Map.of();

  /** What is under way in the ResourceManager, which starts its labels while it handles events of recovered applications. */
  private final Runnable settle;

  LastingLabels(Runnable settle) {
    this.settle = settle;
  }

  /** Before the start: what an earlier ResourceManager had. */
  void keep(LastingLabels earlier) {
    kept = earlier.getClusterNodeLabels();
    keptOfNodes = new HashMap<>(earlier.getNodeLabels());
    // Nodes without a label are not in the store.
    keptOfNodes.values().removeIf(Set::isEmpty);
  }

  @Override
  public void initNodeLabelStore(Configuration configuration) {
    super.initNodeLabelStore(configuration);
    settle.run();
    try {
      addToCluserNodeLabels(kept);
      if (!keptOfNodes.isEmpty()) {
        replaceLabelsOnNode(keptOfNodes);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
