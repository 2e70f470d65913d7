/**
 * Runs the search for hostile plans against market orders for longer than `npm test` does and prints the worst
 * loss found in each kind of market: `node test/model/attack-deep.ts [starts] [climbs] [seed]`.
 */
import { ATTACK_MARKETS, searchAttack } from '../domain/support/attack-search.ts'
import { randomOf } from '../support/random.ts'

const [starts = 400, climbs = 150, seed = 1] = process.argv.slice(2).map(Number)

for (const market of ATTACK_MARKETS) {
  const worst = searchAttack(market, randomOf(seed), { starts, climbs })
  const { kind } = market.spec
  process.stdout.write(`${JSON.stringify({ kind, starts, climbs, seed, worst })}\n`)
}
