import { RandomStream } from '@broomwagon/models';

/** One turn: tokens that a tool or the task adds to the context, tokens that are generated, and the tool call after it. */
export interface AgentTurn {
  addedTokens: number;
  madeTokens: number;
  toolSeconds: number;
  /** Session of a subagent that the tool call runs; the next turn waits for its end. */
  subagent?: AgentSession;
}

/** A session of an agent. Its first turn adds its task to the prefix of its group. */
export interface AgentSession {
  id: string;
  groupId: string;
  parentId?: string;
  /** Time of its first turn; 0 by default. */
  startsAtSeconds?: number;
  turns: readonly AgentTurn[];
}

export interface AgentGroup {
  id: string;
  /** Tokens of system prompt, tools and task, which all sessions of the group begin with. */
  prefixTokens: number;
  sessions: readonly AgentSession[];
}

/** Distributions of a workload; `median` and `sigma` are those of a lognormal distribution. */
export interface AgentWorkload {
  samplesPerGroup: number;
  prefixTokens: { median: number; sigma: number };
  turns: { median: number; sigma: number; least: number; most: number };
  addedTokens: { median: number; sigma: number; most: number };
  madeTokens: { median: number; sigma: number; most: number };
  toolSeconds: { median: number; sigma: number; most: number };
  /** Part of the sessions that start a subagent once, and turns of this. */
  subagents: { share: number; leastTurns: number; mostTurns: number };
  /** Longest context, tokens: a session ends before it. */
  contextTokens: number;
}

/** Standard deviation of a logarithm from the median and another quantile. */
const spread = (median: number, quantile: number, z: number): number => Math.log(quantile / median) / z;
const Z90 = 1.2816;

/** Gaps of an agent: 86.5 % within 1 s and 95.1 % within 10 s (vllm-project/router #285). */
const TOOL_SIGMA = Math.log(10) / (1.6546 - 1.1031);
const TOOL_SECONDS = { median: Math.exp(-1.1031 * TOOL_SIGMA), sigma: TOOL_SIGMA, most: 300 };

export const AGENT_WORKLOADS = {
  /** Output, longest input and subagents of AgentX; 5 to 40 turns; tokens of tools so that 40 turns fill the context. */
  agents: {
    samplesPerGroup: 8,
    prefixTokens: { median: 6_000, sigma: 0.3 },
    turns: { median: 20, sigma: 0.5, least: 5, most: 40 },
    addedTokens: { median: 1_700, sigma: 1, most: 20_000 },
    madeTokens: { median: 444, sigma: 0.7, most: 8_192 },
    toolSeconds: TOOL_SECONDS,
    subagents: { share: 0.44, leastTurns: 2, mostTurns: 8 },
    contextTokens: 142_000,
  },
  /** Turns of NeMo Gym: p50 29, p90 56, 5 to 99. Tokens of tools are assumed, so that the hit rate is as published. */
  nemo: {
    samplesPerGroup: 1,
    prefixTokens: { median: 4_000, sigma: 0.2 },
    turns: { median: 29, sigma: spread(29, 56, Z90), least: 5, most: 99 },
    addedTokens: { median: 700, sigma: 1, most: 20_000 },
    madeTokens: { median: 300, sigma: 0.6, most: 4_096 },
    toolSeconds: TOOL_SECONDS,
    subagents: { share: 0, leastTurns: 1, mostTurns: 1 },
    contextTokens: 131_072,
  },
} as const satisfies Record<string, AgentWorkload>;

export type AgentWorkloadName = keyof typeof AGENT_WORKLOADS;

/** Draws groups until the mean working set of their live sessions is so many tokens. */
export function drawGroups(workload: AgentWorkload, workingSetTokens: number, seed: number): AgentGroup[] {
  const groups: AgentGroup[] = [];
  let tokens = 0;
  while (tokens < workingSetTokens) {
    const group = drawGroup(workload, `g${groups.length}`, seed);
    groups.push(group);
    tokens += measureWorkingSet(group);
  }
  return groups;
}

/** Mean tokens of a group's contexts over its turns, with its prefix once. */
export function measureWorkingSet({ prefixTokens, sessions }: AgentGroup): number {
  return sessions.reduce((sum, { turns }) => {
    let [context, total] = [0, 0];
    for (const { addedTokens, madeTokens } of turns) {
      context += addedTokens + madeTokens;
      total += context;
    }
    return sum + total / turns.length;
  }, prefixTokens);
}

/** Input tokens that must be computed at least: each private token once, and the prefix of a group once. */
export function countLeastTokens({ prefixTokens, sessions }: AgentGroup): number {
  const count = ({ turns }: AgentSession): number =>
    turns.reduce((sum, { addedTokens, subagent }) => sum + addedTokens + (subagent ? count(subagent) : 0), 0);
  return sessions.reduce((sum, session) => sum + count(session), prefixTokens);
}

function drawGroup(workload: AgentWorkload, id: string, seed: number): AgentGroup {
  const random = new RandomStream('agent group', seed, id);
  const prefixTokens = Math.round(drawLognormal(random, workload.prefixTokens));
  // Sessions of a group have as many turns as each other, as samples of a task have.
  const rank = random.normal();
  const sessions = Array.from({ length: workload.samplesPerGroup }, (_, index) =>
    drawSession(workload, { id: `${id}/${index}`, groupId: id, seed, rank, prefixTokens }),
  );
  return { id, prefixTokens, sessions };
}

interface DrawnSession {
  id: string;
  groupId: string;
  seed: number;
  rank: number;
  prefixTokens: number;
}

/** Part of the variance of ln(turns) that the sessions of a group have in common. */
const GROUP_SHARE = 0.5;

function drawSession(workload: AgentWorkload, { id, groupId, seed, rank, prefixTokens }: DrawnSession): AgentSession {
  const random = new RandomStream('agent session', seed, id);
  const { turns, subagents, contextTokens } = workload;
  const z = Math.sqrt(GROUP_SHARE) * rank + Math.sqrt(1 - GROUP_SHARE) * random.normal();
  const wanted = Math.round(turns.median * Math.exp(turns.sigma * z));
  const count = Math.max(turns.least, Math.min(turns.most, wanted));
  const subagentAt = random.uniform() < subagents.share ? Math.floor(random.uniform() * (count - 1)) : -1;
  const drawn: AgentTurn[] = [];
  let context = prefixTokens;
  for (let index = 0; index < count; index++) {
    const turn = drawTurn(workload, random);
    context += turn.addedTokens + turn.madeTokens;
    if (context > contextTokens && drawn.length > 0) break;
    if (index === subagentAt) turn.subagent = drawSubagent(workload, random, id, groupId);
    drawn.push(turn);
  }
  // Nothing follows the tool call of the last turn.
  delete drawn.at(-1)!.subagent;
  return { id, groupId, turns: drawn };
}

function drawSubagent(workload: AgentWorkload, random: RandomStream, parentId: string, groupId: string): AgentSession {
  const { leastTurns, mostTurns } = workload.subagents;
  const count = leastTurns + Math.floor(random.uniform() * (mostTurns - leastTurns + 1));
  const turns = Array.from({ length: count }, () => drawTurn(workload, random));
  return { id: `${parentId}/sub`, groupId, parentId, turns };
}

function drawTurn({ addedTokens, madeTokens, toolSeconds }: AgentWorkload, random: RandomStream): AgentTurn {
  return {
    addedTokens: Math.max(1, Math.min(addedTokens.most, Math.round(drawLognormal(random, addedTokens)))),
    madeTokens: Math.max(1, Math.min(madeTokens.most, Math.round(drawLognormal(random, madeTokens)))),
    toolSeconds: Math.min(toolSeconds.most, drawLognormal(random, toolSeconds)),
  };
}

function drawLognormal(random: RandomStream, { median, sigma }: { median: number; sigma: number }): number {
  return median * Math.exp(sigma * random.normal());
}
