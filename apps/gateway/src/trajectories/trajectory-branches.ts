import { isBroomwagonError } from '@broomwagon/contracts';
import { turnNumber, type SetBack, type TurnRecord, type TurnTokens } from '@broomwagon/state';
import { readTurnChat } from '../core/recording/turn-messages';

/**
 * Branches of a trajectory. A branch has the turns from a first turn to a turn that no other turn extends. A turn that
 * several turns extend is in several branches.
 */
export function listBranches(turns: readonly TurnRecord[]): TurnRecord[][] {
  const extended = new Set(turns.map(({ parent }) => parent));
  return branchesTo(turns).filter((branch) => !extended.has(branch.at(-1)!.turn));
}

/** For each turn, the turns from a first turn to this turn. */
export function branchesTo(turns: readonly TurnRecord[]): TurnRecord[][] {
  const byNumber = new Map(turns.map((turn) => [turn.turn, turn]));
  return turns.map((last) => {
    const branch: TurnRecord[] = [];
    for (let turn: TurnRecord | undefined = last; turn !== undefined; turn = byNumber.get(turn.parent ?? 0)) {
      branch.push(turn);
    }
    return branch.toReversed();
  });
}

/** A turn that is missing in its branch. */
interface Gap {
  turn: number;
  reason: string;
}

/** Position of a turn in the tokens of its branch. */
interface TurnPlace {
  turn: number;
  id: string;
  start: number;
  response_start: number;
  end: number;
  finish_reason: string;
  weight_source: 'engine' | 'lease';
}

/** A branch as trainers read it. */
export interface BranchContents {
  turns: TurnPlace[];
  token_ids: number[];
  loss_mask: number[];
  logprobs: (number | null)[] | null;
  weight_versions: { version: string; start: number; end: number }[];
  finish_reason?: string;
  shared_tokens: number;
  /** Messages of the last turn, its response last; absent if its messages are not recorded. */
  messages?: unknown[];
}

/** Reads branches one after the other, so that only one branch is in memory. */
export class BranchReader {
  /** Turns whose tokens are not stored any more, and turns that extend them. */
  readonly gaps = new Map<number, Gap>();
  private readonly written = new Set<number>();

  constructor(
    private readonly read: (ref: string) => Promise<Buffer>,
    private readonly setBacks: readonly SetBack[] = [],
  ) {}

  /**
   * Reads a branch for trainers; undefined if earlier branches have all its turns.
   * @throws BroomwagonError UNAVAILABLE
   */
  async next(turns: readonly TurnRecord[]): Promise<BranchContents | undefined> {
    const tokenIds: number[] = [];
    const lossMask: number[] = [];
    const versions: { version: string; start: number; end: number }[] = [];
    const described: TurnPlace[] = [];
    let logprobs: (number | null)[] | undefined = [];
    let sharedTokens = 0;
    let finishReason: string | undefined;
    let isNew = false;
    let messages: unknown[] | undefined;
    for (const turn of turns) {
      const tokens = await this.readTokens(turn);
      // Each later turn of the branch extends this turn, and is a gap too.
      if (tokens === undefined) continue;
      const start = tokenIds.length;
      for (const id of tokens.promptTokenIds) append(id, 0, 0);
      const responseStart = tokenIds.length;
      if (tokens.logprobs === undefined) logprobs = undefined;
      for (const [index, id] of tokens.tokenIds.entries()) append(id, 1, tokens.logprobs?.[index] ?? null);
      for (const { version, start: from, end } of turn.weights) {
        versions.push({ version, start: responseStart + from, end: responseStart + end });
      }
      described.push({
        turn: turnNumber(turn.turn, this.setBacks),
        id: turn.id,
        start,
        response_start: responseStart,
        end: tokenIds.length,
        finish_reason: turn.finishReason,
        weight_source: turn.isVersionReported ? 'engine' : 'lease',
      });
      finishReason = turn.finishReason;
      messages = tokens.chat && readTurnChat(tokens.chat, messages);
      if (!isNew && this.written.has(turn.turn)) sharedTokens = tokenIds.length;
      else isNew = true;
      this.written.add(turn.turn);
    }
    if (!isNew) return undefined;
    return {
      turns: described,
      token_ids: tokenIds,
      loss_mask: lossMask,
      logprobs: logprobs ?? null,
      weight_versions: versions,
      finish_reason: finishReason,
      shared_tokens: sharedTokens,
      messages,
    };

    function append(id: number, mask: 0 | 1, logprob: number | null): void {
      tokenIds.push(id);
      lossMask.push(mask);
      logprobs?.push(logprob);
    }
  }

  private async readTokens({ turn, parent, ref }: TurnRecord): Promise<TurnTokens | undefined> {
    const note = (reason: string): undefined =>
      void this.gaps.set(turn, { turn: turnNumber(turn, this.setBacks), reason });
    if (parent !== undefined && this.gaps.has(parent)) return note('PARENT_MISSING');
    try {
      return JSON.parse((await this.read(ref)).toString('utf8')) as TurnTokens;
    } catch (error) {
      if (isBroomwagonError(error, 'PAYLOAD_NOT_FOUND')) return note('PAYLOAD_NOT_FOUND');
      throw error;
    }
  }
}
