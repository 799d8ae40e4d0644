"""What the web services of the ResourceManager and the NodeManagers share. Imported only by daemons that serve them."""
