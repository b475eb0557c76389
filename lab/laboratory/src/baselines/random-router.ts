import { RandomStream } from '@broomwagon/models';
import type { Router } from '../routing/router';

/** Chooses a random server. */
export class RandomRouter implements Router {
  readonly name = 'random';
  private readonly random: RandomStream;

  constructor(
    private readonly servers: number,
    seed: number,
  ) {
    this.random = new RandomStream('random-router', seed);
  }

  choose(): number {
    return Math.floor(this.random.uniform() * this.servers);
  }

  released(): void {}
  moved(): void {}
}
