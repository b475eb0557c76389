--[[ Adds lengths to the prompt memory. Not idempotent: a repeat weighs the same lengths twice, and no more.
ARGV[1] JSON: {prompts}   at most 32 of {hash, lengths, atCap}: 16 hex digits, list of tokens, boolean
Reply: remembered   number ]]
return function(tx, args)
  for _, prompt in ipairs(args.prompts) do
    local lengths = {}
    for position, tokens in ipairs(prompt.lengths) do lengths[position] = { tokens = tokens, capped = prompt.atCap } end
    PromptLengths.remember(tx, prompt.hash, lengths)
  end
  return Reply.object({ remembered = #args.prompts })
end
