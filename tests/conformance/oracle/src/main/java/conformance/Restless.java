package conformance;

/** Hadoop is still busy long after a step: some scenarios send its scheduler round without an end. */
final class Restless extends Error {
  private static final long serialVersionUID = 1L;

  Restless() {
    super("still busy after " + Cluster.REST_SECONDS_MAX + " s");
  }
}
