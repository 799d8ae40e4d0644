"""The NodeManager: runs and monitors the containers of a node, and reports on them to the ResourceManager."""
