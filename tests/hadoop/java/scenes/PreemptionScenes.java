package scenes;

import static scenes.Contexts.ask;

import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.PreemptionMessage;

/** With preemption on, and short timers: what an AM is told before and after, and AMs that fall silent. */
public final class PreemptionScenes extends Scenes {
    @Scene
    public void preempted() throws Exception {
        Am greedy = Am.registered(this, "app1", "one");
        greedy.obtain(4, 2048);
        Am poor = Am.registered(this, "app2", "two");
        poor.allocate(ask(1, "*", 2048, 1));
        AtomicReference<PreemptionMessage> message = new AtomicReference<>();
        await("a message", () -> {
            AllocateResponse reply = greedy.allocate();
            message.set(reply.getPreemptionMessage());
            return message.get() != null;
        });
        PreemptionMessage said = message.get();
        seen.value("message", Map.of("strict", said.getStrictContract() == null ? "none" : said.getStrictContract(),
            "contract", said.getContract() == null ? "none" : said.getContract()));
        greedy.until("an end", () -> !greedy.completed.isEmpty());
        seen.value("completed", greedy.completed);
        poor.until("a container", () -> !poor.allocated.isEmpty());
        seen.value("the other's container", poor.allocated.get(0).getResource());
        seen.value("usage", report(greedy.attempt.getApplicationId()).getApplicationResourceUsageReport());
    }

    @Scene
    public void expiredAms() throws Exception {
        Am silent = Am.registered(this, "app1", "one");
        ApplicationId id = silent.attempt.getApplicationId();
        Am never = Am.unmanaged(this, "app2", "one");
        awaitEnd(id);
        seen.value("silent", report(id));
        awaitEnd(never.attempt.getApplicationId());
        seen.value("never registered", report(never.attempt.getApplicationId()));
        seen.call("allocate", () -> silent.allocate());
    }
}
