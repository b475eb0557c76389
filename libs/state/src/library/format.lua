-- Numbers as Redis and JSON take them.
local Format = {}

local small = {}
for number = 0, 255 do small[number] = '' .. number end -- made at load, when Redis has no string.format yet

-- An integer as text. Lua itself would write it with an exponent from 1e14 on.
function Format.integer(number) return small[number] or string.format('%.0f', number) end

return Format
