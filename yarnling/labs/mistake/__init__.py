"""Lab 3: a cluster with one mistake in its configuration, which a learner finds, mends and shows evidence of."""
