/** The answers of the operator's view, from rows of the database and metrics of the processes. */
import { toMarketTerms } from '../../db/terms.ts'
import { type ChainTerms, modeInForce } from '../../domain/market/changes.ts'
import { fromStoredSpec } from '../../domain/market/stored-spec.ts'
import type { Millis } from '../../domain/units.ts'
import { statusView } from '../markets/oracle.ts'
import { isoTime, maybeTime } from '../wire/amounts.ts'
import type { ProcessKind, ProcessReading } from './processes.ts'
import { type FeedRow, type JournalRow, type MarketRow, MOST_ACTIONS } from './query.ts'
import type { Sample } from './samples.ts'

/** Digits of a digest that the metric `engine_digest` has. */
const DIGEST_DIGITS = 12

export const ofKind = (readings: readonly ProcessReading[], kind: ProcessKind): readonly ProcessReading[] =>
  readings.filter((reading) => reading.kind === kind)

const samplesOf = (readings: readonly ProcessReading[], metric: string): readonly Sample[] =>
  readings.flatMap(({ samples }) => samples.all(metric))

/** The values of a metric by one of its labels; the highest of several processes. */
function byLabel(
  readings: readonly ProcessReading[],
  metric: string,
  label: string,
): ReadonlyMap<string, number> {
  const values = new Map<string, number>()
  for (const { labels, value } of samplesOf(readings, metric)) {
    const name = labels[label] ?? ''
    values.set(name, Math.max(value, values.get(name) ?? value))
  }
  return values
}

const ageMs = (now: Millis, at: number | null): number | null => (at === null ? null : Math.max(0, now - at))

// ---------------------------------------------------------------------- engine

export const headsOf = (readings: readonly ProcessReading[]): readonly number[] => [
  ...new Set(ofKind(readings, 'engine').flatMap(({ samples }) => samples.value('engine_head') ?? [])),
]

function memberView({ target, samples }: ProcessReading, digests: ReadonlyMap<number, string>) {
  const head = samples.value('engine_head')
  const digest = (samples.value('engine_digest') ?? 0).toString(16).padStart(DIGEST_DIGITS, '0')
  const stored = head === null ? undefined : digests.get(head)
  return {
    target,
    is_owner: samples.value('engine_is_owner') === 1,
    head,
    digest,
    digest_agrees: stored === undefined ? null : stored.startsWith(digest),
    follower_lag_seconds: samples.value('engine_follower_lag_seconds'),
  }
}

export function engineView(
  journal: JournalRow | null,
  readings: readonly ProcessReading[],
  stored: readonly { readonly number: number; readonly digest: string }[],
) {
  const digests = new Map(stored.map(({ number, digest }) => [number, digest]))
  const members = ofKind(readings, 'engine').map((reading) => memberView(reading, digests))
  return {
    journal: journal && {
      token: journal.token,
      incarnation: journal.incarnation,
      caught_up: journal.caught_up === journal.incarnation,
      head: journal.head ?? 0,
      tables_behind: Math.max(0, (journal.head ?? 0) - journal.written),
    },
    owners: members.filter(({ is_owner }) => is_owner).length,
    digest_mismatches: members.filter(({ digest_agrees }) => digest_agrees === false).length,
    members,
  }
}

// ---------------------------------------------------------------------- markets

/** The next change of the mode on the chain that is announced and not in force; null without one. */
function announcedMode({ pending: { mode, restriction } }: ChainTerms, now: Millis) {
  const changes = [mode, restriction].filter((change) => change !== null && change.activeFrom > now)
  const [next] = changes.toSorted((a, b) => (a?.activeFrom ?? 0) - (b?.activeFrom ?? 0))
  return next ? { mode: next.mode, active_from: isoTime(next.activeFrom) } : null
}

/** In Unix seconds as the chain has it; null if the bank is not paused. */
export const bankPauseEnd = (endsAt: number, now: Millis): string | null =>
  endsAt * 1000 > now ? isoTime(endsAt * 1000) : null

export function marketsView(rows: readonly MarketRow[], readings: readonly ProcessReading[], now: Millis) {
  const owners = ofKind(readings, 'engine').filter(({ samples }) => samples.value('engine_is_owner') === 1)
  const late = byLabel(owners, 'engine_market_lateness_seconds', 'market')
  const turns = byLabel(owners, 'engine_market_turn_timestamp_seconds', 'market')
  const freezes = byLabel(ofKind(readings, 'keeper'), 'keeper_freeze_pending', 'market')
  return rows.map((row) => {
    const market = String(row.market_id)
    const turnAt = turns.get(market)
    const pending = row.queued + row.signed + row.submitted
    const terms = toMarketTerms(row, fromStoredSpec(row.spec))
    return {
      market_id: row.market_id,
      symbol: row.symbol,
      mode: modeInForce(terms, now),
      announced_mode: announcedMode(terms.chain, now),
      restriction: row.mode,
      freeze_pending: freezes.has(market) ? freezes.get(market) === 1 : null,
      lateness_seconds: late.get(market) ?? null,
      turn_age_ms: turnAt === undefined ? null : ageMs(now, turnAt * 1000),
      last_batch_id: row.last_batch_id,
      last_batch_age_ms: row.last_batch_id === 0 ? null : ageMs(now, row.last_as_of),
      settlement: {
        queued: row.queued,
        signed: row.signed,
        submitted: row.submitted,
        is_complete: pending < MOST_ACTIONS,
        lag_ms: ageMs(now, row.oldest_as_of),
      },
      read_model_lag: row.read_model_lag,
    }
  })
}

// ---------------------------------------------------------------------- relayers and queues

interface KeyRow {
  readonly lane: string
  readonly address: string
  readonly next_nonce: number
  readonly registered_at: number
}

interface LeaseRow {
  readonly name: string
  readonly owner: string
  readonly token: number
  readonly expires_at: number
}

/** The newest reading of each lane's balance: a lane may have had another owner before. */
function balancesOf(keepers: readonly ProcessReading[]): ReadonlyMap<string, { value: number; at: number }> {
  const newest = new Map<string, { value: number; at: number }>()
  for (const keeper of keepers) {
    const times = byLabel([keeper], 'keeper_relayer_balance_timestamp_seconds', 'lane')
    for (const [lane, value] of byLabel([keeper], 'keeper_relayer_balance', 'lane')) {
      const at = (times.get(lane) ?? 0) * 1000
      if (at >= (newest.get(lane)?.at ?? 0)) newest.set(lane, { value, at })
    }
  }
  return newest
}

export function relayersView(keys: readonly KeyRow[], readings: readonly ProcessReading[], now: Millis) {
  const keepers = ofKind(readings, 'keeper')
  const balances = balancesOf(keepers)
  const inFlight = byLabel(keepers, 'keeper_transactions_in_flight', 'lane')
  const queued = byLabel(keepers, 'keeper_actions_queued', 'lane')
  const seen = new Set<string>()
  return keys.map(({ lane, address, next_nonce, registered_at }) => {
    const isPresent = !seen.has(lane)
    seen.add(lane)
    // Metrics are those of the present key.
    const balance = isPresent ? balances.get(lane) : undefined
    return {
      lane,
      address,
      is_present: isPresent,
      next_nonce,
      registered_at: isoTime(registered_at),
      balance: balance?.value ?? null,
      balance_age_ms: ageMs(now, balance?.at ?? null),
      transactions_in_flight: isPresent ? (inFlight.get(lane) ?? null) : null,
      actions_queued: isPresent ? (queued.get(lane) ?? null) : null,
    }
  })
}

export const leasesView = (rows: readonly LeaseRow[], now: Millis) =>
  rows.map(({ name, owner, token, expires_at }) => ({ name, owner, token, is_held: expires_at > now }))

const JOB_STATES = ['waiting', 'active', 'delayed', 'failed', 'completed'] as const
const COMMAND_CLASSES = ['auction', 'cancel', 'chain', 'placement'] as const

export function queuesView(readings: readonly ProcessReading[]) {
  const jobs = byLabel(ofKind(readings, 'keeper'), 'keeper_lane_jobs', 'state')
  const owners = ofKind(readings, 'engine').filter(({ samples }) => samples.value('engine_is_owner') === 1)
  return {
    lane_jobs:
      jobs.size === 0 ? null : Object.fromEntries(JOB_STATES.map((state) => [state, jobs.get(state) ?? 0])),
    engine_commands: Object.fromEntries(
      COMMAND_CLASSES.map((of) => [of, owners[0]?.samples.value(`engine_waiting_${of}`) ?? null]),
    ),
    api_commands: ofKind(readings, 'api').map(({ target, samples }) => ({
      target,
      waiting: samples.value('api_commands_waiting'),
    })),
  }
}

// ---------------------------------------------------------------------- oracle

export function oracleView(
  rows: readonly FeedRow[],
  readings: readonly ProcessReading[],
  now: Millis,
  maxAgeMs: number,
) {
  const faults = samplesOf(ofKind(readings, 'keeper'), 'keeper_signer_faults_total')
  return {
    feeds: rows.map((row) => ({
      market_id: row.market_id,
      symbol: row.symbol,
      feed: row.feed,
      age_ms: ageMs(now, row.observed_at),
      ...statusView(row, now, maxAgeMs),
    })),
    signer_faults: faults.map(({ labels, value }) => ({
      signer: labels.signer ?? '',
      fault: labels.fault ?? '',
      count: value,
    })),
  }
}

// ---------------------------------------------------------------------- processes

/** Processes state the difference of their clocks under their own names. */
const skewOf = ({ kind, samples }: ProcessReading): number | null =>
  kind === null ? null : samples.value(`${kind}_clock_skew_seconds`)

export function processesView(
  readings: readonly ProcessReading[],
  progress: { readonly head: number; readonly completed_at: number } | undefined,
  now: Millis,
) {
  const mismatches = byLabel(ofKind(readings, 'indexer'), 'indexer_settlement_mismatches_total', 'kind')
  return {
    chain: {
      block: progress?.head ?? null,
      reached_ms_ago: ageMs(now, progress?.completed_at ?? null),
      settlement_mismatches: Object.fromEntries(mismatches),
    },
    processes: readings.map((reading) => ({
      target: reading.target,
      kind: reading.kind,
      fault: reading.fault,
      started_at: maybeTime(startOf(reading)),
      clock_skew_seconds: skewOf(reading),
      log_lines_dropped: reading.samples.value('log_lines_dropped'),
    })),
  }
}

function startOf({ samples }: ProcessReading): number | null {
  const seconds = samples.value('process_start_time_seconds')
  return seconds === null ? null : seconds * 1000
}
