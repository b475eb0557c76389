# Copies the data of each primary of REDIS_HOSTS to FOLDER/redis-TIME-SERVER.rdb, checks the copy, and keeps the copies
# of the last KEEP times: `sh backup.sh FOLDER KEEP PRIMARIES`. It fails, and removes nothing, if fewer than PRIMARIES
# were copied. Docs: docs/operations/backup.md
set -eu
umask 077
cd "$1"
# Files of a run that was interrupted.
rm -f ./*.new
export REDISCLI_AUTH="$REDIS_ADMIN_PASSWORD"

cli() {
  at=$1
  shift
  # shellcheck disable=SC2086
  redis-cli -h "$at" --user admin $REDIS_CLI_TLS "$@"
}

time=$(date -u +%Y%m%dT%H%M%SZ)
copies=0
for host in $REDIS_HOSTS; do
  # A replica has the data of its primary; a server that does not answer may be one that was replaced.
  cli "$host" info replication | grep -q '^role:master' || continue
  file=redis-$time-${host%%.*}.rdb
  cli "$host" --rdb "$file.new"
  redis-check-rdb "$file.new" > check.log.new || {
    cat check.log.new >&2
    exit 1
  }
  mv "$file.new" "$file"
  copies=$((copies + 1))
done
rm -f ./*.new
if [ "$copies" -lt "$3" ]; then
  echo "copied $copies of $3 primaries; all servers: $REDIS_HOSTS" >&2
  exit 1
fi
sync
find . -name 'redis-*.rdb' | sed 's/^\.\/redis-\([^-]*\)-.*/\1/' | sort -ru | tail -n +$(($2 + 1)) | while read -r old; do
  rm ./redis-"$old"-*.rdb
done
echo "Copied $copies of $3 primaries at $time."
