-- Statistics of the response lengths of prompts (PromptLengths of libs/policies), 14 bytes for each prompt. The first
-- 16 bits of a prompt's hash (16 hex digits) select one of 65,536 hashes of Redis, and the other 48 bits are the field.
-- The value of the field has the samples, the share at the cap (1/255), and mean (16/65535) and deviation (8/65535) of
-- the logarithm of the length. Small hashes are packed lists in Redis. A full hash loses a prompt at random.
local PromptLengths = {}

local PROMPTS_A_HASH = 120 -- more than 128 would no longer be packed
local PROMPTS_KEPT_MS = 90 * 24 * 3600 * 1000
local WINDOW_SAMPLES = 64
local PACKED = '>BBHH'

local function prompt_place(tx, hash)
  local field = string.gsub(string.sub(hash, 5), '..', function(byte) return string.char(tonumber(byte, 16)) end)
  return tx.key:promptLengths(string.sub(hash, 1, 4)), field
end

local function rounded(number, most) return math.max(0, math.min(most, math.floor(number + 0.5))) end

-- Statistics of one prompt; nil for a prompt that was never seen.
function PromptLengths.read(tx, hash)
  local bucket, field = prompt_place(tx, hash)
  local packed = redis.call('HGET', bucket, field)
  if not packed then return nil end
  local samples, cap, mean, deviation = struct.unpack(PACKED, packed)
  return { samples = samples, capShare = cap / 255, meanLog = mean * 16 / 65535, deviationLog = deviation * 8 / 65535 }
end

-- Statistics of the prompts of these hashes that were seen, each with its `hash`.
function PromptLengths.known(tx, hashes)
  local found = {}
  for _, hash in ipairs(hashes) do
    local known = PromptLengths.read(tx, hash)
    if known then
      known.hash = hash
      table.insert(found, known)
    end
  end
  return found
end

-- Adds the lengths of one group: list of {tokens, capped}.
function PromptLengths.remember(tx, hash, lengths)
  local known = PromptLengths.read(tx, hash) or { samples = 0, capShare = 0, meanLog = 0, deviationLog = 0 }
  for _, length in ipairs(lengths) do
    local seen = math.min(known.samples + 1, WINDOW_SAMPLES)
    local difference = math.log(math.max(1, length.tokens)) - known.meanLog
    known.samples = seen
    known.meanLog = known.meanLog + difference / seen
    known.deviationLog = math.sqrt((1 - 1 / seen) * (known.deviationLog ^ 2 + difference ^ 2 / seen))
    known.capShare = known.capShare + ((length.capped and 1 or 0) - known.capShare) / seen
  end
  local bucket, field = prompt_place(tx, hash)
  if redis.call('HEXISTS', bucket, field) == 0 and redis.call('HLEN', bucket) >= PROMPTS_A_HASH then
    redis.call('HDEL', bucket, redis.call('HRANDFIELD', bucket))
  end
  redis.call('HSET', bucket, field, struct.pack(PACKED, known.samples, rounded(known.capShare * 255, 255),
    rounded(known.meanLog * 65535 / 16, 65535), rounded(known.deviationLog * 65535 / 8, 65535)))
  redis.call('PEXPIRE', bucket, PROMPTS_KEPT_MS)
end

return PromptLengths
