import 'reflect-metadata';
import fc from 'fast-check';
import { afterAll, afterEach, inject } from 'vitest';
import { reportMismatches } from './protocol/mismatches';

const RUNS_OF_FAST_CHECK = 100;
fc.configureGlobal({ seed: inject('seed'), numRuns: RUNS_OF_FAST_CHECK * inject('runsFactor') });

// The check is here, because this file is loaded for each spec, also for specs that share their modules.
afterEach(reportMismatches);
// Mismatches after the last test.
afterAll(reportMismatches);
