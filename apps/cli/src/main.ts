import { run } from './program';

// The reader of a pipe may close the pipe early: `broomwagon events | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
void run(process.argv.slice(2), process).then((exitCode) => {
  process.exitCode = exitCode;
});
