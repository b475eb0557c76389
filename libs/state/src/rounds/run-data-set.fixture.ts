import type { World } from './data-set-world.fixture';

const ACTIONS = [
  'claim',
  'grant',
  'checkpoint',
  'complete',
  'fail',
  'sweep',
  'repeat',
  'voidWorker',
  'takeover',
  'abort',
] as const;
type Action = (typeof ACTIONS)[number];
/** How often each action comes, of 40; the trainer has the rest. */
export const WEIGHTS: Record<Action, number> = {
  claim: 4,
  grant: 2,
  checkpoint: 5,
  complete: 6,
  fail: 3,
  sweep: 4,
  repeat: 10,
  voidWorker: 1,
  takeover: 1,
  abort: 0,
};

/**
 * Runs a whole data set and returns its world; every step is followed by an audit of the books.
 * @param more actions besides those of every world, by the names their weights have
 */
export async function runDataSet<More extends string = never>(
  world: World,
  decide: (choices: number) => number,
  weights: Record<Action, number> & Record<More, number> = WEIGHTS as Record<Action | More, number>,
  more: Record<More, () => Promise<unknown>> = {} as Record<More, () => Promise<unknown>>,
): Promise<World> {
  const names = Object.keys(weights) as (Action | More)[];
  await world.start();
  for (let turn = 0; turn < 20_000; turn++) {
    let ticket = decide(40);
    const action = names.find((name) => (ticket -= weights[name]) < 0);
    if (action !== undefined) await (action in more ? more[action as More]() : world[action as Action]());
    else if (!(await world.train())) break;
    await world.audit();
  }
  // What is left is folded.
  for (let page = 0; page < 200; page++) await world.sweep();
  await world.audit();
  return world;
}
