"""The NodeManager: runs containers on one node, watches them and tells the ResourceManager how they do."""
