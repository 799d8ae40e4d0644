"""A daemon that must not be forked: importing it starts a thread."""

import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
