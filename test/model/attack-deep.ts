/**
 * Runs the search for hostile plans against market orders for longer than `npm test` does and prints the worst
 * loss found in each kind of market: against the book that was shown, and against the worse of that and the
 * oracle price (`excess`).
 */
import { argumentsOf, wholeNumber, withDefault } from '../../service/command-line.ts'
import { ATTACK_MARKETS, searchAttack } from '../domain/support/attack-search.ts'
import { randomOf } from '../support/random.ts'

const { starts, climbs, seed } = argumentsOf({
  command: 'npm run attack:deep --',
  flags: {
    starts: withDefault(wholeNumber('random plans per kind of market', { least: 1 }), 400),
    climbs: withDefault(wholeNumber('steps that improve each plan'), 150),
    seed: withDefault(wholeNumber('seed of the random plans'), 1),
  },
})

for (const market of ATTACK_MARKETS) {
  const { kind } = market.spec
  for (const triggered of [false, true]) {
    for (const measure of ['excess', 'loss'] as const) {
      const worst = searchAttack(market, randomOf(seed), { starts, climbs, triggered, measure })
      const found = worst === null ? null : { ...worst, [measure]: Number(worst[measure].toFixed(4)) }
      process.stdout.write(`${JSON.stringify({ kind, triggered, measure, starts, climbs, seed, found })}\n`)
    }
  }
}
