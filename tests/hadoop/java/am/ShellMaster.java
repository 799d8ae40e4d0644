package am;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CountDownLatch;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.UpdatedContainer;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.async.AMRMClientAsync;
import org.apache.hadoop.yarn.client.api.async.NMClientAsync;
import org.apache.hadoop.yarn.client.api.async.impl.NMClientAsyncImpl;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * An ApplicationMaster over Hadoop's asynchronous clients: runs each line of shell that it is given in a container, writes
 * a line for each start and each end into a file, and finishes when all have ended.
 */
public final class ShellMaster extends AMRMClientAsync.AbstractCallbackHandler {
    private final Path journal;
    private final Queue<String> commands = new ArrayDeque<>();
    private final CountDownLatch running;
    private final AMRMClientAsync<ContainerRequest> rm;
    private final NMClientAsync nodes = new NMClientAsyncImpl(new Starts());

    private ShellMaster(Path journal, List<String> commands) {
        this.journal = journal;
        this.commands.addAll(commands);
        running = new CountDownLatch(commands.size());
        rm = AMRMClientAsync.createAMRMClientAsync(200, this);
    }

    /** Arguments: the journal's file, then a line of shell for each container. */
    public static void main(String[] arguments) throws Exception {
        List<String> lines = List.of(arguments);
        new ShellMaster(Paths.get(lines.get(0)), lines.subList(1, lines.size())).run();
        System.exit(0);
    }

    private void run() throws Exception {
        YarnConfiguration conf = new YarnConfiguration();
        rm.init(conf);
        rm.start();
        nodes.init(conf);
        nodes.start();
        rm.registerApplicationMaster("localhost", -1, "");
        for (int index = 0; index < running.getCount(); index++) {
            rm.addContainerRequest(new ContainerRequest(Resource.newInstance(128, 1), null, null, Priority.newInstance(1)));
        }
        running.await();
        rm.unregisterApplicationMaster(FinalApplicationStatus.SUCCEEDED, "all containers have ended", "");
    }

    private synchronized void write(String line) {
        try {
            Files.write(journal, (line + "\n").getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (java.io.IOException failure) {
            throw new java.io.UncheckedIOException(failure);
        }
    }

    @Override
    public synchronized void onContainersAllocated(List<Container> containers) {
        for (Container container : containers) {
            String command = commands.poll();
            if (command == null) {
                rm.releaseAssignedContainer(container.getId());
            } else {
                write("start " + container.getId() + " " + command);
                nodes.startContainerAsync(container, ContainerLaunchContext.newInstance(
                    Collections.emptyMap(), Collections.emptyMap(), List.of(command), null, null, null));
            }
        }
    }

    @Override
    public void onContainersCompleted(List<ContainerStatus> statuses) {
        for (ContainerStatus status : statuses) {
            write("end " + status.getContainerId() + " " + status.getExitStatus());
            running.countDown();
        }
    }

    @Override
    public void onContainersUpdated(List<UpdatedContainer> containers) {}

    @Override
    public void onShutdownRequest() {
        write("shutdown");
    }

    @Override
    public void onNodesUpdated(List<NodeReport> updatedNodes) {}

    @Override
    public float getProgress() {
        return 0.5f;
    }

    @Override
    public void onError(Throwable thrown) {
        write("error " + thrown);
    }

    private final class Starts extends NMClientAsync.AbstractCallbackHandler {
        @Override
        public void onContainerStarted(ContainerId id, Map<String, ByteBuffer> data) {
            write("started " + id);
        }

        @Override
        public void onStartContainerError(ContainerId id, Throwable thrown) {
            write("error " + id + " " + thrown);
        }

        @Override
        public void onContainerStatusReceived(ContainerId id, ContainerStatus status) {}

        @Override
        public void onContainerStopped(ContainerId id) {}

        @Override
        public void onGetContainerStatusError(ContainerId id, Throwable thrown) {}

        @Override
        public void onStopContainerError(ContainerId id, Throwable thrown) {}

        @Deprecated
        @Override
        public void onContainerResourceIncreased(ContainerId id, Resource resource) {}

        @Override
        public void onContainerResourceUpdated(ContainerId id, Resource resource) {}

        @Deprecated
        @Override
        public void onIncreaseContainerResourceError(ContainerId id, Throwable thrown) {}

        @Override
        public void onUpdateContainerResourceError(ContainerId id, Throwable thrown) {}
    }
}
