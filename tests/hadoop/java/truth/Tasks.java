package truth;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** The tasks of an application that have not ended, across the attempts of its AM. */
final class Tasks {
    final Plan.Work work;
    private final List<Deque<Task>> waiting = new ArrayList<>();
    private final List<Task> running = new ArrayList<>();
    private final int[] left;
    private final long[] opensMs;
    private final boolean[] requested;

    /** A task: its group, its position in it, and how long it runs. */
    static final class Task {
        final int group;
        final int number;
        final int taskMs;

        Task(int group, int number, int taskMs) {
            this.group = group;
            this.number = number;
            this.taskMs = taskMs;
        }
    }

    Tasks(Plan.Work work) {
        this.work = work;
        int groups = work.groups.size();
        left = new int[groups];
        opensMs = new long[groups];
        requested = new boolean[groups];
        for (int group = 0; group < groups; group++) {
            Deque<Task> tasks = new ArrayDeque<>();
            for (int taskMs : work.groups.get(group).taskMs) {
                tasks.add(new Task(group, tasks.size(), taskMs));
            }
            waiting.add(tasks);
            left[group] = tasks.size();
        }
    }

    /** Starts over: an attempt requests its groups again, and the tasks that its predecessor ran. */
    synchronized void beginAttempt() {
        for (Task task : new ArrayList<>(running)) {
            putBack(task);
        }
        for (int group = 0; group < left.length; group++) {
            requested[group] = false;
            opensMs[group] = 0;
        }
    }

    /** The groups whose time has come and that have not been requested. */
    synchronized List<Integer> takeOpened(long nowMs) {
        List<Integer> opened = new ArrayList<>();
        for (int group = 0; group < left.length; group++) {
            if (requested[group] || !isAllowed(group)) {
                continue;
            }
            if (opensMs[group] == 0) {
                opensMs[group] = nowMs + work.groups.get(group).delayMs;
            }
            if (opensMs[group] <= nowMs) {
                requested[group] = true;
                opened.add(group);
            }
        }
        return opened;
    }

    private boolean isAllowed(int group) {
        for (int before = 0; before <= work.groups.get(group).after; before++) {
            if (left[before] > 0) {
                return false;
            }
        }
        return true;
    }

    /** The group with these requests that has a waiting task, one that wants the host first; -1 if there is none. */
    synchronized int groupFor(int priority, long requestId, String host) {
        int found = -1;
        for (int group = 0; group < left.length; group++) {
            Plan.Group wanted = work.groups.get(group);
            if (wanted.priority != priority || wanted.requestId != requestId || !requested[group] || waiting.get(group).isEmpty()) {
                continue;
            }
            if (wanted.hosts.contains(host)) {
                return group;
            }
            found = found < 0 ? group : found;
        }
        return found;
    }

    synchronized int waiting(int group) {
        return waiting.get(group).size();
    }

    synchronized Task take(int group) {
        Task task = waiting.get(group).poll();
        running.add(task);
        return task;
    }

    synchronized void putBack(Task task) {
        running.remove(task);
        waiting.get(task.group).addFirst(task);
    }

    synchronized void end(Task task) {
        running.remove(task);
        left[task.group]--;
    }

    synchronized boolean isOver() {
        for (int count : left) {
            if (count > 0) {
                return false;
            }
        }
        return true;
    }

    synchronized float progress() {
        int all = 0;
        int open = 0;
        for (int group = 0; group < left.length; group++) {
            all += work.groups.get(group).taskMs.size();
            open += left[group];
        }
        return all == 0 ? 1f : 1f - (float) open / all;
    }
}
