/** Commands of `npm run cb -- ops market …` that end a market. */
import { readClock } from '../db/clock.ts'
import { statedPrices, stateFinalPrice } from '../db/market-endings.ts'
import { arePositionsCurrent, minedPosition, openPositions } from '../db/positions.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { closesAt, isClosed, isFinalizable, reportableUntil } from '../domain/risk/ending.ts'
import { SILENCE, valueAt } from '../domain/risk/wind-down.ts'
import { type FundingIndex, type Millis, type Price, toDecimal } from '../domain/units.ts'
import { decimal, required, text } from '../service/command-line.ts'
import { parseDecimal } from '../service/decimal.ts'
import { addressOf } from '../tasks/chain.ts'
import { print, timeOfMillis, usdm } from '../tasks/print.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import {
  type Context,
  command,
  effectiveFrom,
  FROM,
  instant,
  MARKET,
  modeNumber,
  NOTICE_MS,
  SEND,
} from './command.ts'
import { OpsError } from './error.ts'
import { type Life, lifeOnChain } from './life.ts'
import { perform, performOpen } from './transaction.ts'

const MAX_TEXT = 200
/** Positions per read, and maximum accounts per report of deficits. */
const PAGE = 500
const MOST_DEFICITS = 100

// ---------------------------------------------------------------------- the close and the final price

const delist = command({
  help: 'schedules the close of the market, a day ahead or more; it ends at its final price',
  flags: { ...MARKET, ...FROM, ...SEND },
  async run(context, { send, from }) {
    const activeFrom = effectiveFrom(context, from, NOTICE_MS)
    await perform(
      context.connection,
      {
        to: context.listed.trader,
        name: 'scheduleMode',
        args: [modeNumber('settling'), activeFrom],
        shown: { mode: 'settling', activeFrom: instant(activeFrom) },
        effect: `the market closes at ${timeOfMillis(activeFrom)}; a mode that is scheduled now is replaced`,
      },
      send,
    )
  },
})

function finalPriceOf({ kind, finalLow, finalHigh }: MarketSpec, given: string): Price {
  const price = parseDecimal(given)
  const isValid =
    price !== null &&
    (kind === 'binary_future'
      ? price === finalLow || price === finalHigh
      : price >= finalLow && price <= finalHigh)
  if (isValid) return price as Price
  const [low, high] = [toDecimal(finalLow), toDecimal(finalHigh)]
  const valid = kind === 'binary_future' ? `${low} or ${high}` : `from ${low} to ${high}`
  throw new OpsError(`--price must be ${valid}; received ${given}`)
}

function short(flag: string, given: string): string {
  if (given.length <= MAX_TEXT) return given
  throw new OpsError(`--${flag} must have at most ${MAX_TEXT} characters; received ${given.length}`)
}

/** Describes the effect of a final price at this time. Throws if the market's price is already fixed. */
function effectOf({ ending, end }: Life, blockTime: Millis): string {
  if (end !== null)
    throw new OpsError(`the market ended ${timeOfMillis(end.ended_at)} at ${toDecimal(BigInt(end.price))}`)
  const until = reportableUntil(ending)
  if (isFinalizable(ending, blockTime))
    throw new OpsError(
      `the dispute window ended ${timeOfMillis(until as Millis)}: the market ends at ${toDecimal(ending.report?.price ?? 0n)}`,
    )
  const close = closesAt(ending)
  if (ending.report !== null)
    return `the keeper reports it within a minute, in place of ${toDecimal(ending.report.price)}, which is replaceable until ${timeOfMillis(until as Millis)}`
  if (close !== null && isClosed(ending, blockTime))
    return 'the keeper reports it at once, which starts the dispute window'
  return close === null
    ? 'at the close of the market'
    : `the keeper reports it at the close, ${timeOfMillis(close)}`
}

const finalPrice = command({
  help: 'states the final price of a future, which the keeper has signed and reports once the market has closed',
  flags: {
    ...MARKET,
    price: required(decimal('the final price; of a binary market its outcome')),
    by: required(text('<name>', 'who states it, kept with it')),
    reason: required(text('<text>', 'why, such as the source of the outcome; kept with it')),
    ...SEND,
  },
  async run({ connection, listed, chain }, { price: given, by, reason, send }) {
    if (listed.kind === 'perpetual')
      throw new OpsError(`${listed.symbol} is a perpetual: it ends at the price of its own feed at its close`)
    const price = finalPriceOf(listed, given)
    const effect = effectOf(await lifeOnChain(connection, listed.trader), chain.blockTime)
    const stated = await statedPrices(connection.db, listed.marketId)
    const statement = { price, by: short('by', by), reason: short('reason', reason) }
    for (const { price: before, by: author, reason: why, at } of stated)
      console.log(`stated before: ${toDecimal(before)} by ${author}, ${timeOfMillis(at)}: ${why}`)
    print(send ? 'stored' : 'change of the database that --send would make', {
      table: `final_prices, market_id ${listed.marketId}`,
      'final price': toDecimal(price),
      by,
      reason,
      effect: `${effect}; the market's final feed needs a source of the kind operator`,
    })
    if (!send) return
    const at = await readClock(connection.db)
    await stateFinalPrice(connection.db, listed.marketId, { ...statement, at })
  },
})

// ---------------------------------------------------------------------- freeze

const freezeRequest = command({
  help: 'requests a freeze: a day later any account can freeze the market, unless its operator gives a sign of life',
  flags: { ...MARKET, ...SEND },
  run: ({ connection, listed, chain }, { send }) =>
    performOpen(
      connection,
      {
        ...{ to: listed.trader, name: 'requestFreeze', args: [], shown: {} },
        effect:
          `from ${timeOfMillis(chain.blockTime + SILENCE)} on any account can freeze the market, unless an action or a heartbeat voids the ` +
          'request; a running keeper sends one within seconds',
      },
      send,
    ),
})

const freeze = command({
  help: 'ends the market for ever at the newest known price, after a freeze request or without a final report',
  flags: { ...MARKET, ...SEND },
  run: ({ connection, listed }, { send }) =>
    performOpen(
      connection,
      {
        ...{ to: listed.trader, name: 'freeze', args: [], shown: {} },
        effect:
          'at once: price and funding are fixed, and nothing trades any more; deficits are reported for three days, then positions are paid out',
      },
      send,
    ),
})

// ---------------------------------------------------------------------- deficits and claims

interface Valued {
  readonly account: string
  readonly value: bigint
}

/** Open positions of an ended market with their values at its price. Throws if the market has not ended. */
async function valuedPositions({ connection, listed }: Context): Promise<Valued[]> {
  const { end } = await lifeOnChain(connection, listed.trader)
  if (end === null)
    throw new OpsError(`${listed.symbol} has not ended: it has no price to value positions at`)
  const market = IsolatedTrader__factory.connect(listed.trader, { provider: connection.provider })
  const index = (await market.lastReference()).fundingIndex as FundingIndex
  if (!(await arePositionsCurrent(connection.db, listed.marketId)))
    throw new OpsError(
      `the read model lacks rows of ${listed.symbol}: run the command again once an indexer has caught up`,
    )
  const found: Valued[] = []
  for (let after = 0; ; ) {
    const rows = await openPositions(connection.db, listed.marketId, after, PAGE)
    for (const row of rows)
      found.push({
        account: row.address,
        value: valueAt(listed, minedPosition(row), index, BigInt(end.price) as Price),
      })
    if (rows.length < PAGE) return found
    after = rows.at(-1)?.user_id ?? 0
  }
}

const reportInsolvent = command({
  help: 'reports the insolvent accounts of a market that has ended, so that claims share their deficits',
  flags: { ...MARKET, ...SEND },
  async run(context, { send }) {
    const insolvent = (await valuedPositions(context)).filter(({ value }) => value < 0n)
    if (insolvent.length === 0)
      throw new OpsError(`no open position of ${context.listed.symbol} has a deficit`)
    for (let at = 0; at < insolvent.length; at += MOST_DEFICITS) {
      const some = insolvent.slice(at, at + MOST_DEFICITS)
      await performOpen(
        context.connection,
        {
          ...{ to: context.listed.trader, name: 'reportInsolvent' },
          args: [some.map(({ account }) => account)],
          shown: Object.fromEntries(some.map(({ account, value }) => [account, `deficit ${usdm(-value)}`])),
          effect: 'at once: their positions are emptied, and every claim pays less',
        },
        send,
      )
    }
  },
})

const claim = command({
  help: 'pays out accounts of a market that has ended: one, or all that have something to claim',
  flags: {
    ...MARKET,
    account: text('<address>', 'the account; without it every account with a claim, one transaction each'),
    ...SEND,
  },
  async run(context, { account, send }) {
    const only = account === undefined ? null : addressOf(account, 'account').toLowerCase()
    const due = (await valuedPositions(context)).filter(({ value }) => value > 0n)
    const chosen = only === null ? due : due.filter((each) => each.account === only)
    // The account may have an unpaid earlier claim, which has no position any more.
    const claims = only !== null && chosen.length === 0 ? [{ account: only, value: 0n }] : chosen
    if (claims.length === 0) throw new OpsError(`no open position of ${context.listed.symbol} has a claim`)
    for (const { account: each, value } of claims)
      await performOpen(
        context.connection,
        {
          ...{ to: context.listed.trader, name: 'claim', args: [each], shown: { account: each } },
          effect:
            value === 0n
              ? 'pays the rest of an earlier claim'
              : `pays its position of ${usdm(value)}, less the haircut, into its free balance`,
        },
        send,
      )
  },
})

export const ENDING_COMMANDS = {
  delist,
  'final-price': finalPrice,
  'freeze-request': freezeRequest,
  freeze,
  'report-insolvent': reportInsolvent,
  claim,
} as const
