import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { CreateTokenReply, CreateTokenRequest, TokenStatus } from '@broomwagon/contracts';
import { awaitAnswer } from '../redis';
import type { RedisClient } from '../redis-cluster';

/** A token as Redis stores it. */
interface StoredToken extends TokenStatus {
  /** SHA-256 of the whole token, hexadecimal. A fast hash is enough for 256 random bits. */
  hash: string;
}

const TOKEN = /^bw_([0-9a-f]{16})_[\w-]{43}$/;
/** Ids of the tokens that are created when no token is valid: numbers from 0 on. */
const FIRST_ID = /^0{8}/;
const ID_DIGITS = 16;
/** Validity of such a token, milliseconds: time to create tokens for people and programs. */
const FIRST_EXPIRES_IN_MS = 86_400_000;

/**
 * Bearer tokens of people and programs, `bw_<tokenId>_<256 random bits>`, in one hash of Redis by token id. A field of
 * the hash is written once and deleted once, so each call is one command.
 */
export class CredentialStore {
  private readonly key: string;

  constructor(
    private readonly redis: RedisClient,
    keyPrefix: string,
  ) {
    this.key = `${keyPrefix}:credentials`;
  }

  /** Creates a token and deletes expired ones. @throws BroomwagonError UNAVAILABLE */
  async create(request: CreateTokenRequest): Promise<CreateTokenReply> {
    const made = newToken(randomBytes(8).toString('hex'), request);
    const expired = (await this.all()).filter(isExpired).map(({ tokenId }) => tokenId);
    if (expired.length > 0) await awaitAnswer(this.redis.hdel(this.key, ...expired));
    await awaitAnswer(this.redis.hset(this.key, made.stored.tokenId, JSON.stringify(made.stored)));
    return { ...withoutHash(made.stored), token: made.token };
  }

  /**
   * Creates an admin token that is valid for a day, if no token is valid. When several replicas start at the same time,
   * one of them creates it.
   * @returns the token; undefined if there is a valid one already, or another replica creates it
   * @throws BroomwagonError UNAVAILABLE
   */
  async createFirst(): Promise<CreateTokenReply | undefined> {
    const all = await this.all();
    if (all.some((one) => !isExpired(one))) return undefined;
    // All replicas find the same expired tokens, and so the same next id.
    const used = all.flatMap(({ tokenId }) => (FIRST_ID.test(tokenId) ? [Number.parseInt(tokenId, 16)] : []));
    const id = (Math.max(-1, ...used) + 1).toString(16).padStart(ID_DIGITS, '0');
    const request = { name: 'first-start', role: 'admin', expiresInMs: FIRST_EXPIRES_IN_MS } as const;
    const { token, stored } = newToken(id, request);
    const isMade = await awaitAnswer(this.redis.hsetnx(this.key, id, JSON.stringify(stored)));
    return isMade === 1 ? { ...withoutHash(stored), token } : undefined;
  }

  /** The token of a caller; undefined if it is unknown, revoked or expired. @throws BroomwagonError UNAVAILABLE */
  async find(token: string): Promise<TokenStatus | undefined> {
    const [, tokenId] = TOKEN.exec(token) ?? [];
    if (tokenId === undefined) return undefined;
    const text = await awaitAnswer(this.redis.hget(this.key, tokenId));
    if (text === null) return undefined;
    const stored = JSON.parse(text) as StoredToken;
    return isTokenHash(stored.hash, token) && !isExpired(stored) ? withoutHash(stored) : undefined;
  }

  /** The token with an id; undefined if it is unknown or revoked. @throws BroomwagonError UNAVAILABLE */
  async get(tokenId: string): Promise<TokenStatus | undefined> {
    const text = await awaitAnswer(this.redis.hget(this.key, tokenId));
    return text === null ? undefined : withoutHash(JSON.parse(text) as StoredToken);
  }

  /** Lists all tokens, the oldest first. @throws BroomwagonError UNAVAILABLE */
  async list(): Promise<TokenStatus[]> {
    return (await this.all())
      .map(withoutHash)
      .toSorted((a, b) => a.createdAtMs - b.createdAtMs || (a.tokenId < b.tokenId ? -1 : 1));
  }

  /** @returns false if there was no such token; @throws BroomwagonError UNAVAILABLE */
  async revoke(tokenId: string): Promise<boolean> {
    return (await awaitAnswer(this.redis.hdel(this.key, tokenId))) === 1;
  }

  /**
   * Revokes tokens that are valid again because Redis was set back.
   * @param revocations time of revocation by token id, milliseconds since 1970; a token that was created later stays
   * @returns ids of the tokens revoked by this call, so that only one replica gets each id
   * @throws BroomwagonError UNAVAILABLE
   */
  async revokeAgain(revocations: ReadonlyMap<string, number>): Promise<string[]> {
    const again: string[] = [];
    if (revocations.size === 0) return again;
    const texts = await awaitAnswer(this.redis.hmget(this.key, ...revocations.keys()));
    for (const [index, [tokenId, revokedAtMs]] of [...revocations].entries()) {
      const text = texts[index];
      const isBack = text != null && (JSON.parse(text) as StoredToken).createdAtMs <= revokedAtMs;
      if (isBack && (await this.revoke(tokenId))) again.push(tokenId);
    }
    return again;
  }

  private async all(): Promise<StoredToken[]> {
    const texts = await awaitAnswer(this.redis.hvals(this.key));
    return texts.map((text) => JSON.parse(text) as StoredToken);
  }
}

/** SHA-256 of a token, hexadecimal. */
export function hashOfToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Compares in constant time. @param hash SHA-256, hexadecimal */
export function isTokenHash(hash: string, token: string): boolean {
  return timingSafeEqual(Buffer.from(hash, 'hex'), Buffer.from(hashOfToken(token), 'hex'));
}

function newToken(tokenId: string, request: CreateTokenRequest) {
  const { name, role, pools, expiresInMs, maxGenerations, maxPerMinute } = request;
  const token = `bw_${tokenId}_${randomBytes(32).toString('base64url')}`;
  const createdAtMs = Date.now();
  const stored: StoredToken = {
    tokenId,
    name,
    role,
    ...(pools && { pools }),
    ...(maxGenerations && { maxGenerations }),
    ...(maxPerMinute && { maxPerMinute }),
    createdAtMs,
    ...(expiresInMs && { expiresAtMs: createdAtMs + expiresInMs }),
    hash: hashOfToken(token),
  };
  return { token, stored };
}

function isExpired({ expiresAtMs = Infinity }: TokenStatus): boolean {
  return expiresAtMs <= Date.now();
}

function withoutHash(stored: StoredToken): TokenStatus {
  const { hash: _hash, ...status } = stored;
  return status;
}
