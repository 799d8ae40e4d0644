package truth;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.ipc.Server;
import org.apache.hadoop.yarn.api.ContainerManagementProtocol;
import org.apache.hadoop.yarn.api.protocolrecords.StartContainerRequest;
import org.apache.hadoop.yarn.api.protocolrecords.StartContainersRequest;
import org.apache.hadoop.yarn.api.protocolrecords.StartContainersResponse;
import org.apache.hadoop.yarn.api.protocolrecords.StopContainersRequest;
import org.apache.hadoop.yarn.api.protocolrecords.StopContainersResponse;
import org.apache.hadoop.yarn.api.records.ContainerExitStatus;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceUtilization;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.ipc.YarnRPC;
import org.apache.hadoop.yarn.security.ContainerTokenIdentifier;
import org.apache.hadoop.yarn.server.api.ContainerType;
import org.apache.hadoop.yarn.server.api.ResourceTracker;
import org.apache.hadoop.yarn.server.api.ServerRMProxy;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatResponse;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerResponse;
import org.apache.hadoop.yarn.server.api.records.NodeAction;
import org.apache.hadoop.yarn.server.api.records.NodeHealthStatus;
import org.apache.hadoop.yarn.server.api.records.NodeStatus;
import org.apache.hadoop.yarn.server.nodemanager.security.NMTokenSecretManagerInNM;
import org.apache.hadoop.yarn.server.utils.BuilderUtils;

/**
 * A NodeManager whose containers are timers. It registers and sends heartbeats as Hadoop's does, and at once when a
 * container has ended: NodeStatusUpdaterImpl waits the interval after each reply, and a container that is DONE wakes it.
 */
final class Node implements Runnable {
    static final String TASK_MS = "TASK_MS";
    private static final String VERSION = org.apache.hadoop.yarn.util.YarnVersionInfo.getVersion();
    private static final int HANDLERS = 2;
    private static final ResourceUtilization NO_USE = ResourceUtilization.newInstance(0, 0, 0f);

    final NodeId id;
    private final World world;
    private final Plan.Machine machine;
    private final NMTokenSecretManagerInNM secrets = new NMTokenSecretManagerInNM();
    private final Object heartbeat = new Object();
    private final Map<ContainerId, Live> live = new LinkedHashMap<>();
    private final Map<ContainerId, ContainerStatus> completed = new LinkedHashMap<>();
    private Server server;
    private volatile boolean lost;

    /** A container that runs: a task's timer, or an AM. */
    private static final class Live {
        final Resource size;
        final long placedMs;
        final long startedMs;
        final int application;
        volatile ScheduledFuture<?> timer;
        volatile Master master;

        Live(Resource size, long placedMs, long startedMs, int application) {
            this.size = size;
            this.placedMs = placedMs;
            this.startedMs = startedMs;
            this.application = application;
        }
    }

    Node(World world, Plan.Machine machine) {
        this.world = world;
        this.machine = machine;
        id = NodeId.newInstance(machine.host, machine.port);
        secrets.setNodeId(id);
    }

    /** Serves the calls of the ResourceManager's launcher and of AMs. */
    void serve(Configuration conf) {
        Configuration withTokens = new Configuration(conf);
        withTokens.set("hadoop.security.authentication", "TOKEN");
        Object protocol = Proxy.newProxyInstance(
            Node.class.getClassLoader(), new Class<?>[] {ContainerManagementProtocol.class}, this::called);
        server = YarnRPC.create(withTokens).getServer(ContainerManagementProtocol.class, protocol,
            new InetSocketAddress(machine.host, machine.port), withTokens, secrets, HANDLERS);
        server.start();
    }

    @Override
    public void run() {
        try {
            Thread.sleep(machine.phaseMs);
            ResourceTracker tracker = ServerRMProxy.createRMProxy(world.conf, ResourceTracker.class);
            RegisterNodeManagerResponse keys = tracker.registerNodeManager(RegisterNodeManagerRequest.newInstance(id, 1,
                Resource.newInstance(machine.memoryMb, machine.vcores), VERSION, new ArrayList<>(), new ArrayList<>(), null));
            secrets.setMasterKey(keys.getNMTokenMasterKey());
            int responseId = 0;
            while (!lost) {
                NodeStatus status = NodeStatus.newInstance(id, responseId, statuses(), new ArrayList<>(),
                    NodeHealthStatus.newInstance(true, "", System.currentTimeMillis()), NO_USE, NO_USE, new ArrayList<>());
                NodeHeartbeatResponse reply = tracker.nodeHeartbeat(NodeHeartbeatRequest.newInstance(
                    status, keys.getContainerTokenMasterKey(), keys.getNMTokenMasterKey(), null));
                if (reply.getNodeAction() != NodeAction.NORMAL) {
                    throw new YarnException(reply.getNodeAction() + ": " + reply.getDiagnosticsMessage());
                }
                responseId = reply.getResponseId();
                heed(reply);
                synchronized (heartbeat) {
                    heartbeat.wait(Math.max(reply.getNextHeartBeatInterval(), 1));
                }
            }
        } catch (Exception failure) {
            if (!lost) {
                world.fail("node " + id, failure);
            }
        }
    }

    private synchronized List<ContainerStatus> statuses() {
        List<ContainerStatus> statuses = new ArrayList<>();
        live.forEach((container, one) -> statuses.add(
            status(container, ContainerState.RUNNING, ContainerExitStatus.INVALID, one.size)));
        statuses.addAll(completed.values());
        return statuses;
    }

    private static ContainerStatus status(ContainerId container, ContainerState state, int exit, Resource size) {
        return BuilderUtils.newContainerStatus(container, state, "", exit, size, ExecutionType.GUARANTEED);
    }

    private void heed(NodeHeartbeatResponse reply) {
        synchronized (this) {
            reply.getContainersToBeRemovedFromNM().forEach(completed::remove);
        }
        for (ContainerId container : reply.getContainersToCleanup()) {
            end(container, ContainerExitStatus.KILLED_BY_RESOURCEMANAGER);
        }
    }

    private Object called(Object proxy, Method method, Object[] arguments) throws Exception {
        switch (method.getName()) {
            case "startContainers":
                List<ContainerId> started = new ArrayList<>();
                for (StartContainerRequest each : ((StartContainersRequest) arguments[0]).getStartContainerRequests()) {
                    ContainerTokenIdentifier token = BuilderUtils.newContainerTokenIdentifier(each.getContainerToken());
                    start(token, each.getContainerLaunchContext());
                    started.add(token.getContainerID());
                }
                return StartContainersResponse.newInstance(new HashMap<>(), started, new HashMap<>());
            case "stopContainers":
                List<ContainerId> stopped = ((StopContainersRequest) arguments[0]).getContainerIds();
                stopped.forEach(container -> end(container, ContainerExitStatus.KILLED_BY_APPMASTER));
                return StopContainersResponse.newInstance(stopped, new HashMap<>());
            case "hashCode":
                return System.identityHashCode(proxy);
            case "equals":
                return proxy == arguments[0];
            case "toString":
                return "node " + id;
            default:
                throw new YarnException(method.getName() + " is not served");
        }
    }

    private void start(ContainerTokenIdentifier token, ContainerLaunchContext context) throws Exception {
        ContainerId container = token.getContainerID();
        Plan.Work work = world.workOf(container.getApplicationAttemptId().getApplicationId());
        Live one = new Live(token.getResource(), world.journal.since(token.getCreationTime()), world.journal.now(), work.number);
        synchronized (this) {
            if (lost) {
                throw new YarnException(id + " is lost");
            }
            live.put(container, one);
        }
        if (token.getContainerType() == ContainerType.APPLICATION_MASTER) {
            world.journal.write("am", "application", work.number, "placed", one.placedMs, "started", one.startedMs, "node", id.getHost());
            one.master = new Master(world, this, container, context.getTokens());
            one.timer = world.timers.schedule(one.master::start, work.amStartMs, TimeUnit.MILLISECONDS);
        } else {
            int taskMs = Integer.parseInt(context.getEnvironment().get(TASK_MS));
            one.timer = world.timers.schedule(() -> end(container, 0), taskMs, TimeUnit.MILLISECONDS);
        }
    }

    /** Ends a container, unless it has ended, and reports it at once. */
    void end(ContainerId container, int exit) {
        Live one;
        synchronized (this) {
            one = live.remove(container);
            if (one == null) {
                return;
            }
            completed.put(container, status(container, ContainerState.COMPLETE, exit, one.size));
        }
        synchronized (heartbeat) {
            heartbeat.notify();
        }
        stop(container, one, exit);
    }

    private void stop(ContainerId container, Live one, int exit) {
        if (one.timer != null) {
            one.timer.cancel(false);
        }
        if (one.master != null && exit != 0) {
            one.master.kill();
        }
        world.journal.write("end", "container", container.toString(), "application", one.application, "am", one.master != null,
            "placed", one.placedMs, "started", one.startedMs, "ended", world.journal.now(), "exit", exit,
            "mb", one.size.getMemorySize(), "node", id.getHost());
    }

    /** Fails, with all containers: nothing is reported any more. */
    void lose() {
        Map<ContainerId, Live> gone;
        synchronized (this) {
            lost = true;
            gone = new LinkedHashMap<>(live);
            live.clear();
        }
        server.stop();
        synchronized (heartbeat) {
            heartbeat.notify();
        }
        gone.forEach((container, one) -> stop(container, one, ContainerExitStatus.ABORTED));
        world.journal.write("lost", "node", id.getHost(), "at", world.journal.now());
    }
}
