package scenes;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Replaces what differs from run to run: ids, nodes, times, directories.
 *
 * <p>A scene names its applications and, where it matters, its nodes; an application without a name reads "app?", a node
 * without one "node". Attempts and containers follow from their application: "app1/2" is its second attempt,
 * "app1/2/c3" that attempt's third container, "app1/2/c3e1" one allocated after the first restart of the RM.
 */
final class Mask {
    private static final Pattern CONTAINER = Pattern.compile("container_(?:e(\\d+)_)?(\\d+_\\d+)_(\\d+)_(\\d+)");
    private static final Pattern ATTEMPT = Pattern.compile("appattempt_(\\d+_\\d+)_(-?\\d+)");
    private static final Pattern APPLICATION = Pattern.compile("application_(\\d+_\\d+)");
    private static final Pattern NODE = Pattern.compile("(?:localhost|vm|127\\.0\\.0\\.\\d+)(?:/127\\.0\\.0\\.\\d+)?:\\d+");
    private static final Pattern LOCAL_DIRECTORY = Pattern.compile("/[^ ':]*/(?=usercache/|nmPrivate/|filecache/)");
    private static final Pattern DOWNLOAD = Pattern.compile("\\b\\d+_tmp\\b");
    private static final Pattern HOST = Pattern.compile("\\b(?:localhost/)?127\\.0\\.0\\.\\d+\\b");
    private static final Pattern DATE =
        Pattern.compile("\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{3}|\\w{3} \\w{3} \\d{2} \\d{2}:\\d{2}:\\d{2} [-+]\\d{4} \\d{4}|\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}[-+]\\d{4}");
    private static final Pattern PROCESS = Pattern.compile("\\bpid \\d+");
    private static final Pattern STACK = Pattern.compile("\n\t(?:at |\\.\\.\\. \\d+ more).*");
    private static final Pattern MILLISECONDS = Pattern.compile("\\b[12]\\d{12}\\b");

    private final Map<String, String> applications = new LinkedHashMap<>();
    private final Map<String, String> texts = new LinkedHashMap<>();

    /** From here on the application with this id is shown by this name. */
    void application(Object id, String name) {
        applications.put(id.toString().replace("application_", ""), name);
    }

    /** From here on this text is shown as the other. */
    void text(String text, String shown) {
        texts.put(text, shown);
    }

    String of(String value) {
        String text = value;
        for (Map.Entry<String, String> entry : texts.entrySet()) {
            text = text.replace(entry.getKey(), entry.getValue());
        }
        text = replace(CONTAINER, text, m -> app(m.group(2)) + "/" + Integer.parseInt(m.group(3)) + "/c"
            + Integer.parseInt(m.group(4)) + (m.group(1) == null ? "" : "e" + Integer.parseInt(m.group(1))));
        text = replace(ATTEMPT, text, m -> app(m.group(1)) + "/" + Integer.parseInt(m.group(2)));
        text = replace(APPLICATION, text, m -> app(m.group(1)));
        text = replace(NODE, text, m -> "node");
        text = replace(HOST, text, m -> "host");
        text = replace(LOCAL_DIRECTORY, text, m -> "<local>/");
        text = replace(DOWNLOAD, text, m -> "<number>_tmp");
        text = replace(DATE, text, m -> "<date>");
        text = replace(PROCESS, text, m -> "pid <pid>");
        text = replace(STACK, text, m -> "");
        return replace(MILLISECONDS, text, m -> "<time>");
    }

    private String app(String digits) {
        return applications.getOrDefault(digits, "app?");
    }

    private static String replace(Pattern pattern, String text, java.util.function.Function<Matcher, String> by) {
        Matcher matcher = pattern.matcher(text);
        StringBuilder result = new StringBuilder();
        while (matcher.find()) {
            matcher.appendReplacement(result, Matcher.quoteReplacement(by.apply(matcher)));
        }
        return matcher.appendTail(result).toString();
    }
}
