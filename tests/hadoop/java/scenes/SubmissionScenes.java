package scenes;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationReport;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ApplicationTimeoutType;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;

/** What becomes of submissions that are refused, and what a report says of them. */
public final class SubmissionScenes extends Scenes {
    private interface Change {
        void of(ApplicationSubmissionContext context);
    }

    /** Submits with a change, and records the call and, if it was accepted, the report of an application that failed. */
    private void refused(String name, Change change) throws Exception {
        ApplicationId id = newId(name);
        ApplicationSubmissionContext context = Contexts.managed(id, "default", "sleep 60");
        change.of(context);
        seen.act("submit " + name, () -> submit(context));
        seen.call("report of " + name, () -> {
            ApplicationReport report = awaitState(id, YarnApplicationState.FAILED, YarnApplicationState.ACCEPTED);
            return report.getYarnApplicationState() == YarnApplicationState.FAILED ? report : settled(report);
        });
    }

    /** What does not change any more while its AM starts. */
    private static Map<String, Object> settled(ApplicationReport report) {
        return Map.of(
            "name", report.getName(), "queue", report.getQueue(), "type", report.getApplicationType(),
            "tags", report.getApplicationTags(), "priority", report.getPriority(), "timeouts", report.getApplicationTimeouts(),
            "label", report.getAppNodeLabelExpression(), "label of the AM", report.getAmNodeLabelExpression());
    }

    @Scene
    public void newApplication() throws Exception {
        ApplicationId id = newId("app1");
        seen.value("id", id);
        seen.value("maximum", alice.getNewApplication(GetNewApplicationRequest.newInstance()).getMaximumResourceCapability());
    }

    @Scene
    public void refusedByQueue() throws Exception {
        refused("unknown", context -> context.setQueue("nosuch"));
        refused("unknownPath", context -> context.setQueue("root.nosuch.deep"));
        refused("parent", context -> context.setQueue("parent"));
        refused("partOfAPath", context -> context.setQueue("parent.x"));
        refused("root", context -> context.setQueue("root"));
        refused("stopped", context -> context.setQueue("stopped"));
        refused("acl", context -> context.setQueue("private"));
    }

    @Scene
    public void queueThatIsFull() throws Exception {
        ApplicationId first = newId("first");
        submit(Contexts.unmanaged(first, "full"));
        awaitState(first, YarnApplicationState.ACCEPTED);
        refused("second", context -> context.setQueue("full"));
    }

    @Scene
    public void refusedResources() throws Exception {
        refused("tooMuchMemory", context -> context.setResource(Resource.newInstance(4000, 1)));
        refused("tooManyVcores", context -> context.setResource(Resource.newInstance(256, 4)));
        refused("negative", context -> context.setResource(Resource.newInstance(-1, 1)));
        refused("aboveTheQueues", context -> {
            context.setQueue("other");
            context.setResource(Resource.newInstance(1500, 1));
        });
        refused("twoAnywhere", context -> context.setAMContainerResourceRequests(
            List.of(Contexts.ask(0, "*", 256, 1), Contexts.ask(0, "*", 256, 1))));
        refused("noAnywhere", context -> context.setAMContainerResourceRequests(
            List.of(Contexts.ask(0, "somewhere", 256, 1))));
        refused("label", context -> context.setNodeLabelExpression("gpu"));
    }

    @Scene
    public void refusedDetails() throws Exception {
        refused("tagTooLong", context -> context.setApplicationTags(Set.of("x".repeat(101))));
        refused("tagNotAscii", context -> context.setApplicationTags(Set.of("\u00fc")));
        refused("manyTags", context -> {
            Set<String> tags = new java.util.TreeSet<>();
            for (int number = 10; number < 21; number++) {
                tags.add("t" + number);
            }
            context.setApplicationTags(tags);
        });
        refused("lifetimeZero", context -> context.setApplicationTimeouts(
            Collections.singletonMap(ApplicationTimeoutType.LIFETIME, 0L)));
        refused("longType", context -> context.setApplicationType("a type of more than twenty characters"));
    }

    @Scene
    public void accepted() throws Exception {
        refused("priority", context -> {
            context.setPriority(Priority.newInstance(99));
            context.setApplicationTags(Set.of("Nice", "MIXED"));
            context.setApplicationName("a name");
            context.setApplicationTimeouts(Map.of(ApplicationTimeoutType.LIFETIME, 500L));
            context.setNodeLabelExpression("");
        });
    }

    @Scene
    public void twice() throws Exception {
        ApplicationId id = newId("app1");
        ApplicationSubmissionContext context = Contexts.unmanaged(id, "default");
        seen.act("submit", () -> submit(context));
        seen.act("submit again", () -> submit(context));
        context.setQueue("nosuch");
        seen.act("submit with another queue", () -> submit(context));
        awaitState(id, YarnApplicationState.ACCEPTED);
        seen.value("queue", report(id).getQueue());
    }

    @Scene
    public void idOfAnotherCluster() throws Exception {
        ApplicationId id = ApplicationId.newInstance(1234567890123L, 7);
        seen.mask.application(id, "app1");
        seen.act("submit", () -> submit(Contexts.unmanaged(id, "default")));
        seen.call("state", () -> awaitState(id, YarnApplicationState.ACCEPTED).getYarnApplicationState());
        seen.call("kill", () -> client("admin").forceKillApplication(
            org.apache.hadoop.yarn.api.protocolrecords.KillApplicationRequest.newInstance(id)).getIsKillCompleted());
        awaitEnd(id);
    }

    @Scene
    public void requestOfTheAm() throws Exception {
        ApplicationId id = newId("app1");
        ApplicationSubmissionContext context = Contexts.managed(id, "default", "sleep 60");
        ResourceRequest anywhere = Contexts.ask(7, "*", 300, 5);
        context.setAMContainerResourceRequests(List.of(anywhere));
        seen.act("submit", () -> submit(context));
        await("the AM's container", () -> report(id).getApplicationResourceUsageReport().getNumUsedContainers() == 1);
        seen.value("usage", report(id).getApplicationResourceUsageReport());
    }
}
