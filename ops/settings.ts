/** Settings of markets, which the engine changes. */
import type { Db } from '../db/client.ts'
import { loadMarkets, loadProtection } from '../db/markets.ts'
import { loadListedMarkets, TERMS_COLUMNS, toMarketTerms } from '../db/terms.ts'
import type { OperatorSetting } from '../domain/exchange/decide/orders/operator.ts'
import {
  changeFees,
  type FeeChange,
  type FeeRefusal,
  type FeeSchedule,
} from '../domain/market/fee-periods.ts'
import { termsAt } from '../domain/market/in-force.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import type { ProtectionSchedule } from '../domain/market/price-protection.ts'
import type { CalendarName } from '../domain/market/trading-calendar.ts'
import { type MarketId, type Millis, maxOf, type Quote, type Rate } from '../domain/units.ts'
import { accept, refuse, type Verdict } from '../domain/verdict.ts'
import type { EngineAccess } from '../keeper/engine/link/access.ts'
import { connectEngine, identityOf } from '../keeper/engine/link/connect.ts'
import type { AnswerOf, EngineReply } from '../keeper/engine/link/engine.ts'
import { OpsError } from './error.ts'

export interface Settings {
  /** Lifts the exchange's own restriction. */
  reopen(marketId: MarketId): Promise<unknown>
  setCalendar(marketId: MarketId, calendar: CalendarName | null): Promise<void>
  /** Null: by the rule. */
  setImpactNotional(marketId: MarketId, notional: Quote | null): Promise<void>
  /** The schedule with the change. `now`: the database's clock. */
  announceFees(
    listed: MarketSpec,
    change: FeeChange,
    options: { readonly now: Millis; readonly isDryRun: boolean },
  ): Promise<Verdict<FeeSchedule, FeeRefusal>>
  announceProtection(marketId: MarketId, width: Rate): Promise<ProtectionSchedule>
}

export type OperatorAccess = EngineAccess<'operator'>

/** The engine stores a change in the tables before it answers, so what is read after the answer has the change. `access`: read by the first change. */
export function settingsOf(db: Db, access: () => OperatorAccess): Settings {
  async function change(marketId: MarketId, setting: OperatorSetting): Promise<void> {
    const refusal = await submit(db, access(), marketId, setting)
    if (refusal !== null) throw new OpsError(`the engine refuses the change: ${refusal.code}`)
  }
  return {
    reopen: (marketId) => change(marketId, { kind: 'reopen' }),
    setCalendar: (marketId, calendar) => change(marketId, { kind: 'calendar', calendar }),
    setImpactNotional: (marketId, notional) => change(marketId, { kind: 'impact_notional', notional }),
    async announceFees(listed, fees, options) {
      if (options.isDryRun) return previewFees(db, listed, fees, options.now)
      const { marketId } = listed
      const refusal = await submit(db, access(), marketId, { kind: 'fees', change: fees, isDryRun: false })
      if (refusal !== null) return refuse(feeRefusal(refusal))
      const markets = await loadListedMarkets(db)
      return accept(markets.find((market) => market.listed.marketId === marketId)?.terms.fees ?? [])
    },
    async announceProtection(marketId, width) {
      await change(marketId, { kind: 'protection', width })
      return loadProtection(db, marketId)
    },
  }
}

/** The engine's answer in advance. A batch may have a later as-of time than `now`; its charged fees stay. */
async function previewFees(
  db: Db,
  listed: MarketSpec,
  change: FeeChange,
  now: Millis,
): Promise<Verdict<FeeSchedule, FeeRefusal>> {
  const row = await db
    .selectFrom('markets')
    .select(['last_as_of', ...TERMS_COLUMNS])
    .where('market_id', '=', listed.marketId)
    .executeTakeFirstOrThrow()
  const terms = toMarketTerms(row, listed)
  const at = maxOf(now, row.last_as_of as Millis)
  const from = maxOf(change.from, at)
  return changeFees(termsAt(listed, terms, from).spec, terms.fees, { ...change, from }, at)
}

/** For a takeover: a new owner decides after the lease of the former one has expired. */
const BUDGET_MS = 15_000

type Refusal = Extract<AnswerOf<'operator'>, { readonly kind: 'refused' }>['refusal']

/** Null: the change is made. Throws an OpsError without an answer of the engine. */
async function submit(
  db: Db,
  access: OperatorAccess,
  marketId: MarketId,
  setting: OperatorSetting,
): Promise<Refusal | null> {
  const [first] = await loadMarkets(db)
  const problems = new LastProblem()
  const link = connectEngine(await identityOf(db, Number(first?.chainId ?? 0)), access, 'operator', problems)
  try {
    const command = { kind: 'operator', marketId, setting } as const
    const reply = await link.engine.submit<'operator'>(command, BUDGET_MS)
    const { answer } = answered(reply, problems)
    return answer.kind === 'refused' ? answer.refusal : null
  } finally {
    await link.close()
  }
}

function answered(
  reply: EngineReply<AnswerOf<'operator'>>,
  { text }: LastProblem,
): Extract<typeof reply, { readonly answer: unknown }> {
  if ('answer' in reply) return reply
  if (reply.none === 'unknown')
    throw new OpsError(
      'the engine has not answered: it may have made the change, so compare before a repetition',
    )
  const detail = 'detail' in reply ? reply.detail : text
  throw new OpsError(
    `the engine has not made the change: ${reply.none}${detail === '' ? '' : ` (${detail})`}`,
  )
}

function feeRefusal(refusal: Refusal): FeeRefusal {
  if (refusal.code === 'MARKET_NOT_FOUND' || refusal.code === 'WIDTH_INVALID')
    throw new OpsError(`the engine refuses the change: ${refusal.code}`)
  return refusal
}

/** Keeps why the last connection failed, for a command that no member has received. */
class LastProblem {
  text = ''

  readonly #note = (fields: object, message: string): void => {
    const { err, field, received, expected } = fields as {
      readonly err?: NodeJS.ErrnoException
      readonly field?: string
      readonly received?: unknown
      readonly expected?: unknown
    }
    const what = field === undefined ? err?.code : `${field}: received ${received}, expected ${expected}`
    this.text = what === undefined ? message : `${message}, ${what}`
  }
  readonly debug = this.#note
  readonly info = this.#note
  readonly warn = this.#note
  readonly error = this.#note
}
