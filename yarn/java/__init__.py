"""Java's arithmetic and collections, where Hadoop's results depend on them."""
