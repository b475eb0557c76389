# Starts Redis with users.acl and the passwords of the environment; the arguments are further settings. The password with
# which a replica copies the data comes by standard input: arguments of a process are not secret.
cd "$(dirname "$0")" || exit
umask 077
awk -f users.awk users.acl > /tmp/users.acl || exit
exec redis-server "$PWD/redis.conf" "$@" - << END
masteruser replica
masterauth $REDIS_REPLICA_PASSWORD
END
