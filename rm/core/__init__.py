"""The ResourceManager's core: pure code that takes an event and the time, and returns effects."""
