package scenes;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.apache.hadoop.yarn.api.ContainerManagementProtocol;
import org.apache.hadoop.yarn.api.protocolrecords.ContainerUpdateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetContainerStatusesRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SignalContainerRequest;
import org.apache.hadoop.yarn.api.protocolrecords.StartContainerRequest;
import org.apache.hadoop.yarn.api.protocolrecords.StartContainersRequest;
import org.apache.hadoop.yarn.api.protocolrecords.StartContainersResponse;
import org.apache.hadoop.yarn.api.protocolrecords.StopContainersRequest;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerRetryContext;
import org.apache.hadoop.yarn.api.records.ContainerRetryPolicy;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.ContainerUpdateType;
import org.apache.hadoop.yarn.api.records.LocalResource;
import org.apache.hadoop.yarn.api.records.LocalResourceType;
import org.apache.hadoop.yarn.api.records.LocalResourceVisibility;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.SignalContainerCommand;
import org.apache.hadoop.yarn.api.records.Token;
import org.apache.hadoop.yarn.api.records.URL;
import org.apache.hadoop.yarn.api.records.UpdateContainerRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;

/** The NodeManager's protocol: containers that start, end, are stopped, and starts that are refused. */
public final class ContainerScenes extends Scenes {
    /** The status at the node once the container has ended there, and the one that the RM passes on. */
    private void end(String name, Am am, Container container) throws Exception {
        await("the end of " + name, () -> am.statuses(container).getContainerStatuses().stream().allMatch(
            each -> each.getState() == ContainerState.COMPLETE));
        seen.value(name + " at the node", am.statuses(container).getContainerStatuses());
        seen.value(name + " at the RM", am.completion(container.getId()));
    }

    private static Map<String, Object> brief(StartContainersResponse reply) throws Exception {
        return Map.of("started", reply.getSuccessfullyStartedContainers(), "meta", reply.getAllServicesMetaData(),
            "failed", reply.getFailedRequests().values().stream().map(each -> failure(each.deSerialize())).collect(Collectors.toList()));
    }

    private static String failure(Throwable thrown) {
        return thrown.getClass().getName() + ": " + String.valueOf(thrown.getMessage()).split("\n\tat ")[0];
    }

    @Scene
    public void exitStatuses() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        for (String command : new String[] {
            "exit 0", "exit 7", "echo some words >&2; exit 1", "kill -9 $$", "kill -15 $$; sleep 5", "no-such-command", "exit 255"}) {
            Container container = am.obtain(1, 128).get(0);
            seen.call("start: " + command, () -> brief(am.start(container, command)));
            end(command, am, container);
        }
    }

    @Scene
    public void stop() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = am.obtain(1, 128).get(0);
        am.start(container, "sleep 60");
        awaitRunning(am, container);
        seen.value("status", am.statuses(container).getContainerStatuses().stream().map(each -> Map.of(
            "state", each.getState(), "sub state", each.getContainerSubState(), "exit", each.getExitStatus(),
            "capability", each.getCapability(), "type", each.getExecutionType(), "diagnostics", each.getDiagnostics()))
            .collect(Collectors.toList()));
        seen.call("stop", () -> am.stop(container));
        end("stopped", am, container);
        seen.call("stop again", () -> am.stop(container));
        Container stubborn = am.obtain(1, 128).get(0);
        Path ready = directory.resolve("ready");
        am.start(stubborn, "trap 'exit 7' TERM; touch " + ready + "; while true; do sleep 0.1; done");
        await("the trap", () -> Files.exists(ready));
        am.stop(stubborn);
        end("traps the signal", am, stubborn);
    }

    private void awaitRunning(Am am, Container container) throws Exception {
        await("a process", () -> am.statuses(container).getContainerStatuses().stream().allMatch(
            each -> each.getContainerSubState().toString().equals("RUNNING")));
        // Its script runs; its process group exists a moment later.
        Thread.sleep(500);
    }

    @Scene
    public void unknownContainers() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = am.obtain(1, 128).get(0);
        seen.call("status of one that was not started", () -> failures(am, container.getId()));
        seen.call("status of an unknown one", () -> failures(am, ContainerId.newContainerId(am.attempt, 99)));
        seen.call("stop one that was not started", () -> stopFailures(am, container, container.getId()));
        seen.call("stop an unknown one", () -> stopFailures(am, container, ContainerId.newContainerId(am.attempt, 99)));
        seen.call("signal an unknown one", () -> am.node(container).signalToContainer(SignalContainerRequest.newInstance(
            ContainerId.newContainerId(am.attempt, 99), SignalContainerCommand.OUTPUT_THREAD_DUMP)));
    }

    private List<String> failures(Am am, ContainerId id) throws Exception {
        Container any = am.allocated.get(0);
        return am.node(any).getContainerStatuses(GetContainerStatusesRequest.newInstance(List.of(id))).getFailedRequests()
            .values().stream().map(each -> failure(each.deSerialize())).collect(Collectors.toList());
    }

    private List<String> stopFailures(Am am, Container any, ContainerId id) throws Exception {
        return am.node(any).stopContainers(StopContainersRequest.newInstance(List.of(id))).getFailedRequests()
            .values().stream().map(each -> failure(each.deSerialize())).collect(Collectors.toList());
    }

    /** A container of another application: its status and its end belong to its own AM. */
    @Scene
    public void containersOfOthers() throws Exception {
        Am owner = Am.registered(this, "app1", "default");
        Container container = owner.obtain(1, 128).get(0);
        owner.start(container, "sleep 60");
        Am other = Am.registered(this, "app2", "default");
        other.obtain(8, 128);
        seen.call("status", () -> other.node(container.getNodeId(), other.nodeTokens.get(container.getNodeId()))
            .getContainerStatuses(GetContainerStatusesRequest.newInstance(List.of(container.getId())))
            .getFailedRequests().values().stream().map(each -> failure(each.deSerialize())).collect(Collectors.toList()));
        seen.call("stop", () -> other.node(container.getNodeId(), other.nodeTokens.get(container.getNodeId()))
            .stopContainers(StopContainersRequest.newInstance(List.of(container.getId())))
            .getFailedRequests().values().stream().map(each -> failure(each.deSerialize())).collect(Collectors.toList()));
        seen.call("start it again", () -> brief(other.node(container.getNodeId(), other.nodeTokens.get(container.getNodeId()))
            .startContainers(Am.startRequest(Contexts.launch("sleep 60"), container.getContainerToken()))));
    }

    @Scene
    public void refusedStarts() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = am.obtain(1, 128).get(0);
        ContainerLaunchContext sleep = Contexts.launch("sleep 60");
        ContainerLaunchContext aux = Contexts.launch("sleep 60");
        aux.setServiceData(Map.of("no_such_service", ByteBuffer.wrap(new byte[] {1})));
        seen.call("unknown auxiliary service", () -> brief(am.start(container, aux)));
        seen.call("start", () -> brief(am.start(container, sleep)));
        seen.call("start again", () -> brief(am.start(container, sleep)));
        Container second = am.obtain(1, 128).get(0);
        Token token = second.getContainerToken();
        seen.call("forged container token", () -> brief(am.node(second).startContainers(Am.startRequest(sleep, forged(token)))));
        seen.call("no container token", () -> brief(am.node(second).startContainers(
            StartContainersRequest.newInstance(List.of(StartContainerRequest.newInstance(sleep, null))))));
        Token garbled = Token.newInstance(new byte[] {1, 2, 3}, token.getKind(), bytes(token.getPassword()), token.getService());
        seen.call("unreadable container token", () -> brief(am.node(second).startContainers(Am.startRequest(sleep, garbled))));
        am.obtain(8, 128);
        Container elsewhere = am.allocated.stream().filter(each -> !each.getNodeId().equals(second.getNodeId())).findFirst().orElseThrow();
        seen.mask.text(elsewhere.getId().toString(), "its container");
        seen.call("at another node", () -> brief(am.node(second).startContainers(
            Am.startRequest(sleep, elsewhere.getContainerToken()))));
        seen.call("two, one of them forged", () -> brief(am.node(second).startContainers(StartContainersRequest.newInstance(List.of(
            StartContainerRequest.newInstance(sleep, token), StartContainerRequest.newInstance(sleep, forged(token)))))));
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    private static Token forged(Token token) {
        byte[] password = bytes(token.getPassword());
        password[0] ^= 1;
        return Token.newInstance(bytes(token.getIdentifier()), token.getKind(), password, token.getService());
    }

    @Scene
    public void nodeTokens() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Am other = Am.registered(this, "app2", "default");
        Container container = am.obtain(1, 128).get(0);
        other.obtain(8, 128);
        Token own = am.nodeTokens.get(container.getNodeId());
        seen.call("none", () -> start(am, container, null));
        seen.call("forged", () -> start(am, container, forged(own)));
        seen.call("of another application", () -> start(am, container, other.nodeTokens.get(container.getNodeId())));
        Token elsewhere = other.nodeTokens.entrySet().stream().filter(each -> !each.getKey().equals(container.getNodeId()))
            .findFirst().orElseThrow().getValue();
        seen.call("of another node", () -> start(other, container, elsewhere));
        Token garbled = Token.newInstance(new byte[] {1, 2, 3}, own.getKind(), bytes(own.getPassword()), own.getService());
        seen.call("unreadable", () -> start(am, container, garbled));
        seen.call("its own", () -> start(am, container, own));
    }

    private static Map<String, Object> start(Am am, Container container, Token nodeToken) throws Exception {
        ContainerManagementProtocol node = am.node(container.getNodeId(), nodeToken);
        return brief(node.startContainers(Am.startRequest(Contexts.launch("sleep 60"), container.getContainerToken())));
    }

    private LocalResource resource(Path file, LocalResourceType type) throws Exception {
        return LocalResource.newInstance(URL.fromURI(file.toUri()), type, LocalResourceVisibility.APPLICATION,
            Files.size(file), Files.getLastModifiedTime(file).toMillis());
    }

    @Scene
    public void localResources() throws Exception {
        Path file = Files.write(directory.resolve("file.txt"), "words\n".getBytes(StandardCharsets.UTF_8));
        Path other = Files.write(directory.resolve("other.txt"), "others\n".getBytes(StandardCharsets.UTF_8));
        Path archive = directory.resolve("archive.zip");
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(archive))) {
            zip.putNextEntry(new ZipEntry("inside/deep.txt"));
            zip.write("deep\n".getBytes(StandardCharsets.UTF_8));
        }
        Path listed = directory.resolve("listed");
        Am am = Am.registered(this, "app1", "default");
        ContainerLaunchContext context = Contexts.launch(
            "(cat link.txt sub/link.txt unpacked/inside/deep.txt; ls | grep -v '^tmp$') > " + listed + " 2>&1");
        context.setLocalResources(Map.of("link.txt", resource(file, LocalResourceType.FILE),
            "sub/link.txt", resource(other, LocalResourceType.FILE), "unpacked", resource(archive, LocalResourceType.ARCHIVE)));
        Container container = am.obtain(1, 128).get(0);
        am.start(container, context);
        end("with resources", am, container);
        seen.value("saw", Files.readAllLines(listed));
    }

    private void badResource(Am am, String name, LocalResource resource) throws Exception {
        ContainerLaunchContext context = Contexts.launch("sleep 60");
        context.setLocalResources(java.util.Collections.singletonMap("link", resource));
        Container container = am.obtain(1, 128).get(0);
        Map<String, Object> started = seen.call("start with " + name, () -> brief(am.start(container, context)));
        if (started != null && !((List<?>) started.get("started")).isEmpty()) {
            end(name, am, container);
        } else {
            am.release(container.getId());
        }
    }

    @Scene
    public void badResources() throws Exception {
        Path file = Files.write(directory.resolve("file.txt"), "words\n".getBytes(StandardCharsets.UTF_8));
        Am am = Am.registered(this, "app1", "default");
        LocalResource missing = resource(file, LocalResourceType.FILE);
        missing.setResource(URL.fromURI(directory.resolve("missing.txt").toUri()));
        badResource(am, "a missing file", missing);
        LocalResource changed = resource(file, LocalResourceType.FILE);
        changed.setTimestamp(12345);
        badResource(am, "another timestamp", changed);
        Path bad = Files.write(directory.resolve("bad.zip"), "words\n".getBytes(StandardCharsets.UTF_8));
        badResource(am, "an archive that is none", resource(bad, LocalResourceType.ARCHIVE));
    }

    @Scene
    public void environment() throws Exception {
        Path file = directory.resolve("environment");
        Am am = Am.registered(this, "app1", "default");
        ContainerLaunchContext context = Contexts.launch(
            "env -0 | tr '\\n\\0' ' \\n' | grep -v '^_=' | sort > " + file);
        context.setEnvironment(Map.of("OWN", "a {{CONTAINER_ID}} b<CPS>c", "REFERS", "$OWN", "SPACES", "one  two"));
        Container container = am.obtain(1, 128).get(0);
        am.start(container, context);
        am.completion(container.getId());
        List<String> names = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            String name = line.split("=")[0];
            boolean isShown = Set.of("OWN", "REFERS", "SPACES", "CONTAINER_ID", "USER", "LOGNAME", "HOME").contains(name);
            names.add(isShown ? line : name);
        }
        seen.value("environment", names);
    }

    @Scene
    public void signals() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        for (SignalContainerCommand command : new SignalContainerCommand[] {
            SignalContainerCommand.GRACEFUL_SHUTDOWN, SignalContainerCommand.FORCEFUL_SHUTDOWN}) {
            Container container = am.obtain(1, 128).get(0);
            am.start(container, "sleep 60");
            awaitRunning(am, container);
            am.until("it to be known as running", () -> alice.getContainerReport(
                org.apache.hadoop.yarn.api.protocolrecords.GetContainerReportRequest.newInstance(container.getId()))
                .getContainerReport().getContainerState() == ContainerState.RUNNING);
            seen.call(command.toString(), () -> alice.signalToContainer(SignalContainerRequest.newInstance(container.getId(), command)));
            seen.value("ended by " + command, am.completion(container.getId()));
        }
    }

    @Scene
    public void retries() throws Exception {
        Path count = directory.resolve("count");
        Am am = Am.registered(this, "app1", "default");
        ContainerLaunchContext context = Contexts.launch("echo run >> " + count + "; exit 5");
        context.setContainerRetryContext(ContainerRetryContext.newInstance(
            ContainerRetryPolicy.RETRY_ON_SPECIFIC_ERROR_CODES, Set.of(5), 2, 100));
        Container container = am.obtain(1, 128).get(0);
        am.start(container, context);
        end("retried", am, container);
        seen.value("runs", Files.readAllLines(count).size());
    }

    @Scene
    public void update() throws Exception {
        Am am = Am.registered(this, "app1", "default");
        Container container = am.obtain(1, 128).get(0);
        am.start(container, "sleep 60");
        awaitRunning(am, container);
        am.allocate(AllocateRequest.newBuilder().progress(0.1f).askList(List.of()).releaseList(List.of()).updateRequests(List.of(
            UpdateContainerRequest.newInstance(0, container.getId(), ContainerUpdateType.INCREASE_RESOURCE,
                Resource.newInstance(512, 1), null))).build());
        am.until("the increase", () -> !am.updated.isEmpty());
        Token token = am.updated.get(0).getContainer().getContainerToken();
        seen.call("with the old token", () -> update(am, container, container.getContainerToken()));
        seen.call("update", () -> update(am, container, token));
        await("the new size", () -> am.statuses(container).getContainerStatuses().get(0).getCapability().getMemorySize() == 512);
        ContainerStatus status = am.statuses(container).getContainerStatuses().get(0);
        seen.value("capability", status.getCapability());
        seen.call("update again", () -> update(am, container, token));
    }

    private static Map<String, Object> update(Am am, Container container, Token token) throws Exception {
        var reply = am.node(container).updateContainer(ContainerUpdateRequest.newInstance(List.of(token)));
        return Map.of("updated", reply.getSuccessfullyUpdatedContainers(), "failed", reply.getFailedRequests().values().stream()
            .map(each -> failure(each.deSerialize())).collect(Collectors.toList()));
    }
}
