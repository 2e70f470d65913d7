import { expect } from 'chai'
import { describe, it } from 'mocha'
import { LAWS } from '../../simulate/laws.ts'
import { runScenario } from '../../simulate/run.ts'
import { BROKEN_RULES, type BrokenRule } from './support/broken-rules.ts'

/** Most seeds until the law has noticed. */
const SEEDS = 12
const ACCOUNTS = 24

/** Whether one of the seeds breaks the law of the rule. */
function isNoticed({ scenario, law, rules }: BrokenRule): boolean {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { checks } = runScenario(scenario, { seed, accounts: ACCOUNTS, broken: rules() }).tally
    if ((checks.get(law)?.broken ?? 0) > 0) return true
  }
  return false
}

describe('laws of the simulator', () => {
  for (const rule of BROKEN_RULES) {
    it(`when ${rule.fault}, the law "${rule.law}" is broken`, () => {
      expect(isNoticed(rule), LAWS[rule.law]).to.equal(true)
    })
  }
})
