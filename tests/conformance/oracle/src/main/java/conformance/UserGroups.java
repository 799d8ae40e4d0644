package conformance;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.security.GroupMappingServiceProvider;

/** The groups of the users, as submissions name them; nobody else has any. Static, because Hadoop makes the object. */
public final class UserGroups implements GroupMappingServiceProvider {
  static final Map<String, List<String>> BY_USER = new ConcurrentHashMap<>();

  @Override
  public List<String> getGroups(String user) {
    return BY_USER.getOrDefault(user, List.of());
  }

  @Override
  public Set<String> getGroupsSet(String user) {
    return new LinkedHashSet<>(getGroups(user));
  }

  @Override
  public void cacheGroupsAdd(List<String> groups) {
    // Nothing is cached here.
  }

  @Override
  public void cacheGroupsRefresh() {
    // Nothing is cached here.
  }
}
