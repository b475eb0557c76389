-- Numbers as Redis and JSON take them.
local Format = {}

-- Lua would write one from 1e14 on with an exponent.
function Format.integer(number) return string.format('%.0f', number) end

return Format
