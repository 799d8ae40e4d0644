package scenes;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.ApplicationClientProtocol;
import org.apache.hadoop.yarn.api.protocolrecords.GetApplicationReportRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetClusterNodesRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.KillApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationReport;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;
import org.apache.hadoop.yarn.client.ClientRMProxy;
import org.apache.hadoop.yarn.exceptions.ApplicationAttemptNotFoundException;
import org.apache.hadoop.yarn.exceptions.ApplicationNotFoundException;
import org.apache.hadoop.yarn.exceptions.ContainerNotFoundException;

/** What scenes share: users, applications that are killed when the scene is over, and waiting. */
abstract class Scenes {
    static final int NODES = 2;
    private static final long PATIENCE_MS = Long.getLong("scenes.patience.ms", 60_000);
    private static final Set<YarnApplicationState> OVER =
        EnumSet.of(YarnApplicationState.FINISHED, YarnApplicationState.FAILED, YarnApplicationState.KILLED);

    protected Cluster cluster;
    protected Recorder seen;
    protected ApplicationClientProtocol alice;
    /** For files that containers and the scene share. */
    protected Path directory;
    private final List<ApplicationId> applications = new ArrayList<>();

    void begin(Cluster onCluster, Recorder recorder) throws Exception {
        directory = Files.createTempDirectory(Paths.get("").toAbsolutePath(), "scene");
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxrwxrwx"));
        recorder.mask.text(directory.toString(), "<scene>");
        cluster = onCluster;
        seen = recorder;
        alice = client("alice");
        waitForNodes(NODES);
        await("idle nodes", () -> nodes(NodeState.RUNNING).stream().allMatch(each -> each.getNumContainers() == 0));
    }

    void end() throws Exception {
        Files.createFile(directory.resolve("over"));
        for (ApplicationId id : applications) {
            await("the end of " + id, () -> isOver(id) || kill(id));
        }
    }

    protected Configuration conf() {
        return cluster.conf();
    }

    /** A user's raw proxy of the client protocol. */
    protected ApplicationClientProtocol client(String user) throws Exception {
        return as(user, () -> ClientRMProxy.createRMProxy(conf(), ApplicationClientProtocol.class));
    }

    protected static <T> T as(String user, PrivilegedExceptionAction<T> action) throws Exception {
        return UserGroupInformation.createRemoteUser(user).doAs(action);
    }

    /** A new id, under a name in the recording; the application is killed when the scene is over. */
    protected ApplicationId newId(String name) throws Exception {
        ApplicationId id = alice.getNewApplication(GetNewApplicationRequest.newInstance()).getApplicationId();
        seen.mask.application(id, name);
        applications.add(id);
        return id;
    }

    protected void submit(ApplicationSubmissionContext context) throws Exception {
        alice.submitApplication(SubmitApplicationRequest.newInstance(context));
    }

    protected ApplicationReport report(ApplicationId id) throws Exception {
        return alice.getApplicationReport(GetApplicationReportRequest.newInstance(id)).getApplicationReport();
    }

    protected ApplicationReport awaitState(ApplicationId id, YarnApplicationState... states) throws Exception {
        List<YarnApplicationState> wanted = List.of(states);
        await(id + " in " + wanted, () -> {
            ApplicationReport report = report(id);
            YarnApplicationState state = report.getYarnApplicationState();
            if (!wanted.contains(state) && OVER.contains(state)) {
                throw new IllegalStateException("it is " + state + ": " + report.getDiagnostics());
            }
            return wanted.contains(state);
        });
        return report(id);
    }

    protected ApplicationReport awaitEnd(ApplicationId id) throws Exception {
        return awaitState(id, OVER.toArray(new YarnApplicationState[0]));
    }

    protected List<NodeReport> nodes(NodeState... states) throws Exception {
        EnumSet<NodeState> wanted = EnumSet.noneOf(NodeState.class);
        wanted.addAll(List.of(states));
        return alice.getClusterNodes(GetClusterNodesRequest.newInstance(wanted)).getNodeReports();
    }

    protected void waitForNodes(int count) throws Exception {
        await(count + " running nodes", () -> nodes(NodeState.RUNNING).size() == count);
    }

    /** A container's number among those of its application, without the number of restarts before this scene. */
    protected static long number(Container container) {
        return container.getId().getContainerId() & ContainerId.CONTAINER_ID_BITMASK;
    }

    /** The RM is killed and started again; all nodes have registered with the new one. */
    protected void restart() throws Exception {
        cluster.restartRM();
        alice = client("alice");
        waitForNodes(NODES);
    }

    /** Returns once the condition holds. A call on the way may fail because the RM restarts, or because of an early question. */
    protected static void await(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        Exception last = null;
        while (System.currentTimeMillis() < deadline) {
            try {
                if (condition.call()) {
                    return;
                }
                last = null;
            } catch (java.io.IOException | ApplicationAttemptNotFoundException | ContainerNotFoundException failure) {
                last = failure;
            }
            Thread.sleep(50);
        }
        throw new IllegalStateException("waited " + PATIENCE_MS / 1000 + " s for " + what, last);
    }

    private boolean isOver(ApplicationId id) throws Exception {
        try {
            return OVER.contains(report(id).getYarnApplicationState());
        } catch (ApplicationNotFoundException neverSubmitted) {
            return true;
        }
    }

    /** True once the RM says that it is dead. */
    private boolean kill(ApplicationId id) throws Exception {
        return client("admin").forceKillApplication(KillApplicationRequest.newInstance(id)).getIsKillCompleted();
    }
}
