import { expect } from 'chai'
import { describe, it } from 'mocha'
import { randomOf } from '../../support/random.ts'
import { ATTACK_MARKETS, searchAttack } from '../support/attack-search.ts'

describe('searchAttack', () => {
  for (const market of ATTACK_MARKETS) {
    const { kind } = market.spec
    it(`when hostile accounts trade in a ${kind} market, a market order fills only within its protection`, () => {
      // A plan throws if its victim trades beyond its protection or the bound that follows from it.
      const worst = searchAttack(market, randomOf(11), { starts: 30, climbs: 25 })
      expect(worst).to.not.equal(null)
    }).timeout(60_000)
  }
})
