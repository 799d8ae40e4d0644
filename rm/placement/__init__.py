"""Which queue an application goes to when it is submitted: Hadoop's mapping rules. Pure, and imports only `yarn`."""
