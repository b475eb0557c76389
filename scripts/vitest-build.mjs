// Set-up of every test run: builds what is older than its sources, since tests start the programs of dist/. A run whose
// build fails ends there.
import { build } from './prepare.mjs';

export default function setup() {
  build();
}
