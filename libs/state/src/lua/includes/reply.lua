-- Replies are JSON. A script checks everything first and writes after, so an error has changed nothing.
local function fail(code, message, field, retry_after_ms, details)
  return cjson.encode({ error = { code = code, message = message, field = field, retryAfterMs = retry_after_ms,
    details = details } })
end

-- cjson writes an empty table as an object; an empty list must be written as one.
local function encode_list(list)
  if #list == 0 then return '[]' end
  return cjson.encode(list)
end

-- JSON null decodes to a light userdata that is true in Lua; optional fields become nil.
local function optional(value)
  if value == nil or value == cjson.null then return nil end
  return value
end
