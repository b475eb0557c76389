--- @include "../../includes/keys"
--- @include "lease-table"
-- What pool.configure set, read once in a script: text by name, nil for what is not set, or set to `never`.
local known_settings

local function setting(name)
  if not known_settings then
    known_settings = {}
    local flat = redis.call('HGETALL', key.settings)
    for index = 1, #flat, 2 do 
      if flat[index + 1] ~= 'never' then known_settings[flat[index]] = flat[index + 1] end
    end
  end
  return known_settings[name]
end

local function number_setting(name)
  local text = setting(name)
  return text and tonumber(text)
end

-- By hand, or while its weights change.
local function pool_is_paused()
  return setting('paused') == '1' or setting('syncing') ~= nil
end

-- False while the pool is paused, or has as many leases as `poolMaxInflight` allows.
local function pool_takes_leases()
  if pool_is_paused() then return false end
  local most = number_setting('poolMaxInflight')
  return most == nil or live_leases() < most
end
