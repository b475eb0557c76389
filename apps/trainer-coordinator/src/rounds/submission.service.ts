import { randomUUID, createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  isBroomwagonError,
  type GroupSubmission,
  type JobId,
  type PoolName,
  type SubmitGroupsReply,
  type SubmitGroupsRequest,
} from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { computeDispatch } from '@broomwagon/policies';
import { PayloadStore, splitPages, pagesOfGroups, promptHash, RoundStore, type NewGroup } from '@broomwagon/state';
import { PayloadRoomService } from '../payload/payload-room.service';
import { GrantService } from '../grants/grant.service';
import { RoundSweeps } from './round-sweeps';
import { checkGroups } from './check-groups';
import { fitToContext } from './context-fit';
import { ContextLengthService } from './context-length.service';

/** Maximum prompts stored at the same time. */
const PROMPTS_AT_ONCE = 16;

/**
 * Adds new groups to a round. Checks a page of groups as a whole, stores the prompts, then adds the groups in smaller
 * pages.
 */
@Injectable()
export class SubmissionService {
  constructor(
    private readonly rounds: RoundStore,
    private readonly payloads: PayloadStore,
    private readonly grants: GrantService,
    private readonly sweeps: RoundSweeps,
    private readonly room: PayloadRoomService,
    private readonly contexts: ContextLengthService,
  ) {}

  /**
   * Adds a page of groups. A repeat finishes an interrupted submission and adds no group twice.
   * @throws BroomwagonError VALIDATION_FAILED, CONTEXT_TOO_LONG, PAYLOAD_TOO_LARGE, PAYLOAD_NOT_FOUND,
   *   PAYLOAD_STORE_FULL, DUPLICATE_GROUP, FENCED, JOB_NOT_FOUND, ROUND_NOT_FOUND, ROUND_NOT_OPEN, ROUND_CLOSED;
   *   nothing was added
   */
  async submit(pool: PoolName, body: SubmitGroupsRequest): Promise<SubmitGroupsReply> {
    const { job, roundId, trainerEpoch, stamp: seen, groups } = body;
    checkGroups(groups);
    const args = { job, roundId, trainerEpoch, stamp: seen };
    const named = groups.map((group) => {
      const { groupId, samples, maxTokens, promptRef } = group;
      return {
        groupId,
        samples,
        maxTokens,
        promptRef,
        digest: groupDigest(group),
        promptHash: computePromptHash(group),
      };
    });
    const checked = await this.rounds.checkSubmit(pool, args, named, await this.room.readRoom(pool, job));
    const fresh = new Set(checked.fresh);
    const contextTokens = fresh.size > 0 ? await this.contexts.largest(pool) : undefined;
    const missing = groups.flatMap((group, position) => {
      if (!fresh.has(group.groupId)) return [];
      return [contextTokens === undefined ? group : fitToContext(group, contextTokens, `groups.${position}`)];
    });
    await this.checkRefs(pool, job, groups, fresh);
    const refs = await this.storePrompts(pool, job, missing);

    const namedById = new Map(named.map((group) => [group.groupId, group]));
    const lengths = new Map(checked.known.map((known) => [known.hash, known]));
    const added = missing.map((group): NewGroup => {
      const { prompt: _, promptId: _id, sampling = {}, ...stored } = group;
      const { digest, promptHash } = namedById.get(group.groupId)!;
      const promptRef = refs.get(group.groupId)!;
      const dispatch = computeDispatch(checked.dispatchOrder, group, lengths.get(promptHash));
      return { ...stored, digest, promptRef, sampling: JSON.stringify(sampling), promptHash, dispatch };
    });
    let { roundGroups, stamp } = checked;
    for (const page of pagesOfGroups(added, checked.launchFactor)) {
      const answer = await this.rounds.submit(pool, args, page);
      ({ roundGroups, stamp } = answer);
      if (answer.completed) this.sweeps.cutSoon(pool, { job, roundId });
      this.grants.soon(pool);
      await failpoint('coordinator.submit.between-pages');
    }
    return { roundGroups, added: missing.length, repeated: groups.length - missing.length, stamp };
  }

  /** Checks the references of prompts now, because a missing prompt would later fail its group in a worker. */
  private async checkRefs(
    pool: PoolName,
    job: JobId,
    groups: readonly GroupSubmission[],
    fresh: ReadonlySet<string>,
  ): Promise<void> {
    const named = groups.flatMap(({ groupId, promptRef }, position) =>
      promptRef !== undefined && fresh.has(groupId) ? [{ promptRef, position }] : [],
    );
    for (const { promptRef, position } of named) {
      const field = `groups.${position}.promptRef`;
      const { owner } = this.payloads.requireRef(promptRef, { pool, job }, field);
      // The payloads of a request are removed with the request, but groups may still need the prompt.
      if (owner.startsWith(`${job}/`)) {
        throw new BroomwagonError('PAYLOAD_FOREIGN', `${field}: the payload belongs to the request ${owner}`, {
          field,
        });
      }
    }
    for (const page of splitPages(named, PROMPTS_AT_ONCE)) {
      await Promise.all(
        page.map(({ promptRef, position }) =>
          this.payloads.hold(promptRef).catch((error: unknown) => {
            if (!isBroomwagonError(error) || error.retryable) throw error;
            const field = `groups.${position}.promptRef`;
            throw new BroomwagonError(error.code, `${field}: ${error.message}`, { field });
          }),
        ),
      );
    }
  }

  /**
   * Stores inline prompts as payloads.
   * @returns the reference of each prompt, also of prompts that the trainer has stored
   */
  private async storePrompts(
    pool: PoolName,
    job: JobId,
    groups: readonly GroupSubmission[],
  ): Promise<Map<string, string>> {
    const refs = new Map<string, string>();
    for (const page of splitPages(groups, PROMPTS_AT_ONCE)) {
      await Promise.all(
        page.map(async ({ groupId, prompt, promptRef }) => {
          // Each prompt gets a new name: a payload under a freed name may be removed at any moment.
          const name = { pool, job, owner: groupId, name: `prompt.${randomUUID()}` };
          refs.set(groupId, promptRef ?? (await this.payloads.put(name, Buffer.from(JSON.stringify(prompt)))));
        }),
      );
    }
    return refs;
  }
}

/** Hash of a prompt. The same inline prompt, id or reference has the same hash in every job and at every step. */
function computePromptHash({ promptId, prompt, promptRef }: GroupSubmission): string {
  return promptHash(promptId ?? promptRef ?? JSON.stringify(prompt));
}

/**
 * Digest of the contents of a group, for any order of its fields. A second group with the same id is a repeat if its
 * digest is the same, otherwise a duplicate.
 */
function groupDigest(group: GroupSubmission): string {
  const { groupId: _, ...contents } = group;
  const text = JSON.stringify(canonical({ ...contents, sampling: contents.sampling ?? {} }));
  return createHash('sha256').update(text).digest('base64url');
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, part]) => [name, canonical(part)]);
}
