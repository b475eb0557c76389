-- Replies are JSON. A script checks everything first and writes after, so an error has changed nothing.
local Reply = {}

function Reply.fail(code, message, field, retry_after_ms, details)
  return cjson.encode({ error = { code = code, message = message, field = field, retryAfterMs = retry_after_ms,
    details = details } })
end

-- cjson writes an empty table as an object; an empty list must be written as one.
function Reply.list(list)
  if #list == 0 then return '[]' end
  return cjson.encode(list)
end

-- `servers`: serverId -> as ServerRecord.describe gives it.
function Reply.servers(servers)
  local members = {}
  for _, member in pairs(servers) do members[#members + 1] = member end
  return '{' .. table.concat(members, ',') .. '}'
end

-- JSON null decodes to a light userdata that is true in Lua; optional fields become nil.
function Reply.optional(value)
  if value == nil or value == cjson.null then return nil end
  return value
end

return Reply
