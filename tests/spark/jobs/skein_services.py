"""An application of two containers that skein starts; each copies the file that it was given into the directory.

skein_services.py DIRECTORY
"""

import sys
import time
from pathlib import Path

import skein

directory = Path(sys.argv[1])
(directory / "words.txt").write_text("to be or not to be\n")
spec = skein.ApplicationSpec.from_dict(
    {
        "name": "copies",
        "services": {
            "copies": {
                "instances": 2,
                "resources": {"memory": "128 MiB", "vcores": 1},
                "files": {"words.txt": str(directory / "words.txt")},
                "script": f"cp words.txt {directory}/$CONTAINER_ID",
            }
        },
    }
)
with skein.Client() as client:
    app_id = client.submit(spec)
    while client.application_report(app_id).final_status == "undefined":
        time.sleep(0.5)
