"""The ResourceManager: a pure core (core/, scheduler/) in an asyncio shell (shell/, pack/)."""
