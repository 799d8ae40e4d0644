"""What chapters and the quiz are made of: a small simulated cluster, and the story that is told of it."""
