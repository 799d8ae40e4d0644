"""Which queue an application goes to when it is submitted: Hadoop's mapping rules. They know queues by their names."""
