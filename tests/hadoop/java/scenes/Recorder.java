package scenes;

import java.io.PrintStream;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.LinkedHashMap;
import java.util.Map;

/** Writes what a scene saw, a JSON line for each step. */
final class Recorder {
    interface Call<T> {
        T run() throws Exception;
    }

    interface Act {
        void run() throws Exception;
    }

    final Mask mask = new Mask();
    private final Shown shown = new Shown(mask);
    private final String scene;
    private final PrintStream out;

    Recorder(String scene, PrintStream out) {
        this.scene = scene;
        this.out = out;
    }

    /** Records the value. */
    void value(String step, Object value) {
        write(step, shown.of(value));
    }

    /** Calls, and records the reply or the exception; null after an exception. */
    <T> T call(String step, Call<T> call) {
        try {
            T reply = call.run();
            write(step, shown.of(reply));
            return reply;
        } catch (Exception thrown) {
            write(step, shown.exception(cause(thrown)));
            return null;
        }
    }

    /** Calls, and records "ok" or the exception. */
    void act(String step, Act act) {
        call(step, () -> {
            act.run();
            return "ok";
        });
    }

    void failure(Throwable thrown) {
        write("the scene failed", shown.exception(cause(thrown)));
    }

    static Throwable cause(Throwable thrown) {
        return thrown instanceof UndeclaredThrowableException ? thrown.getCause() : thrown;
    }

    private void write(String step, Object saw) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("scene", scene);
        line.put("step", step);
        line.put("saw", saw);
        out.println(Json.write(line));
        out.flush();
    }
}
