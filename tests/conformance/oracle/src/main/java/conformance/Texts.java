package conformance;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.records.Resource;

/** Resources as JSON has them, and as views and replies show them. */
final class Texts {
  private Texts() {
  }

  static Resource resource(JsonNode amounts) {
    Resource resource = Resource.newInstance(0, 0);
    amounts.fields().forEachRemaining(entry -> {
      switch (entry.getKey()) {
        case "memory" -> resource.setMemorySize(entry.getValue().asLong());
        case "vcores" -> resource.setVirtualCores(entry.getValue().asInt());
        default -> resource.setResourceValue(entry.getKey(), entry.getValue().asLong());
      }
    });
    return resource;
  }

  /** "memory vcores others" in the order of Hadoop's list of resource types. */
  static String show(Resource resource) {
    if (resource == null) {
      return "none";
    }
    return Arrays.stream(resource.getResources()).map(type -> Long.toString(type.getValue()))
        .collect(Collectors.joining(" "));
  }
}
