import { expect, it } from 'vitest';
import { parseOptions } from '../options/parse-options';
import { computeLoad } from './environments';

it('leaves workers and engines room for larger rounds of a trainer that connects after a small example', () => {
  const options = parseOptions(['--steps', '1', '--groups', '2', '--samples', '1', '--workers', '1']);
  expect(computeLoad(options)).toMatchObject({ workerConcurrency: 64, inflightPerEngine: 64 });
});

it('gives each worker room for its part of a round if one worker is missing', () => {
  const options = parseOptions(['--groups', '64', '--samples', '8', '--workers', '2', '--tail-policy', 'wait']);
  expect(computeLoad(options)).toMatchObject({ requestsPerRound: 512, workerConcurrency: 384 });
});
