package scenes;

import java.io.File;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.records.DecommissionType;
import org.apache.hadoop.yarn.client.ClientRMProxy;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;
import org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocol;
import org.apache.hadoop.yarn.server.api.protocolrecords.RefreshNodesRequest;
import org.apache.hadoop.yarn.server.nodemanager.NodeManager;
import org.apache.hadoop.yarn.server.nodemanager.NodeStatusUpdaterImpl;

/**
 * Hadoop's own cluster in this JVM. MiniYARNCluster runs the ResourceManager; its NodeManagers would all be on one host,
 * so they are started here, each on a loopback address of its own: 127.0.0.2, 127.0.0.3, ...
 */
final class MiniCluster implements Cluster {
    private final Configuration conf;
    private final Path directory;
    private final MiniYARNCluster cluster;
    private final NodeManager[] nodes;
    private final int[] ports;

    MiniCluster(Configuration given, int nodeCount, Path directory) throws Exception {
        this.directory = directory;
        conf = new YarnConfiguration(given);
        conf.setBoolean(YarnConfiguration.YARN_MINICLUSTER_FIXED_PORTS, true);
        conf.setBoolean(YarnConfiguration.YARN_MINICLUSTER_USE_RPC, true);
        for (String key : new String[] {
            YarnConfiguration.RM_ADDRESS, YarnConfiguration.RM_SCHEDULER_ADDRESS, YarnConfiguration.RM_ADMIN_ADDRESS,
            YarnConfiguration.RM_RESOURCE_TRACKER_ADDRESS, YarnConfiguration.RM_WEBAPP_ADDRESS}) {
            conf.set(key, "127.0.0.1:" + freePort());
        }
        conf.set(YarnConfiguration.RM_STORE, "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore");
        conf.set(YarnConfiguration.FS_RM_STATE_STORE_URI, "file://" + directory.resolve("store"));
        conf.set(YarnConfiguration.RM_NODES_EXCLUDE_FILE_PATH, excludeFile().toString());
        exclude("");
        // A refresh reads the site's file anew: it stands first on the class path, which begins with this directory.
        try (OutputStream site = Files.newOutputStream(directory.resolve("yarn-site.xml"))) {
            conf.writeXml(site);
        }
        cluster = new MiniYARNCluster("mini", 1, 0, 1, 1);
        cluster.init(conf);
        cluster.start();
        nodes = new NodeManager[nodeCount];
        ports = new int[nodeCount];
        for (int number = 1; number <= nodeCount; number++) {
            startNode(number);
        }
    }

    @Override
    public Configuration conf() {
        return conf;
    }

    @Override
    public void restartRM() throws InterruptedException {
        cluster.restartResourceManager(0);
    }

    @Override
    public void killNode(int number) throws Exception {
        // A NodeManager that believes that it never registered does not unregister when it stops.
        Field registered = NodeStatusUpdaterImpl.class.getDeclaredField("registeredWithRM");
        registered.setAccessible(true);
        registered.set(nodes[number - 1].getNodeStatusUpdater(), false);
        nodes[number - 1].stop();
    }

    @Override
    public void stopNode(int number) {
        nodes[number - 1].stop();
    }

    @Override
    public void startNode(int number) throws Exception {
        if (nodes[number - 1] != null) {
            nodes[number - 1].stop();
            nodes[number - 1].waitForServiceToStop(60_000);
        }
        Configuration own = new YarnConfiguration(conf);
        String host = "127.0.0." + (number + 1);
        ports[number - 1] = freePort();
        own.set(YarnConfiguration.NM_ADDRESS, host + ":" + ports[number - 1]);
        own.set(YarnConfiguration.NM_BIND_HOST, host);
        own.set(YarnConfiguration.NM_LOCALIZER_ADDRESS, host + ":" + freePort());
        own.set(YarnConfiguration.NM_COLLECTOR_SERVICE_ADDRESS, host + ":" + freePort());
        own.set(YarnConfiguration.NM_WEBAPP_ADDRESS, host + ":" + freePort());
        for (String key : new String[] {YarnConfiguration.NM_LOCAL_DIRS, YarnConfiguration.NM_LOG_DIRS}) {
            File made = directory.resolve("nm-" + number + (key.equals(YarnConfiguration.NM_LOCAL_DIRS) ? "/local" : "/logs")).toFile();
            made.mkdirs();
            own.set(key, made.toString());
        }
        NodeManager node = new QuietNodeManager();
        node.init(own);
        node.disableWebServer();
        node.start();
        nodes[number - 1] = node;
    }

    @Override
    public void decommission(int number, int seconds) throws Exception {
        exclude("127.0.0." + (number + 1));
        refreshNodes(seconds);
    }

    @Override
    public void keep(int number) throws Exception {
        exclude("");
        refreshNodes(0);
    }

    @Override
    public void recommission(int number) throws Exception {
        nodes[number - 1].waitForServiceToStop(60_000);
        keep(number);
    }

    @Override
    public int numberOf(String nodeId) {
        for (int index = 0; index < nodes.length; index++) {
            if (nodeId.equals("127.0.0." + (index + 2) + ":" + ports[index])) {
                return index + 1;
            }
        }
        return 0;
    }

    /** Its threads end with the JVM; to stop its services one after another would take a minute. */
    @Override
    public void close() {}

    private Path excludeFile() {
        return directory.resolve("exclude");
    }

    private void exclude(String hosts) throws Exception {
        Files.write(excludeFile(), (hosts + "\n").getBytes(StandardCharsets.UTF_8));
    }

    private void refreshNodes(int seconds) throws Exception {
        UserGroupInformation admin = UserGroupInformation.createRemoteUser("admin");
        ResourceManagerAdministrationProtocol proxy = admin.doAs(
            (java.security.PrivilegedExceptionAction<ResourceManagerAdministrationProtocol>)
                () -> ClientRMProxy.createRMProxy(conf, ResourceManagerAdministrationProtocol.class));
        DecommissionType type = seconds > 0 ? DecommissionType.GRACEFUL : DecommissionType.NORMAL;
        proxy.refreshNodes(RefreshNodesRequest.newInstance(type, seconds > 0 ? seconds : null));
    }

    private static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    /** A NodeManager without a web server that does not end this JVM. */
    private static final class QuietNodeManager extends NodeManager {
        @Override
        protected void doSecureLogin() {}

        @Override
        protected void shutDown(int exitCode) {
            Thread stopping = new Thread(this::stop, "stop of a NodeManager");
            stopping.setDaemon(true);
            stopping.start();
        }
    }
}
