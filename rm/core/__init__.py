"""The ResourceManager's core: pure, an event and the time in, effects out."""
