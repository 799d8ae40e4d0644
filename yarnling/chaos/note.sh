#!/bin/bash
# note.sh DIRECTORY master COMMAND...          runs the command
# note.sh DIRECTORY container|task SECONDS     works for so long; "-": until it is ended
#
# Meanwhile it notes that it lives, ten times a second, in DIRECTORY/CONTAINER_ID.PID: who it is and when it began, a
# tick a line, and its exit status when it ends by itself. Times are of /proc/uptime, in hundredths of a second.
# Everything is built into the shell: a process for each tick would be most of a cluster's load.
directory=$1 role=$2
shift 2
file=$directory/$CONTAINER_ID.$$
now() { read -r time _ < /proc/uptime; time=${time/./}; }
# A pipe that nobody writes to: reading from it is a sleep.
exec {never}<> <(:)
pause() { read -r -t 0.1 -u "$never"; }
tick() { now; echo "$time" >> "$file"; }
now
begun=$time
echo "$role ${ELASTIC_TASK:-0} ${NM_HOST:--} $begun" >> "$file"
status=0
if [ "$role" = master ]; then
    "$@" &
    child=$!
    while kill -0 "$child" 2> /dev/null; do tick; pause; done
    wait "$child"
    status=$?
elif [ "$1" = - ]; then
    while :; do tick; pause; done
else
    until=$((begun + $1))
    while now; [ "$time" -lt "$until" ]; do tick; pause; done
fi
now
echo "end $status $time" >> "$file"
exit "$status"
