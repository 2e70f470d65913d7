/**
 * Runs the search for hostile plans against market orders for longer than `npm test` does and prints the worst
 * loss found in each kind of market.
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
  const worst = searchAttack(market, randomOf(seed), { starts, climbs })
  const { kind } = market.spec
  process.stdout.write(`${JSON.stringify({ kind, starts, climbs, seed, worst })}\n`)
}
