/* Run it with the jars of hadoop-yarn-server-nodemanager 3.4.1; see tests/nm/test_settings.py. */
import java.util.*;
import org.apache.hadoop.util.SysInfo;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.nodemanager.util.NodeManagerHardwareUtils;
import org.apache.hadoop.yarn.util.ResourceCalculatorPlugin;

/** Prints what Hadoop's NodeManager offers on a machine of 16,000 MB, 4 cores and 8 threads, as lines of JSON. */
public class RecordResources {
  static final String PREFIX = "yarn.nodemanager.resource.";
  static final String DETECT = "detect-hardware-capabilities=true";
  static final String[][] SETTINGS = {
    {}, {"memory-mb=4096", "cpu-vcores=2"}, {DETECT}, {DETECT, "memory-mb=4096"},
    {DETECT, "system-reserved-memory-mb=1000"}, {DETECT, "count-logical-processors-as-cores=true"},
    {DETECT, "percentage-physical-cpu-limit=40"}, {DETECT, "percentage-physical-cpu-limit=10"},
    {DETECT, "pcores-vcores-multiplier=2.5"},
  };

  static class Machine extends SysInfo {
    public long getVirtualMemorySize() { return getPhysicalMemorySize(); }
    public long getPhysicalMemorySize() { return 16_000L << 20; }
    public long getAvailableVirtualMemorySize() { return 0; }
    public long getAvailablePhysicalMemorySize() { return 0; }
    public int getNumProcessors() { return 8; }
    public int getNumCores() { return 4; }
    public long getCpuFrequency() { return 0; }
    public long getCumulativeCpuTime() { return 0; }
    public float getCpuUsagePercentage() { return 0; }
    public float getNumVCoresUsed() { return 0; }
    public long getNetworkBytesRead() { return 0; }
    public long getNetworkBytesWritten() { return 0; }
    public long getStorageBytesRead() { return 0; }
    public long getStorageBytesWritten() { return 0; }
  }

  public static void main(String[] args) {
    ResourceCalculatorPlugin plugin = new ResourceCalculatorPlugin(new Machine()) {};
    List<String> lines = new ArrayList<>();
    for (String[] settings : SETTINGS) {
      YarnConfiguration conf = new YarnConfiguration();
      List<String> pairs = new ArrayList<>();
      for (String setting : settings) {
        String[] pair = setting.split("=");
        conf.set(PREFIX + pair[0], pair[1]);
        pairs.add("\"" + PREFIX + pair[0] + "\": \"" + pair[1] + "\"");
      }
      lines.add(" {\"settings\": {" + String.join(", ", pairs) + "}, \"memory_mb\": "
          + NodeManagerHardwareUtils.getContainerMemoryMB(plugin, conf) + ", \"vcores\": "
          + NodeManagerHardwareUtils.getVCores(plugin, conf) + "}");
    }
    long heap = Runtime.getRuntime().maxMemory() >> 20;
    System.out.println("{\"heap_mb\": " + heap + ", \"nodes\": [\n" + String.join(",\n", lines) + "\n]}");
  }
}
