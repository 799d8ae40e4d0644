package scenes;

import java.util.Collection;
import java.util.Map;

/** Writes maps, collections, strings, numbers and booleans as JSON on one line. */
final class Json {
    private Json() {}

    static String write(Object value) {
        StringBuilder text = new StringBuilder();
        write(value, text);
        return text.toString();
    }

    private static void write(Object value, StringBuilder text) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            text.append(value);
        } else if (value instanceof Map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                text.append(separator);
                string(String.valueOf(entry.getKey()), text);
                text.append(": ");
                write(entry.getValue(), text);
                separator = ", ";
            }
            text.append(separator.equals("{") ? "{}" : "}");
        } else if (value instanceof Collection) {
            String separator = "[";
            for (Object element : (Collection<?>) value) {
                text.append(separator);
                write(element, text);
                separator = ", ";
            }
            text.append(separator.equals("[") ? "[]" : "]");
        } else {
            string(value.toString(), text);
        }
    }

    private static void string(String value, StringBuilder text) {
        text.append('"');
        for (char c : value.toCharArray()) {
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                text.append(String.format("\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        text.append('"');
    }
}
