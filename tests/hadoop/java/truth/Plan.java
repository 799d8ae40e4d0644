package truth;

import java.util.List;

/** What a true run does, as tests/hadoop/truth/recorder.py writes it. Times are ms since the start of the workload. */
public final class Plan {
    public List<Machine> nodes;
    public List<Label> labels;
    public List<Work> warmUp;
    public List<Work> applications;
    public List<Loss> losses;

    /** A NodeManager. `phaseMs`: when it registers, after the start of the program. */
    public static final class Machine {
        public String host;
        public int port;
        public int memoryMb;
        public int vcores;
        public String label;
        public int phaseMs;
    }

    /** A node label of the cluster. */
    public static final class Label {
        public String name;
        public boolean exclusive;
    }

    /** An application. `number`: its position in the workload. */
    public static final class Work {
        public int number;
        public String name;
        public long submitMs;
        public String user;
        public String queue;
        public String label;
        public int priority;
        public int amMemoryMb;
        public int amVcores;
        public int amStartMs;
        public List<Group> groups;
    }

    /** Containers of one kind. `taskMs`: how long each runs, its start included. `after`: -1 or the last group to wait for. */
    public static final class Group {
        public int memoryMb;
        public int vcores;
        public int priority;
        public long requestId;
        public int after;
        public int delayMs;
        public List<String> hosts;
        public String label;
        public List<Integer> taskMs;
    }

    /** A machine that fails with its containers. */
    public static final class Loss {
        public long atMs;
        public String host;
    }
}
