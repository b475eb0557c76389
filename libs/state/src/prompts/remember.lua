--[[ Adds lengths to the prompt memory. Safe to repeat with `repeatId`; without a `repeatId` a repeat counts the same
lengths twice.
ARGV[1] JSON: {prompts, repeatId?}   at most 32 of {hash, lengths, atCap}: 16 hex digits, list of tokens, boolean;
        repeatId: id of this page, string
Reply: remembered   number ]]
local REPEATS_KNOWN_S = 600

return function(tx, args)
  local is_new = not args.repeatId
    or redis.call('SET', tx.key:rememberedPrompts(args.repeatId), '1', 'NX', 'EX', REPEATS_KNOWN_S)
  if not is_new then return Reply.object({ remembered = #args.prompts }) end
  for _, prompt in ipairs(args.prompts) do
    local lengths = {}
    for position, tokens in ipairs(prompt.lengths) do lengths[position] = { tokens = tokens, capped = prompt.atCap } end
    PromptLengths.remember(tx, prompt.hash, lengths)
  end
  return Reply.object({ remembered = #args.prompts })
end
