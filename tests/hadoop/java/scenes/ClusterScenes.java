package scenes;

import java.util.Set;
import org.apache.hadoop.yarn.api.protocolrecords.GetAllResourceProfilesRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetAllResourceTypeInfoRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetClusterMetricsRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetClusterNodeAttributesRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetClusterNodeLabelsRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetAttributesToNodesRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetLabelsToNodesRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetNodesToAttributesRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetNodesToLabelsRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetQueueInfoRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetQueueUserAclsInfoRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetResourceProfileRequest;
import org.apache.hadoop.yarn.api.records.NodeState;

/** What a client reads of the cluster: queues, nodes, labels, resource types. */
public final class ClusterScenes extends Scenes {
    private void queue(String name, boolean children, boolean recursive) {
        seen.call(name + (children ? " with children" : "") + (recursive ? ", recursive" : ""), () ->
            alice.getQueueInfo(GetQueueInfoRequest.newInstance(name, false, children, recursive)).getQueueInfo());
    }

    @Scene
    public void queues() {
        for (String name : new String[] {"default", "root.default", "stopped", "full", "parent", "x", "nosuch", ""}) {
            queue(name, false, false);
        }
        queue("parent", true, false);
        queue("root", true, true);
    }

    @Scene
    public void queuesInUse() throws Exception {
        Am am = Am.registered(this, "app1", "x");
        am.obtain(1, 512);
        queue("parent", true, true);
        seen.call("with its applications", () -> alice.getQueueInfo(
            GetQueueInfoRequest.newInstance("x", true, false, false)).getQueueInfo().getApplications().size());
    }

    @Scene
    public void queueAcls() throws Exception {
        for (String user : new String[] {"alice", "bob", "admin"}) {
            seen.call(user, () -> client(user).getQueueUserAcls(GetQueueUserAclsInfoRequest.newInstance()).getUserAclsInfoList());
        }
    }

    @Scene
    public void nodes() {
        seen.call("metrics", () -> alice.getClusterMetrics(GetClusterMetricsRequest.newInstance()).getClusterMetrics().getNumNodeManagers());
        seen.call("running", () -> nodes(NodeState.RUNNING));
        seen.call("unhealthy", () -> nodes(NodeState.UNHEALTHY));
    }

    @Scene
    public void resourceTypesAndProfiles() {
        seen.call("types", () -> alice.getResourceTypeInfo(GetAllResourceTypeInfoRequest.newInstance()).getResourceTypeInfo());
        seen.call("profiles", () -> alice.getResourceProfiles(GetAllResourceProfilesRequest.newInstance()));
        seen.call("profile", () -> alice.getResourceProfile(GetResourceProfileRequest.newInstance("small")));
    }

    @Scene
    public void labelsAndAttributes() {
        seen.call("labels", () -> alice.getClusterNodeLabels(GetClusterNodeLabelsRequest.newInstance()));
        seen.call("labels of nodes", () -> alice.getNodeToLabels(GetNodesToLabelsRequest.newInstance()));
        seen.call("nodes of labels", () -> alice.getLabelsToNodes(GetLabelsToNodesRequest.newInstance()));
        seen.call("nodes of a label", () -> alice.getLabelsToNodes(GetLabelsToNodesRequest.newInstance(Set.of("gpu"))));
        seen.call("attributes", () -> alice.getClusterNodeAttributes(GetClusterNodeAttributesRequest.newInstance()));
        seen.call("attributes of nodes", () -> alice.getNodesToAttributes(GetNodesToAttributesRequest.newInstance(Set.of())));
        seen.call("nodes of attributes", () -> alice.getAttributesToNodes(GetAttributesToNodesRequest.newInstance()));
    }
}
