package scenes;

import static scenes.Contexts.ask;

import java.util.Map;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.protocolrecords.FailApplicationAttemptRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetApplicationAttemptsRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetContainersRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetQueueInfoRequest;
import org.apache.hadoop.yarn.api.protocolrecords.KillApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.MoveApplicationAcrossQueuesRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ApplicationTimeoutType;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;

/** The ResourceManager is killed while a client's application is on its way. */
public final class RestartOfClientScenes extends Scenes {
    private static final long HEARTBEAT_MS = 100;

    private int used(ApplicationId id) throws Exception {
        return report(id).getApplicationResourceUsageReport().getNumUsedContainers();
    }

    @Scene
    public void waitingForItsMaster() throws Exception {
        ApplicationId first = newId("app1");
        submit(Contexts.managed(first, "root.parent.y", "sleep 120"));
        awaitState(first, YarnApplicationState.ACCEPTED, YarnApplicationState.RUNNING);
        ApplicationId second = newId("app2");
        // A user may not have two masters in this queue.
        submit(Contexts.managed(second, "root.parent.y", "sleep 1; exit 3"));
        await("the master of the first", () -> used(first) == 1);
        Thread.sleep(10 * HEARTBEAT_MS);
        restart();
        seen.value("state", report(second).getYarnApplicationState());
        await("the recovery", () -> used(first) == 1);
        seen.value("used", used(second));
        alice.forceKillApplication(KillApplicationRequest.newInstance(first));
        awaitEnd(second);
        // Without the number of restarts before this scene.
        seen.value("its end", report(second).getDiagnostics().replaceAll("container_e\\d+_", "container_"));
        seen.value("attempts", report(second).getCurrentApplicationAttemptId());
    }

    @Scene
    public void killedBefore() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        am.obtain(1, 256);
        alice.forceKillApplication(KillApplicationRequest.newInstance(id));
        awaitEnd(id);
        restart();
        seen.value("report", report(id));
        seen.call("kill it again", () -> alice.forceKillApplication(KillApplicationRequest.newInstance(id)).getIsKillCompleted());
    }

    @Scene
    public void killedBeforeItsNodesAreBack() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        Container container = am.obtain(1, 256).get(0);
        am.start(container, "sleep 120");
        Thread.sleep(10 * HEARTBEAT_MS);
        cluster.restartRM();
        alice = client("alice");
        alice.forceKillApplication(KillApplicationRequest.newInstance(id));
        awaitEnd(id);
        waitForNodes(NODES);
        seen.value("report", report(id));
        await("no containers", () -> nodes(org.apache.hadoop.yarn.api.records.NodeState.RUNNING).stream()
            .allMatch(each -> each.getNumContainers() == 0));
    }

    @Scene
    public void movedWithRunningContainers() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        Container container = am.obtain(1, 512).get(0);
        am.start(container, "sleep 120");
        Thread.sleep(10 * HEARTBEAT_MS);
        alice.moveApplicationAcrossQueues(MoveApplicationAcrossQueuesRequest.newInstance(id, "other"));
        restart();
        await("the recovery", () -> used(id) == 1);
        seen.value("queue", report(id).getQueue());
        seen.value("other", alice.getQueueInfo(GetQueueInfoRequest.newInstance("other", true, false, false)).getQueueInfo()
            .getApplications().size());
        seen.value("default", alice.getQueueInfo(GetQueueInfoRequest.newInstance("default", true, false, false)).getQueueInfo()
            .getApplications().size());
    }

    @Scene
    public void theSameSubmissionAgain() throws Exception {
        ApplicationId id = newId("app1");
        submit(Contexts.unmanaged(id, "default"));
        Am am = Am.of(this, id);
        am.register();
        restart();
        seen.act("submit", () -> submit(Contexts.unmanaged(id, "other")));
        seen.value("queue", report(id).getQueue());
        seen.value("attempt", report(id).getCurrentApplicationAttemptId());
    }

    @Scene
    public void anIdOfBefore() throws Exception {
        ApplicationId id = newId("app1");
        restart();
        seen.act("submit", () -> submit(Contexts.unmanaged(id, "default")));
        Am am = Am.of(this, id);
        seen.call("register", () -> am.register().getQueue());
        seen.value("a container", number(am.obtain(1, 256).get(0)));
        ApplicationId next = newId("app2");
        seen.value("the next number is larger", next.getId() > id.getId() || next.getClusterTimestamp() != id.getClusterTimestamp());
    }

    @Scene
    public void lifetimeRunsOn() throws Exception {
        ApplicationId id = newId("app1");
        ApplicationSubmissionContext context = Contexts.unmanaged(id, "default");
        context.setApplicationTimeouts(Map.of(ApplicationTimeoutType.LIFETIME, 12L));
        submit(context);
        Am am = Am.of(this, id);
        am.register();
        restart();
        seen.value("timeouts", report(id).getApplicationTimeouts().keySet().stream().map(Object::toString).collect(Collectors.toList()));
        awaitEnd(id);
        seen.value("report", report(id));
    }

    @Scene
    public void attemptsAreRemembered() throws Exception {
        ApplicationId id = newId("app1");
        ApplicationSubmissionContext context = Contexts.managed(id, "default", "");
        context.setMaxAppAttempts(2);
        Am first = Am.managed(this, context);
        first.register();
        alice.failApplicationAttempt(FailApplicationAttemptRequest.newInstance(first.attempt));
        await("the second attempt", () -> report(id).getCurrentApplicationAttemptId().getAttemptId() == 2);
        Am second = Am.currentOf(this, id);
        second.register();
        restart();
        await("the recovery", () -> used(id) == 1);
        seen.value("attempts", alice.getApplicationAttempts(GetApplicationAttemptsRequest.newInstance(id))
            .getApplicationAttemptList().stream().map(each -> Map.of("id", each.getApplicationAttemptId(),
                "state", each.getYarnApplicationAttemptState(), "diagnostics", each.getDiagnostics()))
            .collect(Collectors.toList()));
        seen.value("containers", alice.getContainers(GetContainersRequest.newInstance(second.attempt)).getContainerList()
            .stream().map(each -> Map.of("state", each.getContainerState(), "resource", each.getAllocatedResource()))
            .collect(Collectors.toList()));
        second.connect();
        second.register();
        second.responseId = 0;
        await("unregistered", () -> second.finish(org.apache.hadoop.yarn.api.records.FinalApplicationStatus.SUCCEEDED, ""));
        awaitEnd(id);
        seen.value("final status", report(id).getFinalApplicationStatus());
    }

    @Scene
    public void limitsOfAQueueHold() throws Exception {
        ApplicationId first = newId("app1");
        submit(Contexts.unmanaged(first, "full"));
        Am.of(this, first);
        restart();
        ApplicationId second = newId("app2");
        submit(Contexts.unmanaged(second, "full"));
        awaitEnd(second);
        seen.value("one more than the maximum", report(second).getDiagnostics());
        alice.forceKillApplication(KillApplicationRequest.newInstance(first));
        awaitEnd(first);
        ApplicationId third = newId("app3");
        seen.act("then there is room", () -> submit(Contexts.unmanaged(third, "full")));
        seen.call("register", () -> Am.of(this, third).register().getQueue());
    }

    @Scene
    public void usageIsCountedAgain() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        for (Container container : am.obtain(3, 512)) {
            am.start(container, "sleep 120");
        }
        Thread.sleep(10 * HEARTBEAT_MS);
        restart();
        await("the recovery", () -> used(id) == 3);
        seen.value("used", report(id).getApplicationResourceUsageReport().getUsedResources());
        seen.value("queue", alice.getQueueInfo(GetQueueInfoRequest.newInstance("default", false, false, false)).getQueueInfo()
            .getCurrentCapacity());
        am.connect();
        am.register();
        am.responseId = 0;
        seen.value("headroom", am.allocate(ask(1, "*", 256, 0)).getAvailableResources());
    }
}
