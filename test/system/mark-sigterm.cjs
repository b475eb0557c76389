// Loaded before a service: writes the file SIGTERM_MARK when the service has a handler for SIGTERM.
const { writeFileSync } = require('node:fs');

for (const name of ['on', 'once']) {
  const add = process[name];
  process[name] = function (event, ...rest) {
    const result = add.call(this, event, ...rest);
    if (event === 'SIGTERM') writeFileSync(process.env.SIGTERM_MARK, '');
    return result;
  };
}
