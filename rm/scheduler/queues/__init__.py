"""The queues of one cluster: their tree, its refresh, and queues that come and go while it runs."""
