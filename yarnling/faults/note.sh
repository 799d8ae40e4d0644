#!/bin/bash
# note.sh DIRECTORY master COMMAND...              runs the command
# note.sh DIRECTORY container|task HUNDREDTHS      runs for so many hundredths of a second; "-": until it is killed
#
# It writes to DIRECTORY/CONTAINER_ID.PID: a first line with role, task, host and start time, and for a member of a gang
# its try, rank and the hosts of all members; a line with the time ten times a second; and its exit status when it exits
# by itself. Times are those of /proc/uptime, in hundredths of a second.
# Only shell built-ins: a process for each line would be most of a cluster's load.
directory=$1 role=$2
shift 2
file=$directory/$CONTAINER_ID.$$
now() { read -r time _ < /proc/uptime; time=${time/./}; }
# Reading from a pipe that nothing writes to is a sleep.
exec {never}<> <(:)
pause() { read -r -t 0.1 -u "$never"; }
tick() { now; echo "$time" >> "$file"; }
now
started=$time
echo "$role ${ELASTIC_TASK:-${TASK_NUMBER:-0}} ${NM_HOST:--} $started${GANG_TRY:+ $GANG_TRY $GANG_RANK $GANG_HOSTS}" >> "$file"
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
    until=$((started + $1))
    while now; [ "$time" -lt "$until" ]; do tick; pause; done
fi
now
echo "end $status $time" >> "$file"
exit "$status"
