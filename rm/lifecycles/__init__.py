"""The lifecycles of the ResourceManager's objects, as tables with Hadoop's states and events."""
