package truth;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationReport;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeLabel;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;
import org.apache.hadoop.yarn.client.ClientRMProxy;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocol;
import org.apache.hadoop.yarn.server.api.protocolrecords.AddToClusterNodeLabelsRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.ReplaceLabelsOnNodeRequest;

/**
 * The world around a real ResourceManager, in one JVM: NodeManagers, AMs and the clients that submit a workload in real
 * time. Arguments: a plan (Plan), and the file of what happens (Journal).
 */
public final class World {
    private static final EnumSet<YarnApplicationState> OPEN = EnumSet.of(YarnApplicationState.NEW, YarnApplicationState.NEW_SAVING,
        YarnApplicationState.SUBMITTED, YarnApplicationState.ACCEPTED, YarnApplicationState.RUNNING);
    private static final int WARM_UP_ROUNDS = 3;
    private static final int START_SECONDS = 120;

    final Configuration conf = new YarnConfiguration();
    final ScheduledExecutorService timers = Executors.newScheduledThreadPool(4);
    final ExecutorService calls = Executors.newCachedThreadPool();
    final Journal journal;
    private final Plan plan;
    private final Map<String, Node> nodes = new LinkedHashMap<>();
    private final Map<String, YarnClient> clients = new HashMap<>();
    private final Map<String, UserGroupInformation> users = new HashMap<>();
    private final Map<ApplicationId, Tasks> applications = new ConcurrentHashMap<>();
    private final AtomicInteger failures = new AtomicInteger();

    private World(Plan plan, Path journal) throws Exception {
        this.plan = plan;
        this.journal = new Journal(journal);
    }

    public static void main(String[] arguments) throws Exception {
        Plan plan = new ObjectMapper().readValue(Paths.get(arguments[0]).toFile(), Plan.class);
        int status = 1;
        try {
            status = new World(plan, Paths.get(arguments[1])).run();
        } finally {
            Runtime.getRuntime().halt(status);
        }
    }

    /** The order of a true run. Returns the exit status: 1 if anything went wrong. */
    private int run() throws Exception {
        UserGroupInformation.setConfiguration(conf);
        connectUsers();
        startNodes();
        labelNodes();
        warmUp();
        journal.begin();
        for (Plan.Loss loss : plan.losses) {
            timers.schedule(() -> nodes.get(loss.host).lose(), loss.atMs, TimeUnit.MILLISECONDS);
        }
        submitAll(plan.applications);
        awaitEnds();
        writeEnds();
        journal.write("over", "at", journal.now(), "failures", failures.get());
        journal.close();
        return failures.get() == 0 ? 0 : 1;
    }

    private void connectUsers() throws Exception {
        for (List<Plan.Work> works : List.of(plan.warmUp, plan.applications)) {
            for (Plan.Work work : works) {
                if (!users.containsKey(work.user)) {
                    UserGroupInformation user = UserGroupInformation.createRemoteUser(work.user);
                    users.put(work.user, user);
                    clients.put(work.user, user.doAs((PrivilegedExceptionAction<YarnClient>) () -> {
                        YarnClient client = YarnClient.createYarnClient();
                        client.init(conf);
                        client.start();
                        return client;
                    }));
                }
            }
        }
    }

    private void startNodes() throws Exception {
        for (Plan.Machine machine : plan.nodes) {
            Node node = new Node(this, machine);
            nodes.put(machine.host, node);
            node.serve(conf);
            Thread thread = new Thread(node, "nm " + machine.host);
            thread.setDaemon(true);
            thread.start();
        }
        long untilMs = System.currentTimeMillis() + 1000L * START_SECONDS;
        while (anyClient().getNodeReports(NodeState.RUNNING).size() < nodes.size()) {
            if (System.currentTimeMillis() > untilMs) {
                throw new IllegalStateException("not all nodes registered within " + START_SECONDS + " s");
            }
            Thread.sleep(200);
        }
    }

    private void labelNodes() throws Exception {
        if (plan.labels.isEmpty()) {
            return;
        }
        ResourceManagerAdministrationProtocol admin = ClientRMProxy.createRMProxy(conf, ResourceManagerAdministrationProtocol.class);
        List<NodeLabel> labels = new ArrayList<>();
        plan.labels.forEach(label -> labels.add(NodeLabel.newInstance(label.name, label.exclusive)));
        admin.addToClusterNodeLabels(AddToClusterNodeLabelsRequest.newInstance(labels));
        Map<NodeId, java.util.Set<String>> ofNodes = new HashMap<>();
        for (Plan.Machine machine : plan.nodes) {
            if (!machine.label.isEmpty()) {
                ofNodes.put(nodes.get(machine.host).id, Collections.singleton(machine.label));
            }
        }
        admin.replaceLabelsOnNode(ReplaceLabelsOnNodeRequest.newInstance(ofNodes));
    }

    /** Some small applications, which are not recorded: both JVMs have then loaded and compiled what they need. */
    private void warmUp() throws Exception {
        for (int round = 0; round < WARM_UP_ROUNDS; round++) {
            submitAll(plan.warmUp);
            awaitEnds();
        }
        Thread.sleep(2000);
    }

    private void submitAll(List<Plan.Work> works) throws Exception {
        for (Plan.Work work : works) {
            Thread.sleep(Math.max(work.submitMs - journal.now(), 0));
            calls.execute(() -> submit(work));
        }
        Thread.sleep(3000);
    }

    private void submit(Plan.Work work) {
        try {
            users.get(work.user).doAs((PrivilegedExceptionAction<Void>) () -> {
                YarnClient client = clients.get(work.user);
                ApplicationSubmissionContext context = client.createApplication().getApplicationSubmissionContext();
                context.setApplicationName(work.name);
                context.setQueue(work.queue.replaceFirst("^root\\.", ""));
                context.setPriority(Priority.newInstance(work.priority));
                context.setResource(Resource.newInstance(work.amMemoryMb, work.amVcores));
                context.setAMContainerSpec(ContainerLaunchContext.newInstance(
                    new HashMap<>(), new HashMap<>(), List.of("am"), null, null, null));
                if (!work.label.isEmpty()) {
                    context.setNodeLabelExpression(work.label);
                }
                applications.put(context.getApplicationId(), new Tasks(work));
                long submittedMs = journal.now();
                client.submitApplication(context);
                journal.write("submitted", "application", work.number, "queue", work.queue, "at", submittedMs, "accepted", journal.now());
                return null;
            });
        } catch (Exception failure) {
            fail("submission " + work.name, failure);
        }
    }

    private void awaitEnds() throws Exception {
        while (!anyClient().getApplications(OPEN).isEmpty()) {
            Thread.sleep(500);
        }
    }

    private void writeEnds() throws Exception {
        for (Map.Entry<ApplicationId, Tasks> each : applications.entrySet()) {
            ApplicationReport report = anyClient().getApplicationReport(each.getKey());
            if (each.getValue().work.number >= 0) {
                journal.write("application", "application", each.getValue().work.number,
                    "state", report.getYarnApplicationState() + "/" + report.getFinalApplicationStatus(),
                    "finished", journal.since(report.getFinishTime()));
            }
        }
    }

    private YarnClient anyClient() {
        return clients.values().iterator().next();
    }

    Plan.Work workOf(ApplicationId application) {
        return tasksOf(application).work;
    }

    Tasks tasksOf(ApplicationId application) {
        return applications.get(application);
    }

    /** Notes something that must not happen in a true run. */
    void fail(String where, Exception failure) {
        failures.incrementAndGet();
        System.err.println(where + ": " + failure);
        failure.printStackTrace();
    }
}
