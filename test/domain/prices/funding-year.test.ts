/**
 * A simulated year of funding: the plan of the job, and the index action by action, against a calculation that is written differently:
 * it counts the seconds of each rate from the published hours of the exchange, and averages the samples themselves.
 */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { SessionReport } from '../../../domain/actions/action.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import {
  nyseCalendar,
  sessionsBetween,
  type TradingSession,
} from '../../../domain/market/trading-calendar.ts'
import { HOUR } from '../../../domain/prices/funding.ts'
import { type LastUpdate, planFundingUpdate, UPDATE_INTERVAL } from '../../../domain/prices/funding-plan.ts'
import { advanceFunding, type FundingState, NO_FUNDING } from '../../../domain/prices/funding-state.ts'
import { addPremium, NO_PREMIUM } from '../../../domain/prices/premium.ts'
import type { Millis, Price, Rate } from '../../../domain/units.ts'
import { newYorkTime } from '../../../service/new-york-time.ts'
import { perpetual, price } from '../../support/markets.ts'
import { randomOf } from '../../support/random.ts'

const utc = (text: string): number => Date.parse(`2026-${text}Z`)
const START = utc('01-01T00:00:00')
const END = Date.parse('2027-01-01T00:00:00Z')
/** The keeper and the oracle are down for a day. */
const OUTAGE = [utc('06-09T15:07:03'), utc('06-10T15:07:03')] as const
const SECOND = 1_000
const RULES = {
  ...{ kind: perpetual.kind, tick: perpetual.tick, maxAge: 10_000 as Millis },
  ...{ moveBase: 1_000_000n, moveSlope: 0n, moveWindow: 1 as Millis },
}

// ---------------------------------------------------------------------- the simulation

interface Sample {
  readonly at: number
  /** Null: none could be taken. */
  readonly premium: bigint | null
}

/** An action as the chain sees it. */
interface Action {
  readonly at: number
  readonly oracle: bigint
  readonly sets: { readonly rate: bigint; readonly validUntil: number } | null
}

interface Year {
  readonly samples: readonly Sample[]
  readonly actions: readonly Action[]
  /** After each action. */
  readonly indexes: readonly bigint[]
}

type Random = ReturnType<typeof randomOf>

/** The running or the next session at times that never go back; null if there is none. */
function follow(sessions: readonly TradingSession[]): (at: number) => TradingSession | null {
  let place = 0
  return (at) => {
    while (place < sessions.length && (sessions[place] as TradingSession).closesAt <= at) place++
    return sessions[place] ?? null
  }
}

/** The keeper's loop: it samples, queues an update when one is due, and now and then settles a batch. Without sessions it is always open. */
function simulate(
  spec: MarketSpec,
  sessions: readonly TradingSession[] | null,
  random: Random,
  passed: () => number,
): Year {
  const sessionAt = follow(sessions ?? [{ opensAt: START as Millis, closesAt: END as Millis }])
  const year = { samples: [] as Sample[], actions: [] as Action[], indexes: [] as bigint[] }
  let funding: FundingState = NO_FUNDING
  let last: LastUpdate | null = null
  let average = NO_PREMIUM
  let premium = 0n
  let oracle: bigint = price('250')
  let at = START
  for (let next = at; at < END; at = next) {
    const running = sessionAt(at)
    const isOpen = running !== null && running.opensAt <= at
    // Outside of a session the job looks twice per hour, and at the opening.
    next = isOpen ? at + passed() : Math.min(running?.opensAt ?? END, at + HOUR / 2)
    if (at >= OUTAGE[0] && at < OUTAGE[1]) continue
    const now = at as Millis
    const endsAt = isOpen ? running.closesAt : 0
    premium = (premium * 999n) / 1000n + BigInt(random(2_000_001) - 1_000_000) * 10n ** 10n
    if (isOpen) oracle += BigInt(random(2_001) - 1_000) * 10n ** 14n
    const sample = { at, premium: isOpen ? premium : null }
    year.samples.push(sample)
    average = addPremium(average, sample.premium as Rate | null, now)
    const session: SessionReport = { endsAt: endsAt as Millis, observedAt: now, signatures: '0x' }
    const report = { price: oracle as Price, observedAt: now, signatures: '0x' as const }
    const update = planFundingUpdate({
      ...{ spec, rules: RULES, mode: 'open', asOf: now, funding, usedReport: null, report, session },
      ...{ premium: average, last, interval: UPDATE_INTERVAL },
    })
    if (update === null && (!isOpen || random(40) > 0)) continue
    if (update !== null) last = { asOf: now, outcome: 'mined' }
    funding = advanceFunding(funding, now, update)
    year.actions.push({ at, oracle, sets: update && { rate: update.rate, validUntil: update.validUntil } })
    year.indexes.push(funding.index)
  }
  return year
}

// ---------------------------------------------------------------------- the independent calculation

interface Rated {
  readonly from: number
  readonly until: number
  readonly rate: bigint
}

/** The index after each action: for each interval between two actions the milliseconds in which a rate ran, second by second. */
function indexesOf(
  actions: readonly Action[],
  rates: readonly Rated[],
  isOpenAt: (second: number) => boolean,
) {
  let index = 0n
  let current = -1
  return actions.map(({ at, sets }, place) => {
    const running = rates[current]
    const from = actions[place - 1]?.at ?? at
    let millis = 0
    if (running !== undefined) {
      for (let second = from - (from % SECOND); second < at; second += SECOND) {
        if (!isOpenAt(second)) continue
        const [a, b] = [Math.max(second, from, running.from), Math.min(second + SECOND, at, running.until)]
        if (b > a) millis += b - a
      }
      const due = running.rate * BigInt(millis)
      index += due < 0n ? -(-due / 3_600_000n) : due / 3_600_000n
    }
    if (sets !== null) current++
    return index
  })
}

/** What each update had to set, from the samples themselves. */
function ratesOf(
  spec: MarketSpec,
  { samples, actions }: Year,
  sessionEndAt: (at: number) => number | null,
): Rated[] {
  const weights = samples.map(({ at, premium }, place) =>
    premium === null ? 0 : Math.min(at - (samples[place - 1]?.at ?? 0), 5_000),
  )
  const rated: Rated[] = []
  let next = 0
  let first = 0
  let [weight, sum] = [0, 0n]
  for (const { at, oracle, sets } of actions) {
    for (; next < samples.length && (samples[next] as Sample).at <= at; next++) {
      weight += weights[next] as number
      sum += ((samples[next] as Sample).premium ?? 0n) * BigInt(weights[next] as number)
    }
    const oldest = Math.floor(at / 300_000) * 300_000 - 3_300_000
    for (; (samples[first] as Sample).at < oldest; first++) {
      weight -= weights[first] as number
      sum -= ((samples[first] as Sample).premium ?? 0n) * BigInt(weights[first] as number)
    }
    if (sets === null) continue
    const average = sum / BigInt(Math.max(weight, 900_000))
    const wanted = (average * oracle * spec.step) / (8n * 10n ** 36n)
    rated.push({
      from: at,
      until: Math.min(at + HOUR, sessionEndAt(at) ?? Infinity),
      rate: bounded(spec, rated.at(-1), wanted, oracle, at),
    })
  }
  return rated
}

/** The contract's bounds in words of their own: in steps of 1 / 2,700,000 of the full swing per millisecond. */
function bounded(
  spec: MarketSpec,
  before: Rated | undefined,
  wanted: bigint,
  oracle: bigint,
  at: number,
): bigint {
  const cap = (spec.fundingCap * oracle * spec.step) / 10n ** 36n
  const clip = (value: bigint, low: bigint, high: bigint) => (value < low ? low : value > high ? high : value)
  const start = clip(before?.rate ?? 0n, -cap, cap)
  const way = (2n * cap * BigInt(at - (before?.from ?? 0))) / 2_700_000n
  let edge = cap
  if (before === undefined || at >= before.until) {
    const left = (start < 0n ? -start : start) - way
    edge = left > cap / 3n ? left : cap / 3n
  }
  const low = start - way < -edge ? -edge : start - way
  const high = start + way > edge ? edge : start + way
  return clip(wanted, low, high)
}

// ---------------------------------------------------------------------- the tests

describe('a simulated year of funding', function () {
  this.timeout(60_000)

  it('when a perpetual trades around the clock, rates and index equal an independent calculation to the wei', () => {
    const random = randomOf(1)
    const year = simulate(perpetual, null, random, () => 10_000 + random(70_000))
    const rates = ratesOf(perpetual, year, () => null)
    const updates = year.actions.filter(({ sets }) => sets !== null)
    expect(updates.map(({ sets }) => sets?.rate)).to.deep.equal(rates.map(({ rate }) => rate))
    expect(updates.map(({ sets }) => sets?.validUntil)).to.deep.equal(rates.map(({ until }) => until))
    expect(indexesOf(year.actions, rates, () => true)).to.deep.equal(year.indexes)
    // Every quarter of an hour; an outage of a day leaves out 96 of them.
    expect(updates.length).to.be.within(30_000, 365 * 96)
    const gap = updates.findIndex(({ at }) => at >= OUTAGE[1])
    expect((updates[gap] as Action).at - OUTAGE[1]).to.be.lessThan(80_000)
    const accruedIn = (from: number, to: number) => rates.filter((one) => one.from < to && one.until > from)
    expect(accruedIn(OUTAGE[0] + HOUR, OUTAGE[1])).to.deep.equal([])
  })

  it('when a stock perpetual has sessions, it funds within them only, to the second, and to the wei', () => {
    const stock = { ...perpetual, fundingSession: true }
    const sessions = sessionsBetween(nyseCalendar([], newYorkTime), START as Millis, END as Millis)
    const open = new Uint8Array((END - START) / SECOND)
    for (const { opensAt, closesAt } of sessions) {
      open.fill(1, (opensAt - START) / SECOND, (closesAt - START) / SECOND)
    }
    expect(open.reduce((sum, one) => sum + one, 0)).to.equal(249 * 23_400 + 2 * 12_600)
    const random = randomOf(2)
    const year = simulate(stock, sessions, random, () => 500 + random(20_000))
    const sessionAt = follow(sessions)
    const endOf = (at: number): number | null => sessionAt(at)?.closesAt ?? null
    const rates = ratesOf(stock, year, endOf)
    const updates = year.actions.filter(({ sets }) => sets !== null)
    expect(updates.map(({ sets }) => sets?.rate)).to.deep.equal(rates.map(({ rate }) => rate))
    expect(updates.map(({ sets }) => sets?.validUntil)).to.deep.equal(rates.map(({ until }) => until))
    expect(indexesOf(year.actions, rates, (second) => open[(second - START) / SECOND] === 1)).to.deep.equal(
      year.indexes,
    )
    // Summer and winter time, and both half-days: the last rate of each session ends with it.
    const ends = new Set(rates.map(({ until }) => until))
    const missed = sessions.filter(({ closesAt }) => !ends.has(closesAt)).map(({ closesAt }) => closesAt)
    // The rate before the outage ended an hour after it.
    expect(missed).to.deep.equal([utc('06-09T20:00:00')])
    for (const [date, close] of [
      ['03-06', '21:00'],
      ['03-09', '20:00'],
      ['10-30', '20:00'],
      ['11-02', '21:00'],
      ['11-27', '18:00'],
      ['12-24', '18:00'],
    ]) {
      expect(ends.has(utc(`${date}T${close}:00`)), `${date} ${close}`).to.equal(true)
    }
  })
})
