package scenes;

import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.ResourceRequest;

/** Requests of an AM after a node was decommissioned at once. */
public final class DecommissionScenes extends Scenes {
    private static final long HEARTBEAT_MS = 100;

    private Am am;
    private NodeId node;
    private int number;

    /** An AM, and a node that it had a container on and that is decommissioned now. */
    private void decommissionItsNode() throws Exception {
        am = Am.registered(this, "app1", "default");
        Container container = am.obtain(1, 256).get(0);
        node = container.getNodeId();
        number = cluster.numberOf(node.toString());
        seen.mask.text(node.toString(), "node1");
        am.start(container, "sleep 120");
        Thread.sleep(10 * HEARTBEAT_MS);
        cluster.decommission(number, 0);
        await(node + " to leave", () -> nodes(NodeState.DECOMMISSIONED).stream().anyMatch(each -> each.getNodeId().equals(node)));
        seen.value("its container", am.completion(container.getId()).getExitStatus());
    }

    private void bringBack() throws Exception {
        cluster.recommission(number);
        cluster.startNode(number);
        waitForNodes(NODES);
    }

    private static ResourceRequest[] there(String host, boolean relax) {
        ResourceRequest rack = Contexts.ask(2, "/default-rack", 256, 1);
        ResourceRequest anywhere = Contexts.ask(2, ResourceRequest.ANY, 256, 1);
        rack.setRelaxLocality(relax);
        anywhere.setRelaxLocality(relax);
        return new ResourceRequest[] {Contexts.ask(2, host, 256, 1), rack, anywhere};
    }

    private int inAWhile() throws Exception {
        int before = am.allocated.size();
        Thread.sleep(15 * HEARTBEAT_MS);
        am.allocate();
        return am.allocated.size() - before;
    }

    @Scene
    public void relaxedRequestsGoElsewhere() throws Exception {
        decommissionItsNode();
        int before = am.allocated.size();
        am.allocate(there(node.getHost(), true));
        am.until("a container", () -> am.allocated.size() > before);
        seen.value("there", am.allocated.get(before).getNodeId().equals(node));
        bringBack();
    }

    @Scene
    public void strictRequestsWaitForTheHost() throws Exception {
        decommissionItsNode();
        am.allocate(there(node.getHost(), false));
        seen.value("in a while", inAWhile());
        int before = am.allocated.size();
        bringBack();
        am.until("a container", () -> am.allocated.size() > before);
        seen.value("on its host", am.allocated.get(before).getNodeId().getHost().equals(node.getHost()));
    }

    @Scene
    public void headroomHasOneNodeLess() throws Exception {
        decommissionItsNode();
        seen.value("nodes", am.allocate().getNumClusterNodes());
        seen.value("headroom", am.allocate().getAvailableResources());
        bringBack();
        am.until("both nodes", () -> am.allocate().getNumClusterNodes() == NODES);
        seen.value("headroom with both", am.allocate().getAvailableResources());
    }

    @Scene
    public void manyFillTheOtherNode() throws Exception {
        decommissionItsNode();
        List<Container> many = am.obtain(3, 1024);
        seen.value("on the other", many.stream().map(each -> each.getNodeId().equals(node)).collect(Collectors.toList()));
        am.allocate(Contexts.ask(1, ResourceRequest.ANY, 2048, 1));
        seen.value("one more has no room", inAWhile());
        int before = am.allocated.size();
        bringBack();
        am.until("a container", () -> am.allocated.size() > before);
        seen.value("it is on its host", am.allocated.get(before).getNodeId().getHost().equals(node.getHost()));
    }
}
