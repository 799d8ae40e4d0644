"""The web services' base of the ResourceManager and the NodeManagers. Imported only by daemons that serve them."""
