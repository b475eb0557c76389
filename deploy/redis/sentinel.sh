# Starts a Sentinel beside the Redis of REDIS_HOST; the arguments are further settings. REDIS_HOSTS are the names of all
# servers; the first one is the primary at the beginning. What the Sentinels have agreed on is kept in /data.
cd "$(dirname "$0")" || exit
umask 077
awk -f users.awk sentinel.acl > /tmp/sentinel.acl || exit
file=/data/sentinel.conf
touch "$file"
{
  grep '^sentinel monitor main ' "$file" || echo "sentinel monitor main ${REDIS_HOSTS%% *} 6379 2"
  grep -E '^sentinel (myid|current-epoch|(config-epoch|leader-epoch|known-replica|known-sentinel) main) ' "$file"
  cat << END
dir /tmp
aclfile /tmp/sentinel.acl
sentinel resolve-hostnames yes
sentinel announce-hostnames yes
sentinel announce-ip $REDIS_HOST
sentinel announce-port 26379
sentinel sentinel-user sentinel
sentinel sentinel-pass $REDIS_SENTINEL_PASSWORD
sentinel auth-user main sentinel
sentinel auth-pass main $REDIS_SENTINEL_PASSWORD
sentinel down-after-milliseconds main 5000
sentinel failover-timeout main 30000
END
} > "$file.new" || exit
mv "$file.new" "$file"
exec redis-server "$file" --sentinel "$@"
