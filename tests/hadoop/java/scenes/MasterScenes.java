package scenes;

import static scenes.Contexts.ask;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerUpdateType;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.ExecutionTypeRequest;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceBlacklistRequest;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.UpdateContainerRequest;

/** The ApplicationMaster's protocol, each call a single RPC. */
public final class MasterScenes extends Scenes {
    /** A reply without what depends on the moment. */
    private static Map<String, Object> brief(Am am, AllocateResponse reply) {
        Map<String, Object> brief = new TreeMap<>();
        brief.put("responseId", "+" + (reply.getResponseId() - am.sentId));
        brief.put("allocated", reply.getAllocatedContainers().size());
        brief.put("completed", reply.getCompletedContainersStatuses().size());
        brief.put("nodes", reply.getNumClusterNodes());
        brief.put("priority", reply.getApplicationPriority());
        brief.put("command", String.valueOf(reply.getAMCommand()));
        brief.put("updateErrors", reply.getUpdateErrors());
        return brief;
    }

    private void allocate(String step, Am am, ResourceRequest... asks) {
        seen.call(step, () -> brief(am, am.allocate(asks)));
    }

    @Scene
    public void registered() throws Exception {
        Am am = Am.unmanaged(this, "app1", "default");
        seen.call("register", () -> am.register());
        seen.call("register again", () -> am.register());
        seen.call("first allocate", () -> am.allocate());
        Am other = Am.unmanaged(this, "app2", "other");
        seen.call("register in a queue with a maximum of its own", () -> other.rm.registerApplicationMaster(
            RegisterApplicationMasterRequest.newInstance("", -1, "")));
        seen.value("report without host and port", report(other.attempt.getApplicationId()));
    }

    @Scene
    public void notRegistered() throws Exception {
        Am am = Am.unmanaged(this, "app1", "default");
        seen.call("allocate", () -> am.allocate());
        seen.call("finish", () -> am.finish(FinalApplicationStatus.SUCCEEDED, ""));
        seen.call("state", () -> report(am.attempt.getApplicationId()).getYarnApplicationState());
    }

    @Scene
    public void responseIds() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        allocate("first", am);
        allocate("second", am);
        am.responseId = 1;
        allocate("the second again", am, ask(1, "*", 128, 1));
        seen.value("nothing is pending", report(am.attempt.getApplicationId()).getApplicationResourceUsageReport().getNeededResources());
        am.responseId = 0;
        allocate("the first again", am);
        am.responseId = 7;
        allocate("from the future", am);
        am.responseId = -1;
        allocate("below none", am);
        am.responseId = 2;
        allocate("the right one", am);
    }

    @Scene
    public void containersComeAndGo() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        allocate("before", am);
        ResourceRequest keyed = ask(3, "*", 200, 1);
        keyed.setAllocationRequestId(42);
        allocate("ask", am, ask(1, "*", 300, 2), keyed);
        am.until("3 containers", () -> am.allocated.size() == 3);
        seen.value("containers", am.allocated.stream().map(each -> Map.of(
            "priority", each.getPriority(), "resource", each.getResource(), "key", each.getAllocationRequestId(),
            "type", each.getExecutionType(), "version", each.getVersion(), "token", each.getContainerToken(),
            "tags", each.getAllocationTags())).collect(Collectors.toList()));
        seen.value("headroom", am.allocate().getAvailableResources());
        ContainerId released = am.allocated.get(0).getId();
        am.release(released);
        seen.value("status of the released one", am.completion(released).toString().replaceAll("ContainerId: [^,]*", "ContainerId: it"));
        seen.value("reported once", am.completed.size());
        seen.call("release it again", () -> brief(am, am.release(released)));
        // Nowhere, so that no heartbeat of a node can come between this and the next one.
        ResourceRequest nowhere = ask(1, "*", 300, 1);
        nowhere.setRelaxLocality(false);
        allocate("ask for one", am, nowhere);
        allocate("then for none", am, ask(1, "*", 300, 0));
    }

    @Scene
    public void refusedAsks() throws Exception {
        Am am = Am.registered(this, "app1", "other");
        allocate("negative memory", am, ask(1, "*", -1, 1));
        allocate("more than the cluster's maximum", am, ask(1, "*", 4000, 1));
        allocate("more than the queue's maximum", am, ask(1, "*", 1500, 1));
        allocate("no resource", am, ask(1, "*", 0, 1));
        ResourceRequest labelled = ask(1, "*", 128, 1);
        labelled.setNodeLabelExpression("gpu");
        allocate("unknown label", am, labelled);
        ResourceRequest onNode = ask(1, "somewhere", 128, 1);
        onNode.setNodeLabelExpression("gpu");
        allocate("label and host", am, onNode);
        ResourceRequest vcores = ask(1, "*", 128, 1);
        vcores.setCapability(Resource.newInstance(128, 9));
        allocate("too many vcores", am, vcores);
        allocate("two good ones with a bad one", am, ask(1, "*", 128, 1), ask(2, "*", -5, 1), ask(3, "*", 128, 1));
        am.obtain(1, 128);
        seen.value("a good one gives", am.allocated.size());
    }

    @Scene
    public void refusedReleases() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Am other = Am.registered(this, "app2", "default");
        ContainerId foreign = other.obtain(1, 128).get(0).getId();
        seen.call("of another application", () -> brief(am, am.release(foreign)));
        seen.call("unknown", () -> brief(am, am.release(ContainerId.newContainerId(am.attempt, 77))));
        await("no end of it", () -> true);
        seen.value("completed", am.completed);
        seen.value("the other keeps it", report(other.attempt.getApplicationId()).getApplicationResourceUsageReport().getNumUsedContainers());
    }

    @Scene
    public void blacklists() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        seen.call("everything", () -> brief(am, am.allocate(blacklist(List.of("*"), null))));
        List<String> hosts = new ArrayList<>();
        for (NodeReport node : nodes(NodeState.RUNNING)) {
            hosts.add(node.getNodeId().getHost());
        }
        seen.call("all hosts", () -> brief(am, am.allocate(blacklist(hosts, null))));
        allocate("ask", am, ask(1, "*", 128, 1));
        Thread.sleep(1000);
        allocate("a second later", am);
        seen.call("remove one", () -> brief(am, am.allocate(blacklist(null, hosts.subList(0, 1)))));
        am.until("a container", () -> !am.allocated.isEmpty());
        seen.value("is on that node", am.allocated.get(0).getNodeId().getHost().equals(hosts.get(0)));
        seen.call("remove what is not on it", () -> brief(am, am.allocate(blacklist(null, List.of("nowhere")))));
    }

    private static AllocateRequest blacklist(List<String> add, List<String> remove) {
        return AllocateRequest.newInstance(0, 0.5f, List.of(), List.of(), ResourceBlacklistRequest.newInstance(add, remove));
    }

    private void update(String step, Am am, UpdateContainerRequest... updates) {
        seen.call(step, () -> brief(am, am.allocate(AllocateRequest.newBuilder().responseId(0).progress(0.1f)
            .askList(List.of()).releaseList(List.of()).updateRequests(List.of(updates)).build())));
    }

    private static UpdateContainerRequest size(Container container, int version, ContainerUpdateType type, int memory) {
        return UpdateContainerRequest.newInstance(version, container.getId(), type, Resource.newInstance(memory, 1), null);
    }

    @Scene
    public void updates() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = am.obtain(1, 256).get(0);
        Container second = am.obtain(1, 512).get(0);
        am.start(container, "sleep 60");
        am.start(second, "sleep 60");
        await("both to run", () -> report(am.attempt.getApplicationId()).getApplicationResourceUsageReport().getNumUsedContainers() == 2);
        update("wrong version", am, size(container, 3, ContainerUpdateType.INCREASE_RESOURCE, 512));
        update("too large", am, size(container, 0, ContainerUpdateType.INCREASE_RESOURCE, 4000));
        update("an increase that is smaller", am, size(container, 0, ContainerUpdateType.INCREASE_RESOURCE, 128));
        update("a decrease that is larger", am, size(second, 0, ContainerUpdateType.DECREASE_RESOURCE, 1024));
        update("unknown container", am, UpdateContainerRequest.newInstance(0, ContainerId.newContainerId(am.attempt, 99),
            ContainerUpdateType.INCREASE_RESOURCE, Resource.newInstance(512, 1), null));
        update("twice in a call", am, size(container, 0, ContainerUpdateType.INCREASE_RESOURCE, 512),
            size(container, 0, ContainerUpdateType.INCREASE_RESOURCE, 640));
        am.until("the increase", () -> am.updated.size() == 1);
        update("without a type", am, UpdateContainerRequest.newInstance(0, second.getId(), null, Resource.newInstance(640, 1), null));
        update("decrease", am, size(second, 0, ContainerUpdateType.DECREASE_RESOURCE, 256));
        am.until("the decrease", () -> am.updated.size() == 2);
        seen.value("updated", am.updated.stream().map(each -> Map.of("type", each.getUpdateType(), "version",
            each.getContainer().getVersion(), "resource", each.getContainer().getResource(),
            "id", each.getContainer().getId())).collect(Collectors.toList()));
    }

    @Scene
    public void opportunistic() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ResourceRequest request = ask(1, "*", 128, 1);
        request.setExecutionTypeRequest(ExecutionTypeRequest.newInstance(ExecutionType.OPPORTUNISTIC, true));
        allocate("ask", am, request);
        am.until("a container", () -> !am.allocated.isEmpty());
        seen.value("type", am.allocated.get(0).getExecutionType());
    }

    @Scene
    public void progress() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        for (float progress : new float[] {0.25f, 7f, -1f, Float.NaN}) {
            am.allocate(AllocateRequest.newInstance(0, progress, List.of(), List.of(), null));
            float expected = progress > 1 ? 1f : progress >= 0 ? progress : 0f;
            await("the progress", () -> report(am.attempt.getApplicationId()).getProgress() == expected);
            seen.value("progress after " + progress, report(am.attempt.getApplicationId()).getProgress());
        }
    }

    @Scene
    public void finish() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        seen.call("finish", () -> am.finish(FinalApplicationStatus.FAILED, "it did not work"));
        awaitEnd(id);
        seen.value("report", report(id));
        seen.call("finish again", () -> am.finish(FinalApplicationStatus.SUCCEEDED, "it did"));
        seen.call("allocate", () -> am.allocate());
        seen.call("register", () -> am.register());
    }

    @Scene
    public void finishOfAManagedOne() throws Exception {
        ApplicationId id = newId("app1");
        Am am = Am.managed(this, Contexts.managed(id, "default", ""));
        am.register();
        await("unregistered", () -> am.finish(FinalApplicationStatus.SUCCEEDED, "done"));
        awaitEnd(id);
        seen.value("state", report(id).getYarnApplicationState());
        seen.call("finish again", () -> am.finish(FinalApplicationStatus.FAILED, "again"));
        seen.call("allocate", () -> am.allocate());
        seen.value("final status", report(id).getFinalApplicationStatus());
    }

    @Scene
    public void undefinedEnd() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        seen.call("finish", () -> am.finish(FinalApplicationStatus.UNDEFINED, null));
        awaitEnd(am.attempt.getApplicationId());
        seen.value("report", report(am.attempt.getApplicationId()).getFinalApplicationStatus());
    }

    @Scene
    public void keptContainers() throws Exception {
        ApplicationId id = newId("app1");
        ApplicationSubmissionContext context = Contexts.managed(id, "default", "");
        context.setMaxAppAttempts(2);
        context.setKeepContainersAcrossApplicationAttempts(true);
        Am first = Am.managed(this, context);
        first.register();
        List<Container> containers = first.obtain(2, 128);
        for (Container container : containers) {
            first.start(container, "sleep 60");
        }
        // Only what the RM knows to run is kept, and no report shows that: ten heartbeats are enough.
        Thread.sleep(1000);
        alice.failApplicationAttempt(
            org.apache.hadoop.yarn.api.protocolrecords.FailApplicationAttemptRequest.newInstance(first.attempt));
        await("the second attempt", () -> report(id).getCurrentApplicationAttemptId().getAttemptId() == 2);
        Am second = Am.currentOf(this, id);
        seen.call("register", () -> {
            var reply = second.register();
            // That of the first AM may still be there.
            return Map.of("containers", reply.getContainersFromPreviousAttempts().stream().map(Container::getId)
                .filter(each -> each.getContainerId() > 1).collect(Collectors.toList()), "tokens", !reply.getNMTokensFromPreviousAttempts().isEmpty());
        });
        second.release(containers.get(0).getId());
        seen.value("the released one", second.completion(containers.get(0).getId()));
    }

    @Scene
    public void tokens() throws Exception {
        Am am = Am.unmanaged(this, "app1", "default");
        seen.call("no token", () -> am.proxy(null).registerApplicationMaster(
            RegisterApplicationMasterRequest.newInstance("", -1, "")));
        byte[] wrong = am.token.getPassword().clone();
        wrong[0] ^= 1;
        Token<TokenIdentifier> forged = new Token<>(am.token.getIdentifier(), wrong, am.token.getKind(), am.token.getService());
        seen.call("wrong password", () -> am.proxy(forged).registerApplicationMaster(
            RegisterApplicationMasterRequest.newInstance("", -1, "")));
        Token<TokenIdentifier> garbled = new Token<>(
            new byte[] {1, 2, 3}, am.token.getPassword(), am.token.getKind(), am.token.getService());
        seen.call("unreadable identifier", () -> am.proxy(garbled).registerApplicationMaster(
            RegisterApplicationMasterRequest.newInstance("", -1, "")));
        am.register();
        am.finish(FinalApplicationStatus.SUCCEEDED, "");
        awaitEnd(am.attempt.getApplicationId());
        seen.call("of a finished application", () -> am.proxy(am.token).registerApplicationMaster(
            RegisterApplicationMasterRequest.newInstance("", -1, "")));
    }

    @Scene
    public void priorityOfRequests() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ResourceRequest low = ResourceRequest.newInstance(Priority.newInstance(20), "*", Resource.newInstance(1024, 1), 1);
        ResourceRequest strict = ask(5, "nowhere", 1024, 1);
        ResourceRequest anywhere = ask(5, "*", 1024, 1);
        anywhere.setRelaxLocality(false);
        am.allocate(low, strict, anywhere);
        am.until("a container", () -> !am.allocated.isEmpty());
        seen.value("container", am.allocated.get(0).getPriority());
        seen.value("still pending", report(am.attempt.getApplicationId()).getApplicationResourceUsageReport().getNeededResources());
    }
}
