"""The ResourceManager's web services: Hadoop's REST API, JMX and metrics. Imported only if they are enabled."""
