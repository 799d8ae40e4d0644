package conformance;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.net.DNSToSwitchMapping;
import org.apache.hadoop.net.NetworkTopology;

/** The racks of the hosts, as registrations name them. Static, because Hadoop makes the object itself. */
public final class Racks implements DNSToSwitchMapping {
  static final Map<String, String> BY_HOST = new ConcurrentHashMap<>();

  @Override
  public List<String> resolve(List<String> hosts) {
    return hosts.stream().map(host -> BY_HOST.getOrDefault(host, NetworkTopology.DEFAULT_RACK)).toList();
  }

  @Override
  public void reloadCachedMappings() {
    // Nothing is cached here.
  }

  @Override
  public void reloadCachedMappings(List<String> hosts) {
    // Nothing is cached here.
  }
}
