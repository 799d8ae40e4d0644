"""The lifecycles of the NodeManager's objects, as tables with Hadoop's states and events."""
