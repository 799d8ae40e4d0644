"""The NodeManager's shell: servers, calls to the ResourceManager, disks, monitoring, and the process itself."""
