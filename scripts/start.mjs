// `npm start`: the reference trainer brings up the whole system and rolls out prompts.
process.argv.splice(2, 0, 'apps/trainer/src/main.js');
await import('./run.mjs');
