/** Trading on the exchange's own state as a scenario of the engine's simulation. */
import type { Entry } from '../../../domain/exchange/apply.ts'
import type { Inputs } from '../../../domain/exchange/inputs.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { MarketId, Millis } from '../../../domain/units.ts'
import { Exchange, type ExchangeAnswer, type ExchangeCommand } from '../../../keeper/engine/exchange.ts'
import type { Scenario } from '../scenario.ts'
import { Crowd, POISON } from './crowd.ts'
import { genesis, MARKETS, oraclePrice } from './genesis.ts'
import { checkLaws } from './laws.ts'

const specOf = (marketId: MarketId): MarketSpec | undefined =>
  MARKETS.find((spec) => spec.marketId === marketId)

/** Fresh reports at one price, and a chain that was read a moment ago. */
const inputsAt = (now: Millis): Inputs => ({
  now,
  report(marketId) {
    const spec = specOf(marketId)
    return spec === undefined ? null : { price: oraclePrice(spec), observedAt: now, signatures: '0x' }
  },
  session: () => null,
  reportRules: () => null,
  headTime: now,
  chainSeenAt: now,
  pace() {
    throw new Error('commands of traders do not depend on the pace of settlement')
  },
  limits: { oracleMaxAgeMs: 1_000, chainMaxAgeMs: 1_000 },
})

export function tradingScenario(): Scenario<ExchangeCommand, Entry, ExchangeAnswer> {
  let crowd: Crowd | null = null
  return {
    newMachine: () => new Exchange(genesis(), inputsAt),
    isPoison: ({ row }) => row.kind === 'order_placed' && row.hash.startsWith(POISON),
    accountOf: (command) => (command.kind === 'orders' ? command.userId : null),
    clients(scheduler, random, send) {
      crowd = new Crowd(scheduler, random, send)
      return crowd
    },
    check: (observed) => checkLaws(observed, (command) => crowd?.knownAt(command) ?? new Map()),
  }
}
