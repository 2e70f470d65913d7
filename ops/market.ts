/** The commands of `npm run cb -- ops market …`. Each prints what it would do; `--send` does it. */
import { readClock } from '../db/clock.ts'
import { loadImpactNotional } from '../db/markets.ts'
import { checkSchema } from '../db/migrator.ts'
import { applyDue } from '../domain/market/changes.ts'
import type { FeeRefusal } from '../domain/market/fee-periods.ts'
import { termsAt } from '../domain/market/in-force.ts'
import { hasFunding } from '../domain/prices/funding.ts'
import { impactNotionalBounds } from '../domain/prices/premium.ts'
import { type Quote, toDecimal } from '../domain/units.ts'
import { type Arguments, decimal, text, toggle } from '../service/command-line.ts'
import { parseDecimal } from '../service/decimal.ts'
import { print, timeOfMillis } from '../tasks/print.ts'
import { type ChainState, readChainState } from './chain-terms.ts'
import {
  type Context,
  command,
  effectiveFrom,
  FROM,
  GRACE_MS,
  instant,
  MARKET,
  modeNumber,
  NOTICE_MS,
  SEND,
  timeOf,
} from './command.ts'
import { connect, type Env, marketOf } from './connect.ts'
import { ENDING_COMMANDS } from './ending.ts'
import { OpsError } from './error.ts'
import { lifeOf } from './life.ts'
import { changedParameters, PARAMETER_FLAGS, shownParameters, toRate, toStruct } from './parameters.ts'
import { printMarket } from './show.ts'
import { perform } from './transaction.ts'

const show = command({
  help: 'what contract and database have, side by side, with differences marked',
  flags: MARKET,
  run: async ({ connection, listed, terms, chain }) =>
    printMarket(listed, chain, terms, {
      now: await readClock(connection.db),
      life: await lifeOf(connection, listed),
    }),
})

const schedule = command({
  help: 'announces parameters, a day ahead or more; a role with a delay needs --from at least that much later',
  flags: { ...MARKET, ...PARAMETER_FLAGS, ...FROM, ...SEND },
  async run(context, { send, from, ...flags }) {
    const { connection, listed, chain } = context
    const { pending, ...current } = applyDue(chain.terms, chain.blockTime)
    if (pending.parameters !== null)
      throw new OpsError(
        `parameters are scheduled for ${timeOfMillis(pending.parameters.activeFrom)} already: cancel them first`,
      )
    const next = changedParameters(current.parameters, flags, listed)
    const activeFrom = effectiveFrom(context, from, NOTICE_MS)
    const before = shownParameters(current.parameters)
    const changes = Object.entries(shownParameters(next)).filter(([name, value]) => before[name] !== value)
    const shown = Object.fromEntries(changes.map(([name, value]) => [name, `${before[name]} -> ${value}`]))
    await perform(
      connection,
      {
        to: listed.trader,
        name: 'scheduleParameters',
        args: [toStruct(next, modeNumber(current.mode)), activeFrom],
        shown: { ...shown, activeFrom: instant(activeFrom) },
        effect: `with the first batch as of ${timeOfMillis(activeFrom)} or later`,
      },
      send,
    )
  },
})

const cancel = command({
  help: 'drops the scheduled parameters',
  flags: { ...MARKET, ...SEND },
  async run({ connection, listed, chain }, { send }) {
    const scheduled = chain.terms.pending.parameters
    if (scheduled === null) throw new OpsError('no parameters are scheduled')
    const effect = `at once: the parameters scheduled for ${timeOfMillis(scheduled.activeFrom)} will not apply`
    await perform(
      connection,
      { to: listed.trader, name: 'cancelScheduledParameters', args: [], shown: {}, effect },
      send,
    )
  },
})

const restriction = (mode: 'cancel_only' | 'halted', help: string) =>
  command({
    help,
    flags: { ...MARKET, ...SEND },
    async run({ connection, listed, chain }, { send }) {
      const from = timeOfMillis(chain.blockTime + GRACE_MS)
      await perform(
        connection,
        {
          to: listed.trader,
          name: 'restrictMode',
          args: [modeNumber(mode)],
          shown: { mode },
          effect: `for batches as of 5 s after its block (now: ${from}); a scheduled laxer mode is dropped`,
        },
        send,
      )
    },
  })

/** A schedule has one mode: a new mode replaces it. */
const replaced = (change: ChainState['terms']['pending']['mode']): string =>
  change === null ? '' : `; the mode ${change.mode} of ${timeOfMillis(change.activeFrom)} is dropped`

const resume = command({
  help: 'opens a restricted market again: on the chain, and in the database if the exchange itself has restricted it',
  flags: { ...MARKET, ...FROM, ...SEND },
  async run(context, { send, from }) {
    const { connection, listed, terms, chain } = context
    const { mode, pending } = applyDue(chain.terms, chain.blockTime)
    const isOpen = mode === 'open' && pending.restriction === null && pending.mode === null
    if (!isOpen) {
      const activeFrom = effectiveFrom(context, from, GRACE_MS)
      await perform(
        connection,
        {
          to: listed.trader,
          name: 'scheduleMode',
          args: [modeNumber('open'), activeFrom],
          shown: { mode: 'open', activeFrom: instant(activeFrom) },
          effect: `with the first batch as of ${timeOfMillis(activeFrom)} or later${replaced(pending.mode)}`,
        },
        send,
      )
    }
    if (terms.mode !== 'open') {
      const effect =
        'at once: the restriction that the exchange itself has set, such as after a mismatch, is lifted'
      print(send ? 'database' : 'change of the database that --send would make', {
        ...{ table: `markets, market_id ${listed.marketId}`, mode: `${terms.mode} -> open`, effect },
      })
      if (send) await connection.settings.reopen(listed.marketId)
    }
    if (isOpen && terms.mode === 'open')
      throw new OpsError('the market is open on the chain and in the database')
  },
})

function feeProblem(refusal: FeeRefusal): string {
  switch (refusal.code) {
    case 'SPAN_EMPTY':
      return '--until must be later than --from'
    case 'FROM_PAST':
      return `--from must be ${new Date(refusal.earliest).toISOString()} or later`
    case 'RATE_INVALID': {
      const flag = refusal.field === 'makerFee' ? 'maker' : 'taker'
      return `--${flag} must be from 0 to ${toDecimal(refusal.highest)}, the highest that the contract allows`
    }
    case 'NOTICE_TOO_SHORT': {
      const at = new Date(refusal.earliest).toISOString()
      return `the ${refusal.field === 'makerFee' ? 'maker' : 'taker'} rate would rise before ${at}: a rise needs a day of notice`
    }
    case 'TOO_MANY_PERIODS':
      return `at most ${refusal.most} periods can be announced`
  }
}

const fees = command({
  help: 'announces other fee rates for a span of time, or ends them with --end; kept in the database, never above the chain’s highest',
  flags: {
    ...MARKET,
    maker: decimal('maker rate of the period'),
    taker: decimal('taker rate of the period'),
    from: text('<time>', 'start, such as 2035-01-01T00:00:00Z (default now)'),
    until: text('<time>', 'end; without it until further notice'),
    end: toggle('end the announced periods in that span instead'),
    ...SEND,
  },
  async run({ connection, listed }, { maker, taker, from, until, end, send }) {
    if (
      end === (maker !== undefined || taker !== undefined) ||
      (!end && (maker === undefined || taker === undefined))
    )
      throw new OpsError('pass both --maker and --taker, or --end')
    const rates = end
      ? null
      : { makerFee: toRate('maker', maker ?? ''), takerFee: toRate('taker', taker ?? '') }
    const now = await readClock(connection.db)
    const change = {
      rates,
      from: from === undefined ? now : timeOf('from', from),
      until: until === undefined ? null : timeOf('until', until),
    }
    if (change.from < now) throw new OpsError(feeProblem({ code: 'FROM_PAST', earliest: now }))
    const verdict = await connection.settings.announceFees(listed, change, { now, isDryRun: !send })
    if (!verdict.ok) throw new OpsError(feeProblem(verdict.refusal))
    const periods = verdict.value.map(
      ({ makerFee, takerFee, from: start, until: stop }) =>
        `maker ${toDecimal(makerFee)}, taker ${toDecimal(takerFee)}, ${timeOfMillis(start)} to ${stop === null ? 'further notice' : timeOfMillis(stop)}`,
    )
    print(send ? 'stored' : 'change of the database that --send would make', {
      table: `markets, market_id ${listed.marketId}`,
      'fee periods': periods.join('; ') || 'none: the highest rates are charged',
      effect: 'with the batches as of those times; reservations stay at the highest rate',
    })
  },
})

const impact = command({
  help: 'sets the notional at which the premium, and so the funding rate, is measured, or returns to the rule with --rule',
  flags: {
    ...MARKET,
    notional: decimal('impact notional in USDM'),
    rule: toggle('500 USDM / IMR, as for a market that has just been listed'),
    ...SEND,
  },
  async run({ connection: { db, settings }, listed, terms, chain }, { notional, rule, send }) {
    const { spec } = termsAt(listed, terms, chain.blockTime)
    if (!hasFunding(spec)) throw new OpsError(`${listed.symbol} has no funding`)
    if (rule === (notional !== undefined)) throw new OpsError('pass --notional or --rule')
    const set = notional === undefined ? null : (parseDecimal(notional) as Quote | null)
    const { least, most } = impactNotionalBounds(spec)
    if (notional !== undefined && (set === null || set < least || set > most))
      throw new OpsError(
        `--notional must be from ${toDecimal(least)} to ${toDecimal(most)}, with up to 18 decimals; received ${notional}`,
      )
    const before = await loadImpactNotional(db, listed.marketId)
    const shown = (value: bigint | null): string => (value === null ? 'by the rule' : toDecimal(value))
    print(send ? 'stored' : 'change of the database that --send would make', {
      table: `markets, market_id ${listed.marketId}`,
      'impact notional': `${shown(before)} -> ${shown(set)}`,
      effect: 'with the next sample; the rate follows the average of an hour of samples',
    })
    if (send) await settings.setImpactNotional(listed.marketId, set)
  },
})

export const COMMANDS = {
  show,
  schedule,
  cancel,
  restrict: restriction('cancel_only', 'stops placements and batches; cancels and liquidations go on'),
  halt: restriction('halted', 'stops everything but cancels and additions of margin'),
  resume,
  fees,
  impact,
  ...ENDING_COMMANDS,
} as const

/** Runs one command. `flags` are its own. */
export async function runMarketCommand(
  name: keyof typeof COMMANDS,
  flags: Arguments<typeof MARKET>,
  env: Env,
): Promise<void> {
  const connection = await connect(flags.stack ?? null, env)
  try {
    await checkSchema(connection.db)
    const market = await marketOf(connection, flags.market)
    const chain = await readChainState(connection.provider, market.listed.trader)
    const run = COMMANDS[name].run as (context: Context, flags: unknown) => Promise<void>
    await run({ ...market, connection, chain }, flags)
  } finally {
    await connection.close()
  }
}
