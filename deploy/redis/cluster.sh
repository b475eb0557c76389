# Makes a Redis Cluster of the servers REDIS_HOSTS. These may run at any time, and again:
#   cluster.sh start SETTING...  starts Redis, and `join` beside it
#   cluster.sh join              tells the others the address of this server: the addresses of all may be new
#   cluster.sh create PRIMARIES  gives the slots to the first servers, and makes the others replicas
# The first process of a container ignores SIGTERM without this.
trap exit TERM
export REDISCLI_AUTH="$REDIS_ADMIN_PASSWORD"

cli() {
  at=$1
  shift
  # shellcheck disable=SC2086
  timeout 5 redis-cli -h "$at" --user admin $REDIS_CLI_TLS "$@"
}

# The server $1 meets all that have an address.
meet() {
  for other in $REDIS_HOSTS; do
    address=$(getent hosts "$other" | cut -d ' ' -f 1)
    if [ -n "$address" ]; then cli "$1" cluster meet "$address" 6379; fi
  done
}

# Runs a command until it succeeds, for five minutes.
await() {
  for _ in $(seq 150); do
    "$@" && return
    sleep 2
  done
  echo "not after five minutes: $*" >&2
  exit 1
}

is_up() { cli "$1" ping | grep -q PONG; }
is_ok() { cli "$1" cluster info | grep -q cluster_state:ok; }
has_all_slots() { cli "$1" cluster info | grep -q cluster_slots_assigned:16384; }

# Copies its primary, or is one. A server that learned the new address of its primary from a third one still connects to
# the old address. One that does not answer is not waited for.
follows() {
  info=$(cli "$1" info replication | tr -d '\r')
  case $info in
    '' | *role:master* | *master_link_status:up*) return 0 ;;
  esac
  nodes=$(cli "$1" cluster nodes)
  primary=$(echo "$nodes" | awk '$3 ~ /myself/ { print $4 }')
  address=$(echo "$nodes" | awk -v id="$primary" '$1 == id { sub(/:[0-9]+@.*/, "", $2); print $2 }')
  echo "$info" | grep -qxF "master_host:$address" || cli "$1" cluster replicate "$primary" > /dev/null
  return 1
}

joined() {
  if is_ok "$REDIS_HOST"; then
    for host in $REDIS_HOSTS; do follows "$host" || return; done
  else
    meet "$REDIS_HOST" > /dev/null
    false
  fi
}

knows_all() {
  [ "$(cli "$1" cluster nodes | grep -v handshake | grep -c ' connected')" -ge "$count" ] && return
  meet "$1" > /dev/null
  false
}

# The server $1 knows that the one with the id $2 is a replica.
knows_replica() { cli "$1" cluster nodes | grep "^$2 " | grep -q slave; }

# The primary with the fewest replicas, as the server $1 knows them.
next_primary() {
  cli "$1" cluster nodes | awk '
    $3 !~ /fail/ && $8 == "connected" && $3 ~ /master/ && NF > 8 { primaries[$1] }
    $3 !~ /fail/ && $8 == "connected" && $3 ~ /slave/ { replicas[$4] += 1 }
    END { for (id in primaries) print replicas[id] + 0, id }' | sort -n | head -n 1 | cut -d ' ' -f 2
}

case $1 in
  start)
    shift
    sh "$0" join &
    exec sh "$(dirname "$0")/start.sh" "$@"
    ;;
  join) await joined ;;
  create)
    # shellcheck disable=SC2086
    count=$(set -- $REDIS_HOSTS && echo $#)
    first=${REDIS_HOSTS%% *}
    for host in $REDIS_HOSTS; do await is_up "$host"; done
    # Asked before they meet: a server that lost its volume does not know that the slots are given.
    made=
    for host in $REDIS_HOSTS; do if has_all_slots "$host"; then made=yes; fi; done
    for host in $REDIS_HOSTS; do await knows_all "$host"; done
    number=0
    for host in $REDIS_HOSTS; do
      if [ -n "$made" ] || [ "$number" -ge "$2" ]; then break; fi
      # Fails when a run that was interrupted has done it.
      cli "$host" cluster addslotsrange $((number * 16384 / $2)) $(((number + 1) * 16384 / $2 - 1))
      number=$((number + 1))
    done
    for host in $REDIS_HOSTS; do await has_all_slots "$host"; done
    for host in $REDIS_HOSTS; do
      cli "$host" cluster nodes | awk '$3 == "myself,master" && NF < 9 { found = 1 } END { exit !found }' || continue
      cli "$host" cluster replicate "$(next_primary "$first")"
      await knows_replica "$first" "$(cli "$host" cluster myid)"
    done
    for host in $REDIS_HOSTS; do await is_ok "$host"; done
    cli "$first" cluster nodes
    ;;
esac
