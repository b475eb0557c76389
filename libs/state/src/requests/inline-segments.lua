-- Segments of a request in a reply. Segments that would not fit in a message are left out; a caller who needs them
-- reads them separately (requests/segments).
local InlineSegments = {}

InlineSegments.MAX_INLINE_BYTES = 131072
InlineSegments.REPLY_BYTES = 500000 -- bound of a page of a list

-- Adds `segments`, JSON, to an object that is JSON; before them `members`, JSON that begins with a comma, or none.
function InlineSegments.append(plain, segments, members)
  if #segments > InlineSegments.MAX_INLINE_BYTES then
    return string.sub(plain, 1, -2) .. (members or '') .. ',"segments":[],"segmentsFollow":true}'
  end
  return string.sub(plain, 1, -2) .. (members or '') .. ',"segments":' .. segments .. '}'
end

return InlineSegments
