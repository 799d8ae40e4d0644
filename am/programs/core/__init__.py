"""What the cores of several programs share."""
