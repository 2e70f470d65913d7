/** The laws of the engine (`keeper/engine/README.md`), checked on everything that a run has recorded. */
import type { Group } from '../../../keeper/engine/ports.ts'
import { MOST_REPORTED, oneOwner } from '../group-laws.ts'
import type { Observed } from '../scenario.ts'
import { Ledger, type LedgerAnswer, type LedgerCommand, type LedgerRow } from './ledger.ts'
import type { LedgerAttempt as Attempt } from './traders.ts'

type KnownRows = (command: LedgerCommand) => number

export function checkLaws(
  observed: Observed<LedgerCommand, LedgerRow, LedgerAnswer>,
  knownRows: KnownRows,
): string[] {
  const { groups, attempts } = observed
  const rows = groups.flatMap((group) => group.rows)
  const violations = [
    ...oneOwner(groups),
    ...sameDigest(groups),
    ...acknowledged(rows, attempts),
    ...refusedIsNothing(rows, attempts),
    ...freshAnswers(rows, attempts, knownRows),
    ...inOrder(groups, observed.arrivals),
    ...answered(observed),
    ...reservations(rows),
    ...onlyFaulty(attempts),
    ...forwardInTime(rows),
    ...finished(rows),
  ]
  return violations.slice(0, MOST_REPORTED)
}

function sameDigest(groups: readonly Group<LedgerRow>[]): string[] {
  const ledger = new Ledger()
  for (const { number, rows, digest } of groups) {
    for (const row of rows) ledger.apply(row)
    ledger.forget(ledger.position())
    if (ledger.digest() !== digest) return [`same-digest: group ${number}`]
  }
  return []
}

/** A repeated command takes effect once, and every answered effect is in the journal. */
function acknowledged(rows: readonly LedgerRow[], attempts: readonly Attempt[]): string[] {
  const effects = Map.groupBy(
    rows.filter(({ isFirst }) => isFirst),
    ({ id, attempt }) => (id.startsWith('c') ? id : `${id}/${attempt}`),
  )
  const doubled = [...effects]
    .filter(([, own]) => own.length > 1)
    .map(([id, own]) => `acknowledged: ${id} took effect ${own.length} times`)
  const lost = attempts
    .filter(({ reply, command }) => isDone(reply) && command.kind !== 'close' && !effects.has(command.id))
    .map(
      ({ command }) => `acknowledged: ${command.kind} ${command.id} was answered and is not in the journal`,
    )
  return [...doubled, ...lost]
}

const isDone = (reply: Attempt['reply']): boolean =>
  reply !== null && 'answer' in reply && reply.answer.result === 'done'

function refusedIsNothing(rows: readonly LedgerRow[], attempts: readonly Attempt[]): string[] {
  const written = new Set(rows.map(({ attempt }) => attempt))
  return attempts
    .filter(({ reply, command }) => {
      if (reply === null || !written.has(command.attempt)) return false
      return 'none' in reply ? reply.none !== 'unknown' : reply.answer.result !== 'done'
    })
    .map(
      ({ command, reply }) => `refused-is-nothing: ${command.kind} ${command.id}: ${JSON.stringify(reply)}`,
    )
}

/**
 * Each answer shows the balance at its journal position, which is never earlier than a position that a client has
 * received before.
 */
function freshAnswers(
  rows: readonly LedgerRow[],
  attempts: readonly Attempt[],
  knownRows: KnownRows,
): string[] {
  const violations: string[] = []
  const answers = attempts
    .flatMap((attempt) =>
      attempt.reply !== null && 'answer' in attempt.reply ? [{ attempt, answer: attempt.reply.answer }] : [],
    )
    .toSorted((a, b) => a.answer.seen - b.answer.seen)
  const ledger = new Ledger()
  for (const { attempt, answer } of answers) {
    const { command } = attempt
    const known = knownRows(command)
    const name = `${command.kind} ${command.id}`
    if (answer.seen < known) violations.push(`fresh-answers: ${name} saw ${answer.seen} of ${known} rows`)
    if (answer.seen > rows.length) {
      violations.push(`fresh-answers: ${name} saw ${answer.seen} rows of ${rows.length}`)
      continue
    }
    while (ledger.position() < answer.seen) ledger.apply(rows[ledger.position()] as LedgerRow)
    ledger.forget(ledger.position())
    const { free, reserved } = ledger.balance(command.account)
    if (command.kind === 'close' && answer.result === 'done' && ledger.isClosing()) {
      violations.push(`fresh-answers: ${name} was answered before it had ended`)
    }
    if (command.kind !== 'close' && (free !== answer.free || reserved !== answer.reserved)) {
      violations.push(
        `fresh-answers: ${name} was told ${answer.free}/${answer.reserved}, was ${free}/${reserved}`,
      )
    }
  }
  return violations
}

/** Rows of an account follow the order in which its commands reached the owner. */
function inOrder(groups: readonly Group<LedgerRow>[], arrivals: readonly LedgerCommand[]): string[] {
  const arrivedAt = new Map(arrivals.map(({ attempt }, at) => [attempt, at]))
  const last = new Map<string, number>()
  const violations: string[] = []
  for (const { token, rows } of groups) {
    for (const { isFirst, account, attempt, id } of rows) {
      const at = arrivedAt.get(attempt)
      if (!isFirst || at === undefined) continue
      const key = `${token}/${account}`
      const command = arrivals[at]
      // Deposits and closings are the exchange's own commands, scheduled independently of arrivals.
      if (command === undefined || command.kind === 'deposit' || command.kind === 'close') continue
      if ((last.get(key) ?? -1) > at)
        violations.push(`order: ${id} of account ${account} was decided too late`)
      last.set(key, Math.max(last.get(key) ?? -1, at))
    }
  }
  return violations
}

function answered({ neverAnswered, faults }: Observed<LedgerCommand, LedgerRow, LedgerAnswer>): string[] {
  const open = neverAnswered.map(({ kind, id }) => `bounded: ${kind} ${id} was never answered`)
  return [...open, ...faults.map((fault) => `recovery: ${fault}`)]
}

/** A command without a fault is never answered as faulty, whichever commands share its group. */
function onlyFaulty(attempts: readonly Attempt[]): string[] {
  return attempts
    .filter(({ command, reply }) => {
      const isFaulty = command.kind === 'faulty' || command.kind === 'poison'
      return !isFaulty && reply !== null && 'none' in reply && reply.none === 'faulty'
    })
    .map(({ command }) => `only-faulty: ${command.kind} ${command.id} was answered as faulty`)
}

function forwardInTime(rows: readonly LedgerRow[]): string[] {
  return rows.flatMap(({ id, at }, place) => {
    const before = rows[place - 1]
    return before === undefined || before.at <= at
      ? []
      : [`forward-in-time: ${id} at ${at} after ${before.at}`]
  })
}

/** The next owner finishes long work that an owner has begun. */
function finished(rows: readonly LedgerRow[]): string[] {
  const ledger = new Ledger()
  for (const row of rows) ledger.apply(row)
  return ledger.isClosing() ? ['recovery: a closing was begun and never finished'] : []
}

/** An account's reservation is the sum over its orders, and never above its free balance. */
function reservations(rows: readonly LedgerRow[]): string[] {
  const ledger = new Ledger()
  for (const row of rows) ledger.apply(row)
  const accounts = [...new Set(rows.map(({ account }) => account))]
  return accounts.flatMap((account) => {
    const { free, reserved } = ledger.balance(account)
    const isRight = reserved === ledger.reservedByOrders(account) && reserved <= free
    return isRight ? [] : [`reservations: account ${account} reserves ${reserved} of ${free}`]
  })
}
