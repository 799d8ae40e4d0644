"""The NodeManager's shell: servers, calls to the ResourceManager, disk checks, monitoring, and the process itself."""
