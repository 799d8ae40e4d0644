package scenes;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.protocolrecords.GetClusterMetricsRequest;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceOption;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.YarnClusterMetrics;
import org.apache.hadoop.yarn.client.ClientRMProxy;
import org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocol;
import org.apache.hadoop.yarn.server.api.protocolrecords.UpdateNodeResourceRequest;

/** Nodes that go and come back: what an AM and a client see of it. */
public final class NodeScenes extends Scenes {
    private static final long HEARTBEAT_MS = 100;

    private Am am;
    private Container container;
    private NodeId node;
    private int number;

    /** An application with a running container; its node is called node1. */
    private void runOnANode() throws Exception {
        am = Am.registered(this, "app1", "default");
        container = am.obtain(1, 256).get(0);
        node = container.getNodeId();
        number = cluster.numberOf(node.toString());
        seen.mask.text(node.toString(), "node1");
        am.start(container, "sleep 120");
        await("it to run", () -> !am.statuses(container).getContainerStatuses().isEmpty());
        am.allocate();
        am.updatedNodes.clear();
    }

    private void inState(NodeState state) throws Exception {
        await(node + " " + state, () -> nodes(state).stream().anyMatch(each -> each.getNodeId().equals(node)));
    }

    private void see(String when) throws Exception {
        seen.value(when + ": report", nodes(NodeState.values()).stream().filter(each -> each.getNodeId().equals(node)).findFirst().orElseThrow());
        YarnClusterMetrics metrics = alice.getClusterMetrics(GetClusterMetricsRequest.newInstance()).getClusterMetrics();
        Map<String, Object> counts = new TreeMap<>();
        counts.put("all", metrics.getNumNodeManagers());
        counts.put("active", metrics.getNumActiveNodeManagers());
        counts.put("decommissioning", metrics.getNumDecommissioningNodeManagers());
        counts.put("lost", metrics.getNumLostNodeManagers());
        counts.put("unhealthy", metrics.getNumUnhealthyNodeManagers());
        seen.value(when + ": counts", counts);
    }

    private void seeUpdate(String when) throws Exception {
        am.until("an updated node", () -> !am.updatedNodes.isEmpty());
        List<NodeReport> updates = List.copyOf(am.updatedNodes);
        am.updatedNodes.clear();
        seen.value(when + ": updated nodes", updates);
    }

    @Scene
    public void lost() throws Exception {
        runOnANode();
        cluster.killNode(number);
        inState(NodeState.LOST);
        seeUpdate("lost");
        see("lost");
        seen.value("its container", am.completion(container.getId()));
        cluster.startNode(number);
        waitForNodes(NODES);
        seeUpdate("back");
        see("back");
    }

    @Scene
    public void stopped() throws Exception {
        runOnANode();
        cluster.stopNode(number);
        inState(NodeState.SHUTDOWN);
        seeUpdate("stopped");
        see("stopped");
        seen.value("its container", am.completion(container.getId()).getExitStatus());
        cluster.startNode(number);
        waitForNodes(NODES);
        see("back");
    }

    @Scene
    public void decommissionedGracefully() throws Exception {
        runOnANode();
        // A node that is decommissioned before its first report of the container leaves at once, and no client can see
        // whether that report has arrived: wait for ten heartbeats.
        Thread.sleep(10 * HEARTBEAT_MS);
        cluster.decommission(number, 600);
        // From its next heartbeat on it has no more than what runs on it.
        await("no room for more", () -> nodes(NodeState.DECOMMISSIONING).stream().anyMatch(
            each -> each.getCapability().getMemorySize() == 256));
        seeUpdate("decommissioning");
        see("decommissioning");
        am.finish(org.apache.hadoop.yarn.api.records.FinalApplicationStatus.SUCCEEDED, "");
        inState(NodeState.DECOMMISSIONED);
        seen.value("decommissioned: timeout", nodes(NodeState.DECOMMISSIONED).stream().filter(
            each -> each.getNodeId().equals(node)).findFirst().orElseThrow().getDecommissioningTimeout());
        cluster.recommission(number);
        cluster.startNode(number);
        waitForNodes(NODES);
    }

    /** Containers of 256 MB that are wanted on the node, or else on its rack, or anywhere. Are they there? */
    private Object areObtainedThere(int priority, int count) throws Exception {
        int before = am.allocated.size();
        am.allocate(Contexts.ask(priority, node.getHost(), 256, count), Contexts.ask(priority, "/default-rack", 256, count),
            Contexts.ask(priority, ResourceRequest.ANY, 256, count));
        am.until("what is wanted", () -> am.allocated.size() >= before + count);
        return am.allocated.subList(before, before + count).stream().map(each -> each.getNodeId().equals(node)).collect(Collectors.toList());
    }

    /** A node that was kept reports the timeout from then on; the next scenes are to find a new one. */
    private void replaceNode() throws Exception {
        cluster.stopNode(number);
        inState(NodeState.SHUTDOWN);
        cluster.startNode(number);
        waitForNodes(NODES);
    }

    private static ResourceRequest strictly(String name, boolean isNode) {
        ResourceRequest ask = Contexts.ask(2, name, 256, 1);
        ask.setRelaxLocality(isNode);
        return ask;
    }

    @Scene
    public void moreIsRequestedOfADecommissioningNode() throws Exception {
        runOnANode();
        Thread.sleep(10 * HEARTBEAT_MS);
        seen.value("before: there", areObtainedThere(2, 2));
        cluster.decommission(number, 600);
        await(node + " leaves", () -> !nodes(NodeState.DECOMMISSIONING).isEmpty());
        seen.value("decommissioning: there", areObtainedThere(3, 3));
        cluster.keep(number);
        inState(NodeState.RUNNING);
        seen.value("kept: there", areObtainedThere(4, 3));
        see("kept");
        am.finish(org.apache.hadoop.yarn.api.records.FinalApplicationStatus.SUCCEEDED, "");
        replaceNode();
    }

    @Scene
    public void whatMayRunOnlyOnADecommissioningNodeWaits() throws Exception {
        runOnANode();
        Thread.sleep(10 * HEARTBEAT_MS);
        cluster.decommission(number, 600);
        await(node + " leaves", () -> !nodes(NodeState.DECOMMISSIONING).isEmpty());
        am.allocate(strictly(node.getHost(), true), strictly("/default-rack", false), strictly(ResourceRequest.ANY, false));
        Thread.sleep(20 * HEARTBEAT_MS);
        seen.value("after twenty heartbeats", am.allocate().getAllocatedContainers().size());
        cluster.keep(number);
        int before = am.allocated.size();
        am.until("the container", () -> am.allocated.size() > before);
        seen.value("kept: there", am.allocated.get(before).getNodeId().equals(node));
        am.finish(org.apache.hadoop.yarn.api.records.FinalApplicationStatus.SUCCEEDED, "");
        replaceNode();
    }

    @Scene
    public void decommissionedAtOnce() throws Exception {
        runOnANode();
        cluster.decommission(number, 0);
        inState(NodeState.DECOMMISSIONED);
        seeUpdate("decommissioned");
        see("decommissioned");
        seen.value("its container", am.completion(container.getId()));
        cluster.recommission(number);
        cluster.startNode(number);
        waitForNodes(NODES);
    }

    private void resize(String user, NodeId which, int memory) {
        seen.call("resize as " + user, () -> as(user, () -> ClientRMProxy.createRMProxy(conf(), ResourceManagerAdministrationProtocol.class))
            .updateNodeResource(UpdateNodeResourceRequest.newInstance(
                Map.of(which, ResourceOption.newInstance(Resource.newInstance(memory, 4), -1)))));
    }

    @Scene
    public void resized() throws Exception {
        runOnANode();
        resize("carol", node, 2048);
        resize("admin", NodeId.newInstance("nowhere", 1), 2048);
        resize("admin", node, 2048);
        await("the new size", () -> nodes(NodeState.RUNNING).stream().anyMatch(
            each -> each.getNodeId().equals(node) && each.getCapability().getMemorySize() == 2048));
        see("smaller");
        resize("admin", node, 4096);
        await("the old size", () -> nodes(NodeState.RUNNING).stream().anyMatch(
            each -> each.getNodeId().equals(node) && each.getCapability().getMemorySize() == 4096));
    }
}
