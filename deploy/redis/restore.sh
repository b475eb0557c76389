# Makes a snapshot the data of a Redis that is stopped: `sh restore.sh [FOLDER] < redis.rdb`; FOLDER: by default /data.
# Redis with `appendonly yes` reads only its append-only files, so the snapshot becomes their base. What was there
# before stays in FOLDER/before-restore.TIME. Docs: docs/operations/backup.md
set -eu
umask 077
cd "${1:-/data}"
new=restore.new
trap 'rm -rf "$new"' EXIT
rm -rf "$new"
mkdir "$new"
cat > "$new/appendonly.aof.1.base.rdb"
redis-check-rdb "$new/appendonly.aof.1.base.rdb" > "$new/check.log" || {
  cat "$new/check.log" >&2
  echo 'This is not a snapshot of Redis; nothing was changed.' >&2
  exit 1
}
# `redis-cli --rdb -` leaves the mark of the end of the transfer, 40 bytes, behind the snapshot; Redis would refuse it.
length=$(sed -n 's/^\[offset \([0-9]*\)\].*RDB looks OK.*/\1/p' "$new/check.log")
truncate -s "$length" "$new/appendonly.aof.1.base.rdb"
rm "$new/check.log"
echo 'file appendonly.aof.1.base.rdb seq 1 type b' > "$new/appendonly.aof.manifest"
# A folder for each restore: a second one, with another back-up, does not remove the data of before the first.
before=$(mktemp -d "before-restore.$(date -u +%Y%m%dT%H%M%SZ).XXXXXX")
# Sentinels that are beside this Redis choose the primary as at the first start.
for old in appendonlydir dump.rdb sentinel.conf; do
  if [ -e "$old" ]; then mv "$old" "$before/"; fi
done
mv "$new" appendonlydir
sync
echo 'Restored. Start Redis.'
