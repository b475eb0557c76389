--[[ Prompts of the prompt memory. Writes nothing.
ARGV[1] JSON: {hashes}   at most 128, 16 hex digits each
Reply: prompts   list of {hash, samples, meanLog, deviationLog, capShare}, without those that were never seen
Flags: no-writes ]]
return function(tx, args)
  local found = {}
  for _, hash in ipairs(args.hashes) do
    local known = PromptLengths.read(tx, hash)
    if known then
      known.hash = hash
      table.insert(found, known)
    end
  end
  return Reply.object({ prompts = found })
end
