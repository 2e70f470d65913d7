/** The laws of a liquidation's steps, see `laws.ts`. */

import type { Position } from '../domain/positions/position.ts'
import { closeAgainst } from '../domain/risk/deleverage.ts'
import { MAX_LEGS, type RankedLeg } from '../domain/risk/deleveraging-legs.ts'
import { type LadderInput, type LadderStep, PIECES, UNFILLED_BATCHES } from '../domain/risk/ladder.ts'
import { inherit } from '../domain/risk/liquidation.ts'
import { PAUSE_GRACE } from '../domain/settlement/durations.ts'
import { type Address, ONE, type Quote, type Steps } from '../domain/units.ts'
import { equityAt, isBelowThreshold, isSolventInBand, isUnder, rankScore, stakeAt } from './reference.ts'
import type { Tally } from './tally.ts'

/** Positions up to this notional close at once. */
const SMALL = 100_000n * ONE * ONE

/** A position on the other side, as everything sent will leave it. */
export interface Opposite {
  readonly account: Address
  readonly position: Position
}

type Kind = LadderStep['kind']

/** Whether the grace after a pause of the bank spares an account with this equity. */
export const isSpared = (pauseEndsAt: number, asOf: number, equity: bigint): boolean =>
  equity > 0n && asOf < pauseEndsAt * 1000 + PAUSE_GRACE

/** `opposites`: all that may be counterparties. */
export function checkStep(
  tally: Tally,
  input: LadderInput,
  step: LadderStep,
  opposites: () => readonly Opposite[],
): void {
  const required = requiredSteps(input, opposites)
  tally.check(
    'ladder',
    required.includes(step.kind),
    () => `${step.kind} instead of ${required.join(' or ')}`,
  )
  if (step.kind === 'force') checkPiece(tally, input, step.steps)
  if (step.kind === 'deleverage') checkLegs(tally, input, step.legs, opposites())
}

/** The kinds of steps that the order of the ladder allows: one, except within roundings. */
function requiredSteps(input: LadderInput, opposites: () => readonly Opposite[]): readonly Kind[] {
  const { spec, position, backstop, asOf, pauseEndsAt, progress } = input
  if (!isBelowThreshold(spec, position, input)) return ['end']
  const equity = equityAt(spec, position, input)
  if (isSpared(pauseEndsAt, asOf, equity)) return ['grace']

  const isInherited = backstop !== 'itself' && canInherit(input, position)
  const mayDeleverage = equity <= 0n || (backstop !== 'itself' && !isInherited)
  const inheritance: readonly Kind[] = isInherited ? ['inherit'] : []
  const deleveraging = (): readonly (Kind | typeof MAYBE)[] =>
    mayDeleverage && isUnder(spec, position, input, spec.mmr) ? deleverageable(input, opposites()) : []
  const isSolvent = isSolventInBand(spec, position, input)
  const resting: Kind = progress.resting > 0 ? 'rest' : 'force'
  const book: readonly Kind[] =
    isSolvent === null ? [resting, 'uncovered'] : [isSolvent ? resting : 'uncovered']

  if (equity <= 0n) return first(deleveraging(), inheritance, book)
  const isLow = 3n * equity * ONE < 2n * spec.mmr * stakeAt(spec, position, input)
  const late = isLow || progress.unfilled >= UNFILLED_BATCHES || isSolvent === false
  const next = first(inheritance, isInherited ? [] : deleveraging(), book)
  return late ? next : isSolvent === null ? [...new Set([...book, ...next])] : book
}

const MAYBE = 'maybe'

/** The first that applies. A list that begins with `MAYBE` applies within a rounding, and those after it do too. */
function first(...lists: readonly (readonly (Kind | typeof MAYBE)[])[]): readonly Kind[] {
  const kinds: Kind[] = []
  for (const list of lists) {
    for (const kind of list) if (kind !== MAYBE) kinds.push(kind)
    if (list.length > 0 && list[0] !== MAYBE) break
  }
  return kinds
}

function canInherit({ spec, backstop, index, oracle }: LadderInput, position: Position): boolean {
  if (backstop === 'itself' || !isUnder(spec, position, { index, oracle }, spec.mmr)) return false
  return inherit(spec, position, backstop, index, oracle).ok
}

/** Whether some counterparty can be paid for one step. The choice divides the pool, so that one step more or less can be payable. */
function deleverageable(input: LadderInput, opposites: readonly Opposite[]): (Kind | typeof MAYBE)[] {
  const payouts = opposites
    .map(({ position }) => payoutOfStep(input, position))
    .filter((each) => each !== null)
  if (payouts.some((payout) => 2n * payout <= input.pool)) return ['deleverage']
  return payouts.some((payout) => payout <= input.pool) ? [MAYBE, 'deleverage'] : []
}

/** Null if the position is no counterparty. */
function payoutOfStep({ spec, position, index, oracle }: LadderInput, other: Position): bigint | null {
  if (rankScore(spec, other, { index, oracle }) === null) return null
  return closeAgainst(spec, position, other, 1 as Steps, index, oracle)?.payout ?? null
}

function checkPiece(tally: Tally, { spec, position, progress, ...prices }: LadderInput, steps: Steps): void {
  const rest = Math.abs(position.size)
  const isSmall = stakeAt(spec, position, prices) <= SMALL
  const piece = Math.ceil(Math.max(progress.startSteps, rest) / PIECES)
  const due = isSmall ? rest : Math.min(rest, piece)
  tally.check('pieces', steps === due, () => `a forced order of ${steps} of ${rest} steps instead of ${due}`)
}

function checkLegs(
  tally: Tally,
  input: LadderInput,
  legs: readonly RankedLeg[],
  opposites: readonly Opposite[],
): void {
  const all = Math.abs(input.position.size)
  const closed = legs.reduce((sum, { steps }) => sum + steps, 0)
  const over = closed > 1 && isEnough(input, (closed - 2) as Steps, all)
  tally.check('over-deleveraging', !over && closed <= all, () => `${closed} of ${all} steps are too many`)

  const ofLeg = new Map(legs.map((leg) => [leg.counterparty, leg]))
  const left = legs.reduce((sum, { payout }) => sum - payout, input.pool as bigint)
  const last = legs.at(-1) as RankedLeg
  const unused = opposites.filter(({ account, position }) => {
    if ((ofLeg.get(account)?.steps ?? 0) >= Math.abs(position.size)) return false
    const payout = payoutOfStep(input, position)
    return payout !== null && 2n * payout <= left
  })
  const passed = unused.find((each) => each.account !== last.counterparty && precedes(input, each, last))
  tally.check('ranked', passed === undefined, () => `${passed?.account} ranks before ${last.counterparty}`)
  const isMore = unused.length > 0 && legs.length < MAX_LEGS && !isEnough(input, (closed + 1) as Steps, all)
  tally.check('enough', !isMore, () => `${closed} of ${all} steps close, and ${unused[0]?.account} is left`)
}

/** Whether nothing more has to be closed: all is, or the backstop can inherit the rest of a position with equity. */
function isEnough(input: LadderInput, closed: Steps, all: number): boolean {
  const { spec, position, index, backstop } = input
  if (closed >= all) return true
  if (backstop === null || backstop === 'itself' || equityAt(spec, position, input) <= 0n) return false
  return canInherit(input, shrunk(position, closed, index))
}

/** The position after a close at the bankruptcy price, to within the wei of its rounding. */
function shrunk(position: Position, closed: Steps, index: bigint): Position {
  const all = BigInt(Math.abs(position.size))
  const rest = all - BigInt(closed)
  const size = (position.size - Math.sign(position.size) * closed) as Steps
  const margin = position.foldedMargin - BigInt(position.size) * index
  const kept = margin - (margin * BigInt(closed)) / all
  return {
    ...position,
    size,
    entryNotional: ((position.entryNotional * rest) / all) as Quote,
    foldedMargin: (kept + BigInt(size) * index) as Quote,
  }
}

function precedes({ spec, ...prices }: LadderInput, each: Opposite, last: RankedLeg): boolean {
  const score = rankScore(spec, each.position, prices) as bigint
  return score > last.score || (score === last.score && each.account < last.counterparty)
}
