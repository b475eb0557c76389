--[[ Prompts of the prompt memory. Writes nothing.
ARGV[1] JSON: {hashes}   at most 128, 16 hex digits each
Reply: prompts   list of {hash, samples, meanLog, deviationLog, capShare}, without prompts that were never seen
Flags: no-writes ]]
return function(tx, args)
  return Reply.object({ prompts = PromptLengths.known(tx, args.hashes) })
end
