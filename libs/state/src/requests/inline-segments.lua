-- Segments of a request in a reply. Very many would not fit in a message: they are left out, and who needs them reads
-- them by themselves (requests/segments).
local InlineSegments = {}

InlineSegments.MAX_INLINE_BYTES = 131072
InlineSegments.REPLY_BYTES = 500000 -- a page of a list ends before

-- Adds `segments`, JSON, to an object that is JSON; before them `members`, JSON that begins with a comma, or none.
function InlineSegments.append(plain, segments, members)
  if #segments > InlineSegments.MAX_INLINE_BYTES then
    return string.sub(plain, 1, -2) .. (members or '') .. ',"segments":[],"segmentsFollow":true}'
  end
  return string.sub(plain, 1, -2) .. (members or '') .. ',"segments":' .. segments .. '}'
end

return InlineSegments
