package scenes;

import static scenes.Contexts.ask;

import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;
import org.apache.hadoop.yarn.api.ApplicationMasterProtocol;
import org.apache.hadoop.yarn.api.ContainerManagementProtocol;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetContainerStatusesRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetContainerStatusesResponse;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.protocolrecords.StartContainerRequest;
import org.apache.hadoop.yarn.api.protocolrecords.StartContainersRequest;
import org.apache.hadoop.yarn.api.protocolrecords.StartContainersResponse;
import org.apache.hadoop.yarn.api.protocolrecords.StopContainersRequest;
import org.apache.hadoop.yarn.api.protocolrecords.StopContainersResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationReport;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.NMToken;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.UpdatedContainer;
import org.apache.hadoop.yarn.client.ClientRMProxy;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.ipc.YarnRPC;

/** An unmanaged AM over raw proxies: each call is exactly one RPC. */
final class Am {
    final ApplicationAttemptId attempt;
    final Token<TokenIdentifier> token;
    ApplicationMasterProtocol rm;
    int responseId;
    int sentId;
    final Map<NodeId, org.apache.hadoop.yarn.api.records.Token> nodeTokens = new HashMap<>();
    /** Everything that replies to `allocate` and `until` brought, in order of arrival. */
    final List<Container> allocated = new ArrayList<>();
    final List<ContainerStatus> completed = new ArrayList<>();
    final List<NodeReport> updatedNodes = new ArrayList<>();
    final List<UpdatedContainer> updated = new ArrayList<>();
    private final Scenes scene;

    private Am(Scenes scene, ApplicationAttemptId attempt, Token<TokenIdentifier> token) throws Exception {
        this.scene = scene;
        this.attempt = attempt;
        this.token = token;
        connect();
    }

    /** Submits an application and is its AM, not registered yet. */
    static Am unmanaged(Scenes scene, String name, String queue) throws Exception {
        ApplicationId id = scene.newId(name);
        scene.submit(Contexts.unmanaged(id, queue));
        return of(scene, id);
    }

    static Am registered(Scenes scene, String name, String queue) throws Exception {
        Am am = unmanaged(scene, name, queue);
        am.register();
        return am;
    }

    /** The AM of the current attempt of a submitted unmanaged application. */
    static Am of(Scenes scene, ApplicationId id) throws Exception {
        Scenes.await("the AMRM token of " + id, () -> scene.report(id).getAMRMToken() != null);
        ApplicationReport report = scene.report(id);
        return new Am(scene, report.getCurrentApplicationAttemptId(), convert(report.getAMRMToken()));
    }

    /** A managed application whose AM's process hands its tokens to the scene, which speaks for it, and waits for its end. */
    static Am managed(Scenes scene, ApplicationSubmissionContext context) throws Exception {
        Path file = scene.directory.resolve("tokens");
        context.setAMContainerSpec(Contexts.launch(
            "cp $HADOOP_TOKEN_FILE_LOCATION " + file + ".new && mv " + file + ".new " + file + "-$CONTAINER_ID; "
                + "while ! test -e " + scene.directory.resolve("over") + "; do sleep 0.2; done"));
        scene.submit(context);
        return currentOf(scene, context.getApplicationId());
    }

    /** The AM of the application's current attempt, once its process runs. */
    static Am currentOf(Scenes scene, ApplicationId id) throws Exception {
        Path[] file = new Path[1];
        Scenes.await("the tokens of the AM of " + id, () -> {
            ApplicationAttemptId current = scene.report(id).getCurrentApplicationAttemptId();
            String ending = String.format("_%04d_%02d_", id.getId(), current.getAttemptId());
            try (Stream<Path> files = Files.list(scene.directory)) {
                file[0] = files.filter(each -> each.toString().contains(ending)).findFirst().orElse(null);
            }
            return file[0] != null;
        });
        ApplicationAttemptId attempt = scene.report(id).getCurrentApplicationAttemptId();
        Credentials credentials = Credentials.readTokenStorageFile(file[0].toFile(), scene.conf());
        for (Token<? extends TokenIdentifier> each : credentials.getAllTokens()) {
            if (each.getKind().toString().equals("YARN_AM_RM_TOKEN")) {
                return new Am(scene, attempt, new Token<>(
                    each.getIdentifier(), each.getPassword(), each.getKind(), each.getService()));
            }
        }
        throw new IllegalStateException("no AMRM token among " + credentials.getAllTokens());
    }

    void connect() throws Exception {
        rm = proxy(token);
    }

    /** A proxy of the AM's protocol with any token, or none. */
    ApplicationMasterProtocol proxy(Token<TokenIdentifier> with) throws Exception {
        UserGroupInformation user = UserGroupInformation.createRemoteUser(attempt.toString());
        if (with != null) {
            Token<TokenIdentifier> own = with.copyToken();
            own.setService(ClientRMProxy.getAMRMTokenService(scene.conf()));
            user.addToken(own);
        }
        InetSocketAddress address = scene.conf().getSocketAddr(
            YarnConfiguration.RM_SCHEDULER_ADDRESS, "127.0.0.1:8030", YarnConfiguration.DEFAULT_RM_SCHEDULER_PORT);
        return user.doAs((PrivilegedExceptionAction<ApplicationMasterProtocol>) () ->
            (ApplicationMasterProtocol) YarnRPC.create(scene.conf()).getProxy(ApplicationMasterProtocol.class, address, scene.conf()));
    }

    RegisterApplicationMasterResponse register() throws Exception {
        return rm.registerApplicationMaster(RegisterApplicationMasterRequest.newInstance("amhost", 4711, "http://amhost:1/"));
    }

    AllocateResponse allocate(ResourceRequest... asks) throws Exception {
        return allocate(AllocateRequest.newInstance(responseId, 0.5f, List.of(asks), List.of(), null));
    }

    AllocateResponse allocate(AllocateRequest request) throws Exception {
        request.setResponseId(responseId);
        sentId = responseId;
        AllocateResponse reply = rm.allocate(request);
        responseId = reply.getResponseId();
        allocated.addAll(reply.getAllocatedContainers());
        completed.addAll(reply.getCompletedContainersStatuses());
        updatedNodes.addAll(reply.getUpdatedNodes());
        updated.addAll(reply.getUpdatedContainers());
        for (NMToken each : reply.getNMTokens()) {
            nodeTokens.put(each.getNodeId(), each.getToken());
        }
        return reply;
    }

    AllocateResponse release(ContainerId... ids) throws Exception {
        return allocate(AllocateRequest.newInstance(responseId, 0.5f, List.of(), List.of(ids), null));
    }

    /** Calls allocate until the condition holds. */
    void until(String what, java.util.concurrent.Callable<Boolean> condition) throws Exception {
        Scenes.await(what, () -> {
            if (condition.call()) {
                return true;
            }
            allocate();
            return condition.call();
        });
    }

    /** So many containers more. */
    List<Container> obtain(int count, int memory) throws Exception {
        int before = allocated.size();
        allocate(ask(1, ResourceRequest.ANY, memory, count));
        until(count + " containers", () -> allocated.size() >= before + count);
        return new ArrayList<>(allocated.subList(before, before + count));
    }

    ContainerStatus completion(ContainerId id) throws Exception {
        until("the end of " + id, () -> completed.stream().anyMatch(each -> each.getContainerId().equals(id)));
        return completed.stream().filter(each -> each.getContainerId().equals(id)).findFirst().orElseThrow();
    }

    boolean finish(FinalApplicationStatus status, String diagnostics) throws Exception {
        return rm.finishApplicationMaster(
            FinishApplicationMasterRequest.newInstance(status, diagnostics, "http://amhost:2/")).getIsUnregistered();
    }

    ContainerManagementProtocol node(Container container) throws Exception {
        return node(container.getNodeId(), nodeTokens.get(container.getNodeId()));
    }

    /** A proxy of a node's protocol with any token, or none. */
    ContainerManagementProtocol node(NodeId node, org.apache.hadoop.yarn.api.records.Token with) throws Exception {
        InetSocketAddress address = new InetSocketAddress(node.getHost(), node.getPort());
        UserGroupInformation user = UserGroupInformation.createRemoteUser(attempt.toString());
        if (with != null) {
            Token<TokenIdentifier> own = convert(with);
            SecurityUtil.setTokenService(own, address);
            user.addToken(own);
        }
        return user.doAs((PrivilegedExceptionAction<ContainerManagementProtocol>) () ->
            (ContainerManagementProtocol) YarnRPC.create(scene.conf()).getProxy(ContainerManagementProtocol.class, address, scene.conf()));
    }

    StartContainersResponse start(Container container, String command) throws Exception {
        return start(container, Contexts.launch(command));
    }

    StartContainersResponse start(Container container, ContainerLaunchContext context) throws Exception {
        return node(container).startContainers(startRequest(context, container.getContainerToken()));
    }

    static StartContainersRequest startRequest(ContainerLaunchContext context, org.apache.hadoop.yarn.api.records.Token token) {
        return StartContainersRequest.newInstance(List.of(StartContainerRequest.newInstance(context, token)));
    }

    GetContainerStatusesResponse statuses(Container container) throws Exception {
        return node(container).getContainerStatuses(GetContainerStatusesRequest.newInstance(List.of(container.getId())));
    }

    StopContainersResponse stop(Container container) throws Exception {
        return node(container).stopContainers(StopContainersRequest.newInstance(List.of(container.getId())));
    }

    static Token<TokenIdentifier> convert(org.apache.hadoop.yarn.api.records.Token token) {
        byte[] identifier = new byte[token.getIdentifier().remaining()];
        token.getIdentifier().duplicate().get(identifier);
        byte[] password = new byte[token.getPassword().remaining()];
        token.getPassword().duplicate().get(password);
        return new Token<>(identifier, password, new org.apache.hadoop.io.Text(token.getKind()),
            new org.apache.hadoop.io.Text(token.getService()));
    }
}
