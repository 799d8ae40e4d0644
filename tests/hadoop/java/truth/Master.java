package truth;

import java.nio.ByteBuffer;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.hadoop.io.DataInputByteBuffer;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.client.api.NMTokenCache;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.security.ContainerTokenIdentifier;
import org.apache.hadoop.yarn.server.utils.BuilderUtils;

/**
 * An attempt of an AM, with Hadoop's AMRMClient and NMClient: it requests the groups of its application, removes the
 * request of each container that it uses, and releases the others, as Hadoop's AMs do.
 */
final class Master implements Runnable {
    private static final int INTERVAL_MS = 1000;

    private final World world;
    private final Node node;
    private final ContainerId container;
    private final ByteBuffer tokens;
    private final Tasks tasks;
    private final Map<ContainerId, Tasks.Task> running = new HashMap<>();
    private final Map<Integer, ContainerRequest> requests = new HashMap<>();
    private final Map<Integer, Deque<Long>> requestedMs = new HashMap<>();
    private final Queue<ContainerId> failedStarts = new ConcurrentLinkedQueue<>();
    private AMRMClient<ContainerRequest> rm;
    private NMClient nodes;
    private volatile boolean killed;
    private volatile Thread thread;

    Master(World world, Node node, ContainerId container, ByteBuffer tokens) {
        this.world = world;
        this.node = node;
        this.container = container;
        this.tokens = tokens;
        tasks = world.tasksOf(container.getApplicationAttemptId().getApplicationId());
    }

    void start() {
        thread = new Thread(this, "am " + container);
        thread.setDaemon(true);
        thread.start();
    }

    void kill() {
        killed = true;
        if (thread != null) {
            thread.interrupt();
        }
    }

    @Override
    public void run() {
        try {
            Credentials credentials = new Credentials();
            DataInputByteBuffer in = new DataInputByteBuffer();
            tokens.rewind();
            in.reset(tokens);
            credentials.readTokenStorageStream(in);
            UserGroupInformation user = UserGroupInformation.createRemoteUser(container.getApplicationAttemptId().toString());
            user.addCredentials(credentials);
            user.doAs((PrivilegedExceptionAction<Void>) () -> {
                live();
                return null;
            });
            node.end(container, 0);
        } catch (Exception failure) {
            if (!killed) {
                world.fail("am " + container, failure);
                node.end(container, 1);
            }
        }
    }

    private void live() throws Exception {
        NMTokenCache cache = new NMTokenCache();
        rm = AMRMClient.createAMRMClient();
        rm.setNMTokenCache(cache);
        rm.init(new YarnConfiguration(world.conf));
        rm.start();
        nodes = NMClient.createNMClient();
        nodes.setNMTokenCache(cache);
        nodes.cleanupRunningContainersOnStop(false);
        nodes.init(new YarnConfiguration(world.conf));
        nodes.start();
        rm.registerApplicationMaster("localhost", 0, "");
        world.journal.write("registered", "application", tasks.work.number, "at", world.journal.now());
        tasks.beginAttempt();
        while (true) {
            requestOpenGroups();
            if (tasks.isOver()) {
                break;
            }
            long callMs = System.currentTimeMillis();
            heed(rm.allocate(tasks.progress()));
            if (tasks.isOver()) {
                break;
            }
            requestOpenGroups();
            Thread.sleep(Math.max(INTERVAL_MS - (System.currentTimeMillis() - callMs), 0));
        }
        rm.unregisterApplicationMaster(FinalApplicationStatus.SUCCEEDED, "", "");
        world.journal.write("unregistered", "application", tasks.work.number, "at", world.journal.now());
        world.calls.execute(() -> {
            nodes.stop();
            rm.stop();
        });
    }

    private void requestOpenGroups() {
        for (int group : tasks.takeOpened(world.journal.now())) {
            request(group, tasks.waiting(group));
        }
    }

    private void request(int group, int count) {
        ContainerRequest request = requests.computeIfAbsent(group, this::requestOf);
        long nowMs = world.journal.now();
        for (int i = 0; i < count; i++) {
            rm.addContainerRequest(request);
            requestedMs.computeIfAbsent(group, any -> new ArrayDeque<>()).add(nowMs);
        }
    }

    private ContainerRequest requestOf(int group) {
        Plan.Group wanted = tasks.work.groups.get(group);
        String[] hosts = wanted.hosts.isEmpty() ? null : wanted.hosts.toArray(new String[0]);
        return ContainerRequest.newBuilder()
            .capability(Resource.newInstance(wanted.memoryMb, wanted.vcores))
            .priority(Priority.newInstance(wanted.priority))
            .allocationRequestId(wanted.requestId)
            .nodes(hosts)
            .relaxLocality(true)
            .nodeLabelsExpression(wanted.label)
            .build();
    }

    private void heed(AllocateResponse reply) {
        if (reply.getAMCommand() != null) {
            throw new IllegalStateException("the ResourceManager commands " + reply.getAMCommand());
        }
        for (Container each : reply.getAllocatedContainers()) {
            use(each);
        }
        for (ContainerStatus status : reply.getCompletedContainersStatuses()) {
            Tasks.Task task = running.remove(status.getContainerId());
            if (task == null) {
                continue;
            }
            world.journal.write("done", "container", status.getContainerId().toString(), "at", world.journal.now(), "exit", status.getExitStatus());
            if (status.getExitStatus() == 0) {
                tasks.end(task);
            } else {
                repeat(task);
            }
        }
        for (ContainerId failed = failedStarts.poll(); failed != null; failed = failedStarts.poll()) {
            Tasks.Task task = running.remove(failed);
            if (task != null) {
                rm.releaseAssignedContainer(failed);
                repeat(task);
            }
        }
    }

    private void repeat(Tasks.Task task) {
        tasks.putBack(task);
        request(task.group, 1);
    }

    /** Starts a task in the container, or releases it if none waits for one like it. */
    private void use(Container given) {
        int group = tasks.groupFor(given.getPriority().getPriority(), given.getAllocationRequestId(), given.getNodeId().getHost());
        if (group < 0) {
            rm.releaseAssignedContainer(given.getId());
            world.journal.write("surplus", "application", tasks.work.number, "at", world.journal.now());
            return;
        }
        rm.removeContainerRequest(requests.get(group));
        Tasks.Task task = tasks.take(group);
        running.put(given.getId(), task);
        long seenMs = world.journal.now();
        try {
            ContainerTokenIdentifier token = BuilderUtils.newContainerTokenIdentifier(given.getContainerToken());
            world.journal.write("task", "application", tasks.work.number, "group", group, "number", task.number,
                "container", given.getId().toString(), "asked", requestedMs.get(group).poll(),
                "placed", world.journal.since(token.getCreationTime()), "seen", seenMs, "length", task.taskMs,
                "node", given.getNodeId().getHost());
            UserGroupInformation user = UserGroupInformation.getCurrentUser();
            world.calls.execute(() -> launch(given, task, user));
        } catch (java.io.IOException failure) {
            throw new IllegalStateException(failure);
        }
    }

    private void launch(Container given, Tasks.Task task, UserGroupInformation user) {
        Map<String, String> environment = Collections.singletonMap(Node.TASK_MS, String.valueOf(task.taskMs));
        try {
            user.doAs((PrivilegedExceptionAction<Map<String, ByteBuffer>>) () -> nodes.startContainer(given,
                ContainerLaunchContext.newInstance(new HashMap<>(), new HashMap<>(environment), List.of("sleep"), null, null, null)));
        } catch (Exception failure) {
            if (!killed) {
                failedStarts.add(given.getId());
            }
        }
    }
}
