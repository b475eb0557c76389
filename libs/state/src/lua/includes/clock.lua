--- @include "keys"
-- Redis TIME in milliseconds, made monotone: a clock that steps back never makes anything younger.
local script_now -- one moment in a script
local function now_ms()
  if script_now then return script_now end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local last = tonumber(redis.call('HGET', key.meta, 'clockMs')) or 0
  if now > last then
    redis.call('HSET', key.meta, 'clockMs', string.format('%.0f', now))
    last = now
  end
  script_now = last
  return last
end
