/** Reads the operator's view. The password stays in the memory of this page: a reload asks for it again. */
import { signal } from '@preact/signals'
import { config } from '../base/config.ts'

/** The header of an operator; null before the password is entered, and after it was refused. */
export const credential = signal<string | null>(null)
/** Why the last password was refused. */
export const refusal = signal<string | null>(null)

export interface EngineMember {
  readonly target: string
  readonly is_owner: boolean
  readonly head: number | null
  readonly digest: string
  readonly digest_agrees: boolean | null
  readonly follower_lag_seconds: number | null
}

export interface EngineState {
  readonly journal: {
    readonly token: number
    readonly incarnation: number
    readonly caught_up: boolean
    readonly head: number
    readonly tables_behind: number
  } | null
  readonly owners: number
  readonly digest_mismatches: number
  readonly members: readonly EngineMember[]
}

export interface MarketState {
  readonly market_id: number
  readonly symbol: string
  readonly mode: string
  readonly announced_mode: { readonly mode: string; readonly active_from: string } | null
  readonly restriction: string
  readonly freeze_pending: boolean | null
  readonly lateness_seconds: number | null
  readonly turn_age_ms: number | null
  readonly last_batch_id: number
  readonly last_batch_age_ms: number | null
  readonly settlement: {
    readonly queued: number
    readonly signed: number
    readonly submitted: number
    readonly is_complete: boolean
    readonly lag_ms: number | null
  }
  readonly read_model_lag: number
}

export interface RelayerState {
  readonly lane: string
  readonly address: string
  readonly is_present: boolean
  readonly next_nonce: number
  readonly balance: number | null
  readonly balance_age_ms: number | null
  readonly transactions_in_flight: number | null
  readonly actions_queued: number | null
}

export interface LeaseState {
  readonly name: string
  readonly owner: string
  readonly token: number
  readonly is_held: boolean
}

export interface QueueState {
  readonly lane_jobs: Readonly<Record<string, number>> | null
  readonly engine_commands: Readonly<Record<string, number | null>>
  readonly api_commands: readonly { readonly target: string; readonly waiting: number | null }[]
}

export interface FeedState {
  readonly market_id: number
  readonly symbol: string
  readonly feed: string
  readonly status: string
  readonly reason: string | null
  readonly age_ms: number | null
  readonly sources: readonly {
    readonly source: string
    readonly observed_at: string | null
    readonly dropped: string | null
    readonly detail: string | null
  }[]
}

export interface ProcessState {
  readonly target: string
  readonly kind: string | null
  readonly fault: string | null
  readonly started_at: string | null
  readonly clock_skew_seconds: number | null
  readonly log_lines_dropped: number | null
}

export interface ChainState {
  readonly block: number | null
  readonly reached_ms_ago: number | null
  readonly settlement_mismatches: Readonly<Record<string, number>>
}

/** The whole view. */
export interface Operation {
  readonly time: string
  readonly engine: EngineState
  /** Null unless the bank is paused. */
  readonly bank_pause_ends_at: string | null
  readonly markets: readonly MarketState[]
  readonly relayers: readonly RelayerState[]
  readonly leases: readonly LeaseState[]
  readonly queues: QueueState
  readonly feeds: readonly FeedState[]
  readonly chain: ChainState
  readonly processes: readonly ProcessState[]
}

/** Any user name is valid; the password may have any characters. */
export function enter(password: string): void {
  const bytes = new TextEncoder().encode(`operator:${password}`)
  refusal.value = null
  credential.value = `Basic ${btoa(String.fromCharCode(...bytes))}`
}

async function read<Answer>(name: string): Promise<Answer> {
  const response = await fetch(`${config.apiUrl}/operate/${name}`, {
    headers: { authorization: credential.value ?? '' },
  })
  if (response.ok) return (await response.json()) as Answer
  if (response.status === 404)
    throw new Error('This api serves no view for operators: its QUEUE_PAGE_PASSWORD is not set.')
  if (response.status === 401) {
    refusal.value = 'The password is not the one of QUEUE_PAGE_PASSWORD.'
    credential.value = null
    throw new Error(refusal.value)
  }
  const body = (await response.json().catch(() => null)) as { message?: string } | null
  throw new Error(body?.message ?? `The api answered ${response.status}.`)
}

export async function readOperation(): Promise<Operation> {
  const [
    engine,
    { markets, bank_pause_ends_at },
    { relayers, leases },
    queues,
    { feeds },
    { chain, processes, time },
  ] = await Promise.all([
    read<EngineState>('engine'),
    read<Pick<Operation, 'markets' | 'bank_pause_ends_at'>>('markets'),
    read<Pick<Operation, 'relayers' | 'leases'>>('relayers'),
    read<QueueState>('queues'),
    read<Pick<Operation, 'feeds'>>('oracle'),
    read<Pick<Operation, 'chain' | 'processes' | 'time'>>('processes'),
  ])
  return { time, engine, bank_pause_ends_at, markets, relayers, leases, queues, feeds, chain, processes }
}
