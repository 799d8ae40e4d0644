package scenes;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceInformation;
import org.apache.hadoop.yarn.api.records.Token;
import org.apache.hadoop.yarn.api.records.URL;

/** Shows a record of YARN's by all its getters, and whatever stands in it, with all that differs from run to run masked. */
final class Shown {
    /** Getters that repeat others, or show the machine. */
    private static final Set<String> SKIPPED = Set.of(
        "getClass", "getProto", "getBuilder", "getMemory", "getRpcPort", "getNMVersion", "getNodeUtilization",
        "getAggregatedContainersUtilization", "getLastHealthReportTime", "getStringVersion", "getHttpAddress",
        "getNodeHttpAddress", "getLogUrl",
        // Counters of all scenes before.
        "getNumAppsSubmitted", "getNumAppsCompleted", "getNumAppsKilled", "getNumAppsFailed");
    private static final List<String> IDS = List.of("ApplicationAttemptId", "ApplicationId", "ContainerId", "NodeId", "QueueName", "Name");
    private static final Set<String> USAGE = Set.of(
        "getMemorySeconds", "getVcoreSeconds", "getPreemptedMemorySeconds", "getPreemptedVcoreSeconds",
        "getResourceSecondsMap", "getPreemptedResourceSecondsMap");
    private static final Set<String> REMAINING = Set.of("getRemainingTime", "getDecommissioningTimeout");

    /** The address of a container, which a node finds some time after the start. */
    private static final Set<String> SKIPPED_OF_STATUS = Set.of("getHost", "getIPs");

    private final Mask mask;

    Shown(Mask mask) {
        this.mask = mask;
    }

    Object of(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Short) {
            return value;
        }
        if (value instanceof Long) {
            return (Long) value > 1_000_000_000_000L ? "<time>" : value;
        }
        if (value instanceof Float || value instanceof Double) {
            return value.toString();
        }
        if (value instanceof Resource) {
            return resource((Resource) value);
        }
        if (value instanceof Token) {
            return "token " + ((Token) value).getKind();
        }
        if (value instanceof ByteBuffer) {
            return ((ByteBuffer) value).remaining() + " bytes";
        }
        if (value instanceof Map) {
            Map<String, Object> shown = new TreeMap<>();
            ((Map<?, ?>) value).forEach((key, element) -> shown.put(mask.of(String.valueOf(key)), of(element)));
            return shown;
        }
        if (value instanceof Collection) {
            List<Object> shown = new ArrayList<>();
            ((Collection<?>) value).forEach(element -> shown.add(of(element)));
            shown.sort(Comparator.comparing(Shown::name));
            return shown;
        }
        boolean isRecord = value.getClass().getName().endsWith("PBImpl");
        return isRecord && !isId(value) ? record(value) : mask.of(value.toString());
    }

    /** What a list is sorted by: the record's id or name, else all of it. */
    private static String name(Object shown) {
        if (shown instanceof Map) {
            for (String key : IDS) {
                if (((Map<?, ?>) shown).containsKey(key)) {
                    return ((Map<?, ?>) shown).get(key).toString();
                }
            }
        }
        return Json.write(shown);
    }

    /** The class and message of an exception, as a caller would see them. */
    Map<String, Object> exception(Throwable thrown) {
        Map<String, Object> shown = new TreeMap<>();
        shown.put("exception", thrown.getClass().getName());
        String message = String.valueOf(thrown.getMessage());
        // A stack in the text is the server's own.
        shown.put("message", mask.of(message.split("\n\tat ")[0].strip()));
        return shown;
    }

    private static boolean isId(Object value) {
        String name = value.getClass().getSimpleName();
        return name.endsWith("IdPBImpl") || name.equals("PriorityPBImpl") || value instanceof URL;
    }

    private static String resource(Resource resource) {
        StringBuilder text = new StringBuilder(resource.getMemorySize() + " MB " + resource.getVirtualCores());
        for (ResourceInformation each : resource.getResources()) {
            if (!each.getName().equals("memory-mb") && !each.getName().equals("vcores")) {
                text.append(' ').append(each.getName()).append('=').append(each.getValue());
            }
        }
        return text.toString();
    }

    private Map<String, Object> record(Object value) {
        Class<?> declared = value.getClass();
        while (declared.getSimpleName().endsWith("PBImpl")) {
            declared = declared.getSuperclass() == Object.class ? declared.getInterfaces()[0] : declared.getSuperclass();
        }
        Map<String, Object> shown = new TreeMap<>();
        for (Method method : declared.getMethods()) {
            String name = method.getName();
            boolean isGetter = (name.startsWith("get") || name.startsWith("is")) && method.getParameterCount() == 0;
            boolean isSkipped = SKIPPED.contains(name) || value instanceof ContainerStatus && SKIPPED_OF_STATUS.contains(name);
            if (isGetter && !isSkipped && !Modifier.isStatic(method.getModifiers())) {
                Object element = call(method, value);
                if (USAGE.contains(name)) {
                    element = "<used>";
                } else if (REMAINING.contains(name) && element != null && ((Number) element).longValue() > 0) {
                    element = "<seconds>";
                }
                if (element != null) {
                    shown.put(name.startsWith("get") ? name.substring(3) : name, of(element));
                }
            }
        }
        return shown;
    }

    private Object call(Method method, Object value) {
        try {
            return method.invoke(value);
        } catch (InvocationTargetException failure) {
            return exception(failure.getCause()).toString();
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
