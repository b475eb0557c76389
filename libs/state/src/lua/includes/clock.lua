--- @include "keys"
-- Redis TIME in milliseconds, made monotone: a clock that steps back never makes anything younger. One that was set back
-- by more than SET_BACK_MS goes on from where it was, ahead of TIME from then on: standing still until TIME has caught up
-- it would let nobody's time run out for as long as that takes.
local script_now -- one moment in a script
local function now_ms()
  if script_now then return script_now end
  local SET_BACK_MS = 1000
  local time = redis.call('TIME')
  local field = redis.call('HMGET', key.meta, 'clockMs', 'clockAheadMs')
  local last, ahead = tonumber(field[1] or nil) or 0, tonumber(field[2] or nil) or 0
  local now = time[1] * 1000 + math.floor(time[2] / 1000) + ahead
  if now < last - SET_BACK_MS then
    redis.call('HSET', key.meta, 'clockAheadMs', string.format('%.0f', ahead + last - now))
  elseif now > last then
    redis.call('HSET', key.meta, 'clockMs', string.format('%.0f', now))
    last = now
  end
  script_now = last
  return last
end
