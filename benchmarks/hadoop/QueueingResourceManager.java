package hadoop;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.event.AsyncDispatcher;
import org.apache.hadoop.yarn.event.Dispatcher;
import org.apache.hadoop.yarn.event.Event;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.amlauncher.AMLauncherEvent;
import org.apache.hadoop.yarn.server.resourcemanager.amlauncher.ApplicationMasterLauncher;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.NullRMStateStore;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.RMStateStore;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.RMStateStoreEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.SchedulerEvent;

/**
 * A ResourceManager whose events wait in a queue until the caller of {@link #settle} handles them, in its own thread.
 * While nobody settles, only the caller's thread works. It launches no ApplicationMasters and has no web server.
 */
final class QueueingResourceManager extends ResourceManager {
    private QueueingDispatcher events;

    /** Handles all events, and those that follow from them. */
    void settle() {
        events.handleAll();
    }

    @Override
    protected void serviceInit(Configuration conf) throws Exception {
        super.serviceInit(conf);
        RMStateStore store = new SynchronousStateStore();
        store.init(conf);
        setRMStateStore(store);
    }

    @Override
    protected Dispatcher createDispatcher() {
        events = new QueueingDispatcher();
        return events;
    }

    @Override
    protected EventHandler<SchedulerEvent> createSchedulerEventDispatcher() {
        return event -> scheduler.handle(event);
    }

    @Override
    protected ApplicationMasterLauncher createAMLauncher() {
        return new ApplicationMasterLauncher(rmContext) {
            @Override
            public void handle(AMLauncherEvent event) {}

            @Override
            protected void serviceStart() {}

            @Override
            protected void serviceStop() {}
        };
    }

    @Override
    protected void startWepApp() {}

    @Override
    protected void doSecureLogin() {}

    /** Stores nothing, like the default, but answers at once instead of from a thread of its own. */
    private static final class SynchronousStateStore extends NullRMStateStore {
        @Override
        @SuppressWarnings("rawtypes")
        protected EventHandler getRMStateStoreEventHandler() {
            EventHandler<RMStateStoreEvent> handler = this::handleStoreEvent;
            return handler;
        }
    }

    private static final class QueueingDispatcher extends AsyncDispatcher {
        private final Queue<Event<?>> queue = new ConcurrentLinkedQueue<>();

        @Override
        protected void serviceStart() {}

        @Override
        @SuppressWarnings("rawtypes")
        public EventHandler<Event> getEventHandler() {
            return queue::add;
        }

        void handleAll() {
            for (Event<?> event = queue.poll(); event != null; event = queue.poll()) {
                dispatch(event);
            }
        }
    }
}
