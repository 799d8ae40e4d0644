"""Records what a ResourceManager reports, for a day or longer."""
