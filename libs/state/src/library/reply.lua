-- Replies are JSON. A script checks everything before it writes, so a call with an error has changed nothing.
local Reply = {}

function Reply.fail(code, message, field, retry_after_ms, details)
  local error = { code = code, message = message, field = field, retryAfterMs = retry_after_ms }
  return Reply.object({}, { error = Reply.object(error, { details = details and Reply.object(details) }) })
end

-- cjson writes an empty table as an object; an empty list must be a list.
function Reply.list(list)
  if #list == 0 then return '[]' end
  return cjson.encode(list)
end

-- A reply as JSON. `fields`: name -> value, an empty table is a list. `json`: name -> value that is JSON, or nil.
function Reply.object(fields, json)
  local parts = {}
  for name, value in pairs(fields) do
    local is_empty = type(value) == 'table' and next(value) == nil
    table.insert(parts, '"' .. name .. '":' .. (is_empty and '[]' or cjson.encode(value)))
  end
  for name, value in pairs(json or {}) do table.insert(parts, '"' .. name .. '":' .. value) end
  return '{' .. table.concat(parts, ',') .. '}'
end

-- A list of values that are JSON.
function Reply.joined(values) return '[' .. table.concat(values, ',') .. ']' end

-- `servers`: serverId -> JSON member by ServerWeights.describe.
function Reply.servers(servers)
  local members = {}
  for _, member in pairs(servers) do members[#members + 1] = member end
  return '{' .. table.concat(members, ',') .. '}'
end

return Reply
