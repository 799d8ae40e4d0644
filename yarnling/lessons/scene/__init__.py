"""The parts of chapters and of the quiz: a small simulated cluster, and the story that is told of it."""
