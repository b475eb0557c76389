// `npm start`: the reference trainer brings up the whole system and rolls out prompts.
process.argv.splice(2, 0, 'lab/demo/src/main.js');
await import('./run.mjs');
