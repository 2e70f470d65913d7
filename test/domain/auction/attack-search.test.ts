import { expect } from 'chai'
import { describe, it } from 'mocha'
import { randomOf } from '../../support/random.ts'
import { ATTACK_MARKETS, searchAttack } from '../support/attack-search.ts'

describe('searchAttack', () => {
  for (const market of ATTACK_MARKETS) {
    const { kind } = market.spec
    for (const triggered of [false, true]) {
      const order = triggered ? 'triggered order' : 'market order'
      it(`when hostile accounts trade in a ${kind} market, a ${order} fills only within its protection`, () => {
        // A plan throws if its victim trades beyond its protection or the bound that follows from it.
        const options = { starts: 15, climbs: 25, triggered, measure: 'excess' } as const
        expect(searchAttack(market, randomOf(11), options)).to.not.equal(null)
      }).timeout(60_000)
    }
  }
})
