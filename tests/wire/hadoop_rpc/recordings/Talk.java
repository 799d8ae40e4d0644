import java.net.InetSocketAddress;
import java.security.PrivilegedExceptionAction;
import java.util.Base64;
import java.util.Collections;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;
import org.apache.hadoop.yarn.api.ApplicationClientProtocol;
import org.apache.hadoop.yarn.api.ApplicationMasterProtocol;
import org.apache.hadoop.yarn.api.ContainerManagementProtocol;
import org.apache.hadoop.yarn.api.protocolrecords.*;
import org.apache.hadoop.yarn.api.records.*;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.ApplicationNotFoundException;
import org.apache.hadoop.yarn.ipc.YarnRPC;

/** Talks to a server as Hadoop's own clients do: SCENE PORT [TOKEN'S IDENTIFIER PASSWORD, in base64]. */
public class Talk {
  static YarnConfiguration conf = new YarnConfiguration();
  static InetSocketAddress server;

  public static void main(String[] args) throws Exception {
    server = new InetSocketAddress("127.0.0.1", Integer.parseInt(args[1]));
    conf.set(YarnConfiguration.RM_SCHEDULER_ADDRESS, "127.0.0.1:" + args[1]);
    UserGroupInformation user = UserGroupInformation.createRemoteUser("ann");
    if (args.length > 2) {
      Text kind = new Text(args[0].equals("nm") ? "NMToken" : "YARN_AM_RM_TOKEN");
      Token<TokenIdentifier> token = new Token<>(
          Base64.getDecoder().decode(args[2]), Base64.getDecoder().decode(args[3]), kind, new Text());
      SecurityUtil.setTokenService(token, server);
      user.addToken(token);
    }
    user.doAs((PrivilegedExceptionAction<Void>) () -> {
      switch (args[0]) {
        case "am": am(); break;
        case "nm": nm(); break;
        default: client();
      }
      return null;
    });
  }

  static <T> T proxy(Class<T> protocol) {
    return protocol.cast(YarnRPC.create(conf).getProxy(protocol, server, conf));
  }

  static void client() throws Exception {
    ApplicationClientProtocol rm = proxy(ApplicationClientProtocol.class);
    GetClusterMetricsResponse metrics = rm.getClusterMetrics(GetClusterMetricsRequest.newInstance());
    System.out.println("nodes " + metrics.getClusterMetrics().getNumNodeManagers());
    try {
      rm.getApplicationReport(GetApplicationReportRequest.newInstance(ApplicationId.newInstance(1, 1)));
    } catch (ApplicationNotFoundException e) {
      System.out.println("refused " + e.getMessage());
    }
    try {
      rm.getNewReservation(GetNewReservationRequest.newInstance());
    } catch (Exception e) {
      System.out.println("refused " + e.getClass().getName() + " " + e.getMessage());
    }
  }

  static void am() throws Exception {
    ApplicationMasterProtocol rm = proxy(ApplicationMasterProtocol.class);
    rm.registerApplicationMaster(RegisterApplicationMasterRequest.newInstance("here", 1, "http://here"));
    ResourceRequest wanted = ResourceRequest.newInstance(Priority.newInstance(1), "*", Resource.newInstance(512, 1), 2);
    AllocateResponse response = rm.allocate(
        AllocateRequest.newInstance(0, 0.5f, Collections.singletonList(wanted), Collections.emptyList(), null));
    System.out.println("response " + response.getResponseId());
    FinishApplicationMasterResponse end = rm.finishApplicationMaster(
        FinishApplicationMasterRequest.newInstance(FinalApplicationStatus.SUCCEEDED, "done", ""));
    System.out.println("unregistered " + end.getIsUnregistered());
  }

  static void nm() throws Exception {
    ContainerManagementProtocol nm = proxy(ContainerManagementProtocol.class);
    ContainerId id = ContainerId.newContainerId(
        ApplicationAttemptId.newInstance(ApplicationId.newInstance(1700000000000L, 1), 1), 2);
    GetContainerStatusesResponse statuses = nm.getContainerStatuses(
        GetContainerStatusesRequest.newInstance(Collections.singletonList(id)));
    System.out.println("statuses " + statuses.getContainerStatuses().size());
  }
}
