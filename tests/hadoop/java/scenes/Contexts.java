package scenes;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.util.Records;

/** Contexts of submissions and launches, as small as they can be. */
final class Contexts {
    private Contexts() {}

    /** An application whose AM is the scene itself. */
    static ApplicationSubmissionContext unmanaged(ApplicationId id, String queue) {
        ApplicationSubmissionContext context = managed(id, queue, "true");
        context.setUnmanagedAM(true);
        return context;
    }

    /** An application whose AM is this line of shell; one attempt. */
    static ApplicationSubmissionContext managed(ApplicationId id, String queue, String command) {
        ApplicationSubmissionContext context = Records.newRecord(ApplicationSubmissionContext.class);
        context.setApplicationId(id);
        context.setApplicationName("scene");
        context.setQueue(queue);
        context.setAMContainerSpec(launch(command));
        context.setResource(Resource.newInstance(256, 1));
        context.setMaxAppAttempts(1);
        return context;
    }

    static ContainerLaunchContext launch(String command) {
        return ContainerLaunchContext.newInstance(
            new HashMap<>(), new HashMap<>(), new ArrayList<>(Collections.singletonList(command)), null, null, null);
    }

    static ResourceRequest ask(int priority, String name, int memory, int count) {
        return ResourceRequest.newInstance(Priority.newInstance(priority), name, Resource.newInstance(memory, 1), count);
    }

    static List<ResourceRequest> asks(ResourceRequest... asks) {
        return List.of(asks);
    }
}
