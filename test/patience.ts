/**
 * Loaded before every test file (`.mocharc.json`): time-outs are written for a quiet machine and find what hangs. On a busy machine a test may
 * take several times as long, so that every time-out is multiplied.
 */
import type { Suite } from 'mocha'
import { PATIENCE } from './support/patience.ts'

/** Hooks of a suite, which mocha keeps in these lists. */
const HOOKS = ['_beforeAll', '_beforeEach', '_afterEach', '_afterAll'] as const
type Hooked = Readonly<Record<(typeof HOOKS)[number], readonly Mocha.Hook[]>>

function lengthen(suite: Suite): void {
  const hooks = HOOKS.flatMap((name) => (suite as unknown as Hooked)[name])
  for (const runnable of [...suite.tests, ...hooks]) runnable.timeout(runnable.timeout() * PATIENCE)
  for (const inner of suite.suites) lengthen(inner)
}

export const mochaHooks = {
  beforeAll(this: Mocha.Context) {
    lengthen((this.test as Mocha.Hook).parent as Suite)
  },
}
