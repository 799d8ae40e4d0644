package conformance;

import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;

/** An application with its master's side: which attempt registered last, as whom it calls, which answer it had last. */
final class RecordedApp {
  final String name;
  final ApplicationId id;
  /** Null before the first `register`. */
  ApplicationAttemptId attempt;
  UserGroupInformation master;
  int responseId;
  /** Whether the master lives: registered, and nothing has ended it since. */
  boolean registered;

  RecordedApp(String name, ApplicationId id) {
    this.name = name;
    this.id = id;
  }
}
