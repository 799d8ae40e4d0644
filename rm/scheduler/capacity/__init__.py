"""How much a queue, a user and an application may use, and in which order they are served."""
