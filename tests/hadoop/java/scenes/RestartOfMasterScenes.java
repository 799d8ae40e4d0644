package scenes;

import static scenes.Contexts.ask;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.ResourceBlacklistRequest;
import org.apache.hadoop.yarn.api.records.ResourceRequest;

/** The ResourceManager is killed while an AM waits for something, or has just got it. */
public final class RestartOfMasterScenes extends Scenes {
    private static final long HEARTBEAT_MS = 100;

    private static Map<String, Object> brief(AllocateResponse reply) {
        Map<String, Object> brief = new TreeMap<>();
        brief.put("allocated", reply.getAllocatedContainers().size());
        brief.put("completed", reply.getCompletedContainersStatuses().size());
        brief.put("nodes", reply.getNumClusterNodes());
        return brief;
    }

    private int used(Am am) throws Exception {
        return report(am.attempt.getApplicationId()).getApplicationResourceUsageReport().getNumUsedContainers();
    }

    private Object needed(Am am) throws Exception {
        return report(am.attempt.getApplicationId()).getApplicationResourceUsageReport().getNeededResources();
    }

    /** A container that runs, as the RM knows. */
    private Container running(Am am, String command) throws Exception {
        Container container = am.obtain(1, 256).get(0);
        am.start(container, command);
        Thread.sleep(10 * HEARTBEAT_MS);
        am.allocate();
        return container;
    }

    private void registerAgain(Am am) throws Exception {
        am.connect();
        am.register();
        am.responseId = 0;
    }

    private static ResourceRequest nowhere() {
        ResourceRequest request = ask(1, ResourceRequest.ANY, 256, 1);
        request.setRelaxLocality(false);
        return request;
    }

    @Scene
    public void submittedAndNotRegistered() throws Exception {
        Am am = Am.unmanaged(this, "app1", "default");
        restart();
        am.connect();
        seen.call("allocate", () -> brief(am.allocate()));
        seen.call("register", () -> am.register().getQueue());
        seen.call("allocate after that", () -> brief(am.allocate()));
        seen.value("report", report(am.attempt.getApplicationId()));
    }

    @Scene
    public void registeredAndNothingElse() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        restart();
        am.connect();
        seen.call("allocate", () -> brief(am.allocate()));
        seen.call("register", () -> am.register().getMaximumResourceCapability());
        seen.call("register again", () -> am.register().getQueue());
        seen.call("allocate with id 0", () -> am.allocate().getResponseId());
    }

    @Scene
    public void responseIdsBeginAgain() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        for (int call = 0; call < 5; call++) {
            am.allocate();
        }
        restart();
        am.connect();
        am.register();
        seen.call("the next id of before", () -> am.allocate().getResponseId());
        am.responseId = 0;
        seen.call("the first", () -> am.allocate().getResponseId());
        am.responseId = 0;
        seen.call("the first again", () -> am.allocate().getResponseId());
        am.responseId = 1;
        seen.call("the second", () -> am.allocate().getResponseId());
    }

    @Scene
    public void pendingRequestsAreForgotten() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        am.allocate(nowhere());
        seen.value("needed", needed(am));
        restart();
        registerAgain(am);
        seen.value("needed after the restart", needed(am));
        seen.value("obtained", am.obtain(2, 128).stream().map(Scenes::number).collect(Collectors.toList()));
    }

    @Scene
    public void allocatedAndNotAcquired() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        am.allocate(ask(1, ResourceRequest.ANY, 256, 2));
        await("two containers", () -> used(am) == 2);
        restart();
        registerAgain(am);
        Thread.sleep(10 * HEARTBEAT_MS);
        seen.call("allocate", () -> brief(am.allocate()));
        seen.value("used", used(am));
        seen.value("the next one", number(am.obtain(1, 256).get(0)));
    }

    @Scene
    public void acquiredAndNotStarted() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = am.obtain(1, 256).get(0);
        restart();
        registerAgain(am);
        Thread.sleep(10 * HEARTBEAT_MS);
        seen.value("used", used(am));
        seen.act("release", () -> am.release(container.getId()));
        Thread.sleep(10 * HEARTBEAT_MS);
        am.allocate();
        seen.value("ends", am.completed.size());
    }

    @Scene
    public void aRunningOneIsReleasedAfterwards() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = running(am, "sleep 120");
        restart();
        await("its recovery", () -> used(am) == 1);
        registerAgain(am);
        am.release(container.getId());
        seen.value("its end", am.completion(container.getId()).getExitStatus());
        await("none is used", () -> used(am) == 0);
        seen.call("once", () -> am.completed.size());
    }

    @Scene
    public void releasedBeforeItsNodeIsBack() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = running(am, "sleep 120");
        cluster.restartRM();
        alice = client("alice");
        registerAgain(am);
        am.release(container.getId());
        waitForNodes(NODES);
        seen.value("its end", am.completion(container.getId()).getExitStatus());
        await("none is used", () -> used(am) == 0);
    }

    @Scene
    public void anEndThatNobodyHasHeardOf() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Path over = directory.resolve("ended");
        Container container = running(am, "while ! test -e " + over + "; do sleep 0.1; done; exit 5");
        Files.createFile(over);
        Thread.sleep(10 * HEARTBEAT_MS);
        restart();
        registerAgain(am);
        seen.value("its end", am.completion(container.getId()).getExitStatus());
        for (int call = 0; call < 5; call++) {
            Thread.sleep(HEARTBEAT_MS);
            am.allocate();
        }
        seen.value("reported", am.completed.size());
    }

    @Scene
    public void anEndThatTheMasterHasHeardOf() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = running(am, "exit 5");
        seen.value("its end", am.completion(container.getId()).getExitStatus());
        am.allocate();
        Thread.sleep(10 * HEARTBEAT_MS);
        restart();
        registerAgain(am);
        for (int call = 0; call < 10; call++) {
            Thread.sleep(HEARTBEAT_MS);
            am.allocate();
        }
        seen.value("reported", am.completed.size());
    }

    @Scene
    public void aRunningOneIsStoppedAfterwards() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = running(am, "sleep 120");
        restart();
        registerAgain(am);
        seen.call("stop it", () -> am.stop(container).getSuccessfullyStoppedContainers().size());
        seen.value("its end", am.completion(container.getId()).getExitStatus());
    }

    @Scene
    public void blacklistIsForgotten() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        List<String> hosts = nodes(org.apache.hadoop.yarn.api.records.NodeState.RUNNING).stream()
            .map(each -> each.getNodeId().getHost()).collect(Collectors.toList());
        am.allocate(AllocateRequest.newInstance(
            0, 0.5f, List.of(), List.of(), ResourceBlacklistRequest.newInstance(hosts, List.of())));
        am.allocate(ask(1, ResourceRequest.ANY, 256, 1));
        Thread.sleep(10 * HEARTBEAT_MS);
        seen.call("allocate", () -> brief(am.allocate()));
        restart();
        registerAgain(am);
        seen.value("obtained", am.obtain(1, 256).size());
    }

    @Scene
    public void nodeTokensOfBefore() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = running(am, "sleep 120");
        restart();
        seen.call("status", () -> am.statuses(container).getContainerStatuses().get(0).getState());
        registerAgain(am);
        seen.call("status after registering", () -> am.statuses(container).getContainerStatuses().get(0).getState());
        am.nodeTokens.clear();
        Container next = am.obtain(1, 256).get(0);
        seen.value("a new token", am.nodeTokens.size());
        seen.call("start", () -> am.start(next, "sleep 120").getSuccessfullyStartedContainers().size());
    }

    @Scene
    public void twoRestartsInARow() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = running(am, "sleep 120");
        cluster.restartRM();
        restart();
        await("its recovery", () -> used(am) == 1);
        registerAgain(am);
        Container next = am.obtain(1, 256).get(0);
        seen.value("a new container", number(next));
        am.start(next, "sleep 120");
        Thread.sleep(10 * HEARTBEAT_MS);
        restart();
        await("the recovery of both", () -> used(am) == 2);
        registerAgain(am);
        seen.value("a third one", number(am.obtain(1, 256).get(0)));
        am.release(container.getId(), next.getId());
        seen.value("ends", List.of(am.completion(container.getId()).getExitStatus(), am.completion(next.getId()).getExitStatus()));
    }

    @Scene
    public void finishedInTheMiddle() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        running(am, "sleep 120");
        restart();
        am.connect();
        seen.call("finish", () -> am.finish(FinalApplicationStatus.SUCCEEDED, "early"));
        registerAgain(am);
        await("unregistered", () -> am.finish(FinalApplicationStatus.SUCCEEDED, "late"));
        awaitEnd(id);
        seen.value("final status", report(id).getFinalApplicationStatus());
        seen.value("diagnostics", report(id).getDiagnostics());
    }
}
