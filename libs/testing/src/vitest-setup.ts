import 'reflect-metadata';
import fc from 'fast-check';
import { inject } from 'vitest';

const RUNS_OF_FAST_CHECK = 100;
fc.configureGlobal({ seed: inject('seed'), numRuns: RUNS_OF_FAST_CHECK * inject('runsFactor') });
