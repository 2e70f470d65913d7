/** Trading on the exchange's own state as a scenario of the engine's simulation. */

import type { AppliedRows } from '../../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import type { HashOrder } from '../../../domain/exchange/decide/turn/liquidation.ts'
import type { Inputs } from '../../../domain/exchange/inputs.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type { MarketId, Millis, OrderHash } from '../../../domain/units.ts'
import type { ExchangeAnswer, ExchangeCommand } from '../../../keeper/engine/commands.ts'
import { Exchange, type ExchangeParts } from '../../../keeper/engine/exchange.ts'
import type { Scenario } from '../scenario.ts'
import { Crowd, POISON } from './crowd.ts'
import { genesis, MARKETS, oraclePrice } from './genesis.ts'
import { checkLaws } from './laws.ts'

const specOf = (marketId: MarketId): MarketSpec | undefined =>
  MARKETS.find((spec) => spec.marketId === marketId)

/** The scenario has no blocks yet. */
const CHAIN_RULES = { confirmations: 2, depth: 100, sliceAccounts: 100, emptyBlocksMs: 1_000 }

const FOREVER = 1_000_000n * 10n ** 18n

/** Fresh reports of a price that swings, and a chain that was read a moment ago. */
const inputsAt = (now: Millis): Inputs => ({
  now,
  report(marketId) {
    const spec = specOf(marketId)
    return spec === undefined ? null : reportAt(spec, now)
  },
  session: () => null,
  reportRules(marketId) {
    const spec = specOf(marketId)
    if (spec === undefined) return null
    const { kind, tick } = spec
    return {
      kind,
      tick,
      maxAge: 1_000 as Millis,
      moveBase: FOREVER,
      moveSlope: 0n,
      moveWindow: 1 as Millis,
    }
  },
  headTime: now,
  chainSeenAt: now,
  limits: { oracleMaxAgeMs: 1_000, chainMaxAgeMs: 1_000 },
})

function reportAt(spec: MarketSpec, now: Millis): OracleReport {
  const observedAt = (now - (now % 100)) as Millis
  return { price: oraclePrice(spec, observedAt), observedAt, signatures: '0x' }
}

/** Forced orders are named by their salt: the contract's hash needs no simulation. */
const hashOrder: HashOrder = ({ salt }, marketId) =>
  `0xf0${marketId.toString(16).padStart(2, '0')}${salt.toString(16).padStart(60, '0')}` as OrderHash

export const TRADING_PARTS: ExchangeParts = { inputsAt, hashOrder, chainRules: CHAIN_RULES }

/** The exchange of the scenario with these rows. */
export const tradingExchange = (applied: AppliedRows, parts: Partial<ExchangeParts> = {}): Exchange =>
  new Exchange(applied, { ...TRADING_PARTS, ...parts })

export function tradingScenario(): Scenario<ExchangeCommand, Entry, ExchangeAnswer> {
  let crowd: Crowd | null = null
  return {
    newMachine: () => tradingExchange(genesis()),
    isPoison: ({ row }) => row.kind === 'order_placed' && row.hash.startsWith(POISON),
    accountOf: (command) => ('userId' in command ? command.userId : null),
    clients(scheduler, random, send) {
      crowd = new Crowd(scheduler, random, send)
      return crowd
    },
    check: (observed) => checkLaws(observed, (command) => crowd?.knownAt(command) ?? new Map()),
  }
}
