// Folders of a package depend on each other in one direction: each folder directly below `src` of an app or library.
const { options } = require('./.dependency-cruiser.cjs');

const FOLDER = '^(apps|libs)/[^/]+/src/[^/]+$';

module.exports = {
  forbidden: [
    {
      name: 'folders-one-way',
      severity: 'error',
      scope: 'folder',
      comment: 'data flows one way; what two folders need stands in a third one below both',
      from: { path: FOLDER },
      to: { circular: true, via: { path: FOLDER } },
    },
  ],
  options: { ...options, exclude: { path: '\\.(spec|fixture)\\.tsx?$' } },
};
