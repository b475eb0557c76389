-- What pool.configure set, read once in a script: text by name, nil for what is not set, or set to `never`.
local Settings = {}

function Settings.get(tx, name)
  if not tx.settings then
    tx.settings = {}
    local flat = redis.call('HGETALL', tx.key.settings)
    for index = 1, #flat, 2 do 
      if flat[index + 1] ~= 'never' then tx.settings[flat[index]] = flat[index + 1] end
    end
  end
  return tx.settings[name]
end

function Settings.number(tx, name)
  local text = Settings.get(tx, name)
  return text and tonumber(text)
end

-- Why the pool grants nothing (UNSERVED_REASONS of libs/contracts), or nil.
function Settings.pause_reason(tx)
  if Settings.get(tx, 'syncing') then return 'weights-changing' end
  return Settings.get(tx, 'paused') == '1' and 'paused' or nil
end

-- False while the pool is paused, or has as many leases as `poolMaxInflight` allows.
function Settings.takes_leases(tx)
  if Settings.pause_reason(tx) then return false end
  local most = Settings.number(tx, 'poolMaxInflight')
  return most == nil or LeaseTable.size(tx) < most
end

return Settings
