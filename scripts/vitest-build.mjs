// Set-up of every test run: builds dist/ if it is older than the sources, since tests start its programs. A run whose
// build fails ends there.
import { build } from './prepare.mjs';

export default function setup() {
  build();
}
