package truth;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** What happens in a true run: a JSON line each, with times in ms since the start of the workload. */
final class Journal {
    private final ObjectMapper mapper = new ObjectMapper();
    private final PrintWriter out;
    private volatile long beganMs;

    Journal(Path path) throws IOException {
        out = new PrintWriter(Files.newBufferedWriter(path));
    }

    /** Starts the workload's clock; nothing before is written. */
    synchronized void begin() {
        beganMs = System.currentTimeMillis();
        write("began", "epoch", beganMs);
    }

    long now() {
        return since(System.currentTimeMillis());
    }

    /** The time of the workload at a time of the wall clock. */
    long since(long wallMs) {
        return wallMs - beganMs;
    }

    /** Writes an event: its name, then names and values. */
    synchronized void write(String event, Object... fields) {
        if (beganMs == 0) {
            return;
        }
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        for (int i = 0; i < fields.length; i += 2) {
            line.put((String) fields[i], fields[i + 1]);
        }
        try {
            out.println(mapper.writeValueAsString(line));
        } catch (IOException failure) {
            throw new IllegalStateException(failure);
        }
    }

    synchronized void close() {
        out.close();
    }
}
