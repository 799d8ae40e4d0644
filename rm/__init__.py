"""The ResourceManager: a pure core (core, lifecycles, scheduler) in an asyncio shell (services, daemon)."""
