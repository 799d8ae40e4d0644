"""The auxiliary service mapreduce_shuffle: an HTTP server that sends maps' output to reduces (ShuffleHandler)."""
