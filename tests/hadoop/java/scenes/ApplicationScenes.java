package scenes;

import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.yarn.api.protocolrecords.FailApplicationAttemptRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetApplicationAttemptReportRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetApplicationAttemptsRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetApplicationsRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetContainerReportRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetContainersRequest;
import org.apache.hadoop.yarn.api.protocolrecords.KillApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.MoveApplicationAcrossQueuesRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SignalContainerRequest;
import org.apache.hadoop.yarn.api.protocolrecords.UpdateApplicationPriorityRequest;
import org.apache.hadoop.yarn.api.protocolrecords.UpdateApplicationTimeoutsRequest;
import org.apache.hadoop.yarn.api.ApplicationClientProtocol;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ApplicationTimeoutType;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.SignalContainerCommand;
import org.apache.hadoop.yarn.api.records.YarnApplicationAttemptState;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;

/** An application from the client's side: reports in each state, and what a client may do to it. */
public final class ApplicationScenes extends Scenes {
    private void reports(String when, ApplicationId id) throws Exception {
        seen.call(when + ": application", () -> report(id));
        seen.call(when + ": attempts", () -> alice.getApplicationAttempts(
            GetApplicationAttemptsRequest.newInstance(id)).getApplicationAttemptList());
        ApplicationAttemptId attempt = ApplicationAttemptId.newInstance(id, 1);
        seen.call(when + ": attempt 1", () -> alice.getApplicationAttemptReport(
            GetApplicationAttemptReportRequest.newInstance(attempt)).getApplicationAttemptReport());
        seen.call(when + ": containers", () -> alice.getContainers(
            GetContainersRequest.newInstance(attempt)).getContainerList());
        seen.call(when + ": container 1", () -> alice.getContainerReport(
            GetContainerReportRequest.newInstance(ContainerId.newContainerId(attempt, 1))).getContainerReport());
    }

    @Scene
    public void reportsOfAnUnmanagedOne() throws Exception {
        Am am = Am.unmanaged(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        reports("accepted", id);
        am.register();
        awaitState(id, YarnApplicationState.RUNNING);
        reports("running", id);
        Container container = am.obtain(1, 200).get(0);
        reports("with an acquired container", id);
        am.start(container, "sleep 60");
        await("its container to run", () -> alice.getContainerReport(GetContainerReportRequest.newInstance(
            container.getId())).getContainerReport().getContainerState().toString().equals("RUNNING"));
        reports("with a running container", id);
        seen.value("finish", am.finish(FinalApplicationStatus.SUCCEEDED, "all is done"));
        awaitEnd(id);
        await("its containers to end", () -> report(id).getApplicationResourceUsageReport().getNumUsedContainers() <= 0);
        reports("finished", id);
    }

    @Scene
    public void reportsOfAManagedOne() throws Exception {
        ApplicationId id = newId("app1");
        submit(Contexts.managed(id, "root.parent.x", "sleep 60"));
        await("the AM to run", () -> alice.getContainerReport(GetContainerReportRequest.newInstance(ContainerId.newContainerId(
            ApplicationAttemptId.newInstance(id, 1), 1))).getContainerReport().getContainerState().toString().equals("RUNNING"));
        await("the RM to know", () -> alice.getApplicationAttemptReport(GetApplicationAttemptReportRequest.newInstance(
            ApplicationAttemptId.newInstance(id, 1))).getApplicationAttemptReport().getYarnApplicationAttemptState()
            == YarnApplicationAttemptState.LAUNCHED);
        reports("launched", id);
        kill(alice, id, "no longer needed");
        reports("killed", id);
    }

    @Scene
    public void waitingForItsAm() throws Exception {
        Am.registered(this, "big", "default").obtain(4, 2048);
        ApplicationId id = newId("app1");
        submit(Contexts.managed(id, "default", "sleep 60"));
        await("its attempt", () -> alice.getApplicationAttemptReport(GetApplicationAttemptReportRequest.newInstance(
            ApplicationAttemptId.newInstance(id, 1))).getApplicationAttemptReport().getYarnApplicationAttemptState()
            == YarnApplicationAttemptState.SCHEDULED);
        reports("waiting", id);
        seen.value("usage", report(id).getApplicationResourceUsageReport());
        kill(alice, id, null);
        seen.value("killed", report(id));
    }

    private void kill(ApplicationClientProtocol by, ApplicationId id, String diagnostics) throws Exception {
        KillApplicationRequest request = KillApplicationRequest.newInstance(id);
        if (diagnostics != null) {
            request.setDiagnostics(diagnostics);
        }
        await("the kill of " + id, () -> by.forceKillApplication(request).getIsKillCompleted());
        awaitEnd(id);
    }

    @Scene
    public void unknownIds() throws Exception {
        ApplicationId id = ApplicationId.newInstance(1234567890123L, 4711);
        seen.mask.application(id, "unknown");
        ApplicationAttemptId attempt = ApplicationAttemptId.newInstance(id, 1);
        reports("unknown", id);
        seen.call("kill", () -> alice.forceKillApplication(KillApplicationRequest.newInstance(id)));
        seen.call("move", () -> alice.moveApplicationAcrossQueues(MoveApplicationAcrossQueuesRequest.newInstance(id, "other")));
        seen.call("priority", () -> alice.updateApplicationPriority(
            UpdateApplicationPriorityRequest.newInstance(id, Priority.newInstance(1))));
        seen.call("timeouts", () -> alice.updateApplicationTimeouts(UpdateApplicationTimeoutsRequest.newInstance(
            id, Map.of(ApplicationTimeoutType.LIFETIME, "2099-01-01T00:00:00.000+0000"))));
        seen.call("fail attempt", () -> alice.failApplicationAttempt(FailApplicationAttemptRequest.newInstance(attempt)));
        seen.call("signal", () -> alice.signalToContainer(SignalContainerRequest.newInstance(
            ContainerId.newContainerId(attempt, 3), SignalContainerCommand.FORCEFUL_SHUTDOWN)));
    }

    @Scene
    public void unknownAttemptsAndContainers() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationAttemptId attempt = ApplicationAttemptId.newInstance(am.attempt.getApplicationId(), 5);
        seen.call("attempt", () -> alice.getApplicationAttemptReport(GetApplicationAttemptReportRequest.newInstance(attempt)));
        seen.call("containers", () -> alice.getContainers(GetContainersRequest.newInstance(attempt)));
        seen.call("container of an unknown attempt", () -> alice.getContainerReport(
            GetContainerReportRequest.newInstance(ContainerId.newContainerId(attempt, 1))));
        seen.call("unknown container", () -> alice.getContainerReport(
            GetContainerReportRequest.newInstance(ContainerId.newContainerId(am.attempt, 99))));
        seen.call("fail an unknown attempt", () -> alice.failApplicationAttempt(FailApplicationAttemptRequest.newInstance(attempt)));
        seen.call("signal an unknown container", () -> alice.signalToContainer(SignalContainerRequest.newInstance(
            ContainerId.newContainerId(am.attempt, 99), SignalContainerCommand.GRACEFUL_SHUTDOWN)));
    }

    @Scene
    public void kill() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        Container container = am.obtain(1, 128).get(0);
        am.start(container, "sleep 60");
        seen.call("kill by another user", () -> client("carol").forceKillApplication(KillApplicationRequest.newInstance(id)));
        kill(alice, id, "killed by the scene");
        seen.value("report", report(id));
        seen.call("kill again", () -> alice.forceKillApplication(KillApplicationRequest.newInstance(id)));
        seen.call("kill again by another user", () -> client("carol").forceKillApplication(KillApplicationRequest.newInstance(id)));
        seen.call("allocate", () -> am.allocate());
        seen.call("finish", () -> am.finish(FinalApplicationStatus.SUCCEEDED, ""));
    }

    @Scene
    public void viewOfAStranger() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        ApplicationClientProtocol carol = client("carol");
        seen.call("report", () -> carol.getApplicationReport(
            org.apache.hadoop.yarn.api.protocolrecords.GetApplicationReportRequest.newInstance(id)).getApplicationReport());
        seen.call("attempts", () -> carol.getApplicationAttempts(GetApplicationAttemptsRequest.newInstance(id)));
        seen.call("attempt", () -> carol.getApplicationAttemptReport(GetApplicationAttemptReportRequest.newInstance(am.attempt)));
        seen.call("containers", () -> carol.getContainers(GetContainersRequest.newInstance(am.attempt)));
        seen.call("container", () -> carol.getContainerReport(
            GetContainerReportRequest.newInstance(ContainerId.newContainerId(am.attempt, 1))));
        seen.call("move", () -> carol.moveApplicationAcrossQueues(MoveApplicationAcrossQueuesRequest.newInstance(id, "other")));
        seen.call("priority", () -> carol.updateApplicationPriority(
            UpdateApplicationPriorityRequest.newInstance(id, Priority.newInstance(1))));
        seen.call("timeouts", () -> carol.updateApplicationTimeouts(UpdateApplicationTimeoutsRequest.newInstance(
            id, Map.of(ApplicationTimeoutType.LIFETIME, "2099-01-01T00:00:00.000+0000"))));
        seen.call("fail attempt", () -> carol.failApplicationAttempt(FailApplicationAttemptRequest.newInstance(am.attempt)));
        seen.call("signal", () -> carol.signalToContainer(SignalContainerRequest.newInstance(
            ContainerId.newContainerId(am.attempt, 1), SignalContainerCommand.FORCEFUL_SHUTDOWN)));
    }

    private void move(ApplicationId id, String queue) {
        seen.call("move to " + queue, () -> alice.moveApplicationAcrossQueues(
            MoveApplicationAcrossQueuesRequest.newInstance(id, queue)));
        seen.call("queue after it", () -> report(id).getQueue());
    }

    @Scene
    public void move() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        am.obtain(1, 1500);
        for (String queue : new String[] {"nosuch", "parent", "stopped", "private", "other", "default", "parent.y", "y", "root.parent.x"}) {
            move(id, queue);
        }
        seen.call("headroom", () -> am.allocate().getAvailableResources());
        am.finish(FinalApplicationStatus.SUCCEEDED, "");
        awaitEnd(id);
        move(id, "default");
    }

    private void priority(ApplicationId id, int priority) {
        seen.call("priority " + priority, () -> alice.updateApplicationPriority(
            UpdateApplicationPriorityRequest.newInstance(id, Priority.newInstance(priority))).getApplicationPriority());
        seen.call("priority after it", () -> report(id).getPriority());
    }

    @Scene
    public void priority() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        priority(id, 5);
        seen.call("allocate", () -> am.allocate().getApplicationPriority());
        priority(id, 11);
        priority(id, -3);
        am.finish(FinalApplicationStatus.SUCCEEDED, "");
        awaitEnd(id);
        priority(id, 2);
    }

    private void timeout(ApplicationId id, String when) {
        seen.call("lifetime until " + when, () -> alice.updateApplicationTimeouts(UpdateApplicationTimeoutsRequest.newInstance(
            id, Map.of(ApplicationTimeoutType.LIFETIME, when))));
    }

    @Scene
    public void timeouts() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        timeout(id, "tomorrow");
        timeout(id, "2001-01-01T00:00:00.000+0000");
        timeout(id, "2099-01-01T00:00:00.000+0000");
        seen.call("no timeouts", () -> alice.updateApplicationTimeouts(
            UpdateApplicationTimeoutsRequest.newInstance(id, Collections.emptyMap())));
        seen.value("report", report(id).getApplicationTimeouts());
        am.finish(FinalApplicationStatus.SUCCEEDED, "");
        awaitEnd(id);
        timeout(id, "2099-01-01T00:00:00.000+0000");
        seen.value("report of the finished application", report(id).getApplicationTimeouts());
    }

    @Scene
    public void lifetimeThatEnds() throws Exception {
        ApplicationId id = newId("app1");
        ApplicationSubmissionContext context = Contexts.unmanaged(id, "default");
        context.setApplicationTimeouts(Map.of(ApplicationTimeoutType.LIFETIME, 1L));
        submit(context);
        awaitEnd(id);
        seen.value("report", report(id));
    }

    @Scene
    public void failAttempt() throws Exception {
        ApplicationId id = newId("app1");
        ApplicationSubmissionContext context = Contexts.managed(id, "default", "");
        context.setMaxAppAttempts(2);
        Am first = Am.managed(this, context);
        first.register();
        seen.call("fail", () -> alice.failApplicationAttempt(FailApplicationAttemptRequest.newInstance(first.attempt)));
        await("the second attempt", () -> report(id).getCurrentApplicationAttemptId().getAttemptId() == 2);
        seen.call("allocate of the first", () -> first.allocate());
        Am second = Am.currentOf(this, id);
        seen.call("register the second", () -> second.register());
        seen.call("fail again", () -> alice.failApplicationAttempt(FailApplicationAttemptRequest.newInstance(second.attempt)));
        awaitEnd(id);
        reports("failed", id);
        seen.call("fail once more", () -> alice.failApplicationAttempt(FailApplicationAttemptRequest.newInstance(second.attempt)));
    }

    @Scene
    public void failAnUnmanagedAttempt() throws Exception {
        ApplicationId id = newId("app1");
        ApplicationSubmissionContext context = Contexts.unmanaged(id, "default");
        context.setMaxAppAttempts(2);
        submit(context);
        Am am = Am.of(this, id);
        am.register();
        seen.call("fail", () -> alice.failApplicationAttempt(FailApplicationAttemptRequest.newInstance(am.attempt)));
        awaitEnd(id);
        seen.value("report", report(id));
    }

    private void amThatEnds(String name, String command, int attempts) throws Exception {
        ApplicationId id = newId(name);
        ApplicationSubmissionContext context = Contexts.managed(id, "default", command);
        context.setMaxAppAttempts(attempts);
        submit(context);
        awaitEnd(id);
        seen.value(name, report(id));
        seen.value("attempts of " + name, alice.getApplicationAttempts(
            GetApplicationAttemptsRequest.newInstance(id)).getApplicationAttemptList());
    }

    @Scene
    public void amsThatEndUnregistered() throws Exception {
        amThatEnds("exits3", "exit 3", 1);
        amThatEnds("exits0", "exit 0", 2);
        amThatEnds("saysSomething", "echo words on stderr >&2; exit 1", 1);
        amThatEnds("killed", "kill -9 $$", 1);
    }

    private void list(String step, GetApplicationsRequest request) {
        request.setApplicationTags(Set.of("listed"));
        seen.call(step, () -> alice.getApplications(request).getApplicationList());
    }

    @Scene
    public void lists() throws Exception {
        String[] names = {"one", "two", "three"};
        String[] queues = {"default", "x", "root.parent.y"};
        for (int index = 0; index < names.length; index++) {
            ApplicationId id = newId(names[index]);
            ApplicationSubmissionContext context = Contexts.unmanaged(id, queues[index]);
            context.setApplicationTags(Set.of("Listed", names[index]));
            context.setApplicationName(names[index]);
            context.setApplicationType(index == 0 ? "SPARK" : "YARN");
            submit(context);
            Am.of(this, id);
            if (index == 2) {
                kill(alice, id, null);
            }
        }
        list("all", GetApplicationsRequest.newInstance());
        list("killed", GetApplicationsRequest.newInstance(EnumSet.of(YarnApplicationState.KILLED)));
        list("of a type", GetApplicationsRequest.newInstance(Set.of("spark")));
        GetApplicationsRequest byQueue = GetApplicationsRequest.newInstance();
        byQueue.setQueues(Set.of("x"));
        list("of a queue", byQueue);
        GetApplicationsRequest byPath = GetApplicationsRequest.newInstance();
        byPath.setQueues(Set.of("root.parent.y"));
        list("of a queue by its path", byPath);
        GetApplicationsRequest byUser = GetApplicationsRequest.newInstance();
        byUser.setUsers(Set.of("bob"));
        list("of another user", byUser);
        GetApplicationsRequest byName = GetApplicationsRequest.newInstance();
        byName.setName("two");
        list("of a name", byName);
        GetApplicationsRequest none = GetApplicationsRequest.newInstance();
        none.setLimit(0);
        list("at most none", none);
        GetApplicationsRequest early = GetApplicationsRequest.newInstance();
        early.setStartRange(0, 1000);
        list("started in 1970", early);
        seen.call("as a stranger", () -> {
            GetApplicationsRequest request = GetApplicationsRequest.newInstance();
            request.setApplicationTags(Set.of("listed"));
            request.setScope(org.apache.hadoop.yarn.api.protocolrecords.ApplicationsRequestScope.VIEWABLE);
            return client("carol").getApplications(request).getApplicationList();
        });
    }
}
