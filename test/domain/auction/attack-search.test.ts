import { expect } from 'chai'
import { describe, it } from 'mocha'
import { randomOf } from '../../support/random.ts'
import { ATTACK_MARKETS, searchAttack } from '../support/attack-search.ts'

/**
 * Bounds of the loss against the price that the standing book shows: (1+w)² − 1 with the width of a triggered order, and for a book too
 * thin for a reference the distance of its quotes from the oracle price. The search itself checks the protection price exactly.
 */
const BOUND = { perpetual: 0.1, future: 0.2, binary_future: 0.4 } as const

describe('searchAttack', () => {
  for (const market of ATTACK_MARKETS) {
    const { kind } = market.spec
    it(`when hostile accounts trade in a ${kind} market, a market order fills only within its protection`, () => {
      // Each plan throws if its victim trades beyond the protection.
      const worst = searchAttack(market, randomOf(11), { starts: 30, climbs: 25 })
      expect(worst?.loss).to.be.within(0, BOUND[kind])
    }).timeout(60_000)
  }
})
