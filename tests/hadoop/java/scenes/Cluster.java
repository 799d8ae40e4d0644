package scenes;

import org.apache.hadoop.conf.Configuration;

/** What an operator, or bad luck, does to a cluster; everything else in a scene is a call over RPC. Nodes are numbered from 1. */
public interface Cluster extends AutoCloseable {
    /** With this a client reaches the cluster. */
    Configuration conf();

    /** The RM stops without a word and starts again with its state. */
    void restartRM() throws Exception;

    /** The node goes silent. */
    void killNode(int number) throws Exception;

    /** The node stops and unregisters. */
    void stopNode(int number) throws Exception;

    /** A node starts on the host of the old one, at another port. */
    void startNode(int number) throws Exception;

    /** The node is excluded, with so many seconds for its containers (0: none). */
    void decommission(int number, int seconds) throws Exception;

    /** The running node's host is included again: the node stays. */
    void keep(int number) throws Exception;

    /** Once the node has stopped, its host may have one again. */
    void recommission(int number) throws Exception;

    /** Of the node with this NodeId; 0 if no node of the cluster has it. */
    int numberOf(String nodeId) throws Exception;

    @Override
    void close() throws Exception;
}
