--[[ What the prompt memory knows. Writes nothing.
ARGV[1] JSON: {hashes}   at most 128, 16 hex digits each
Reply: prompts   list of {hash, samples, meanLog, deviationLog, capShare}, without those that were never seen
Errors: none. Facts: none.
Flags: no-writes ]]
--- @include "../includes/reply"
--- @include "../includes/prompt-lengths"
local found = {}
for _, hash in ipairs(cjson.decode(ARGV[1]).hashes) do
  local known = prompt_lengths(hash)
  if known then
    known.hash = hash
    table.insert(found, known)
  end
end
return '{"prompts":' .. encode_list(found) .. '}'
