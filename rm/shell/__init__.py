"""The ResourceManager's shell: servers, tokens, the state store, and the process around the core."""
