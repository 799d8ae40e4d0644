package hadoop;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.api.records.NodeHealthStatus;
import org.apache.hadoop.yarn.server.api.records.NodeStatus;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptEventType;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.event.RMAppAttemptRegistrationEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AbstractCSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeUpdateSchedulerEvent;

/**
 * Measures heartbeats of Hadoop's CapacityScheduler on a cluster without processes. benchmarks/hadoop_core.py starts it.
 *
 * <p>Standard input has java.util.Properties: the shape, and the configuration (keys that start with "yarn."). Standard
 * output has a line "pass CPU_S PROCESS_CPU_S" for each pass, and for the first pass a line
 * "container APPLICATION CONTAINER NODE" for each container, nodes counted from 0. CPU_S is the CPU time of the thread
 * that handles the heartbeats; PROCESS_CPU_S includes the compiler and the garbage collector.
 */
public final class SchedulerBenchmark {
    private static final String USER = "user";
    private static final Resource CONTAINER = Resource.newInstance(1024, 1);
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final OperatingSystemMXBean PROCESS =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final Properties shape;
    private final QueueingResourceManager manager = new QueueingResourceManager();
    private final CapacityScheduler scheduler;
    private final AbstractCSQueue root;
    private final List<RMNode> nodes = new ArrayList<>();
    private final List<ApplicationAttemptId> attempts = new ArrayList<>();
    private int nextNode;
    private long cpuNs;
    private long processCpuNs;

    public static void main(String[] arguments) {
        int status = 1;
        try {
            Properties shape = new Properties();
            shape.load(System.in);
            DefaultMetricsSystem.setMiniClusterMode(true);
            for (int pass = 0; pass < Integer.parseInt(shape.getProperty("passes")); pass++) {
                new SchedulerBenchmark(shape).run(pass == 0);
            }
            status = 0;
        } catch (Throwable failure) {
            failure.printStackTrace();
        }
        System.out.flush();
        Runtime.getRuntime().halt(status);
    }

    private SchedulerBenchmark(Properties shape) {
        this.shape = shape;
        Configuration conf = new YarnConfiguration();
        for (String key : new String[] {
            YarnConfiguration.RM_ADDRESS, YarnConfiguration.RM_SCHEDULER_ADDRESS, YarnConfiguration.RM_ADMIN_ADDRESS,
            YarnConfiguration.RM_RESOURCE_TRACKER_ADDRESS, YarnConfiguration.RM_WEBAPP_ADDRESS}) {
            conf.set(key, "127.0.0.1:0");
        }
        for (String key : shape.stringPropertyNames()) {
            if (key.startsWith("yarn.")) {
                conf.set(key, shape.getProperty(key));
            }
        }
        manager.init(conf);
        manager.start();
        scheduler = (CapacityScheduler) manager.getResourceScheduler();
        root = (AbstractCSQueue) scheduler.getRootQueue();
    }

    private void run(boolean isFirst) throws Exception {
        for (int number = 0; number < number("nodes"); number++) {
            registerNode(number);
        }
        for (int number = 0; number < number("applications"); number++) {
            runApplication(number + 1, "root.q" + number % number("queues"));
        }
        for (ApplicationAttemptId attempt : attempts) {
            request(attempt, number("containers"));
        }
        if (number("heartbeats") == 0) {
            int wanted = root.getNumContainers() + number("applications") * number("containers");
            measure(() -> {
                while (root.getNumContainers() < wanted) {
                    beat();
                }
            });
        } else {
            measureRejecting(number("heartbeats"), Boolean.parseBoolean(shape.getProperty("stirred")));
        }
        System.out.printf("pass %.9f %.9f%n", cpuNs / 1e9, processCpuNs / 1e9);
        if (isFirst) {
            printContainers();
        }
        manager.stop();
    }

    private void measureRejecting(int heartbeats, boolean isStirred) {
        int before = -1;
        while (root.getNumContainers() != before) {
            before = root.getNumContainers();
            beat(2 * nodes.size());
        }
        if (isStirred) {
            for (int number = 0; number < heartbeats; number++) {
                request(attempts.get(number % attempts.size()), 50 + number % 7);
                addCpuTime(this::beat);
            }
        } else {
            measure(() -> beat(heartbeats));
        }
        if (root.getNumContainers() != before) {
            throw new IllegalStateException("A container was placed, although all applications are at their limits.");
        }
    }

    /** Registers a node as a NodeManager does. A numeric address needs no name server. */
    private void registerNode(int number) throws Exception {
        NodeId nodeId = NodeId.newInstance("10." + (number >> 16) + "." + (number >> 8 & 255) + "." + (number & 255), 1);
        NodeHealthStatus healthy = NodeHealthStatus.newInstance(true, "", 0);
        NodeStatus status = NodeStatus.newInstance(nodeId, 0, new ArrayList<>(), new ArrayList<>(), healthy, null, null, null);
        Resource size = Resource.newInstance(number("node_memory_mb"), number("node_vcores"));
        manager.getResourceTrackerService().registerNodeManager(RegisterNodeManagerRequest.newInstance(
            nodeId, 0, size, "3.4.1", new ArrayList<>(), new ArrayList<>(), null, null, null, status));
        manager.settle();
        nodes.add(manager.getRMContext().getRMNodes().get(nodeId));
    }

    /** Submits an application and starts its ApplicationMaster on the next node in turn. */
    private void runApplication(int number, String queue) throws Exception {
        ApplicationId id = ApplicationId.newInstance(ResourceManager.getClusterTimeStamp(), number);
        ApplicationAttemptId attempt = ApplicationAttemptId.newInstance(id, 1);
        ContainerLaunchContext launch = ContainerLaunchContext.newInstance(null, null, null, null, null, null);
        ApplicationSubmissionContext context = ApplicationSubmissionContext.newInstance(
            id, "", queue, null, launch, false, true, 1, CONTAINER, "");
        SubmitApplicationRequest submission = SubmitApplicationRequest.newInstance(context);
        UserGroupInformation.createRemoteUser(USER).doAs((PrivilegedExceptionAction<Object>)
            () -> manager.getClientRMService().submitApplication(submission));
        RMApp app = manager.getRMContext().getRMApps().get(id);
        settle(app, RMAppAttemptState.SCHEDULED);
        beat();
        settle(app, RMAppAttemptState.ALLOCATED);
        send(new RMAppAttemptEvent(attempt, RMAppAttemptEventType.LAUNCHED));
        settle(app, RMAppAttemptState.LAUNCHED);
        send(new RMAppAttemptRegistrationEvent(attempt, "", -1, ""));
        settle(app, RMAppAttemptState.RUNNING);
        attempts.add(attempt);
    }

    private void send(RMAppAttemptEvent event) {
        manager.getRMContext().getDispatcher().getEventHandler().handle(event);
    }

    private void settle(RMApp app, RMAppAttemptState expected) {
        manager.settle();
        RMAppAttemptState state = app.getCurrentAppAttempt().getState();
        if (state != expected) {
            throw new IllegalStateException("The attempt is " + state + " instead of " + expected + ".");
        }
    }

    private void request(ApplicationAttemptId attempt, int containers) {
        ResourceRequest request =
            ResourceRequest.newInstance(Priority.newInstance(1), ResourceRequest.ANY, CONTAINER, containers);
        scheduler.allocate(attempt, new ArrayList<>(Collections.singletonList(request)), null, new ArrayList<>(),
            new ArrayList<>(), new ArrayList<>(), new ContainerUpdates());
    }

    private void beat() {
        RMNode node = nodes.get(nextNode);
        nextNode = (nextNode + 1) % nodes.size();
        scheduler.handle(new NodeUpdateSchedulerEvent(node));
    }

    private void beat(int heartbeats) {
        for (int number = 0; number < heartbeats; number++) {
            beat();
        }
    }

    private void measure(Runnable work) {
        System.gc();
        addCpuTime(work);
    }

    private void addCpuTime(Runnable work) {
        long processStart = PROCESS.getProcessCpuTime();
        long start = THREADS.getCurrentThreadCpuTime();
        work.run();
        cpuNs += THREADS.getCurrentThreadCpuTime() - start;
        processCpuNs += PROCESS.getProcessCpuTime() - processStart;
    }

    private void printContainers() {
        for (ApplicationAttemptId attempt : attempts) {
            for (RMContainer container : scheduler.getApplicationAttempt(attempt).getLiveContainers()) {
                String[] address = container.getAllocatedNode().getHost().split("\\.");
                int node = (Integer.parseInt(address[1]) << 16) + (Integer.parseInt(address[2]) << 8) + Integer.parseInt(address[3]);
                System.out.printf("container %d %d %d%n",
                    attempt.getApplicationId().getId(), container.getContainerId().getContainerId(), node);
            }
        }
    }

    private int number(String name) {
        return Integer.parseInt(shape.getProperty(name));
    }
}
