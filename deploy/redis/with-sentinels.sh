# Starts Redis as the primary that most Sentinels know, or as a replica of it; the arguments are further settings.
# Without an answer of the majority it waits, and the startup probe ends it.
cd "$(dirname "$0")" || exit
# The first process of a container ignores SIGTERM without this.
trap exit TERM

# The epoch and the name of the primary, a line for each Sentinel that answers.
primaries() {
  for host in $REDIS_HOSTS; do
    # shellcheck disable=SC2086
    REDISCLI_AUTH=$REDIS_SENTINEL_PASSWORD timeout 2 redis-cli -h "$host" -p 26379 --user sentinel $REDIS_CLI_TLS \
      sentinel master main 2> /dev/null |
      awk 'field == "ip" { name = $0 } field == "config-epoch" { print $0, name } { field = $0 }'
  done
}

# All other servers answer that they have no keys. One that does not answer, or still loads, may have all of them.
others_are_empty() {
  for host in $REDIS_HOSTS; do
    [ "$host" = "$REDIS_HOST" ] && continue
    # shellcheck disable=SC2086
    REDISCLI_AUTH=$REDIS_ADMIN_PASSWORD timeout 2 redis-cli -h "$host" --user admin $REDIS_CLI_TLS dbsize 2> /dev/null |
      grep -qx 0 || return
  done
}

# shellcheck disable=SC2086
majority=$(($(set -- $REDIS_HOSTS && echo $#) / 2 + 1))
while :; do
  known=$(primaries)
  if [ "$(printf '%s' "$known" | grep -c '')" -ge "$majority" ]; then
    # Sentinels that were away may still name an older primary.
    primary=$(printf '%s\n' "$known" | sort -n | tail -n 1 | cut -d ' ' -f 2)
    [ "$primary" = "$REDIS_HOST" ] || exec sh start.sh "$@" --replicaof "$primary" 6379
    # A primary that lost its volume stays away until a replica has replaced it: the replicas would copy its nothing.
    if [ -e /data/appendonlydir ] || others_are_empty; then exec sh start.sh "$@"; fi
  fi
  sleep 1
done
