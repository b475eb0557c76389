--[[ Raises a pool of the previous schema version to the version of this library, see library/schema-version.ts. The
caller has made sure that no live replica is older than the previous version. Only this transition runs on any pool.
Reply: version     number, of the pool now; absent for a pool that has none yet
Flags: allow-oom ]]
return function(tx)
  local version = Tx.schema_of(tx)
  if version == SCHEMA_VERSION - 1 then
    version = SCHEMA_VERSION
    redis.call('HSET', tx.key.meta, 'schemaVersion', version)
  end
  return cjson.encode({ version = version })
end
