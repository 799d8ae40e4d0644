package scenes;

import static scenes.Contexts.ask;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.protocolrecords.GetApplicationAttemptsRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetContainersRequest;
import org.apache.hadoop.yarn.api.protocolrecords.StartContainersResponse;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;

/** A ResourceManager that stops and starts again with its state. */
public final class RestartScenes extends Scenes {
    private static List<String> failures(StartContainersResponse reply) throws Exception {
        return reply.getFailedRequests().values().stream().map(each -> each.deSerialize()).map(
            each -> each.getClass().getName() + ": " + each.getMessage().split("\n\tat ")[0]).collect(Collectors.toList());
    }

    @Scene
    public void amAndContainersGoOn() throws Exception {
        ApplicationId id = newId("app1");
        Am am = Am.managed(this, Contexts.managed(id, "default", ""));
        am.register();
        List<Container> containers = am.obtain(2, 128);
        am.start(containers.get(0), "sleep 120");
        am.start(containers.get(1), "sleep 120");
        await("3 running containers", () -> report(id).getApplicationResourceUsageReport().getNumUsedContainers() == 3);
        restart();
        seen.value("state", report(id).getYarnApplicationState());
        seen.value("attempts", alice.getApplicationAttempts(GetApplicationAttemptsRequest.newInstance(id)).getApplicationAttemptList());
        await("its containers to be recovered", () -> report(id).getApplicationResourceUsageReport().getNumUsedContainers() == 3);
        am.connect();
        seen.call("allocate", () -> am.allocate());
        seen.call("finish", () -> am.finish(FinalApplicationStatus.SUCCEEDED, ""));
        seen.call("register", () -> am.register());
        am.responseId = 0;
        seen.call("allocate again", () -> am.allocate().getResponseId());
        awaitState(id, YarnApplicationState.RUNNING);
        seen.value("report", report(id));
        seen.value("containers", alice.getContainers(GetContainersRequest.newInstance(am.attempt)).getContainerList());
        Container fresh = am.obtain(1, 128).get(0);
        seen.value("a new container", fresh.getId());
        seen.call("start it", () -> failures(am.start(fresh, "exit 3")));
        seen.value("its end", am.completion(fresh.getId()).getExitStatus());
        seen.call("stop an old one", () -> am.stop(containers.get(0)));
        seen.value("its end", am.completion(containers.get(0).getId()).getExitStatus());
        await("unregistered", () -> am.finish(FinalApplicationStatus.SUCCEEDED, "survived"));
        awaitEnd(id);
        seen.value("final status", report(id).getFinalApplicationStatus());
        seen.value("diagnostics", report(id).getDiagnostics());
    }

    @Scene
    public void finishedApplications() throws Exception {
        Am am = Am.registered(this, "app1", "root.parent.x");
        ApplicationId id = am.attempt.getApplicationId();
        am.finish(FinalApplicationStatus.FAILED, "no luck");
        awaitEnd(id);
        seen.value("before", report(id));
        restart();
        seen.value("after", report(id));
        seen.value("attempts", alice.getApplicationAttempts(GetApplicationAttemptsRequest.newInstance(id)).getApplicationAttemptList());
        seen.call("allocate", () -> {
            am.connect();
            return am.allocate();
        });
        ApplicationId next = alice.getNewApplication(
            org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest.newInstance()).getApplicationId();
        seen.value("the next id has another time", next.getClusterTimestamp() != id.getClusterTimestamp());
        seen.value("and the number", next.getId());
    }

    @Scene
    public void containerOfThePreviousRM() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = am.obtain(1, 128).get(0);
        restart();
        seen.call("start", () -> failures(am.start(container, "sleep 60")));
        am.connect();
        seen.call("allocate", () -> am.allocate());
        seen.call("register", () -> am.register().getContainersFromPreviousAttempts());
        am.responseId = 0;
        seen.call("ask", () -> am.allocate(ask(1, "*", 128, 1)).getResponseId());
        am.until("a container", () -> am.allocated.size() == 2);
        seen.value("it", am.allocated.get(1).getId());
    }

    @Scene
    public void queueAndPriorityAreKept() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        ApplicationId id = am.attempt.getApplicationId();
        alice.moveApplicationAcrossQueues(
            org.apache.hadoop.yarn.api.protocolrecords.MoveApplicationAcrossQueuesRequest.newInstance(id, "other"));
        alice.updateApplicationPriority(org.apache.hadoop.yarn.api.protocolrecords.UpdateApplicationPriorityRequest.newInstance(
            id, org.apache.hadoop.yarn.api.records.Priority.newInstance(4)));
        alice.updateApplicationTimeouts(org.apache.hadoop.yarn.api.protocolrecords.UpdateApplicationTimeoutsRequest.newInstance(
            id, Map.of(org.apache.hadoop.yarn.api.records.ApplicationTimeoutType.LIFETIME, "2099-01-01T00:00:00.000+0000")));
        restart();
        seen.value("report", report(id));
        seen.call("kill", () -> alice.forceKillApplication(
            org.apache.hadoop.yarn.api.protocolrecords.KillApplicationRequest.newInstance(id)));
        awaitEnd(id);
        seen.value("killed", report(id));
    }
}
